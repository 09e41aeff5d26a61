/* libnvidia-ml.so.1 without a GPU: answers NVML's functions from the file that NVML_SCENARIO names.

   Each line is a key and a value. Before the first line `gpu` they are the system's, after it that GPU's.

       driver 550.54.14             what nvmlSystemGetDriverVersion answers
       cuda 12040                   likewise, 1000 * major + 10 * minor
       returns FUNCTION CODE        what that function returns, here or for this GPU; CODE `hang`: it never does
       unknown_field FIELD          for nvidia-smi beside this file: a field that it does not know
       gpu                          one more GPU, with uuid, name, capability (9.0), compute_mode (NVML's number), mig
                                    (0 or 1), memory_used_mib, memory_mib, sm_clock_mhz, max_sm_clock_mhz, reasons
                                    (NVML's bits), temperature_c, ecc_errors, pids (with blanks between)

   What a GPU has no line for, it does not support. A line that is not understood ends the program: a test that misspells
   a key would else test nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvml.h"

enum { LINES = 32, GPUS = 8, HANG = -1 };

struct device {
    int lines;
    char key[LINES][24], value[LINES][96];
};

static struct device place[1 + GPUS]; /* the system, and behind it the GPUs */
static int gpus, initialized;

static const char *KEYS = " driver cuda returns unknown_field uuid name capability compute_mode mig memory_used_mib memory_mib"
                          " sm_clock_mhz max_sm_clock_mhz reasons temperature_c ecc_errors pids ";

static void refuse(const char *line) {
    fprintf(stderr, "NVML_SCENARIO: not understood: %s\n", line);
    exit(1);
}

static int code_of(const char *text) { return strcmp(text, "hang") ? atoi(text) : HANG; }

static void read_scenario(void) {
    const char *path = getenv("NVML_SCENARIO");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[160], spaced[32], function[64];
    if (file == NULL) refuse("it names no file");
    memset(place, 0, sizeof place);
    gpus = 0;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (strcmp(line, "gpu") == 0 && gpus < GPUS) {
            gpus++;
            continue;
        }
        struct device *at = &place[gpus];
        if (at->lines == LINES || sscanf(line, "%23s %95[^\n]", at->key[at->lines], at->value[at->lines]) != 2) refuse(line);
        snprintf(spaced, sizeof spaced, " %s ", at->key[at->lines]);
        if (strstr(KEYS, spaced) == NULL) refuse(line);
        if (strcmp(at->key[at->lines], "returns") == 0) {
            void *self = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD);
            if (sscanf(at->value[at->lines], "%63s", function) != 1 || self == NULL || !dlsym(self, function)) refuse(line);
        }
        at->lines++;
    }
    fclose(file);
}

static const char *value(const struct device *at, const char *key) {
    for (int i = 0; i < at->lines; i++)
        if (strcmp(at->key[i], key) == 0) return at->value[i];
    return NULL;
}

/* What the scenario has `function` return: the GPU's own line counts before the system's. */
static nvmlReturn_t returned(const char *function, nvmlDevice_t device) {
    char name[64], code[16];
    if (!initialized) return NVML_ERROR_UNINITIALIZED;
    for (const struct device *at = device ? device : place;; at = place) {
        for (int i = 0; i < at->lines; i++) {
            if (strcmp(at->key[i], "returns") || sscanf(at->value[i], "%63s %15s", name, code) != 2) continue;
            if (strcmp(name, function)) continue;
            while (code_of(code) == HANG) pause();
            return code_of(code);
        }
        if (at == place) return NVML_SUCCESS;
    }
}

static nvmlReturn_t give_text(const char *function, nvmlDevice_t device, const char *key, char *text, unsigned length) {
    nvmlReturn_t code = returned(function, device);
    const char *found = value(device ? device : place, key);
    if (code != NVML_SUCCESS) return code;
    if (found == NULL) return NVML_ERROR_NOT_SUPPORTED;
    if (strlen(found) >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(text, found);
    return NVML_SUCCESS;
}

static nvmlReturn_t give_number(const char *function, nvmlDevice_t device, const char *key, u64 *number) {
    char text[96];
    nvmlReturn_t code = give_text(function, device, key, text, sizeof text);
    if (code == NVML_SUCCESS) *number = strtoull(text, NULL, 0);
    return code;
}

/* A function that has one number to give, which is a line of the scenario. */
#define GIVE(type, target, key)                                           \
    u64 number = 0;                                                       \
    nvmlReturn_t code = give_number(__func__, device, key, &number);      \
    if (code == NVML_SUCCESS) *(target) = (type)number;                   \
    return code

nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    read_scenario();
    initialized = 1;
    nvmlReturn_t code = returned("nvmlInitWithFlags", NULL);
    initialized = code == NVML_SUCCESS;
    return code;
}

nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

nvmlReturn_t nvmlShutdown(void) {
    if (!initialized) return NVML_ERROR_UNINITIALIZED;
    initialized = 0;
    return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t code) {
    switch (code) {
        case NVML_SUCCESS: return "Success";
        case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
        case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
        case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
        case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
        case NVML_ERROR_NOT_FOUND: return "Not Found";
        case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
        case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
        case NVML_ERROR_CORRUPTED_INFOROM: return "Corrupted infoROM";
        case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
        case NVML_ERROR_RESET_REQUIRED: return "GPU requires reset";
        case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
        default: return "Unknown Error";
    }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *text, unsigned length) {
    return give_text(__func__, NULL, "driver", text, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
    nvmlDevice_t device = NULL;
    GIVE(int, version, "cuda");
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    nvmlDevice_t device = NULL;
    GIVE(int, version, "cuda");
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
    *count = (unsigned)gpus;
    return returned(__func__, NULL);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
    if (index >= (unsigned)gpus) return NVML_ERROR_INVALID_ARGUMENT;
    *device = &place[1 + index];
    return returned(__func__, *device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    for (*device = place + 1; *device <= place + gpus; ++*device)
        if (value(*device, "uuid") && strcmp(value(*device, "uuid"), uuid) == 0) return returned(__func__, *device);
    return initialized ? NVML_ERROR_NOT_FOUND : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *text, unsigned length) {
    return give_text(__func__, device, "uuid", text, length);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *text, unsigned length) {
    return give_text(__func__, device, "name", text, length);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    char text[16];
    nvmlReturn_t code = give_text(__func__, device, "capability", text, sizeof text);
    if (code == NVML_SUCCESS && sscanf(text, "%d.%d", major, minor) != 2) refuse(text);
    return code;
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, int *mode) { GIVE(int, mode, "compute_mode"); }

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    u64 mode = 0;
    nvmlReturn_t code = give_number(__func__, device, "mig", &mode);
    if (code == NVML_SUCCESS) *current = *pending = (unsigned)mode;
    return code;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    u64 used = 0, total = 0;
    nvmlReturn_t code = give_number(__func__, device, "memory_used_mib", &used);
    if (code == NVML_SUCCESS) code = give_number(__func__, device, "memory_mib", &total);
    if (code == NVML_SUCCESS) *memory = (nvmlMemory_t){total << 20, (total - used) << 20, used << 20};
    return code;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int kind, unsigned *mhz) {
    if (kind != NVML_CLOCK_SM) return NVML_ERROR_NOT_SUPPORTED;
    GIVE(unsigned, mhz, "sm_clock_mhz");
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int kind, unsigned *mhz) {
    if (kind != NVML_CLOCK_SM) return NVML_ERROR_NOT_SUPPORTED;
    GIVE(unsigned, mhz, "max_sm_clock_mhz");
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, u64 *bits) { GIVE(u64, bits, "reasons"); }

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, u64 *bits) { GIVE(u64, bits, "reasons"); }

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned *celsius) {
    if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
    GIVE(unsigned, celsius, "temperature_c");
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int error, int counter, u64 *count) {
    if (error != NVML_MEMORY_ERROR_TYPE_UNCORRECTED || counter != NVML_VOLATILE_ECC) return NVML_ERROR_NOT_SUPPORTED;
    GIVE(u64, count, "ecc_errors");
}

nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device) { return returned(__func__, device); }

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *found) {
    nvmlReturn_t code = returned(__func__, device);
    unsigned room = *count;
    const char *rest = value(device, "pids");
    char *end;
    if (code != NVML_SUCCESS) return code;
    *count = 0;
    for (unsigned long pid; rest && (pid = strtoul(rest, &end, 10), end != rest); rest = end) {
        if (*count < room) found[*count] = (nvmlProcessInfo_t){(unsigned)pid, 1 << 20, ~0u, ~0u};
        ++*count;
    }
    return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}
