// Where a call is made: in the thread that asks for it, or in torch's inter-op pool while that thread waits.
#pragma once

#include "standard.hpp"

#include <ATen/Parallel.h>
#include <unistd.h>

#include "events.hpp"
#include "failures.hpp"
#include "settings/switches.hpp"
#include "values/json.hpp"

namespace gate {

// One thread's way to make calls within a phase.
class Launcher {
 public:
  // What all threads of a script share.
  struct Ways {
    const json::Value& request;
    switches::ThreadPools& pools;
    EventLog& log;
    bool through_pool;
  };

  Launcher(const Ways& ways, const char* phase, const Place& place)
      : ways_(ways), phase_(phase), place_(place), told_(syscall(SYS_gettid)) {}

  // Does `work`; returns the CPU time in ns that it took in another thread. What it throws is thrown here.
  std::int64_t run(const std::function<void()>& work) {
    if (!ways_.through_pool) return work(), 0;
    std::mutex lock;
    std::condition_variable done;
    bool is_done = false;
    std::exception_ptr error;
    std::int64_t cpu_ns = 0;
    at::launch([&] {
      const std::int64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
      try {
        tell_thread();
        ways_.pools.size(place_.thread);
        const switches::ThreadContext context(ways_.request);
        work();
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard<std::mutex> guard(lock);
      cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
      is_done = true;
      done.notify_one();  // under the lock: the waiting thread owns these and leaves as soon as it can
    });
    std::unique_lock<std::mutex> guard(lock);
    done.wait(guard, [&] { return is_done; });
    if (error) std::rethrow_exception(error);
    return cpu_ns;
  }

 private:
  // Says in whose hands the phase is now, where that is not what was said last of the phase and of this thread.
  void tell_thread() {
    static thread_local const Launcher* known_as = nullptr;
    const long here = syscall(SYS_gettid);
    if (here == told_ && known_as == this) return;
    told_ = here;
    known_as = this;
    ways_.log.taken_up(phase_, place_);
  }

  const Ways& ways_;
  const char* phase_;
  const Place& place_;
  long told_;
};

// Returns whether calls go through the inter-op pool.
inline bool goes_through_pool(const json::Value& script) {
  const json::Value* through = script.find("calls_through");
  if (!through || through->str() == "thread") return false;
  if (through->str() == "inter_op") return true;
  throw PythonError("ValueError", "calls go through a thread or inter_op, not through '" + through->str() + "'");
}

}  // namespace gate
