// Preloaded into a worker: opening an archive takes 0.5 s longer.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace {

FILE* open_as(const char* symbol, const char* path, const char* mode) {
  if (std::strstr(path, ".pt") != nullptr) usleep(500 * 1000);
  return reinterpret_cast<FILE* (*)(const char*, const char*)>(dlsym(RTLD_NEXT, symbol))(path, mode);
}

}  // namespace

extern "C" FILE* fopen(const char* path, const char* mode) { return open_as("fopen", path, mode); }
extern "C" FILE* fopen64(const char* path, const char* mode) { return open_as("fopen64", path, mode); }
