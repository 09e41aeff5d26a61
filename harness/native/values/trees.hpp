// Values as the text of wire trees.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <string>

#include "values/dtypes.hpp"
#include "values/json.hpp"
#include "values/sha256.hpp"

namespace gate {

class Trees {
 public:
  virtual ~Trees() = default;

  std::string text(const c10::IValue& value) {
    std::string out;
    append_tree(out, value);
    return out;
  }

 private:
  // Returns where the bytes of a tensor lie; nowhere, unless a subclass keeps them.
  virtual std::int64_t store(const std::string& /*digest*/, const void* /*data*/, std::size_t /*size*/) { return 0; }

  void append_tree(std::string& out, const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined()) leaf(out, "tensor", spec(value.toTensor()));
    else if (value.isNone() || value.isTensor()) leaf(out, "none", "null");
    else if (value.isBool()) leaf(out, "bool", value.toBool() ? "true" : "false");
    else if (value.isInt()) leaf(out, "int", std::to_string(value.toInt()));
    else if (value.isDouble()) leaf(out, "float", quoted(json::float_repr(value.toDouble())));
    else if (value.isComplexDouble()) leaf(out, "complex", complex_parts(value.toComplexDouble()));
    else if (value.isString()) leaf(out, "str", quoted(value.toStringRef()));
    else if (value.isDevice()) leaf(out, "device", quoted(value.toDevice().str()));
    else if (value.isTuple()) append_tuple(out, value);
    else if (value.isList()) append_items(out, "list", value.toListRef());
    else if (value.isGenericDict()) append_dict(out, value);
    else leaf(out, "object", quoted(object_name(value)));
  }

  static void leaf(std::string& out, const char* kind, const std::string& json) {
    ((((out += "[\"") += kind) += "\",") += json) += ']';
  }

  static std::string quoted(const std::string& text) {
    std::string out;
    json::append_string(out, text);
    return out;
  }

  static std::string complex_parts(const c10::complex<double>& value) {
    return "[\"" + json::float_repr(value.real()) + "\",\"" + json::float_repr(value.imag()) + "\"]";
  }

  template <typename Items>
  void append_items(std::string& out, const char* kind, const Items& items) {
    std::string body;
    for (const auto& item : items) {
      if (!body.empty()) body += ',';
      append_tree(body, item);
    }
    leaf(out, kind, "[" + body + "]");
  }

  void append_tuple(std::string& out, const c10::IValue& value) {
    const auto& tuple = value.toTupleRef();
    const auto type = tuple.type<c10::TupleType>();
    if (!type->name() || !type->schema()) return append_items(out, "tuple", tuple.elements());
    std::string fields;
    for (std::size_t i = 0; i < tuple.elements().size(); ++i) {
      if (i > 0) fields += ',';
      (fields += '[') += quoted(type->schema()->arguments()[i].name()) += ',';
      append_tree(fields, tuple.elements()[i]);
      fields += ']';
    }
    leaf(out, "namedtuple", "[" + quoted(type->name()->name()) + ",[" + fields + "]]");
  }

  void append_dict(std::string& out, const c10::IValue& value) {
    std::string body;
    for (const auto& entry : value.toGenericDict()) {  // in order of insertion
      if (!body.empty()) body += ',';
      body += '[';
      append_tree(body, entry.key());
      body += ',';
      append_tree(body, entry.value());
      body += ']';
    }
    leaf(out, "dict", "[" + body + "]");
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
    object.text("dtype", dtype_name(tensor.scalar_type())).raw("shape", numbers(tensor.sizes()));
    if (tensor.layout() == c10::kStrided) {
      object.raw("stride", numbers(tensor.strides()));
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
        .natural("nbytes", size)
        .text("sha256", digest)
        .str();
  }

  template <typename Numbers>
  static std::string numbers(const Numbers& values) {
    std::string body;
    for (const auto value : values) (body += body.empty() ? "" : ",") += std::to_string(value);
    return "[" + body + "]";
  }

  // Returns the elements of a vector, whole numbers or not, as Python's tolist() gives them.
  static std::string listed(const at::Tensor& vector) {
    const at::Tensor wide = vector.to(vector.is_floating_point() ? at::kDouble : at::kLong).contiguous();
    std::string body;
    for (std::int64_t i = 0; i < wide.numel(); ++i) {
      if (i > 0) body += ',';
      if (vector.is_floating_point()) json::append_float(body, static_cast<const double*>(wide.data_ptr())[i]);
      else body += std::to_string(static_cast<const std::int64_t*>(wide.data_ptr())[i]);
    }
    return "[" + body + "]";
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
