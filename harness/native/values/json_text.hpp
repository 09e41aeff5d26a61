// Writes JSON with the text that Python's json module gives the same value.
#pragma once

#include "standard.hpp"

namespace gate::json {

// Returns the text that Python's repr() gives: the shortest digits that read back as the same number.
inline std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  const auto e = text.find('e');
  std::string sign, digits;
  for (const char c : text.substr(0, e)) {
    if (c == '-') sign = "-";
    else if (c != '.') digits += c;
  }
  const int exponent = std::stoi(std::string(text.substr(e + 1)));
  if (exponent < -4 || exponent >= 16) {
    char tail[16];
    std::snprintf(tail, sizeof tail, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    return sign + digits.substr(0, 1) + (digits.size() > 1 ? "." + digits.substr(1) : "") + tail;
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

// Reads one code point of UTF-8 at `at` and moves on; bytes that are no UTF-8 become U+FFFD.
inline std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at++);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xF0 && lead < 0xF8 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC2 ? 1 : 0;
  if (more == 0 || lead >= 0xF8 || at + static_cast<std::size_t>(more) > text.size()) return 0xFFFD;
  std::uint32_t point = lead & (0x3F >> more);
  for (int i = 0; i < more; ++i) {
    if ((byte(at + static_cast<std::size_t>(i)) & 0xC0) != 0x80) return 0xFFFD;
    point = point << 6 | (byte(at + static_cast<std::size_t>(i)) & 0x3F);
  }
  at += static_cast<std::size_t>(more);
  return point;
}

// Appends a JSON string in ASCII.
inline void append_string(std::string& out, std::string_view text) {
  char escaped[16];
  const auto unit = [&](std::uint32_t code) {
    std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(code));
    out += escaped;
  };
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t point = next_code_point(text, at);
    const auto plain = std::u32string_view(U"\"\\\n\r\t\b\f").find(point);
    if (plain != std::u32string_view::npos) (out += '\\') += "\"\\nrtbf"[plain];
    else if (point >= 0x20 && point < 0x7F) out += static_cast<char>(point);
    else if (point < 0x10000) unit(point);
    else unit(0xD800 + ((point - 0x10000) >> 10)), unit(0xDC00 + ((point - 0x10000) & 0x3FF));
  }
  out += '"';
}

inline std::string literal(std::string_view text) {
  std::string out;
  append_string(out, text);
  return out;
}

inline std::string truth(bool value) { return value ? "true" : "false"; }

inline std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return float_repr(value);
}

// Returns an array of what `text` makes of each item.
template <typename Items, typename Text>
std::string array(const Items& items, Text&& text) {
  std::string body;
  for (const auto& item : items) {
    if (!body.empty()) body += ',';
    body += text(item);
  }
  return "[" + body + "]";
}

template <typename Integers>
std::string integers(const Integers& values) {
  return array(values, [](std::int64_t value) { return std::to_string(value); });
}

// Writes one object, member by member.
class Object {
 public:
  Object& text(std::string_view key, std::string_view value) { return append_string(member(key), value), *this; }
  template <typename Integer>
  Object& integer(std::string_view key, Integer value) { return member(key) += std::to_string(value), *this; }
  Object& boolean(std::string_view key, bool value) { return member(key) += truth(value), *this; }
  Object& number(std::string_view key, double value) { return member(key) += json::number(value), *this; }
  // `json` is finished JSON text.
  Object& raw(std::string_view key, std::string_view json) { return member(key) += json, *this; }
  std::string str() const { return "{" + body_ + "}"; }

 private:
  std::string& member(std::string_view key) {
    if (!body_.empty()) body_ += ',';
    append_string(body_, key);
    return body_ += ':';
  }
  std::string body_;
};

}  // namespace gate::json
