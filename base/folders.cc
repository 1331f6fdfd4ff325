#include "base/folders.h"

namespace mjp::app {
namespace {

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

void WriteDurably(int fd, const std::string& text, const std::string& file) {
  mjp::WriteDurably(fd, BytesOf(text), file);
}

void WriteFileAtomically(const std::string& file, const std::string& text) {
  mjp::WriteFileAtomically(file, BytesOf(text));
}

std::string ReadFile(const std::string& file, size_t limit) {
  const std::vector<uint8_t> bytes = mjp::ReadFile(file, limit);
  return {bytes.begin(), bytes.end()};
}

}  // namespace mjp::app
