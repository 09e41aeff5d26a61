// How a worker begins and ends: parent-death signal, stack dumps, one request, and a hard exit after goodbye.
#pragma once

#include "standard.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "events.hpp"
#include "libraries.hpp"
#include "limits.hpp"
#include "processes.hpp"
#include "wire.hpp"
#include "run/benchmark.hpp"
#include "run/script.hpp"
#include "run/serving.hpp"
#include "settings/numeric_state.hpp"
#include "settings/switches.hpp"
#include "stacks/stacks.hpp"
#include "values/json.hpp"
#include "values/tensor_writer.hpp"

#ifndef GATE_TORCH
#include <torch/version.h>
#define GATE_TORCH TORCH_VERSION
#endif

namespace gate::lifecycle {

// Undoes what whoever started the gate ignores or blocks (`nohup`, `&`, a supervisor): no probe depends on it.
inline void take_signals_back() {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);  // refused for those that cannot be caught
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

inline void arm_stack_dumps(const std::string& run_dir) {
  stacks::install((run_dir + "/" + wire::kStacks).c_str());
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

inline void say_hello(EventLog& log) {
  log.emit("hello", json::Object()
                        .integer("protocol", wire::kProtocol)
                        .integer("pid", getpid())
                        .raw("python", "null")
                        .text("worker", "libtorch")
                        .text("torch", GATE_TORCH));
}

inline void apply_settings(const json::Value& request, EventLog& log) {
  if (request.find("operators"))  // a library of Python alone has operators and no path
    log.mark("libraries", libraries::open_all(request));
  try {
    numeric_state::device_of(request);
  } catch (const c10::Error&) {  // its name is registered by a library, or from Python only
    log.mark("no_device", json::literal(request["device"].str()));
    throw;
  }
  log.mark("switches", switches::apply_process_wide(request));
  log.mark("numerics", numeric_state::state(request));
}

// Verb `run`: reads the inputs of every artifact, then does the script.
inline void run(const json::Value& request, const std::string& run_dir, EventLog& log) {
  TensorWriter writer(run_dir + "/" + wire::kOutputs);
  // Never destroyed: what was loaded lives until the process leaves without teardown.
  auto& models = *new Stage::Models;
  for (const json::Value& run : request["runs"].items) {
    const std::string& name = run["artifact"]["model"].str();
    try {
      log.phase(wire::kInputs, {name}, [&] {
        models[name] = std::make_unique<ServedModel>(run, request);
      });
    } catch (const PhaseFailed&) {
      models.erase(name);
    }
  }
  const json::Value& wanted = request["script"];
  const json::Value script = wanted.is_null() ? in_order(request["runs"]) : wanted;
  Stage(request, script, run_dir, models, writer, log).perform();
}

[[noreturn]] inline void leave(int code) {
  std::fflush(nullptr);
  _exit(code);
}

// A package of AOTInductor runs code as it is loaded: see harness/worker/confinement.py.
inline void confine(const json::Value& request, const std::string& run_dir, const std::string& work, EventLog& log) {
  if (!request["runs_code"].truthy()) return;
  for (const char* name : {"HOME", "TMPDIR"}) setenv(name, work.c_str(), 1);
  if (request["limits"].is_null()) return;
  int release[2] = {0, 0};
  std::sscanf(GATE_TORCH, "%d.%d", &release[0], &release[1]);
  const std::string why = limits::close_elsewhere(run_dir, request["device"], release);
  if (!why.empty()) log.mark("not_confined", json::literal(why));
}

// Does the one request that lies in `run_dir`, says goodbye and leaves without the destructors of a process with
// torch in it, which abort now and then after correct results.
// `answers`: the descriptor that was standard output.
[[noreturn]] inline void work_in(const std::string& run_dir, int answers) {
  const json::Value request = json::parse(read_file(run_dir + "/" + wire::kRequest));
  const std::string work = run_dir + "/" + wire::kWork;  // a bare file name of an artifact names none of the evidence
  if ((mkdir(work.c_str(), 0755) != 0 && errno != EEXIST) || chdir(work.c_str()) != 0)
    throw std::runtime_error("cannot work in " + work + ": " + std::strerror(errno));
  EventLog log(run_dir + "/" + wire::kEvents);
  if (!log.is_open()) throw std::runtime_error("cannot write " + run_dir + "/" + wire::kEvents);
  say_hello(log);
  arm_stack_dumps(run_dir);
  const std::string& verb = request["verb"].str();
  if (request["protocol"].integer != wire::kProtocol || (verb != "run" && verb != "benchmark")) {
    log.refuse("cannot serve '" + verb + "'");
    leave(wire::kExitRefused);
  }
  if (const json::Value& wanted = request["limits"]; !wanted.is_null())
    if (const std::string refused = limits::apply(wanted, run_dir); !refused.empty()) log.mark("limits", refused);
  confine(request, run_dir, work, log);
  try {
    apply_settings(request, log);
    if (verb == "run") run(request, run_dir, log);
    else serve_benchmark(request, log, answers);
  } catch (...) {  // outside of every phase, so ours
    log.refuse("the request cannot be done: " + current_failure().message);
    leave(wire::kExitBroken);
  }
  log.emit("bye", {});
  leave(0);
}

}  // namespace gate::lifecycle
