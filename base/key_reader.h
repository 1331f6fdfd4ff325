#ifndef BASE_KEY_READER_H_
#define BASE_KEY_READER_H_

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_forward.h"

namespace mjp {

// Reads the members of one JSON object with their types and ranges, and knows which were read, so
// that nothing in a file is silently ignored. null counts as absent. Every error names the key.
class KeyReader {
 public:
  // `where` names the object in errors; `object` must outlive the reader.
  KeyReader(const Json& object, std::string where);

  bool Has(const std::string& key) const;
  // The member, or null; marks it as read.
  const Json* Find(const std::string& key);
  const Json& Required(const std::string& key);

  // Integers within low ... high, booleans, numbers, texts. Without `fallback` the key must exist.
  int Int(const std::string& key, int low, int high, std::optional<int> fallback = {});
  bool Bool(const std::string& key, std::optional<bool> fallback = {});
  double Number(const std::string& key, double low, double high,
                std::optional<double> fallback = {});
  std::string Text(const std::string& key, std::optional<std::string> fallback = {});
  // An integer of 32 bits without a sign, such as a seed.
  uint32_t Uint32(const std::string& key);
  // An array of least ... most integers within low ... high.
  std::vector<int> Ints(const std::string& key, size_t least, size_t most, int low, int high);
  // The value that `key`'s text has in `table`. Throws Error that lists the table.
  template <class T>
  T Choice(const std::string& key, std::initializer_list<std::pair<std::string_view, T>> table,
           std::optional<std::string> fallback = {}) {
    const std::string text = Text(key, std::move(fallback));
    std::string known;
    for (const auto& [name, value] : table) {
      if (name == text) return value;
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    throw Bad(key, "is \"" + text + "\"; supported are: " + known);
  }

  // Marks members that have no effect here as read.
  void Ignore(std::initializer_list<const char*> keys);
  // Throws Error for the first member that nothing has read and that is not null.
  void RejectRest() const;

  // An error about `key`.
  Error Bad(const std::string& key, const std::string& what) const;

 private:
  const Json& object_;
  std::string where_;
  std::set<std::string> read_;
};

}  // namespace mjp

#endif  // BASE_KEY_READER_H_
