// Interprets the script of a request: what every thread of this process does; docs/formats/wire.md lists the steps.
//
// A model that has failed leaves its later steps out; barriers and latches are always served, so that one failure
// never makes a hang of another thread.
#pragma once

#include "standard.hpp"

#include <malloc.h>

#include "events.hpp"
#include "processes.hpp"
#include "wire.hpp"
#include "run/cuda_graphs.hpp"
#include "run/launching.hpp"
#include "run/serving.hpp"
#include "run/served_answers.hpp"
#include "settings/switches.hpp"
#include "stacks/stacks.hpp"
#include "values/json.hpp"
#include "values/tensor_writer.hpp"

namespace gate {

class Barrier {
 public:
  explicit Barrier(std::int64_t parties) : parties_(parties) {}

  void wait() {
    std::unique_lock<std::mutex> guard(lock_);
    const std::int64_t mine = round_;
    if (++arrived_ == parties_) {
      arrived_ = 0;
      ++round_;
      all_here_.notify_all();
    } else {
      all_here_.wait(guard, [&] { return round_ != mine; });
    }
  }

 private:
  const std::int64_t parties_;
  std::int64_t arrived_ = 0;
  std::int64_t round_ = 0;
  std::mutex lock_;
  std::condition_variable all_here_;
};

// Opens after `count` count-downs.
class Latch {
 public:
  explicit Latch(std::int64_t count) : count_(count) {}

  void count_down() {
    const std::lock_guard<std::mutex> guard(lock_);
    if (--count_ <= 0) opened_.notify_all();
  }

  // Waits for so long at most; returns whether it is open.
  bool wait_for(std::chrono::nanoseconds limit) {
    std::unique_lock<std::mutex> guard(lock_);
    return opened_.wait_for(guard, limit, [&] { return count_ <= 0; });
  }

 private:
  std::int64_t count_;
  std::mutex lock_;
  std::condition_variable opened_;
};

// The models, barriers and latches that the threads of one script share.
class Stage {
 public:
  using Models = std::map<std::string, std::unique_ptr<ServedModel>>;

  // A name that is missing in `models` has failed.
  Stage(const json::Value& request, const json::Value& script, const std::string& run_dir, Models& models,
        TensorWriter& writer, EventLog& log)
      : request_(request),
        threads_(script["threads"].items),
        run_dir_(run_dir),
        models_(models),
        rests_(!script.find("rests") || script["rests"].boolean),
        writer_(writer),
        log_(log),
        pools_(request, log),
        ways_{request, pools_, log, goes_through_pool(script)} {
    if (const json::Value* barriers = script.find("barriers"))
      for (const auto& [name, parties] : barriers->members) barriers_.try_emplace(name, parties.integer);
    if (const json::Value* latches = script.find("latches"))
      for (const auto& [name, count] : latches->members) latches_.try_emplace(name, count.integer);
    for (const json::Value& steps : threads_)
      for (const json::Value& step : steps.items) {
        if (step[0].str() == "serve" || step[0].str() == "answer") servers_.insert(step[1].str());
        if (step[0].str() == "lock") locks_.try_emplace(step[1].str());
        if (step[0].str() == "fork") forked_[static_cast<int>(step[1].integer)] = 0;
      }
    for (auto& [name, served] : models_) answers_.try_emplace(name, served->name(), served->stable_answer(), log_);
  }

  // A single thread, beside those that are forked, and one that exits, is the process's main thread.
  void perform() {
    std::vector<int> own;
    for (int i = 0; i < static_cast<int>(threads_.size()); ++i)
      if (forked_.count(i) == 0) own.push_back(i);
    try {
      for (const int i : own)
        if (own.size() > 1 && !exits(i))
          started_.try_emplace(i, [this, i] {
            pthread_setname_np(pthread_self(), ("init-" + std::to_string(i)).c_str());
            act(i);
          });
    } catch (...) {  // not further up: the destructor of a running thread ends the process without a word
      give_up("cannot start one of " + std::to_string(own.size()) + " threads: " + current_failure().message);
    }
    for (const int i : own)
      if (started_.count(i) == 0) act(i);
    for (auto& [i, thread] : started_)
      if (thread.joinable()) thread.join();
  }

 private:
  using Milliseconds = std::chrono::duration<double, std::milli>;

  bool exits(int thread) const {
    for (const json::Value& step : threads_[static_cast<std::size_t>(thread)].items)
      if (step[0].str() == "exit") return true;
    return false;
  }

  void act(int thread) {
    try {
      in_context(thread, [&] { take_all(thread); });
    } catch (...) {  // outside of every phase: no model is to blame
      give_up("a step cannot be done: " + current_failure().message);
    }
  }

  template <typename Action>
  void in_context(int thread, Action&& action) {
    const stacks::ThreadGuard guard;
    pools_.size(thread);
    const switches::ThreadContext context(request_);
    action();
  }

  // Ends the process at once, whatever its threads are doing: no model is to blame.
  [[noreturn]] void give_up(const std::string& message) {
    log_.refuse(message);
    _exit(wire::kExitBroken);
  }

