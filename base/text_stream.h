#ifndef BASE_TEXT_STREAM_H_
#define BASE_TEXT_STREAM_H_

#include <locale>
#include <sstream>
#include <string>

// String streams that throw std::bad_alloc where memory runs out: the standard's stop there, mark
// themselves bad and leave a text that ends too early. Numbers have a decimal point and no groups,
// whatever locale a host has made the global one.

namespace mjp {

class TextWriter : public std::ostringstream {
 public:
  TextWriter() {
    imbue(std::locale::classic());
    exceptions(badbit);
  }
};

class TextReader : public std::istringstream {
 public:
  explicit TextReader(const std::string& text) : std::istringstream(text) {
    imbue(std::locale::classic());
    exceptions(badbit);
  }
};

}  // namespace mjp

#endif  // BASE_TEXT_STREAM_H_
