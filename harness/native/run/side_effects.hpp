// What a call leaves behind beside its output: inputs that it changed in place, and tensors that share memory.
// harness/worker/run/serving.py finds the same in Python; docs/formats/wire.md says how it is written.
#pragma once

#include "standard.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include "values/json.hpp"
#include "values/json_text.hpp"
#include "values/tensor_reader.hpp"

namespace gate {

// A tensor somewhere in a value; `path` is JSON.
struct PlacedTensor {
  std::string path;
  at::Tensor tensor;
};

struct SideEffects {
  std::vector<PlacedTensor> changed;
  std::string shared;  // JSON, empty where nothing shares memory
};

class SideEffectFinder {
 public:
  explicit SideEffectFinder(const TensorReader& reader) : reader_(reader) {}

  // `arguments` are those that the call was made with, `tree` their recording.
  SideEffects find(const c10::IValue& arguments, const json::Value& tree, const c10::IValue& output) {
    recorded(arguments, tree, "[\"input\"");
    leaves(output, "[\"output\"");
    return {std::move(changed_), shared()};
  }

 private:
  void recorded(const c10::IValue& value, const json::Value& tree, const std::string& path) {
    const std::string& kind = tree[0].str();
    const json::Value& content = tree[1];
    if (kind == "tensor" && value.isTensor()) {
      if (!reader_.holds(content, value.toTensor())) changed_.push_back({path + "]", value.toTensor()});
      place(path, value.toTensor());
    } else if (kind == "tuple" && value.isTuple()) {
      recorded_items(value.toTupleRef().elements(), content, path);
    } else if (kind == "namedtuple" && value.isTuple()) {
      const auto& elements = value.toTupleRef().elements();
      const auto& fields = content[1].items;
      for (std::size_t i = 0; i < elements.size() && i < fields.size(); ++i)
        recorded(elements[i], fields[i][1], path + "," + std::to_string(i));
    } else if (kind == "list" && value.isList()) {
      recorded_items(value.toListRef(), content, path);
    } else if (kind == "dict" && value.isGenericDict()) {
      std::size_t i = 0;
      for (const auto& entry : value.toGenericDict()) {
        if (i == content.items.size()) break;
        recorded(entry.value(), content[i++][1], path + "," + key_step(entry.key()));
      }
    }
  }

  template <typename Items>
  void recorded_items(const Items& items, const json::Value& trees, const std::string& path) {
    for (std::size_t i = 0; i < items.size() && i < trees.items.size(); ++i)
      recorded(items[i], trees[i], path + "," + std::to_string(i));
  }

  void leaves(const c10::IValue& value, const std::string& path) {
    if (value.isTensor()) {
      if (value.toTensor().defined()) place(path, value.toTensor());
    } else if (value.isTuple()) {
      const auto& tuple = value.toTupleRef();
      const auto type = tuple.type<c10::TupleType>();
      const bool named = type->name() && type->schema();
      for (std::size_t i = 0; i < tuple.elements().size(); ++i) {
        const std::string step = named ? json::literal(type->schema()->arguments()[i].name()) : std::to_string(i);
        leaves(tuple.elements()[i], path + "," + step);
      }
    } else if (value.isList()) {
      std::size_t i = 0;
      for (const c10::IValue& item : value.toListRef()) leaves(item, path + "," + std::to_string(i++));
    } else if (value.isGenericDict()) {
      for (const auto& entry : value.toGenericDict()) leaves(entry.value(), path + "," + key_step(entry.key()));
    }
  }

  static std::string key_step(const c10::IValue& key) {
    if (key.isBool()) return "[\"bool\"," + json::truth(key.toBool()) + "]";
    if (key.isInt()) return "[\"int\"," + std::to_string(key.toInt()) + "]";
    if (key.isString()) return "[\"str\"," + json::literal(key.toStringRef()) + "]";
    if (key.isDouble()) return "[\"float\"," + json::literal(json::float_repr(key.toDouble())) + "]";
    return std::string("[\"object\",") + (key.isTensor() ? "\"Tensor\"]" : "\"complex\"]");
  }

  void place(const std::string& path, const at::Tensor& tensor) {
    if (tensor.layout() != c10::kStrided || !tensor.has_storage()) return;
    const void* address = tensor.storage().data();
    if (!address) return;
    const auto [known, is_new] = by_storage_.emplace(address, groups_.size());
    if (is_new) groups_.emplace_back();
    groups_[known->second].push_back(path + "]");
  }

  std::string shared() const {
    std::vector<std::string> lists;
    for (const auto& paths : groups_)
      if (paths.size() > 1) lists.push_back(json::array(paths, [](const std::string& path) { return path; }));
    return lists.empty() ? "" : json::array(lists, [](const std::string& list) { return list; });
  }

  const TensorReader& reader_;
  std::vector<PlacedTensor> changed_;
  std::vector<std::vector<std::string>> groups_;  // paths per storage
  std::unordered_map<const void*, std::size_t> by_storage_;
};

}  // namespace gate
