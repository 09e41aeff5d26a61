// Verb `benchmark`: holds several models and measures them on order, on a CPU.
//
// harness/worker/run/benchmark.py says what the orders and the answers are. Here each call makes its arguments from
// values that were read before, as a server makes them from a request; the Python worker's conversion does the same.
#pragma once

#include "standard.hpp"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <malloc.h>
#include <sched.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include "events.hpp"
#include "failures.hpp"
#include "wire.hpp"
#include "run/serving.hpp"
#include "settings/switches.hpp"
#include "stacks/stacks.hpp"
#include "values/json.hpp"

namespace gate {

inline constexpr std::size_t kMostTimes = 20000;
inline constexpr std::size_t kLongestWords = 2000;
inline constexpr int kUntilOptimized = 3;  // unoptimised, profiled, optimised

inline double seconds_between(std::int64_t begin_ns, std::int64_t end_ns) {
  return 1e-9 * static_cast<double>(end_ns - begin_ns);
}

// How long the calling thread was ready and had no core, since its start; 0 where nobody counts.
inline std::int64_t queued_ns() {
  std::int64_t ran = 0, queued = 0;
  std::ifstream("/proc/thread-self/schedstat") >> ran >> queued;
  return queued;
}

// `VmRSS` or `VmHWM` of this process in bytes; nothing where the kernel does not tell.
inline std::optional<std::int64_t> memory_of(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind(name + ":", 0) == 0) return 1024 * std::stoll(line.substr(name.size() + 1));
  return std::nullopt;
}

// How far resident memory rises above what is in use now. Freed memory is given back to the kernel first: what an
// earlier model has left would be used again unseen.
class PeakMemory {
 public:
  PeakMemory() {
    malloc_trim(0);
    std::ofstream peak("/proc/self/clear_refs");
    if (peak << "5" << std::flush) before_ = memory_of("VmRSS");
  }

  std::string risen() const {
    const auto peak = memory_of("VmHWM");
    return before_ && peak ? std::to_string(std::max<std::int64_t>(*peak - *before_, 0)) : "null";
  }

 private:
  std::optional<std::int64_t> before_;
};

inline std::string words_of(const Failure& failure) {
  return (failure.type + ": " + failure.message).substr(0, kLongestWords);
}

// Has the calling thread run on `cores`, anywhere if there are none; returns why it cannot, or nothing.
inline std::string run_on(const std::vector<json::Value>& cores) {
  if (cores.empty()) return "";
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const json::Value& core : cores) CPU_SET(static_cast<int>(core.integer), &wanted);
  return sched_setaffinity(0, sizeof wanted, &wanted) == 0 ? "" : std::strerror(errno);
}

// Several threads that call one model at once for some time, as the callers of a server do.
class ConcurrentCallers {
 public:
  ConcurrentCallers(const json::Value& request, const json::Value& order, ServedModel& served, EventLog& log)
      : request_(request),
        cores_(order["cores"].items),
        seconds_(order["seconds"].as_double()),
        wanted_(order["threads"].integer),
        served_(served),
        log_(log),
        pools_(request, log) {}

  json::Object run() {
    std::vector<std::thread> threads;
    try {
      for (int index = 0; index < wanted_; ++index) threads.emplace_back([this, index] { act(index); });
    } catch (...) {
      fail(current_failure());
    }
    for (auto& thread : threads) thread.join();
    if (failure_) throw PhaseFailed{*failure_};
    const double calls = static_cast<double>(calls_);
    const double cpu_s = seconds_between(cpu_begin_ns_, clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    return json::Object()
        .number("request_s", seconds_between(begin_ns_, end_ns_) / calls)
        .number("request_cpu_s", cpu_s / calls)
        .integer("calls", calls_);
  }

 private:
  void act(int thread) {
    try {
      const stacks::ThreadGuard guard;
      run_on(cores_);
      pools_.size(thread);
      const switches::ThreadContext context(request_);
      const Place place{served_.name(), thread, served_.schedule().at(0).set};
      log_.phase(wire::kServe, place, [&] { call(*place.set); });
    } catch (const PhaseFailed& failed) {
      fail(failed.failure);
    } catch (...) {
      fail(current_failure());
    }
  }

  void call(const std::string& set) {
    PreparedCall prepared = served_.prepare(set);
    prepared.make();  // what every thread does once falls before the start
    if (!wait_for_all()) return;
    const std::int64_t limit_ns = begin_ns_ + static_cast<std::int64_t>(1e9 * seconds_);
    std::int64_t now_ns = begin_ns_, calls = 0;
    for (; now_ns < limit_ns; now_ns = clock_ns(CLOCK_MONOTONIC), ++calls) prepared.make();
    const std::lock_guard<std::mutex> guard(lock_);
    end_ns_ = std::max(end_ns_, now_ns);
    calls_ += calls;
  }

  // Returns whether all callers are there; the last one starts the clocks.
  bool wait_for_all() {
    std::unique_lock<std::mutex> guard(lock_);
    if (++here_ == wanted_) {
      cpu_begin_ns_ = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
      begin_ns_ = clock_ns(CLOCK_MONOTONIC);
      all_here_.notify_all();
    }
    all_here_.wait(guard, [&] { return here_ == wanted_ || failure_; });
    return !failure_;
  }

  void fail(const Failure& failure) {
    const std::lock_guard<std::mutex> guard(lock_);
    if (!failure_) failure_ = failure;
    all_here_.notify_all();
  }

  const json::Value& request_;
  const std::vector<json::Value>& cores_;
  const double seconds_;
  const std::int64_t wanted_;
  ServedModel& served_;
  EventLog& log_;
  switches::ThreadPools pools_;
  std::mutex lock_;
  std::condition_variable all_here_;
  std::int64_t here_ = 0, calls_ = 0, begin_ns_ = 0, cpu_begin_ns_ = 0, end_ns_ = 0;
  std::optional<Failure> failure_;
};

// One side of the benchmark: its models, loaded on order.
class BenchmarkProcess {
 public:
  BenchmarkProcess(const json::Value& request, EventLog& log) : request_(request), log_(log) {
    for (const json::Value& run : request["runs"].items) runs_[run["artifact"]["model"].str()] = &run;
  }

