// Untyped values to what a method's schema asks for: TorchScript's lists and dicts know the type of their items.
#pragma once

#include "standard.hpp"

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

namespace gate {

c10::IValue fitted(const c10::IValue& value, const c10::TypePtr& type);

inline c10::IValue fitted_list(const c10::IValue& value, const c10::TypePtr& item_type) {
  c10::impl::GenericList list(item_type);
  if (value.isTuple())
    for (const auto& item : value.toTupleRef().elements()) list.push_back(fitted(item, item_type));
  else
    for (const auto& item : value.toListRef()) list.push_back(fitted(item, item_type));
  return list;
}

inline c10::IValue fitted_tuple(const c10::IValue& value, const c10::TupleTypePtr& type) {
  const auto& given = value.toTupleRef().elements();
  if (given.size() != type->elements().size()) return value;
  std::vector<c10::IValue> items;
  for (std::size_t i = 0; i < given.size(); ++i) items.push_back(fitted(given[i], type->elements()[i]));
  if (type->name()) return c10::ivalue::Tuple::createNamed(std::move(items), type);
  return c10::ivalue::Tuple::create(std::move(items));
}

inline c10::IValue fitted_dict(const c10::IValue& value, const c10::TypePtr& key_type, const c10::TypePtr& item_type) {
  c10::impl::GenericDict dict(key_type, item_type);
  for (const auto& entry : value.toGenericDict())
    dict.insert(fitted(entry.key(), key_type), fitted(entry.value(), item_type));
  return dict;
}

// Python infers the types of what goes where anything goes: from the first item.
inline c10::IValue inferred(const c10::IValue& value) {
  if (value.isList() && !value.toListRef().empty())
    return fitted_list(value, inferred(value.toListRef()[0]).type());
  if (value.isGenericDict() && !value.toGenericDict().empty()) {
    const auto first = value.toGenericDict().begin();
    return fitted_dict(value, first->key().type(), inferred(first->value()).type());
  }
  return value;
}

inline c10::IValue fitted_union(const c10::IValue& value, const c10::UnionTypePtr& type) {
  for (const auto& candidate : type->containedTypes()) {
    c10::IValue attempt = fitted(value, candidate);
    if (attempt.type()->isSubtypeOf(*candidate)) return attempt;
  }
  return value;
}

// Returns `value` as an argument of `type`, or as it is where it does not fit: the call then says what it expected.
inline c10::IValue fitted(const c10::IValue& value, const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::OptionalType:
      return value.isNone() ? value : fitted(value, type->castRaw<c10::OptionalType>()->getElementType());
    case c10::TypeKind::FloatType:
      return value.isInt() ? c10::IValue(static_cast<double>(value.toInt())) : value;
    case c10::TypeKind::ComplexType:
      return value.isDouble() || value.isInt() ? c10::IValue(c10::complex<double>(value.toScalar().toDouble())) : value;
    case c10::TypeKind::IntType:
      return value.isBool() ? c10::IValue(static_cast<std::int64_t>(value.toBool())) : value;
    case c10::TypeKind::ListType:
      if (!value.isList() && !value.isTuple()) return value;
      return fitted_list(value, type->castRaw<c10::ListType>()->getElementType());
    case c10::TypeKind::DictType: {
      const auto* dict = type->castRaw<c10::DictType>();
      return value.isGenericDict() ? fitted_dict(value, dict->getKeyType(), dict->getValueType()) : value;
    }
    case c10::TypeKind::TupleType:
      return value.isTuple() ? fitted_tuple(value, type->cast<c10::TupleType>()) : value;
    case c10::TypeKind::UnionType:
      return fitted_union(value, type->cast<c10::UnionType>());
    case c10::TypeKind::AnyType:
      return inferred(value);
    default:
      return value;
  }
}

}  // namespace gate
