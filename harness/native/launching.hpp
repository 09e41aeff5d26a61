// Where a call is made: in the thread that asks for it, or in torch's inter-op pool while that thread waits.
#pragma once

#include <ATen/Parallel.h>

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

#include "events.hpp"
#include "json.hpp"
#include "switches.hpp"

namespace gate {

class Launcher {
 public:
  Launcher(const json::Value& request, bool through_pool) : request_(request), through_pool_(through_pool) {}

  // Does `work`; returns the CPU time in ns that it took in another thread. What it throws is thrown here.
  std::int64_t run(const std::function<void()>& work) const {
    if (!through_pool_) return work(), 0;
    std::mutex lock;
    std::condition_variable done;
    bool is_done = false;
    std::exception_ptr error;
    std::int64_t cpu_ns = 0;
    at::launch([&] {
      const std::int64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
      try {
        const switches::ThreadContext context(request_);
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
  const json::Value& request_;
  bool through_pool_;
};

}  // namespace gate
