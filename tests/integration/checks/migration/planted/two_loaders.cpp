// A planted deadlock of two loaders of packages: each takes two locks as it makes the folder that it unpacks into, every
// other one in the other order. Alone a loader comes through. Preloaded, it stands before mkdtemp, which the loader of
// 2.15.0 calls; TWO_LOADERS=healthy: one order for all.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

namespace {

std::mutex first, second;
std::atomic<int> waiting{0}, arrived{0};

bool is_of_a_package(const char* name) { return name && std::strstr(name, "aotinductor"); }

// Returns when another loader is here too, or after a moment without one.
void meet() {
  ++waiting;
  for (int i = 0; i < 100 && waiting < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace

extern "C" char* mkdtemp(char* name) {
  using Make = char* (*)(char*);
  static const Make make = reinterpret_cast<Make>(dlsym(RTLD_NEXT, "mkdtemp"));
  if (!is_of_a_package(name)) return make(name);
  const char* kind = std::getenv("TWO_LOADERS");
  const bool healthy = kind && std::strcmp(kind, "healthy") == 0;
  const bool swapped = !healthy && arrived++ % 2 == 1;
  const std::lock_guard<std::mutex> outer(swapped ? second : first);
  if (!healthy) meet();
  const std::lock_guard<std::mutex> inner(swapped ? first : second);
  --waiting;
  return make(name);
}