  void take_all(int thread) {
    for (const json::Value& step : threads_[static_cast<std::size_t>(thread)].items) take(thread, step);
  }

  void take(int thread, const json::Value& step) {
    const std::string& verb = step[0].str();
    const auto name = [&]() -> const std::string& { return step[1].str(); };
    const auto other = [&] { return static_cast<int>(step[1].integer); };
    if (verb == "load") with_model(name(), [&](ServedModel& served) { load(served, thread); });
    else if (verb == "share") share(name(), step[2].str());
    else if (verb == "calls") with_model(name(), [&](ServedModel& served) { make_calls(served, thread); });
    else if (verb == "serve") with_model(name(), [&](ServedModel& served) { serve(served, thread, step[2].str()); });
    else if (verb == "answer")
      with_model(name(), [&](ServedModel& served) { answer(served, thread, step[2].str(), step[3].integer); });
    else if (verb == "set_threads") pools_.resize(step[1].integer, thread);
    else if (verb == "drop") with_model(name(), [&](ServedModel& served) { drop(served, thread); });
    else if (verb == "capture")
      with_model(name(), [&](ServedModel& served) {
        graphs::capture(served, step[2].str(), static_cast<long>(step[3].integer), log_, thread);
      });
    else if (verb == "barrier") log_.phase(wire::kBarrier, {"", thread}, [&] { barriers_.at(name()).wait(); });
    else if (verb == "lock") log_.phase(wire::kBarrier, {"", thread}, [&] { locks_.at(name()).lock(); });
    else if (verb == "unlock") locks_.at(name()).unlock();
    else if (verb == "delay") std::this_thread::sleep_for(Milliseconds(step[1].as_double()));
    else if (verb == "count_down") latches_.at(name()).count_down();
    else if (verb == "memory") tell_memory(name());
    else if (verb == "fork") fork(other());
    else if (verb == "join") log_.phase(wire::kBarrier, {"", thread}, [&] { join(other()); });
    else if (verb == "exit") exit(thread);
    else throw PythonError("ValueError", "no step is called '" + verb + "'");
  }

  template <typename Action>
  void with_model(const std::string& name, Action&& action) {
    const auto model = models_.find(name);
    if (model == models_.end() || has_failed(name)) return;
    try {
      action(*model->second);
    } catch (const PhaseFailed&) {
      set_failed(name);
    }
  }

  bool has_failed(const std::string& name) {
    const std::lock_guard<std::mutex> guard(failed_lock_);
    return failed_.count(name) > 0;
  }

  void set_failed(const std::string& name) {
    const std::lock_guard<std::mutex> guard(failed_lock_);
    failed_.insert(name);
  }

  void load(ServedModel& served, int thread) {
    log_.phase(wire::kLoad, {served.name(), thread}, [&] { served.load(); });
  }

  void share(const std::string& name, const std::string& source) {
    const auto model = models_.find(source);
    if (model == models_.end() || has_failed(source)) return set_failed(name);
    with_model(name, [&](ServedModel& served) { served.share(*model->second); });
  }

  void make_calls(ServedModel& served, int thread) {
    std::exception_ptr failed;
    for (const auto& [set, calls] : served.schedule()) {
      for (std::int64_t index = 0; index < calls; ++index) {
        try {
          make_call(served, {served.name(), thread, set, index});
        } catch (const PhaseFailed&) {  // of this call; the others are made all the same, as a server does
          if (!failed) failed = std::current_exception();
        }
      }
    }
    if (failed) std::rethrow_exception(failed);
    log_.emit("ready", json::Object().text("model", served.name()).integer("thread", thread));
  }

  void make_call(ServedModel& served, const Place& place) {
    const std::string& set = *place.set;
    const std::int64_t index = *place.call;
    const auto [prepared, output] = call(served, place);
    log_.phase(wire::kRecord, place, [&, &made = *prepared, &answer = output] {
      if (threads_.size() == 1 && draw_.count(served.name()) == 0 && served.has_drawn()) {
        draw_.insert(served.name());
        log_.mark(("draws:" + served.name()).c_str(), json::Object().text("set", set).integer("call", index).str());
      }
      writer_.write(answer, served.side_effects(set, made, answer), served.name(), set, index);
      const bool is_served = servers_.count(served.name()) > 0 && set == served.schedule()[0].set;
      if (is_served) served.stable_answer().learn(answer);
    });
  }

  // Returns the call, with its arguments as it has left them, and its output.
  std::pair<std::optional<PreparedCall>, c10::IValue> call(ServedModel& served, const Place& place) {
    std::optional<PreparedCall> prepared;
    c10::IValue output;
    log_.phase(wire::kPrepare, place, [&] { prepared = served.prepare(*place.set); });
    log_.phase(wire::kCall, place, [&] {
      return Launcher(ways_, wire::kCall, place).run([&] {
        output = prepared->make();
        served.synchronize();
      });
    });
    return {std::move(prepared), std::move(output)};
  }

