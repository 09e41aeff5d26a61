/* nvidia-smi as far as the gate asks it: its queries of GPUs and of compute processes, as CSV without heads and units.

   It knows what NVML tells and nothing else, so it answers for the library beside this file as for a real one
   (`tests/gpu/test_nvidia_smi.py` compares it with the real program). Words and exit codes are those of the real one:
   nvidia-smi(1), and what people report of broken GPUs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml.h"

enum { TEXT = 128, OTHER_ERROR = 255 };

static unsigned gpus;

static int exit_code(nvmlReturn_t code) { return code < OTHER_ERROR ? code : OTHER_ERROR; }

/* Fills `text` from one function of NVML; where that fails, what it says is not used. */
#define TELL(call, ...)                   \
    nvmlReturn_t code = call;             \
    snprintf(text, TEXT, __VA_ARGS__);    \
    return code

static nvmlReturn_t uuid(nvmlDevice_t gpu, char *text) { return nvmlDeviceGetUUID(gpu, text, TEXT); }
static nvmlReturn_t name(nvmlDevice_t gpu, char *text) { return nvmlDeviceGetName(gpu, text, TEXT); }

static nvmlReturn_t capability(nvmlDevice_t gpu, char *text) {
    int major = 0, minor = 0;
    TELL(nvmlDeviceGetCudaComputeCapability(gpu, &major, &minor), "%d.%d", major, minor);
}

static nvmlReturn_t count(nvmlDevice_t gpu, char *text) {
    (void)gpu;
    TELL(NVML_SUCCESS, "%u", gpus);
}

static nvmlReturn_t compute_mode(nvmlDevice_t gpu, char *text) {
    static const char *words[] = {"Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"};
    int mode = 0;
    TELL(nvmlDeviceGetComputeMode(gpu, &mode), "%s", words[mode & 3]);
}

static nvmlReturn_t mig_mode(nvmlDevice_t gpu, char *text) {
    unsigned current = 0, pending = 0;
    TELL(nvmlDeviceGetMigMode(gpu, &current, &pending), "%s", current ? "Enabled" : "Disabled");
}

static nvmlReturn_t memory_used(nvmlDevice_t gpu, char *text) {
    nvmlMemory_t memory = {0};
    TELL(nvmlDeviceGetMemoryInfo(gpu, &memory), "%llu", memory.used >> 20);
}

static nvmlReturn_t memory_total(nvmlDevice_t gpu, char *text) {
    nvmlMemory_t memory = {0};
    TELL(nvmlDeviceGetMemoryInfo(gpu, &memory), "%llu", memory.total >> 20);
}

static nvmlReturn_t clock_now(nvmlDevice_t gpu, char *text) {
    unsigned mhz = 0;
    TELL(nvmlDeviceGetClockInfo(gpu, NVML_CLOCK_SM, &mhz), "%u", mhz);
}

static nvmlReturn_t clock_most(nvmlDevice_t gpu, char *text) {
    unsigned mhz = 0;
    TELL(nvmlDeviceGetMaxClockInfo(gpu, NVML_CLOCK_SM, &mhz), "%u", mhz);
}

static nvmlReturn_t reasons(nvmlDevice_t gpu, char *text) {
    u64 bits = 0;
    TELL(nvmlDeviceGetCurrentClocksThrottleReasons(gpu, &bits), "0x%016llX", bits);
}

static nvmlReturn_t temperature(nvmlDevice_t gpu, char *text) {
    unsigned celsius = 0;
    TELL(nvmlDeviceGetTemperature(gpu, NVML_TEMPERATURE_GPU, &celsius), "%u", celsius);
}

static nvmlReturn_t ecc_errors(nvmlDevice_t gpu, char *text) {
    u64 lost = 0;
    int kind = NVML_MEMORY_ERROR_TYPE_UNCORRECTED;
    TELL(nvmlDeviceGetTotalEccErrors(gpu, kind, NVML_VOLATILE_ECC, &lost), "%llu", lost);
}

static const struct field {
    const char *name;
    nvmlReturn_t (*read)(nvmlDevice_t gpu, char *text);
} FIELDS[] = {
    {"uuid", uuid},
    {"name", name},
    {"compute_cap", capability},
    {"count", count},
    {"compute_mode", compute_mode},
    {"mig.mode.current", mig_mode},
    {"memory.used", memory_used},
    {"memory.total", memory_total},
    {"clocks.sm", clock_now},
    {"clocks.max.sm", clock_most},
    {"clocks_throttle_reasons.active", reasons},
    {"clocks_event_reasons.active", reasons},
    {"temperature.gpu", temperature},
    {"ecc.errors.uncorrected.volatile.total", ecc_errors},
    {NULL, NULL},
};

/* Whether the scenario says that this nvidia-smi is too old, or too new, for a field. */
static int is_unknown(const char *field) {
    const char *path = getenv("NVML_SCENARIO");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[TEXT], known[TEXT];
    int found = 0;
    while (file && fgets(line, sizeof line, file))
        found |= sscanf(line, "unknown_field %127s", known) == 1 && strcmp(known, field) == 0;
    if (file) fclose(file);
    return found;
}

