// Appends events to events.jsonl: one line, one write(2), so that a kill loses at most the last one.
#pragma once

#include "standard.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "failures.hpp"
#include "wire.hpp"
#include "values/json.hpp"

namespace gate {

inline std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// A phase raised; the error is on record and the work on this model ends.
struct PhaseFailed {
  Failure failure;
};

// Who is at work on what: the fields that begin, end and error share.
struct Place {
  std::string model;
  int thread = 0;
  std::optional<std::string> set = {};
  std::optional<std::int64_t> call = {};
};

// The worker's event_log. Thread-safe: the kernel appends each write whole.
class EventLog {
 public:
  explicit EventLog(const std::string& path)
      : file_(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644)), pid_(getpid()) {}

  bool is_open() const { return file_ >= 0; }

  void emit(const char* event, json::Object fields) {
    if (getpid() != pid_) _exit(0);  // a copy of this process that a model has forked must not go on as a second worker
    const std::string line = fields.text("ev", event).integer("ns", clock_ns(CLOCK_MONOTONIC)).str() + "\n";
    if (write(file_, line.data(), line.size()) < 0) _exit(wire::kExitBroken);
  }

  // Goes on as the log of this process, which the one that it belonged to has forked for `thread`.
  void forked(int thread) {
    pid_ = getpid();
    emit("forked", json::Object().integer("thread", thread).integer("pid", pid_));
  }

  // `data` is JSON.
  void mark(const char* name, const std::string& data) {
    emit("mark", json::Object().text("name", name).raw("data", data));
  }

  // Says that the calling thread, one of a pool, has taken up the call of an open phase.
  void taken_up(const char* phase, const Place& place) { emit("task", with_thread(fields(phase, place))); }

  // Says that the request cannot be served; no phase and no model is to blame.
  void refuse(const std::string& message) {
    const json::Object what = json::Object().text("phase", "").text("type", "ProtocolError");
    emit("error", json::Object(what).text("message", message).text("traceback", ""));
  }

  // Brackets `body`. What it throws becomes an `error` event and goes on up as PhaseFailed. What it returns, if
  // anything, is the CPU time in ns that it has spent in another thread.
  template <typename Body>
  void phase(const char* name, const Place& place, Body&& body) {
    emit("begin", with_thread(fields(name, place)));
    const std::int64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    std::int64_t elsewhere_ns = 0;
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<Body>>) body();
      else elsewhere_ns = body();
    } catch (const PhaseFailed&) {
      throw;
    } catch (...) {
      Failure failure = current_failure();
      fail(name, place, failure);
      throw PhaseFailed{std::move(failure)};
    }
    const std::int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns + elsewhere_ns;
    emit("end", fields(name, place).integer("cpu_ns", cpu_ns));
  }

 private:
  static json::Object fields(const char* phase, const Place& place) {
    json::Object object;
    object.text("phase", phase).text("model", place.model).integer("thread", place.thread);
    if (place.set) object.text("set", *place.set);
    if (place.call) object.integer("call", *place.call);
    return object;
  }

  static json::Object with_thread(json::Object object) {
    return object.integer("ident", static_cast<std::uint64_t>(pthread_self())).integer("tid", syscall(SYS_gettid));
  }

  void fail(const char* phase, const Place& place, const Failure& failure) {
    emit("error", fields(phase, place)
                      .text("type", failure.type)
                      .text("message", failure.message.substr(0, kLongest))
                      .text("traceback", failure.traceback.substr(0, kLongest)));
  }

  static constexpr std::size_t kLongest = 20000;

  int file_;
  pid_t pid_;
};

}  // namespace gate
