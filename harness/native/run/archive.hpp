// A TorchScript archive as a served module.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

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

class ArchiveMethod final : public ServedMethod {
 public:
  explicit ArchiveMethod(torch::jit::Method method) : method_(std::move(method)) {}

  c10::IValue call(const c10::IValue& arguments) const override { return method_(fitted_to(method_, arguments)); }

 private:
  const torch::jit::Method method_;
};

// The module called as Python does: its hooks run before and after forward.
class ArchiveCall final : public ServedMethod {
 public:
  explicit ArchiveCall(torch::jit::Module module) : module_(std::move(module)) {}

  c10::IValue call(const c10::IValue& arguments) const override {
    torch::jit::Module called = module_;  // the same module: its call operator is not const
    return called(fitted_to(called.get_method("forward"), arguments));
  }

 private:
  const torch::jit::Module module_;
};

class ArchiveModule final : public ServedModule {
 public:
  explicit ArchiveModule(torch::jit::Module module) : module_(std::move(module)) {}

  std::shared_ptr<const ServedMethod> method(const std::string& name) const override {
    if (name == wire::kWithHooksMethod) return std::make_shared<ArchiveCall>(module_);
    if (auto method = module_.find_method(name)) return std::make_shared<ArchiveMethod>(*method);
    throw PythonError("AttributeError", "'RecursiveScriptModule' object has no attribute '" + name + "'");
  }

  BufferAddresses buffer_addresses() const override {
    BufferAddresses found;
    for (const auto& buffer : module_.named_buffers())
      if (buffer.value.layout() == c10::kStrided && buffer.value.has_storage())
        found[buffer.name] = buffer.value.storage().data();
    return found;
  }

 private:
  const torch::jit::Module module_;
};

}  // namespace gate
