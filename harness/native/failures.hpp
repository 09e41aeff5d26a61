// A C++ exception as the data that the Python worker would have recorded for it.
#pragma once

#include "standard.hpp"

#include <c10/util/Exception.h>
#include <cxxabi.h>
#include <torch/csrc/jit/runtime/jit_exception.h>

namespace gate {

struct Failure {
  std::string type;
  std::string message;
  std::string traceback;
};

// What Python raises by itself, in this worker's words: `type` is the name of Python's class.
class PythonError : public std::runtime_error {
 public:
  PythonError(std::string type, const std::string& message) : std::runtime_error(message), type_(std::move(type)) {}
  const std::string& type() const { return type_; }

 private:
  std::string type_;
};

inline std::string class_name(const std::exception& error) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status), &std::free);
  return name ? name.get() : typeid(error).name();
}

// Follows torch's own translation (torch/csrc/Exceptions.h): most of it becomes a RuntimeError.
inline std::string python_name(const c10::Error& error) {
  const std::string full = class_name(error);
  const std::string name = full.substr(full.rfind(':') + 1);
  for (const char* kept : {"IndexError", "ValueError", "TypeError", "NotImplementedError", "OutOfMemoryError"})
    if (name == kept) return name;
  if (name == "LinAlgError") return "_LinAlgError";
  return "RuntimeError";
}

// Returns what the exception that is being handled says; call it inside a catch block.
inline Failure current_failure() {
  try {
    throw;
  } catch (const PythonError& error) {
    return {error.type(), error.what(), ""};
  } catch (const torch::jit::JITException& error) {
    return {"Error", error.what(), class_name(error)};
  } catch (const c10::Error& error) {
    return {python_name(error), error.what_without_backtrace(), class_name(error) + ": " + error.what()};
  } catch (const std::bad_alloc& error) {
    return {"MemoryError", error.what(), class_name(error)};
  } catch (const std::out_of_range& error) {
    return {"IndexError", error.what(), class_name(error)};
  } catch (const std::invalid_argument& error) {
    return {"ValueError", error.what(), class_name(error)};
  } catch (const std::exception& error) {
    return {"RuntimeError", error.what(), class_name(error)};
  } catch (...) {
    return {"RuntimeError", "Caught an unknown exception!", ""};
  }
}

}  // namespace gate
