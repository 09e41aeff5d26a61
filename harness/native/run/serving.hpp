// A loaded artifact as a server holds it: load, reset, seed, call, drop.
#pragma once

#include "standard.hpp"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/ivalue.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <sys/stat.h>
#include <torch/csrc/jit/api/module.h>

#include "failures.hpp"
#include "run/archive.hpp"
#include "run/loading.hpp"
#include "run/package.hpp"
#include "run/served_module.hpp"
#include "run/side_effects.hpp"
#include "run/served_answers.hpp"
#include "values/json.hpp"
#include "values/tensor_reader.hpp"

namespace gate {

using torch::jit::Module;

// Converts what nn.Module.to(dtype) converts: floating and complex parameters and buffers. Module::to of C++ would
// convert integers as well.
inline void convert_module(const Module& module, c10::ScalarType dtype) {
  const auto converts = [](const at::Tensor& tensor) {
    return (tensor.is_floating_point() && !tensor.is_quantized()) || tensor.is_complex();
  };
  for (Module part : module.modules()) {
    for (const auto& parameter : part.named_parameters(/*recurse=*/false))
      if (converts(parameter.value)) at::Tensor(parameter.value).set_data(parameter.value.to(dtype));
    for (const auto& buffer : part.named_buffers(/*recurse=*/false))
      if (converts(buffer.value)) part.setattr(buffer.name, buffer.value.to(dtype));
  }
}

struct Scheduled {
  std::string set;
  std::int64_t calls;
};

// One call that is ready to be made: the method, and fresh arguments that no schema has seen yet.
struct PreparedCall {
  ServedMethod method;
  c10::IValue arguments;

  c10::IValue make() const { return method(arguments); }
};

// One artifact with its recorded inputs; `load` first, then calls.
class ServedModel {
 public:
  // `request`: says where it runs, how it is loaded, and the switches that are done to what is loaded.
  ServedModel(const json::Value& run, const json::Value& request)
      : run_(run),
        artifact_(run["artifact"]),
        kind_(artifact_["kind"].str()),
        loader_(request["load"].str()),
        runners_(request["runners"].integer),
        freezes_(is_on(request["switches"], "freeze")),
        optimizes_(is_on(request["switches"], "optimize_for_inference")),
        device_(request["device"].str()),
        precision_(precision_of(run)),
        reader_(artifact_["inputs_dir"].str(), device_, precision_),
        inputs_(read_lines(artifact_["inputs_dir"].str() + "/" + wire::kTensorsIndex)) {
    for (const auto& pair : run["schedule"].items) schedule_.push_back({pair[0].str(), pair[1].integer});
    if (kind_ == "package") prepare_for_packages(reinterpret_cast<const void*>(&at::globalContext));
    else if (kind_ != "torchscript") throw PythonError("Unsupported", "C++ has no loader of an exported program");
  }

  const std::string& name() const { return artifact_["model"].str(); }
  const std::vector<Scheduled>& schedule() const { return schedule_; }

  void load() {
    const std::string& path = artifact_["path"].str();
    struct stat status{};
    if (stat(path.c_str(), &status) != 0)
      throw PythonError("ValueError", "The provided filename " + path + " does not exist");
    module_ = kind_ == "package" ? load_package(path, runners_) : std::make_shared<ArchiveModule>(archive(path));
    stable_answer_ = {};
    synchronize();
  }

  // Uses the module that `other` has loaded.
  void share(const ServedModel& other) {
    module_ = other.module_;
    stable_answer_ = {};
  }

  // Lets go of the module; it is destroyed here unless another model shares it.
  void drop() {
    module_.reset();
    stable_answer_ = {};
  }

  // What the module that is held now is known to answer.
  StableAnswer& stable_answer() { return stable_answer_; }

  bool has_state() const {
    const json::Value& reset = artifact_["reset"];
    return !reset.is_null() && !reset.str().empty();
  }

  // Brings a stateful model back to its start and seeds the generators.
  void start_over() const {
    if (has_state()) method(artifact_["reset"].str())(c10::ivalue::Tuple::create({}));
    const auto seed = static_cast<std::uint64_t>(artifact_["seed"].integer);
    at::manual_seed(seed);
    // In 2.1.2 and 2.6.0 that leaves out devices that are none of torch's; in 2.15.0 it does not.
    if (device_.type() != c10::DeviceType::PrivateUse1) return;
    at::Generator own = generator_of_device();
    const std::lock_guard<std::mutex> only_one(own.mutex());
    own.set_current_seed(seed);
  }

