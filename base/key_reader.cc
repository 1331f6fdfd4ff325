#include "base/key_reader.h"

#include <limits>

#include "base/json.h"

namespace mjp {

KeyReader::KeyReader(const Json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object.is_object()) throw BadInput(where_ + ": must be a JSON object");
}

Error KeyReader::Bad(const std::string& key, const std::string& what) const {
  return BadInput(where_ + ": \"" + key + "\" " + what);
}

bool KeyReader::Has(const std::string& key) const {
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

const Json* KeyReader::Find(const std::string& key) {
  read_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const Json& KeyReader::Required(const std::string& key) {
  const Json* value = Find(key);
  if (!value) throw Bad(key, "is missing");
  return *value;
}

namespace {

bool IsIntWithin(const Json& value, int low, int high) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    return high >= 0 && number <= static_cast<uint64_t>(high) && static_cast<int>(number) >= low;
  }
  return value.is_number_integer() && value.get<int64_t>() >= low && value.get<int64_t>() <= high;
}

template <class T>
std::string Range(const std::string& kind, T low, T high) {
  return kind + " from " + Json(low).dump() + " to " + Json(high).dump();
}

}  // namespace

int KeyReader::Int(const std::string& key, int low, int high, std::optional<int> fallback) {
  const Json* value = Find(key);
  if (!value && fallback) return *fallback;
  if (!value) throw Bad(key, "is missing");
  if (!IsIntWithin(*value, low, high)) {
    throw Bad(key, "is " + value->dump() + "; supported: " + Range("an integer", low, high));
  }
  return value->get<int>();
}

uint32_t KeyReader::Uint32(const std::string& key) {
  const Json& value = Required(key);
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  if (!value.is_number_unsigned() || value.get<uint64_t>() > kMost) {
    throw Bad(key,
              "is " + value.dump() + "; supported: " + Range("an integer", uint32_t{0}, kMost));
  }
  return value.get<uint32_t>();
}

bool KeyReader::Bool(const std::string& key, std::optional<bool> fallback) {
  const Json* value = Find(key);
  if (!value && fallback) return *fallback;
  if (!value) throw Bad(key, "is missing");
  if (!value->is_boolean()) throw Bad(key, "is " + value->dump() + "; must be true or false");
  return value->get<bool>();
}

double KeyReader::Number(const std::string& key, double low, double high,
                         std::optional<double> fallback) {
  const Json* value = Find(key);
  if (!value && fallback) return *fallback;
  if (!value) throw Bad(key, "is missing");
  if (!value->is_number() || !(value->get<double>() >= low && value->get<double>() <= high)) {
    throw Bad(key, "is " + value->dump() + "; supported: " + Range("a number", low, high));
  }
  return value->get<double>();
}

std::string KeyReader::Text(const std::string& key, std::optional<std::string> fallback) {
  const Json* value = Find(key);
  if (!value && fallback) return *fallback;
  if (!value) throw Bad(key, "is missing");
  if (!value->is_string()) throw Bad(key, "is " + value->dump() + "; must be a text");
  return value->get<std::string>();
}

std::vector<int> KeyReader::Ints(const std::string& key, size_t least, size_t most, int low,
                                 int high) {
  const Json& value = Required(key);
  const auto fail = [&] {
    const std::string count = least == most ? std::to_string(least)
                                            : std::to_string(least) + " to " + std::to_string(most);
    return Bad(key, "is " + value.dump() + "; supported: " + count + " of " +
                        Range("an integer", low, high));
  };
  if (!value.is_array() || value.size() < least || value.size() > most) throw fail();
  std::vector<int> numbers;
  for (const Json& element : value) {
    if (!IsIntWithin(element, low, high)) throw fail();
    numbers.push_back(element.get<int>());
  }
  return numbers;
}

void KeyReader::Ignore(std::initializer_list<const char*> keys) {
  for (const char* key : keys) read_.insert(key);
}

void KeyReader::RejectRest() const {
  for (const auto& [key, value] : object_.items()) {
    if (!value.is_null() && !read_.contains(key)) {
      throw Bad(key,
                "is not known here, so its effect cannot be honoured; remove it if it has "
                "none on inference");
    }
  }
}

}  // namespace mjp
