// A TorchScript archive as a served module.
#pragma once

#include "standard.hpp"

#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include "failures.hpp"
#include "run/arguments.hpp"
#include "run/served_module.hpp"
#include "wire.hpp"

namespace gate {

// Returns the arguments as the method's schema has them.
inline std::vector<c10::IValue> fitted_to(const torch::jit::Method& method, const c10::IValue& arguments) {
  const auto& values = arguments.toTupleRef().elements();
  const auto& expected = method.function().getSchema().arguments();  // the first one is self
  std::vector<c10::IValue> stack;
  for (std::size_t i = 0; i < values.size(); ++i)
    stack.push_back(i + 1 < expected.size() ? fitted(values[i], expected[i + 1].type()) : values[i]);
  return stack;
}

class ArchiveModule final : public ServedModule {
 public:
  explicit ArchiveModule(torch::jit::Module module) : module_(std::move(module)) {}

  ServedMethod method(const std::string& name) const override {
    if (name == wire::kWithHooksMethod)  // called as Python does: hooks run before and after forward
      return [module = module_](const c10::IValue& arguments) {
        torch::jit::Module called = module;  // the same module: its call operator is not const
        return called(fitted_to(called.get_method("forward"), arguments));
      };
    if (const auto method = module_.find_method(name))
      return [method = *method](const c10::IValue& arguments) { return method(fitted_to(method, arguments)); };
    throw PythonError("AttributeError", "'RecursiveScriptModule' object has no attribute '" + name + "'");
  }

  BufferAddresses buffer_addresses() const override {
    BufferAddresses addresses;
    for (const auto& buffer : module_.named_buffers())
      if (buffer.value.layout() == c10::kStrided && buffer.value.has_storage())
        addresses[buffer.name] = buffer.value.storage().data();
    return addresses;
  }

 private:
  const torch::jit::Module module_;
};

}  // namespace gate
