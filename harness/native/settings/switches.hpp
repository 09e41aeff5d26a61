// JIT switches by name. Each is applied, read back, or reported as unsupported here; never set silently.
#pragma once

#include "standard.hpp"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/passes/pass_manager.h>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "events.hpp"
#include "failures.hpp"
#include "settings/numeric_state.hpp"
#include "values/json.hpp"

// Exported by libtorch_cpu, without a header in most releases. Weak: null where a release has none.
namespace torch::jit {
TORCH_API bool canFuseOnCPU() __attribute__((weak));
TORCH_API void overrideCanFuseOnCPU(bool value) __attribute__((weak));
namespace tensorexpr {
TORCH_API bool& getTEMustUseLLVMOnCPU() __attribute__((weak));
}
namespace fuser::onednn {
TORCH_API void fuseGraph(std::shared_ptr<Graph>& graph) __attribute__((weak));
}
}  // namespace torch::jit

namespace gate::switches {

inline std::string set_fusion_depth(const json::Value& value) {
  const auto depth = static_cast<std::size_t>(value.kind == json::Value::Kind::boolean ? value.boolean : value.integer);
  torch::jit::FusionStrategy strategy = {{torch::jit::FusionBehavior::STATIC, depth},
                                         {torch::jit::FusionBehavior::DYNAMIC, depth}};
  torch::jit::setFusionStrategy(strategy);
  std::size_t deepest = 0;
  for (const auto& [behavior, read_back] : torch::jit::getFusionStrategy()) deepest = std::max(deepest, read_back);
  return std::to_string(deepest);
}

inline bool set_cpu_fusion(bool value) {
  if (!torch::jit::canFuseOnCPU || !torch::jit::overrideCanFuseOnCPU || !torch::jit::tensorexpr::getTEMustUseLLVMOnCPU)
    throw PythonError("AttributeError", "this torch has no switch for fusion on the CPU");
  torch::jit::overrideCanFuseOnCPU(value);
  torch::jit::tensorexpr::getTEMustUseLLVMOnCPU() = !value;
  return torch::jit::canFuseOnCPU();
}

// As RegisterLlgaFuseGraph::setEnabled does, whose header most releases leave out; once per process.
inline bool set_onednn_fusion(bool value) {
  if (!torch::jit::fuser::onednn::fuseGraph)
    throw PythonError("AttributeError", "this torch has no fusion by oneDNN Graph");
  if (value) torch::jit::registerPrePass(torch::jit::fuser::onednn::fuseGraph);
  return !torch::jit::getCustomPrePasses().empty();
}

inline bool set_texpr_fuser(bool value) {
  torch::jit::setTensorExprFuserEnabled(value);
  return torch::jit::tensorExprFuserEnabled();
}

// Process-wide: set once, before anything is loaded. Each returns what reads back.
inline const std::map<std::string, std::function<bool(bool)>> kProcessWide = {
    {"profiling", [](bool value) -> bool { return torch::jit::getProfilingMode() = value; }},
    {"profiling_executor", [](bool value) -> bool { return torch::jit::getExecutorMode() = value; }},
    {"texpr_fuser", set_texpr_fuser},
    {"cpu_fusion", set_cpu_fusion},
    {"onednn_fusion", set_onednn_fusion},
};

// The thread-local switches of a request: construct one in every thread, and in every task of a pool.
class ThreadContext {
 public:
  explicit ThreadContext(const json::Value& request) : numerics_(request) {
    // In the order of the Python worker: leaving out inference mode and setting it to false are not the same.
    if (const json::Value* value = request["switches"].find("inference_mode")) inference_mode_.emplace(value->truthy());
    if (const json::Value* value = request["switches"].find("optimized_execution"))
      optimized_execution_.emplace(value->truthy());
  }

 private:
  numeric_state::ThreadContext numerics_;
  at::NoGradGuard no_grad_;
  std::optional<c10::InferenceMode> inference_mode_;
  std::optional<torch::jit::GraphOptimizerEnabledGuard> optimized_execution_;
};

// The intra-op pools of the threads of a script, and of the tasks that they launch.
class ThreadPools {
 public:
  ThreadPools(const json::Value& request, EventLog& log) : intra_op_(request["pools"]["intra_op"].integer), log_(log) {}

  // Gives the calling thread the pool of the request; a mark says where another size reads back. OpenMP and MKL keep
  // that number per thread, and a new thread has torch's only once torch was asked there.
  void size(int thread) { read_back_size(intra_op_, thread); }

  // Gives the calling thread a pool of another size; a mark says where it reads back as another one.
  void resize(std::int64_t size, int thread) {
    at::set_num_threads(static_cast<int>(size));
    read_back_size(size, thread);
  }

 private:
  void read_back_size(std::int64_t requested, int thread) {
    const std::int64_t read_back = at::get_num_threads();
    if (read_back == requested) return;
    {
      const std::lock_guard<std::mutex> guard(lock_);
      if (!told_.insert(thread).second) return;
    }
    log_.mark(("intra_op_otherwise:" + std::to_string(thread)).c_str(),
              json::Object().integer("requested", requested).integer("read_back", read_back).str());
  }

  const std::int64_t intra_op_;
  EventLog& log_;
  std::set<int> told_;
  std::mutex lock_;
};

// Sets one and returns what reads back, as JSON; thread-local ones are tried.
inline std::string set(const std::string& name, const json::Value& value, const json::Value& request) {
  if (name == "freeze" || name == "optimize_for_inference") return json::scalar(value);  // each load tells its effect
  if (name == "fusion_depth") return set_fusion_depth(value);
  if (name == "inference_mode" || name == "optimized_execution") {
    const ThreadContext context(request);
    const bool is_inference = name == "inference_mode";
    return json::truth(is_inference ? c10::InferenceMode::is_enabled() : torch::jit::getGraphExecutorOptimize());
  }
  const auto setter = kProcessWide.find(name);
  if (setter == kProcessWide.end()) throw PythonError("KeyError", "'" + name + "'");
  return json::truth(setter->second(value.truthy()));
}

// Sets pools, process-wide switches and numerics; returns what was requested and what reads back, per name, as JSON.
inline std::string apply_process_wide(const json::Value& request) {
  using numeric_state::reported;
  const json::Value &intra = request["pools"]["intra_op"], &inter = request["pools"]["inter_op"];
  at::set_num_threads(static_cast<int>(intra.integer));
  at::set_num_interop_threads(static_cast<int>(inter.integer));
  json::Object report;
  report.raw("intra_op_threads", reported(intra, [] { return std::to_string(at::get_num_threads()); }));
  report.raw("inter_op_threads", reported(inter, [] { return std::to_string(at::get_num_interop_threads()); }));
  for (const auto& [name, value] : json::sorted(request["switches"]))
    report.raw(name, reported(*value, [&, &name = name, &value = *value] { return set(name, value, request); }));
  numeric_state::apply(request, report);
  return report.str();
}

}  // namespace gate::switches
