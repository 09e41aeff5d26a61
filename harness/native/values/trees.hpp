// Values as the text of wire trees.
#pragma once

#include "standard.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include "values/dtypes.hpp"
#include "values/json.hpp"
#include "values/sha256.hpp"

namespace gate {

class Trees {
 public:
  virtual ~Trees() = default;

  std::string text(const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined()) return leaf("tensor", spec(value.toTensor()));
    if (value.isNone() || value.isTensor()) return leaf("none", "null");
    if (value.isBool()) return leaf("bool", json::truth(value.toBool()));
    if (value.isInt()) return leaf("int", std::to_string(value.toInt()));
    if (value.isDouble()) return leaf("float", json::literal(json::float_repr(value.toDouble())));
    if (value.isComplexDouble()) return leaf("complex", complex_parts(value.toComplexDouble()));
    if (value.isString()) return leaf("str", json::literal(value.toStringRef()));
    if (value.isDevice()) return leaf("device", json::literal(value.toDevice().str()));
    if (value.isTuple()) return tuple(value);
    if (value.isList()) return leaf("list", items(value.toListRef()));
    if (!value.isGenericDict()) return leaf("object", json::literal(object_name(value)));
    const auto pair = [this](const auto& entry) { return "[" + text(entry.key()) + "," + text(entry.value()) + "]"; };
    return leaf("dict", json::array(value.toGenericDict(), pair));  // in order of insertion
  }

 private:
  // Returns where the bytes of a tensor lie; nowhere, unless a subclass keeps them.
  virtual std::int64_t store(const std::string& /*digest*/, const void* /*data*/, std::size_t /*size*/) { return 0; }

  static std::string leaf(const char* kind, const std::string& json) {
    return std::string("[\"") + kind + "\"," + json + "]";
  }

  static std::string complex_parts(const c10::complex<double>& value) {
    return "[\"" + json::float_repr(value.real()) + "\",\"" + json::float_repr(value.imag()) + "\"]";
  }

  template <typename Items>
  std::string items(const Items& values) {
    return json::array(values, [this](const c10::IValue& item) { return text(item); });
  }

  std::string tuple(const c10::IValue& value) {
    const auto& elements = value.toTupleRef().elements();
    const auto type = value.toTupleRef().type<c10::TupleType>();
    if (!type->name() || !type->schema()) return leaf("tuple", items(elements));
    std::size_t i = 0;
    const std::string fields = json::array(elements, [&](const c10::IValue& item) {
      return "[" + json::literal(type->schema()->arguments()[i++].name()) + "," + text(item) + "]";
    });
    return leaf("namedtuple", "[" + json::literal(type->name()->name()) + "," + fields + "]");
  }

  static std::string object_name(const c10::IValue& value) {
    if (value.isModule()) return "ScriptModule";
    if (value.isCustomClass()) return "ScriptObject";
    if (value.isObject()) {
      const auto name = value.toObjectRef().type()->name();
      return name ? name->name() : "object";
    }
    if (value.isEnum()) return value.toEnumHolder()->type()->qualifiedClassName().name();
    return value.isCapsule() ? "PyCapsule" : value.tagKind();
  }

  std::string spec(at::Tensor tensor) {
    tensor = tensor.detach();
    json::Object object;
    object.text("dtype", dtype_name(tensor.scalar_type())).raw("shape", json::integers(tensor.sizes()));
    if (tensor.layout() == c10::kStrided) {
      object.raw("stride", json::integers(tensor.strides()));
    } else {
      object.text("layout", layout_name(tensor.layout()));
      tensor = tensor.to_dense();
    }
    if (tensor.is_quantized()) {
      object.raw("quantizer", quantizer(tensor));
      tensor = tensor.int_repr();
    }
    object.text("device", c10::DeviceTypeName(tensor.device().type(), /*lower_case=*/true));
    const at::Tensor raw = tensor.resolve_conj().resolve_neg().cpu().contiguous();
    const auto size = static_cast<std::size_t>(raw.numel()) * raw.element_size();
    const std::string digest = sha256_hex(raw.data_ptr(), size);
    return object.integer("offset", store(digest, raw.data_ptr(), size))
        .integer("nbytes", size)
        .text("sha256", digest)
        .str();
  }

  // Returns the elements of a vector, whole numbers or not, as Python's tolist() gives them.
  static std::string listed(const at::Tensor& vector) {
    const at::Tensor wide = vector.to(vector.is_floating_point() ? at::kDouble : at::kLong).contiguous();
    const auto count = static_cast<std::size_t>(wide.numel());
    if (!vector.is_floating_point())
      return json::integers(at::IntArrayRef(static_cast<const std::int64_t*>(wide.data_ptr()), count));
    return json::array(at::ArrayRef<double>(static_cast<const double*>(wide.data_ptr()), count), json::number);
  }

  static std::string quantizer(const at::Tensor& tensor) {
    const auto scheme = tensor.qscheme();
    json::Object object;
    if (scheme == c10::kPerChannelAffine || scheme == c10::kPerChannelAffineFloatQParams)
      object.raw("scales", listed(tensor.q_per_channel_scales()))
          .raw("zero_points", listed(tensor.q_per_channel_zero_points()))
          .integer("axis", tensor.q_per_channel_axis());
    else
      object.number("scale", tensor.q_scale()).integer("zero_point", tensor.q_zero_point());
    return object.str();
  }
};

// Returns a tree of `value` without offsets into a file: two are equal when the values are, to the last bit.
inline std::string described(const c10::IValue& value) { return Trees().text(value); }

}  // namespace gate
