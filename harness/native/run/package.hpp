// A package of AOTInductor as a served module, through the loader that a C++ server uses.
//
// Releases before 2.6 have no such loader: there a package is refused in words.
#pragma once

#include "standard.hpp"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <dlfcn.h>

#include "failures.hpp"
#include "run/served_module.hpp"
#include "values/json.hpp"
#include "values/tensors.hpp"

#if __has_include(<torch/csrc/inductor/aoti_package/model_package_loader.h>)
#define GATE_LOADS_PACKAGES
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#endif

namespace gate {

#ifdef GATE_LOADS_PACKAGES

// Has the library of a package find libtorch.so, which it asks for by name, as in a server that is linked with it. It
// lies beside the library that `known` is in.
inline void prepare_for_packages(const void* known) {
  static std::once_flag once;
  std::call_once(once, [known] {
    Dl_info found{};
    if (dladdr(known, &found) != 0 && found.dli_fname) {
      const std::string path = found.dli_fname;
      const std::string beside = path.substr(0, path.rfind('/') + 1) + "libtorch.so";
      if (!dlopen(beside.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
        const char* why = dlerror();
        throw PythonError("RuntimeError", why ? why : beside + " cannot be opened");
      }
    }
  });
}

// What the flat answers of a package belong to: a pytree as torch writes it, `[1, {"type", "context", ...}]`.
class AnswerTree {
 public:
  explicit AnswerTree(const std::string& written) : spec_(json::parse(written)[1]) {}

  c10::IValue filled(const std::vector<at::Tensor>& leaves) const {
    std::size_t used = 0;
    c10::IValue value = filled(spec_, leaves, used);
    if (used != leaves.size())
      throw PythonError("ValueError", "the package answers with " + std::to_string(leaves.size()) + " tensors, and its"
                        " own description has " + std::to_string(used));
    return value;
  }

 private:
  static c10::IValue filled(const json::Value& spec, const std::vector<at::Tensor>& leaves, std::size_t& used) {
    const json::Value& type = spec["type"];
    if (type.is_null()) {
      if (used == leaves.size()) throw PythonError("ValueError", "the package answers with too few tensors");
      return leaves[used++];
    }
    std::vector<c10::IValue> parts;
    for (const json::Value& child : spec["children_spec"].items) parts.push_back(filled(child, leaves, used));
    const std::string name = type.str().substr(type.str().rfind('.') + 1);  // torch.fx has lists and dicts of its own
    if (name == "tuple") return c10::ivalue::Tuple::create(std::move(parts));
    if (name == "list" || name == "immutable_list") {
      c10::impl::GenericList list(c10::AnyType::get());
      for (c10::IValue& part : parts) list.push_back(std::move(part));
      return list;
    }
    if (name == "dict" || name == "immutable_dict") return dict(spec["context"], parts);
    throw PythonError("ValueError", "the package answers with a " + type.str() + ", which Python alone can rebuild");
  }

  // `context`: the keys, as JSON or as text that holds it.
  static c10::IValue dict(const json::Value& context, const std::vector<c10::IValue>& parts) {
    const json::Value keys = context.kind == json::Value::Kind::string ? json::parse(context.str()) : context;
    const bool numbers = !keys.items.empty() && keys.items[0].kind == json::Value::Kind::integer;
    c10::impl::GenericDict found(numbers ? c10::TypePtr(c10::IntType::get()) : c10::TypePtr(c10::StringType::get()),
                                 c10::AnyType::get());
    for (std::size_t i = 0; i < parts.size(); ++i)
      found.insert(numbers ? c10::IValue(keys[i].integer) : c10::IValue(keys[i].str()), parts[i]);
    return found;
  }

  const json::Value spec_;
};

using PackageLoader = torch::inductor::AOTIModelPackageLoader;

// A template: what a release's loader does not take is not compiled.
template <typename Loader = PackageLoader>
std::unique_ptr<Loader> open_package(const std::string& path, std::int64_t runners) {
  if constexpr (std::is_constructible_v<Loader, std::string, std::string, bool, std::size_t>) {
    return std::make_unique<Loader>(path, "model", /*run_single_threaded=*/false, static_cast<std::size_t>(runners));
  } else {
    if (runners != 1) throw PythonError("Unsupported", "the loader of this release has one runner for each package");
    return std::make_unique<Loader>(path);
  }
}

inline constexpr const char* kKeywordsMethod = "forward(**)";  // wire.KEYWORDS_METHOD

class PackageModule final : public ServedModule, public std::enable_shared_from_this<PackageModule> {
 public:
  PackageModule(const std::string& path, std::int64_t runners)
      : loader_(open_package(path, runners)), answers_(loader_->get_call_spec().at(1)) {}

  ServedMethod method(const std::string& name) const override {
    if (name != "forward" && name != kKeywordsMethod)  // keyword arguments are flattened like others
      throw PythonError("AttributeError", "an exported program has no method '" + name + "'");
    return [package = shared_from_this()](const c10::IValue& arguments) {
      return package->answers_.filled(package->loader_->run(tensors_of(arguments)));  // all else it holds constant
    };
  }

 private:
  const std::unique_ptr<PackageLoader> loader_;
  const AnswerTree answers_;
};

inline std::shared_ptr<ServedModule> load_package(const std::string& path, std::int64_t runners) {
  return std::make_shared<PackageModule>(path, runners);
}

#else

inline void prepare_for_packages(const void*) {}

inline std::shared_ptr<ServedModule> load_package(const std::string&, std::int64_t) {
  throw PythonError("Unsupported", "this release has no loader of AOTInductor's packages: 2.6.0 is the first");
}

#endif

}  // namespace gate
