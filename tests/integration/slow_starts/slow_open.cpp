// Preloaded into a worker: opening an archive takes 1.5 s longer; only once where SLOW_ONCE names a file to remember it.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

bool is_slow() {
  const char* once = std::getenv("SLOW_ONCE");
  return once == nullptr || open(once, O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0;
}

FILE* open_as(const char* symbol, const char* path, const char* mode) {
  if (std::strstr(path, ".pt") != nullptr && is_slow()) usleep(1500 * 1000);
  return reinterpret_cast<FILE* (*)(const char*, const char*)>(dlsym(RTLD_NEXT, symbol))(path, mode);
}

}  // namespace

extern "C" FILE* fopen(const char* path, const char* mode) { return open_as("fopen", path, mode); }
extern "C" FILE* fopen64(const char* path, const char* mode) { return open_as("fopen64", path, mode); }