  // Returns the answer, also where that is an error of the model.
  json::Object obey(const json::Value& order) {
    const std::string &verb = order["order"].str(), &model = order["model"].str();
    try {
      return answer(verb, model, order);
    } catch (const PhaseFailed& failed) {
      return failed_at(verb, model, failed.failure);
    } catch (...) {
      return failed_at(verb, model, current_failure());
    }
  }

 private:
  struct Held {
    std::unique_ptr<ServedModel> served;
    std::optional<PreparedCall> call;
  };

  json::Object answer(const std::string& verb, const std::string& model, const json::Value& order) {
    if (verb == "load") return load(model, order);
    if (verb == "block") return block(model, order["calls"].integer);
    if (verb == "shape") return shape(model, order["set"].str(), order["calls"].integer);
    if (verb == "together") return together(model, order);
    if (verb == "replay")
      return json::Object().text("skipped", "a graph cannot be captured on the CPU").boolean("spoilt", false);
    if (verb == "drop") return models_.erase(model), json::Object().boolean("dropped", true);
    throw PythonError("ValueError", "no order is called '" + verb + "'");
  }

  // In the orders that come beside the blocks the model stays, and the answer says whether it is of use still.
  json::Object failed_at(const std::string& verb, const std::string& model, const Failure& failure) {
    json::Object answer;
    answer.text("error", words_of(failure));
    if ((verb == "shape" || verb == "together") && models_.count(model)) return answer.boolean("spoilt", !answers(model));
    models_.erase(model);
    return answer;
  }

  json::Object load(const std::string& model, const json::Value& order) {
    const json::Value& run = *runs_.at(model);
    Held held{std::make_unique<ServedModel>(run, request_), std::nullopt};
    ServedModel& served = *held.served;
    const Scheduled& first = served.schedule().at(0);
    const PeakMemory peak;
    const std::int64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    log_.phase(wire::kLoad, {model}, [&] { served.load(); });
    const double load_s = seconds_between(begin_ns, clock_ns(CLOCK_MONOTONIC));
    const auto least = static_cast<std::size_t>(first.calls), most = static_cast<std::size_t>(order["calls"].integer);
    std::vector<double> calls_s;
    for (double spent_s = 0; calls_s.size() < least || (calls_s.size() < most && spent_s < order["call_s"].as_double());
         spent_s += calls_s.back())
      calls_s.push_back(call(served, first.set, static_cast<std::int64_t>(calls_s.size())));
    const std::string peak_bytes = peak.risen();
    held.call = served.prepare(first.set);
    models_[model] = std::move(held);
    return json::Object()
        .number("load_s", load_s)
        .raw("calls_s", json::array(calls_s, json::number))
        .raw("peak_rss_bytes", peak_bytes)
        .raw("device_bytes", "null");
  }

  // Returns the seconds of one call on fresh arguments.
  double call(ServedModel& served, const std::string& set, std::int64_t index) {
    PreparedCall prepared = served.prepare(set);
    double seconds = 0;
    log_.phase(wire::kCall, {served.name(), 0, set, index}, [&] {
      const std::int64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
      prepared.make();
      seconds = seconds_between(begin_ns, clock_ns(CLOCK_MONOTONIC));
    });
    return seconds;
  }