/* Fills `found` with the fields of a list with commas between, at most `most`, and returns how many those are. */
static int fields_in(char *list, const struct field *found[], int most) {
    int fields = 0;
    for (char *word = strtok(list, ","); word && fields < most; word = strtok(NULL, ",")) {
        const struct field *one = FIELDS;
        while (one->name && strcmp(one->name, word)) one++;
        if (one->name == NULL || is_unknown(word)) {
            printf("Field \"%s\" is not a valid field to query.\n\n", word);
            exit(NVML_ERROR_INVALID_ARGUMENT);
        }
        found[fields++] = one;
    }
    return fields;
}

static nvmlDevice_t gpu_at(unsigned index) {
    nvmlDevice_t gpu;
    nvmlReturn_t code = nvmlDeviceGetHandleByIndex_v2(index, &gpu);
    if (code == NVML_SUCCESS) return gpu;
    const char *cure = code == NVML_ERROR_GPU_IS_LOST ? ".  Reboot the system to recover this GPU" : "";
    printf("Unable to determine the device handle for GPU0000:%02X:00.0: %s%s\n\n", index + 1, nvmlErrorString(code), cure);
    exit(exit_code(code));
}

/* Prints a line of fields and returns the exit code: what a GPU does not have, or hides, is no error. */
static int show(nvmlDevice_t gpu, const struct field *const fields[], int most) {
    int worst = 0;
    for (int i = 0; i < most; i++) {
        char text[TEXT] = "";
        nvmlReturn_t code = fields[i]->read(gpu, text);
        if (code == NVML_ERROR_NOT_SUPPORTED) strcpy(text, "[N/A]");
        else if (code != NVML_SUCCESS) snprintf(text, TEXT, "[%s]", nvmlErrorString(code));
        if (code == NVML_ERROR_GPU_IS_LOST) worst = exit_code(code);
        printf("%s%s", i ? ", " : "", text);
    }
    putchar('\n');
    return worst;
}

static void show_processes(nvmlDevice_t gpu) {
    nvmlProcessInfo_t found[64];
    unsigned processes = 64;
    char text[TEXT] = "";
    nvmlReturn_t code = nvmlDeviceGetComputeRunningProcesses_v3(gpu, &processes, found);
    if (uuid(gpu, text) != NVML_SUCCESS) return;
    if (code != NVML_SUCCESS) printf("%s, [%s]\n", text, code == NVML_ERROR_NOT_SUPPORTED ? "N/A" : nvmlErrorString(code));
    for (unsigned i = 0; code == NVML_SUCCESS && i < processes; i++) printf("%s, %u\n", text, found[i].pid);
}

static int initialize(void) {
    nvmlReturn_t code = nvmlInitWithFlags(0);
    if (code == NVML_SUCCESS) code = nvmlDeviceGetCount_v2(&gpus);
    if (code == NVML_ERROR_DRIVER_NOT_LOADED)
        puts("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
             "NVIDIA driver is installed and running.\n");
    else if (code != NVML_SUCCESS)
        printf("Failed to initialize NVML: %s\n", nvmlErrorString(code));
    return exit_code(code);
}

int main(int arguments, char *argument[]) {
    const struct field *fields[24];
    char *query = NULL, *id = NULL;
    int plain = 0, processes = 0, most = 0, worst = 0;
    for (int i = 1; i < arguments; i++) {
        char *value = strchr(argument[i], '=');
        if (strncmp(argument[i], "--query-gpu=", 12) == 0) query = value + 1;
        else if (strcmp(argument[i], "--query-compute-apps=gpu_uuid,pid") == 0) processes = 1;
        else if (strcmp(argument[i], "--format=csv,noheader,nounits") == 0) plain = 1;
        else if (strncmp(argument[i], "--id=", 5) == 0) id = value + 1;
        else return printf("ERROR: Option %s is not recognized.\n", argument[i]), 1;
    }
    if (!plain || processes == (query != NULL)) return puts("Invalid combination of input arguments."), 1;
    int failed = initialize();
    if (failed) return failed;
    if (query) most = fields_in(query, fields, 24);
    nvmlDevice_t named = NULL;
    if (gpus == 0 || (id && nvmlDeviceGetHandleByUUID(id, &named) != NVML_SUCCESS))
        return puts("No devices were found"), NVML_ERROR_NOT_FOUND;
    for (unsigned i = 0; i < (named ? 1 : gpus); i++) {
        nvmlDevice_t gpu = named ? named : gpu_at(i);
        if (processes) show_processes(gpu);
        else if ((failed = show(gpu, fields, most)) > worst) worst = failed;
    }
    for (unsigned i = 0; query && !named && i < gpus; i++)
        if (nvmlDeviceValidateInforom(gpu_at(i)) == NVML_ERROR_CORRUPTED_INFOROM) {
            printf("WARNING: infoROM is corrupted at gpu 0000:%02X:00.0\n", i + 1);
            worst = NVML_ERROR_CORRUPTED_INFOROM;
        }
    nvmlShutdown();
    return worst;
}
