#include "base/json.h"

#include <charconv>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace mjp {
namespace {

// Builds a Json from the parser's events; an event that returns false stops the parser.
class StrictBuilder {
 public:
  explicit StrictBuilder(int max_depth) : max_depth_(max_depth) {}

  bool null() { return Add(nullptr); }
  bool boolean(bool value) { return Add(value); }
  bool number_integer(int64_t value) { return Add(value); }
  bool number_unsigned(uint64_t value) { return Add(value); }
  bool number_float(double value, const std::string&) { return Add(value); }
  bool string(std::string& value) { return Add(std::move(value)); }
  bool binary(Json::binary_t&) { return Fail("holds binary data"); }
  bool start_object(size_t) { return Open(Json::object()); }
  bool start_array(size_t) { return Open(Json::array()); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }

  bool key(std::string& value) {
    if (!open_.back().keys.insert(value).second) return Fail("key \"" + value + "\" appears twice");
    key_ = std::move(value);
    return true;
  }

  bool parse_error(size_t position, const std::string&, const std::exception& error) {
    // the library's text is "[json.exception...] parse error at line ...: details"
    const std::string text = error.what();
    const size_t details = text.find("] ");
    return Fail("byte " + std::to_string(position) + ": " +
                (details == std::string::npos ? text : text.substr(details + 2)));
  }

  Json& root() { return root_; }
  const std::string& error() const { return error_; }

 private:
  struct Container {
    Json* value;
    std::set<std::string> keys;
  };

  bool Fail(std::string what) {
    error_ = std::move(what);
    return false;
  }

  // appends without the library's search for the key, which is linear
  Json* Append(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back().value;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    auto& members = parent.get_ref<Json::object_t&>();
    members.emplace_back(std::move(key_), std::move(value));
    return &members.back().second;
  }

  bool Add(Json value) {
    Append(std::move(value));
    return true;
  }

  bool Open(Json value) {
    if (static_cast<int>(open_.size()) >= max_depth_) {
      return Fail("is nested deeper than " + std::to_string(max_depth_) + " levels");
    }
    open_.push_back({Append(std::move(value)), {}});
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  const int max_depth_;
  Json root_;
  std::vector<Container> open_;
  std::string key_;
  std::string error_;
};

}  // namespace

Json ParseJson(std::string_view text, const std::string& origin, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    throw BadInput(origin + ": has " + std::to_string(text.size()) + " bytes, more than " +
                   std::to_string(limits.bytes));
  }
  if (text.starts_with("\xEF\xBB\xBF")) {
    throw BadInput(origin + ": starts with a byte order mark; save it as UTF-8 without one");
  }
  // the library takes a NUL for the end of the text
  if (text.find('\0') != std::string_view::npos) throw BadInput(origin + ": contains a NUL byte");
  StrictBuilder builder(limits.depth);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    throw BadInput(origin + ": " + builder.error());
  }
  return std::move(builder.root());
}

Json ReadJson(const std::string& path, const JsonLimits& limits) {
  const std::vector<uint8_t> bytes = ReadFile(path, limits.bytes);
  return ParseJson({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, limits);
}

std::string JsonText(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

double ShortestDouble(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double number = 0;
  std::from_chars(text, end, number);
  return number;
}

}  // namespace mjp
