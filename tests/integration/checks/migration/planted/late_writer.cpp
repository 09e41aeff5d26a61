// A moment before each write lock that a package takes: at its first call, to make its constants ready. Preloaded, it
// makes sure what otherwise one of a hundred first calls meets in 2.6.0 and 2.11.0, whose container holds its only model
// while it waits for that lock; the other callers wait for the model with the read lock in hand. Nothing is wrong with
// waiting here: the container of 2.15.0 comes through.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cstring>

extern "C" int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  using Take = int (*)(pthread_rwlock_t*);
  static const Take take = reinterpret_cast<Take>(dlsym(RTLD_NEXT, "pthread_rwlock_wrlock"));
  Dl_info caller{};
  const bool known = dladdr(__builtin_return_address(0), &caller) != 0 && caller.dli_fname;
  if (known && std::strstr(caller.dli_fname, "aotinductor")) usleep(20000);
  return take(lock);
}
