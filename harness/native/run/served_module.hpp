// What a served model is once it is loaded: something that has methods, and answers calls of them.
#pragma once

#include <ATen/core/ivalue.h>

#include <map>
#include <memory>
#include <string>

namespace gate {

// A method of a loaded model, ready to be called many times and by several threads.
class ServedMethod {
 public:
  virtual ~ServedMethod() = default;

  // `arguments`: a tuple of fresh ones, that no schema has seen yet.
  virtual c10::IValue call(const c10::IValue& arguments) const = 0;
};

using BufferAddresses = std::map<std::string, const void*>;

// A loaded model; copies of it are not made, whoever shares it holds the same.
class ServedModule {
 public:
  virtual ~ServedModule() = default;

  // Returns the method; throws what Python would where there is none of that name.
  virtual std::shared_ptr<const ServedMethod> method(const std::string& name) const = 0;

  // Returns where each buffer lies, by name: a call that binds one anew, instead of writing into it, moves it.
  virtual BufferAddresses buffer_addresses() const { return {}; }
};

}  // namespace gate
