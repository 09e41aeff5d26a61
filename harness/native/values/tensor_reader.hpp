// Wire trees to values: reads back what a tensor writer wrote. Every call returns fresh tensors.
#pragma once

#include "standard.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/_make_per_tensor_quantized_tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include "failures.hpp"
#include "wire.hpp"
#include "values/dtypes.hpp"
#include "values/json.hpp"

namespace gate {

inline std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw PythonError("FileNotFoundError", "[Errno 2] No such file or directory: '" + path + "'");
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

inline std::vector<json::Value> read_lines(const std::string& path) {
  std::istringstream stream(read_file(path));
  std::vector<json::Value> values;
  for (std::string line; std::getline(stream, line);) values.push_back(json::parse(line));
  return values;
}

// Gives values without a schema: lists and dicts hold anything; `fitted` in run/arguments.hpp types them.
class TensorReader {
 public:
  // Floating tensors are converted to `precision` where one is given.
  TensorReader(const std::string& folder, c10::Device device, std::optional<c10::ScalarType> precision)
      : data_(read_file(folder + "/" + wire::kTensorsBin)), device_(device), precision_(precision) {}

  // Dimensions that `grows` names in a spec of `tree` are `larger` than recorded.
  c10::IValue value(const json::Value& tree, std::int64_t larger = 0) const {
    const std::string& kind = tree[0].str();
    const json::Value& content = tree[1];
    if (kind == "tensor") return grown(tensor(content), content, larger);
    if (kind == "none") return {};
    if (kind == "bool") return content.boolean;
    if (kind == "int") return content.integer;
    if (kind == "float") return number(content);
    if (kind == "complex") return c10::complex<double>(number(content[0]), number(content[1]));
    if (kind == "device") return c10::Device(content.str());
    if (kind == "tuple") return c10::ivalue::Tuple::create(items(content, larger));
    if (kind == "list") return list(content, larger);
    if (kind == "namedtuple") return fields(content[1], larger);
    if (kind == "dict") return dict(content, larger);
    return content.str();
  }

  // Whether `tensor` has the shape and the bytes that were recorded.
  bool holds(const json::Value& spec, const at::Tensor& tensor) const {
    if (tensor.sizes() != at::IntArrayRef(integers(spec["shape"]))) return false;
    const at::Tensor stored = tensor.is_quantized() ? tensor.int_repr() : tensor;
    const at::Tensor raw = stored.resolve_conj().resolve_neg().cpu().contiguous();
    const auto size = static_cast<std::size_t>(raw.numel()) * raw.element_size();
    if (!promises(spec, size)) return false;
    return size == 0 || std::memcmp(raw.data_ptr(), data_.data() + spec["offset"].integer, size) == 0;
  }

 private:
  // Whether `spec` is of `size` bytes that are all there; a sum with its offset may wrap.
  bool promises(const json::Value& spec, std::size_t size) const {
    const std::int64_t offset = spec["offset"].integer, nbytes = spec["nbytes"].integer;
    if (offset < 0 || nbytes < 0 || static_cast<std::size_t>(nbytes) != size || size > data_.size()) return false;
    return static_cast<std::size_t>(offset) <= data_.size() - size;
  }

  std::vector<c10::IValue> items(const json::Value& trees, std::int64_t larger) const {
    std::vector<c10::IValue> values;
    for (const auto& item : trees.items) values.push_back(value(item, larger));
    return values;
  }

  c10::IValue list(const json::Value& trees, std::int64_t larger) const {
    c10::impl::GenericList values(c10::AnyType::get());
    for (const auto& item : trees.items) values.push_back(value(item, larger));
    return values;
  }

  c10::IValue fields(const json::Value& pairs, std::int64_t larger) const {
    std::vector<c10::IValue> values;
    for (const auto& pair : pairs.items) values.push_back(value(pair[1], larger));
    return c10::ivalue::Tuple::create(std::move(values));
  }

  c10::IValue dict(const json::Value& pairs, std::int64_t larger) const {
    c10::impl::GenericDict values(c10::AnyType::get(), c10::AnyType::get());
    for (const auto& pair : pairs.items) values.insert(value(pair[0]), value(pair[1], larger));
    return values;
  }

  static double number(const json::Value& text) { return std::strtod(text.str().c_str(), nullptr); }

  static std::vector<std::int64_t> integers(const json::Value& array) {
    std::vector<std::int64_t> values;
    for (const auto& item : array.items) values.push_back(item.integer);
    return values;
  }

  // The dtype of a quantized tensor's bytes.
  static c10::ScalarType stored_dtype(c10::ScalarType type) {
    if (type == c10::ScalarType::QUInt8) return c10::ScalarType::Byte;
    return type == c10::ScalarType::QInt8 ? c10::ScalarType::Char : c10::ScalarType::Int;
  }

  // Returns `made` with the dimensions that grow so much larger: its values again, from the first one on.
  static at::Tensor grown(at::Tensor made, const json::Value& spec, std::int64_t larger) {
    const json::Value* grows = larger > 0 ? spec.find("grows") : nullptr;
    if (!grows) return made;
    for (const auto& dimension : grows->items) {
      const std::int64_t size = made.size(dimension.integer);
      made = made.index_select(dimension.integer, at::arange(size + larger, made.device()).remainder(size));
    }
    return made;
  }

  at::Tensor tensor(const json::Value& spec) const {
    const std::string& name = spec["dtype"].str();
    const auto dtype = dtype_named(name);
    if (!dtype) throw PythonError("AttributeError", "module 'torch' has no attribute '" + name + "'");
    const json::Value* quantizer = spec.find("quantizer");
    const auto shape = integers(spec["shape"]);
    at::Tensor made = at::empty(shape, at::TensorOptions().dtype(quantizer ? stored_dtype(*dtype) : *dtype));
    const std::size_t size = made.nbytes();
    if (!promises(spec, size)) throw PythonError("ValueError", "a recorded input is damaged");
    if (size > 0) std::memcpy(made.data_ptr(), data_.data() + spec["offset"].integer, size);
    if (quantizer) {
      if (!quantizer->find("scale")) throw PythonError("KeyError", "'scale'");
      const auto zero_point = (*quantizer)["zero_point"].integer;
      made = at::_make_per_tensor_quantized_tensor(made, (*quantizer)["scale"].as_double(), zero_point);
    } else if (const json::Value* stride = spec.find("stride"); stride && size > 0) {
      const auto strides = integers(*stride);
      if (made.strides() != at::IntArrayRef(strides))
        made = at::empty_strided(shape, strides, made.options()).copy_(made);
    }
    made = made.to(device_);
    const bool widen = precision_ && made.is_floating_point() && !made.is_quantized();
    return widen ? made.to(*precision_) : made;
  }

  std::string data_;
  c10::Device device_;
  std::optional<c10::ScalarType> precision_;
};

}  // namespace gate