  json::Object block(const std::string& model, std::int64_t calls) {
    Held& held = models_.at(model);
    std::vector<std::int64_t> times_ns(static_cast<std::size_t>(calls));
    std::int64_t wall_ns = 0, wait_ns = 0;
    log_.phase(wire::kBlock, {model}, [&] {
      held.served->start_over();
      const bool has_state = held.served->has_state();
      const std::int64_t queued = queued_ns(), begin_ns = clock_ns(CLOCK_MONOTONIC);
      std::int64_t before_ns = begin_ns;
      for (std::int64_t& time_ns : times_ns) {
        if (has_state) {
          held.served->start_over();
          before_ns = clock_ns(CLOCK_MONOTONIC);
        }
        held.call->make();
        const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        time_ns = now_ns - before_ns;
        before_ns = now_ns;
      }
      wall_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns;
      wait_ns = queued_ns() - queued;
    });
    const std::size_t step = (times_ns.size() + kMostTimes - 1) / kMostTimes;
    std::vector<std::int64_t> thinned;
    for (std::size_t i = 0; i < times_ns.size(); i += step) thinned.push_back(times_ns[i]);
    return json::Object()
        .raw("times_ns", json::integers(thinned))
        .integer("wait_ns", wait_ns)
        .integer("wall_ns", wall_ns)
        .integer("rss_bytes", memory_of("VmRSS").value_or(0));
  }

  json::Object shape(const std::string& model, const std::string& set, std::int64_t calls) {
    ServedModel& served = *models_.at(model).served;
    std::vector<double> calls_s;
    for (std::int64_t index = 0; index < calls; ++index) calls_s.push_back(call(served, set, index));
    return json::Object().raw("calls_s", json::array(calls_s, json::number));
  }

  json::Object together(const std::string& model, const json::Value& order) {
    ServedModel& served = *models_.at(model).served;
    if (served.has_state()) return json::Object().text("skipped", "it has a state, which callers would share");
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    const std::string why_not = run_on(order["cores"].items);
    sched_setaffinity(0, sizeof before, &before);
    if (!why_not.empty()) return json::Object().text("skipped", "its callers cannot run on their cores: " + why_not);
    return ConcurrentCallers(request_, order, served, log_).run();
  }

  bool answers(const std::string& model) {
    try {
      ServedModel& served = *models_.at(model).served;
      served.prepare(served.schedule().at(0).set).make();
      return true;
    } catch (...) {
      return false;
    }
  }

  const json::Value& request_;
  EventLog& log_;
  std::map<std::string, const json::Value*> runs_;
  std::map<std::string, Held> models_;
};

// Does what every process does once, so that its first model is not charged with it; returns why not, as JSON.
inline std::string run_first_operators() {
  constexpr const char* program = R"(
def forward(self, x: Tensor, image: Tensor, filters: Tensor, ids: Tensor) -> Tensor:
    rows = torch.softmax(torch.gelu(torch.layer_norm(torch.matmul(x, x), [256])), -1)
    pooled = torch.max_pool2d(torch.relu(torch.conv2d(image, filters)), 2)
    return rows.sum() + pooled.sum() + torch.embedding(x, ids).sum()
)";
  std::string why_not;
  try {
    Module written("FirstOperators");
    written.define(program);
    std::stringstream archive;
    written.save(archive);
    Module module = torch::jit::load(archive);
    module.eval();
    const std::vector<c10::IValue> arguments{at::ones({256, 256}), at::ones({4, 3, 32, 32}), at::ones({16, 3, 3, 3}),
                                             at::zeros({8, 8}, at::kLong)};
    for (int call = 0; call < kUntilOptimized; ++call)
      module.forward(arguments);
    // Whoever never had a second thread allocates faster for ever.
    std::thread([&] {
      try {
        module.forward(arguments);
      } catch (...) {
        why_not = words_of(current_failure());
      }
    }).join();
  } catch (...) {
    why_not = words_of(current_failure());
  }
  return json::Object().text("all", why_not).str();
}

inline void send(int answers, const json::Object& answer) {
  const std::string line = answer.str() + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = write(answers, line.data() + sent, line.size() - sent);
    if (count < 0 && errno != EINTR) _exit(wire::kExitOrphaned);
    sent += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
}

// Obeys the orders on standard input, one JSON line each, until it ends or says stop.
inline void serve_benchmark(const json::Value& request, EventLog& log, int answers) {
  const stacks::ThreadGuard guard;
  switches::ThreadPools(request, log).size(0);
  const switches::ThreadContext context(request);
  log.mark("first_operators", run_first_operators());
  BenchmarkProcess process(request, log);
  send(answers, json::Object().boolean("ready", true).raw("gpu_uuid", "null"));
  for (std::string line; std::getline(std::cin, line);) {
    const json::Value order = json::parse(line);
    if (order["order"].str() == "stop") break;
    send(answers, process.obey(order));
  }
}

}  // namespace gate
