// Settings of torch that change numbers and travel with a process, not with an artifact. Those that the request names
// are pinned, the rest is left as the release has it; all are read back. harness/worker/settings.py does
// the same.
#pragma once

#include "standard.hpp"

#include <ATen/Context.h>
#include <torch/version.h>

#include "failures.hpp"
#include "values/dtypes.hpp"
#include "values/json.hpp"

// As in <ATen/autocast_mode.h>, which includes the declaration of every operator: a third of the time to compile this.
namespace at::autocast {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
TORCH_API bool is_autocast_enabled(at::DeviceType device);
TORCH_API void set_autocast_enabled(at::DeviceType device, bool enabled);
TORCH_API at::ScalarType get_autocast_dtype(at::DeviceType device);
TORCH_API void set_autocast_dtype(at::DeviceType device, at::ScalarType dtype);
#else
TORCH_API bool is_enabled();
TORCH_API void set_enabled(bool enabled);
TORCH_API at::ScalarType get_autocast_gpu_dtype();
TORCH_API void set_autocast_gpu_dtype(at::ScalarType dtype);
TORCH_API bool is_cpu_enabled();
TORCH_API void set_cpu_enabled(bool enabled);
TORCH_API at::ScalarType get_autocast_cpu_dtype();
TORCH_API void set_autocast_cpu_dtype(at::ScalarType dtype);
#endif
TORCH_API void clear_cache();
}  // namespace at::autocast

namespace gate::numeric_state {

inline std::string engine_name(at::QEngine engine) {
  const std::string name = lower(at::toString(engine));
  return name == "noqengine" ? "none" : name;
}

inline bool flushes_denormals() {
  volatile double tiny = 5e-310, one = 1.0;
  return tiny * one == 0.0;
}

// Autocast of one device; the functions have changed with 2.4.
struct Autocast {
  bool enabled;
  c10::ScalarType dtype;

  static Autocast read(c10::DeviceType device) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
    return {at::autocast::is_autocast_enabled(device), at::autocast::get_autocast_dtype(device)};
#else
    if (is_cuda(device)) return {at::autocast::is_enabled(), at::autocast::get_autocast_gpu_dtype()};
    return {at::autocast::is_cpu_enabled(), at::autocast::get_autocast_cpu_dtype()};
#endif
  }

  void set(c10::DeviceType device) const {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
    at::autocast::set_autocast_enabled(device, enabled);
    at::autocast::set_autocast_dtype(device, dtype);
#else
    if (is_cuda(device)) {
      at::autocast::set_enabled(enabled);
      at::autocast::set_autocast_gpu_dtype(dtype);
    } else {
      at::autocast::set_cpu_enabled(enabled);
      at::autocast::set_autocast_cpu_dtype(dtype);
    }
#endif
  }

 private:
  [[maybe_unused]] static bool is_cuda(c10::DeviceType device) {
    if (device == at::kCUDA || device == at::kCPU) return device == at::kCUDA;
    throw PythonError("RuntimeError", "torch " TORCH_VERSION " does not tell of autocast on this device");
  }
};

inline c10::DeviceType device_of(const json::Value& request) {
  return c10::Device(request["device"].str()).type();
}

// The settings of the thread: construct one in every thread, and in every task of a pool.
class ThreadContext {
 public:
  explicit ThreadContext(const json::Value& request) : device_(device_of(request)) {
    if (const json::Value* value = request["numerics"].find("flush_denormal")) {
      flushed_before_ = flushes_denormals();
      at::globalContext().setFlushDenormal(value->truthy());
    }
    if (const json::Value* value = request["numerics"].find("autocast")) {
      try {
        cast_before_ = Autocast::read(device_);
        Autocast wanted = *cast_before_;
        wanted.enabled = value->str() != "off";
        if (const auto dtype = dtype_named(value->str())) wanted.dtype = *dtype;
        wanted.set(device_);
      } catch (const PythonError&) {  // before 2.4 not on every device: `apply` has said so, and it is left out
      }
    }
  }

  ThreadContext(const ThreadContext&) = delete;
  ThreadContext& operator=(const ThreadContext&) = delete;

  ~ThreadContext() {
    if (flushed_before_) at::globalContext().setFlushDenormal(*flushed_before_);
    if (!cast_before_) return;
    at::autocast::clear_cache();
    cast_before_->set(device_);
  }

