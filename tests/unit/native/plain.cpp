// What of the C++ worker needs no torch: reads JSON from standard input and says it again, or says the digest of it.
#include <iostream>
#include <iterator>

#include "values/json.hpp"
#include "values/sha256.hpp"

using gate::json::Value;

static std::string said(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null: return "null";
    case Value::Kind::number: return gate::json::number(value.number);
    case Value::Kind::array: return gate::json::array(value.items, said);
    case Value::Kind::object: {
      gate::json::Object object;
      for (const auto& [key, member] : value.members) object.raw(key, said(member));
      return object.str();
    }
    default: return gate::json::scalar(value);
  }
}

int main(int count, char**) {
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  try {
    std::cout << (count > 1 ? gate::sha256_hex(input.data(), input.size()) : said(gate::json::parse(input))) << "\n";
  } catch (const std::exception& error) {
    std::cout << error.what() << "\n";
    return 1;
  }
}
