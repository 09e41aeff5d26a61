// JSON as a value: a small type that holds what was read, and its parser.
#pragma once

#include "standard.hpp"
#include "values/json_text.hpp"

namespace gate::json {

struct Value {
  enum class Kind { null, boolean, integer, number, string, array, object };

  Kind kind = Kind::null;
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0;
  std::string string;
  std::vector<Value> items;
  std::vector<std::pair<std::string, Value>> members;

  bool is_null() const { return kind == Kind::null; }
  const Value* find(std::string_view key) const {
    for (const auto& [name, value] : members)
      if (name == key) return &value;
    return nullptr;
  }
  // The errors of these three say what is missing in the file that the controller wrote.
  const Value& operator[](std::string_view key) const {
    if (const Value* member = find(key)) return *member;
    throw std::runtime_error("no \"" + std::string(key) + "\" in a JSON object");
  }
  const Value& operator[](std::size_t index) const {
    if (index < items.size()) return items[index];
    throw std::runtime_error("a JSON array is too short");
  }
  const std::string& str() const {
    if (kind == Kind::string) return string;
    throw std::runtime_error("a JSON value is not a string");
  }
  double as_double() const { return kind == Kind::integer ? static_cast<double>(integer) : number; }
  bool truthy() const { return kind == Kind::boolean ? boolean : as_double() != 0; }
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Value parse() {
    Value value = parse_value();
    skip_space();
    if (at_ != text_.size()) fail("something follows the value");
    return value;
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw std::runtime_error("not JSON at byte " + std::to_string(at_) + ": " + what);
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void expect(std::string_view word, const char* what) {
    skip_space();
    if (!take(word)) fail(what);
  }

  Value parse_value() {
    skip_space();
    Value value;
    if (take("{")) return parse_object();
    if (take("[")) return parse_array();
    if (at_ < text_.size() && text_[at_] == '"') {
      value.kind = Value::Kind::string;
      value.string = parse_string();
    } else if (take("true") || take("false")) {
      value.kind = Value::Kind::boolean;
      value.boolean = text_[at_ - 2] == 'u';
    } else if (!take("null")) {
      return parse_number();
    }
    return value;
  }

  Value parse_object() {
    Value value;
    value.kind = Value::Kind::object;
    skip_space();
    if (take("}")) return value;
    do {
      skip_space();
      std::string key = parse_string();
      expect(":", "a colon is missing");
      value.members.emplace_back(std::move(key), parse_value());
      skip_space();
    } while (take(","));
    expect("}", "an object does not end");
    return value;
  }

  Value parse_array() {
    Value value;
    value.kind = Value::Kind::array;
    skip_space();
    if (take("]")) return value;
    do {
      value.items.push_back(parse_value());
      skip_space();
    } while (take(","));
    expect("]", "an array does not end");
    return value;
  }

  Value parse_number() {
    Value value;
    value.kind = Value::Kind::number;
    if (take("NaN")) return value.number = NAN, value;
    if (take("Infinity")) return value.number = INFINITY, value;
    if (take("-Infinity")) return value.number = -INFINITY, value;
    const auto start = at_;
    while (at_ < text_.size() && std::string_view("+-0123456789.eE").find(text_[at_]) != std::string_view::npos) ++at_;
    const char *first = text_.data() + start, *last = text_.data() + at_;
    if (first == last) fail("no value");
    if (const auto [end, error] = std::from_chars(first, last, value.integer); error == std::errc() && end == last) {
      value.kind = Value::Kind::integer;
      return value;
    }
    if (const auto [end, error] = std::from_chars(first, last, value.number); error != std::errc() || end != last)
      fail("no number");
    return value;
  }

  std::string parse_string() {
    if (!take("\"")) fail("a string is missing");
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] != '\\') {
        out += text_[at_++];
        continue;
      }
      if (++at_ == text_.size()) break;
      const char escape = text_[at_++];
      const auto plain = std::string_view("\"\\/bfnrt").find(escape);
      if (plain != std::string_view::npos) out += "\"\\/\b\f\n\r\t"[plain];
      else if (escape == 'u') append_utf8(out, parse_escaped_code_point());
      else fail("an unknown escape");
    }
    if (!take("\"")) fail("a string does not end");
    return out;
  }

  std::uint32_t parse_unit() {
    std::uint32_t unit = 0;
    const char* first = text_.data() + at_;
    if (at_ + 4 > text_.size() || std::from_chars(first, first + 4, unit, 16).ptr != first + 4) fail("a bad \\u");
    at_ += 4;
    return unit;
  }

  std::uint32_t parse_escaped_code_point() {
    const std::uint32_t high = parse_unit();
    if (high < 0xD800 || high >= 0xDC00 || !take("\\u")) return high;
    return 0x10000 + ((high - 0xD800) << 10) + (parse_unit() - 0xDC00);
  }

  static void append_utf8(std::string& out, std::uint32_t point) {
    if (point < 0x80) {
      out += static_cast<char>(point);
      return;
    }
    const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    out += static_cast<char>((0xF00 >> (more + 1) & 0xFF) | point >> (6 * more));
    for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (point >> (6 * i) & 0x3F));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

inline Value parse(std::string_view text) { return Parser(text).parse(); }

// Returns the text of a boolean, an integer or a string.
inline std::string scalar(const Value& value) {
  if (value.kind == Value::Kind::boolean) return truth(value.boolean);
  return value.kind == Value::Kind::integer ? std::to_string(value.integer) : literal(value.str());
}

inline std::map<std::string, const Value*> sorted(const Value& object) {
  std::map<std::string, const Value*> members;
  for (const auto& [name, value] : object.members) members[name] = &value;
  return members;
}

}  // namespace gate::json
