#ifndef POLICY_TEXT_STREAM_H_
#define POLICY_TEXT_STREAM_H_

#include <sstream>
#include <string>

// String streams that throw std::bad_alloc where memory runs out: the standard's stop there, mark
// themselves bad and leave a text that ends too early.

namespace dp {

class TextWriter : public std::ostringstream {
 public:
  TextWriter() { exceptions(badbit); }
};

class TextReader : public std::istringstream {
 public:
  explicit TextReader(const std::string& text) : std::istringstream(text) { exceptions(badbit); }
};

}  // namespace dp

#endif  // POLICY_TEXT_STREAM_H_
