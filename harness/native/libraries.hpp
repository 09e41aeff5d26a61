// Operator libraries: opened before any artifact, so that what they register is there.
#pragma once

#include "standard.hpp"

#include <ATen/core/interned_strings.h>
#include <dlfcn.h>
#include <torch/csrc/jit/runtime/operator.h>

#include "values/json.hpp"

namespace gate::libraries {

inline bool opened(const std::string& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr; }

// Opens one, with the companions where it needs them; returns why it cannot be opened, empty where it was.
inline std::string open_one(const std::string& path, const json::Value& companions) {
  if (opened(path)) return "";
  for (const json::Value& companion : companions.items) opened(companion.str());
  if (opened(path)) return "";
  const char* why = dlerror();
  return why ? why : "no reason is given";
}

inline bool is_known(const std::string& name) {
  return !torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name)).empty();
}

// Opens those of the request; returns, as JSON, which could not be opened, and which operators of theirs are missing.
inline std::string open_all(const json::Value& request) {
  json::Object not_opened;
  for (const json::Value& path : request["libraries"].items)
    if (const std::string why = open_one(path.str(), request["companions"]); !why.empty())
      not_opened.text(path.str(), why);
  std::vector<std::string> missing;
  for (const json::Value& name : request["operators"].items)
    if (!is_known(name.str())) missing.push_back(name.str());
  return json::Object().raw("not_opened", not_opened.str()).raw("missing", json::array(missing, json::literal)).str();
}

}  // namespace gate::libraries