 private:
  c10::DeviceType device_;
  std::optional<bool> flushed_before_;
  std::optional<Autocast> cast_before_;
};

inline std::string precision_name(at::Float32MatmulPrecision precision) {
  if (precision == at::Float32MatmulPrecision::HIGHEST) return "highest";
  return precision == at::Float32MatmulPrecision::HIGH ? "high" : "medium";
}

inline void set_quantized_engine(const std::string& name) {
  std::string known;
  for (const at::QEngine engine : at::Context::supportedQEngines()) {
    if (engine_name(engine) == name) return at::globalContext().setQEngine(engine);
    known += (known.empty() ? "" : ", ") + engine_name(engine);
  }
  throw PythonError("RuntimeError", "quantized engine " + name + " is not supported; there are: " + known);
}

inline std::string autocast_dtype(c10::DeviceType device) {
  const Autocast cast = Autocast::read(device);
  return cast.enabled ? dtype_name(cast.dtype) : "off";
}

// A setting: how it reads in the calling thread, as JSON, and how it is set; a ThreadContext sets what a thread has.
struct Setting {
  std::string name;
  std::function<std::string(c10::DeviceType)> read;
  std::function<void(const json::Value&)> set = [](const json::Value&) {};
};

inline const std::vector<Setting>& settings() {
  using Device = c10::DeviceType;
  using json::Value;
  static at::Context& context = at::globalContext();
  static const auto& rows = *new std::vector<Setting>{
      {"quantized_engine", [](Device) { return json::literal(engine_name(context.qEngine())); },
       [](const Value& value) { set_quantized_engine(value.str()); }},
      {"matmul_precision", [](Device) { return json::literal(precision_name(context.float32MatmulPrecision())); },
       [](const Value& value) { context.setFloat32MatmulPrecision(value.str()); }},
      {"cudnn", [](Device) { return json::truth(context.userEnabledCuDNN()); },
       [](const Value& value) { context.setUserEnabledCuDNN(value.truthy()); }},
      {"cudnn_tf32", [](Device) { return json::truth(context.allowTF32CuDNN()); },
       [](const Value& value) { context.setAllowTF32CuDNN(value.truthy()); }},
      {"mkldnn", [](Device) { return json::truth(context.userEnabledMkldnn()); },
       [](const Value& value) { context.setUserEnabledMkldnn(value.truthy()); }},
      {"deterministic", [](Device) { return json::truth(context.deterministicAlgorithms()); },
       [](const Value& value) { context.setDeterministicAlgorithms(value.truthy(), false); }},
      {"flush_denormal", [](Device) { return json::truth(flushes_denormals()); }},
      {"autocast", [](Device device) { return json::literal(autocast_dtype(device)); }},
  };
  return rows;
}

// Returns a row of the report, as JSON: what was requested, and what `read_back` returns or why that is not to be had.
template <typename ReadBack>
std::string reported(const json::Value& requested, ReadBack&& read_back) {
  json::Object row;
  row.raw("requested", json::scalar(requested));
  try {
    return row.raw("read_back", read_back()).boolean("supported", true).str();
  } catch (...) {
    return row.boolean("supported", false).text("reason", current_failure().message.substr(0, 300)).str();
  }
}

// Pins what the request names and adds a row for each of it to `report`.
inline void apply(const json::Value& request, json::Object& report) {
  for (const auto& [name, value] : json::sorted(request["numerics"]))
    report.raw(name, reported(*value, [&, &name = name, &value = *value] {
      for (const Setting& setting : settings()) {
        if (setting.name != name) continue;
        setting.set(value);
        const ThreadContext context(request);
        return setting.read(device_of(request));
      }
      throw PythonError("KeyError", "'" + name + "'");
    }));
}

// Returns every setting as it is in a thread of this process, as JSON; null where this release cannot tell.
inline std::string state(const json::Value& request) {
  const ThreadContext context(request);
  json::Object state;
  for (const Setting& setting : settings()) {
    try {
      state.raw(setting.name, setting.read(device_of(request)));
    } catch (...) {
      state.raw(setting.name, "null");
    }
  }
  return state.str();
}

}  // namespace gate::numeric_state
