// Names of dtypes as Python prints them.
#pragma once

#include "standard.hpp"

#include <c10/core/Layout.h>
#include <c10/core/ScalarType.h>

namespace gate {

inline std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

inline std::string dtype_name(c10::ScalarType type) {
  const std::string name = lower(c10::toString(type));
  if (name == "byte") return "uint8";
  if (name == "char") return "int8";
  if (name == "short") return "int16";
  if (name == "int") return "int32";
  if (name == "long") return "int64";
  if (name == "half") return "float16";
  if (name == "float") return "float32";
  if (name == "double") return "float64";
  if (name == "complexhalf") return "complex32";
  if (name == "complexfloat") return "complex64";
  if (name == "complexdouble") return "complex128";
  return name;  // bool, bfloat16, quint8, float8_e4m3fn, uint16, ...
}

// Returns the dtype of that name, or nothing where this release has none.
inline std::optional<c10::ScalarType> dtype_named(const std::string& name) {
  // Never destroyed: threads that still call when the process exits would fail here, and not in torch.
  static const auto& known = *[] {
    auto& types = *new std::unordered_map<std::string, c10::ScalarType>;
    for (int i = 0; i < static_cast<int>(c10::ScalarType::NumOptions); ++i) {
      const auto type = static_cast<c10::ScalarType>(i);
      if (type != c10::ScalarType::Undefined) types.emplace(dtype_name(type), type);
    }
    return &types;
  }();
  const auto entry = known.find(name);
  return entry == known.end() ? std::nullopt : std::make_optional(entry->second);
}

inline std::string layout_name(c10::Layout layout) {
  if (layout == c10::kSparse) return "sparse_coo";
  std::ostringstream text;
  text << layout;
  const std::string name = lower(text.str());  // SparseCsr, Mkldnn, Jagged, ...
  for (const char* kind : {"csr", "csc", "bsr", "bsc"})
    if (name == std::string("sparse") + kind) return std::string("sparse_") + kind;
  return name == "mkldnn" ? "_mkldnn" : name;
}

}  // namespace gate