  // Whether a generator of torch has moved since `start_over` seeded it; of a process whose other threads rest.
  bool has_drawn() const {
    const auto moved = [this](const at::Generator& now) {
      at::Generator seeded = now.clone();
      seeded.set_current_seed(static_cast<std::uint64_t>(artifact_["seed"].integer));
      return !now.get_state().equal(seeded.get_state());
    };
    if (moved(at::globalContext().defaultGenerator(at::kCPU))) return true;
    return !device_.is_cpu() && moved(generator_of_device());
  }

  // Starts over and reads fresh arguments: a call may change its inputs in place. Where `larger` is not 0, those of
  // larger_inputs, every dimension that grows so much larger.
  PreparedCall prepare(const std::string& set, std::int64_t larger = 0) const {
    start_over();
    const json::Value& input = input_set(set);
    c10::IValue arguments = reader_.value(larger > 0 ? run_["larger_inputs"] : input["tree"], larger);
    return {method(input["method"].str()), std::move(arguments)};
  }

  BufferAddresses buffer_addresses() const { return module_->buffer_addresses(); }

  // Returns what a call did beside answering; nothing for a float64 run, whose inputs are not the recorded ones.
  SideEffects side_effects(const std::string& set, const PreparedCall& made, const c10::IValue& output) const {
    if (precision_) return {};
    return SideEffectFinder(reader_).find(made.arguments, input_set(set)["tree"], output);
  }

  // Waits for this thread's stream, as a server does: waiting for the whole device would break what others capture.
  void synchronize() const {
    if (device_.is_cpu()) return;
    const c10::impl::VirtualGuardImpl devices(device_.type());
    devices.getStream(devices.getDevice()).synchronize();
  }

  const c10::Device& device() const { return device_; }

 private:
  Module archive(const std::string& path) const {
    Module module = load_archive(loader_, path, device_);
    module.eval();
    if (precision_) convert_module(module, *precision_);
    return after_load(std::move(module));
  }

  // Returns the generator that calls on the device of this thread draw from.
  at::Generator generator_of_device() const {
    return at::globalContext().defaultGenerator(c10::impl::VirtualGuardImpl(device_.type()).getDevice());
  }

  static bool is_on(const json::Value& switches, const char* name) {
    const json::Value* value = switches.find(name);
    return value && value->truthy();
  }

  // Returns what the switches make of a module that was just loaded.
  Module after_load(Module module) const {
    if (!freezes_ && !optimizes_) return module;
    const std::vector<std::string> methods = other_methods(module);
    if (module.hasattr("training")) module = torch::jit::freeze(module, methods);
    else if (!optimizes_) throw PythonError("RuntimeError", "cannot be frozen: the archive is frozen already");
    if (optimizes_) module = torch::jit::optimize_for_inference(module, methods);
    if (module.hasattr("training")) throw PythonError("RuntimeError", "freezing had no effect on the module");
    return module;
  }

  // Returns the methods beside forward that are called.
  std::vector<std::string> other_methods(const Module& module) const {
    std::set<std::string> names;
    for (const auto& entry : inputs_) names.insert(entry["method"].str());
    if (has_state()) names.insert(artifact_["reset"].str());
    std::vector<std::string> methods;
    for (const std::string& name : names)
      if (name != "forward" && module.find_method(name)) methods.push_back(name);
    return methods;
  }

  static std::optional<c10::ScalarType> precision_of(const json::Value& run) {
    const json::Value& precision = run["precision"];
    return precision.is_null() ? std::nullopt : dtype_named(precision.str());
  }

  const json::Value& input_set(const std::string& name) const {
    for (const auto& entry : inputs_)
      if (entry["set"].str() == name) return entry;
    throw PythonError("KeyError", "'" + name + "'");
  }

  ServedMethod method(const std::string& name) const {
    if (!module_) throw PythonError("AttributeError", "'NoneType' object has no attribute '" + name + "'");
    return module_->method(name);
  }

  const json::Value& run_;
  const json::Value& artifact_;
  const std::string kind_, loader_;
  const std::int64_t runners_;
  const bool freezes_, optimizes_;
  c10::Device device_;
  std::optional<c10::ScalarType> precision_;
  TensorReader reader_;
  std::vector<json::Value> inputs_;
  std::vector<Scheduled> schedule_;
  std::shared_ptr<ServedModule> module_;
  StableAnswer stable_answer_;
};

}  // namespace gate