  void serve(ServedModel& served, int thread, const std::string& latch) {
    const Place place{served.name(), thread, served.schedule().at(0).set};
    Launcher launcher(ways_, wire::kServe, place);
    ServedAnswers answers(served.name(), served.stable_answer(), log_);
    std::int64_t beat_ns = clock_ns(CLOCK_MONOTONIC);
    log_.phase(wire::kServe, place, [&] {
      std::int64_t elsewhere_ns = 0;
      std::chrono::nanoseconds pause{0};
      std::optional<PreparedCall> prepared;
      while (!latches_.at(latch).wait_for(pause)) {
        const std::int64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
        if (rests_ || !prepared) prepared.emplace(served.prepare(*place.set));  // without rest, only torch is called
        c10::IValue output;
        processes::uncaught_at_exit([&] {
          elsewhere_ns += launcher.run([&] {
            output = prepared->make();
            served.synchronize();
          });
        });
        if (rests_) answers.take(output);
        const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        if (now_ns - beat_ns >= wire::kBeatNs) {
          const json::Object who = json::Object().text("model", served.name()).integer("thread", thread);
          log_.emit("beat", json::Object(who).integer("calls", answers.calls()));
          beat_ns = now_ns;
        }
        const std::int64_t rest_ns = wire::kPauseFactor * (now_ns - begin_ns);
        const auto rest = std::clamp<std::int64_t>(rest_ns, wire::kLeastPauseNs, wire::kMostPauseNs);
        pause = std::chrono::nanoseconds(rests_ ? rest : 0);
      }
      answers.tell();
      return elsewhere_ns;
    });
  }

  void answer(ServedModel& served, int thread, const std::string& where, std::int64_t larger) {
    const auto respond = [this, &served, thread, larger] {
      const Place place{served.name(), thread, served.schedule().at(0).set};
      ServedAnswers& answers = answers_.at(served.name());
      log_.phase(wire::kServe, place, [&] {
        PreparedCall prepared = served.prepare(*place.set, larger);
        const c10::IValue output = prepared.make();
        served.synchronize();
        if (larger == 0) answers.take(output);
      });
      answers.tell();
    };
    if (where == "own") return respond();
    std::promise<void> answered;
    std::future<void> done = answered.get_future();
    const bool stays = where == "stays";
    std::thread started([this, thread, respond, stays, answered = std::move(answered)]() mutable {
      pthread_setname_np(pthread_self(), "request");
      try {
        in_context(thread, respond);
        answered.set_value();
      } catch (...) {
        answered.set_exception(std::current_exception());
      }
      while (stays) pause();  // without work, until the process leaves
    });
    if (stays) started.detach();
    else started.join();
    done.get();
  }

  void drop(ServedModel& served, int thread) {
    log_.phase(wire::kDrop, {served.name(), thread}, [&] { served.drop(); });
  }

  void fork(int other) {
    forked_.at(other) = processes::fork(run_dir_, [&] {
      log_.forked(other);
      take_all(other);
    });
  }

  void join(int other) {
    if (const auto forked = forked_.find(other); forked != forked_.end()) processes::join(forked->second);
    else started_.at(other).join();
  }

  [[noreturn]] void exit(int thread) {
    const auto lives = [](const auto& started) { return started.second.joinable(); };
    const bool others = std::any_of(started_.begin(), started_.end(), lives);
    log_.phase(wire::kExit, {"", thread}, [others] { processes::exit_with_teardown(others ? wire::kExitWaitS : 0); });
    std::abort();  // not reached
  }

  void tell_memory(const std::string& label) {
    malloc_trim(0);  // what was freed belongs to nobody
    std::int64_t all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    const std::int64_t bytes = resident * sysconf(_SC_PAGESIZE);
    const auto threads = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
    log_.emit("memory",
              json::Object().text("label", label).integer("rss_bytes", bytes).integer("os_threads", threads));
  }

  const json::Value& request_;
  const std::vector<json::Value>& threads_;
  const std::string& run_dir_;
  std::map<std::string, Barrier> barriers_;
  std::map<std::string, std::mutex> locks_;
  std::map<std::string, Latch> latches_;
  Models& models_;
  std::map<int, pid_t> forked_;  // thread of the script -> the process that does its steps
  std::map<int, std::thread> started_;
  const bool rests_;  // whether a serving thread rests between two calls
  std::set<std::string> servers_;  // who serves or answers at some time
  std::map<std::string, ServedAnswers> answers_;
  std::set<std::string> draw_;  // of a script of one thread: whose calls draw random numbers
  std::set<std::string> failed_;
  std::mutex failed_lock_;
  TensorWriter& writer_;
  EventLog& log_;
  switches::ThreadPools pools_;
  Launcher::Ways ways_;
};

// Returns the script of a request without one: every model after the other, in the main thread.
inline json::Value in_order(const json::Value& runs) {
  const std::string steps = json::array(runs.items, [](const json::Value& run) {
    const std::string name = json::literal(run["artifact"]["model"].str());
    return "[\"load\"," + name + "],[\"calls\"," + name + "]";
  });
  return json::parse("{\"threads\":[" + steps + "]}");
}

}  // namespace gate
