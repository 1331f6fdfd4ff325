#ifndef IMAGE_DIFFUSION_DATA_BYTE_STREAM_H_
#define IMAGE_DIFFUSION_DATA_BYTE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

struct z_stream_s;

namespace mjp {

class RegularFile;

// The bytes of a data set's file in their order, decompressed where they are gzip. The file is
// never held as a whole, so that what it says of itself can be judged before its content has
// memory. Every Error names the file.
class ByteStream {
 public:
  // A regular file, raw or gzip. Throws Error if it cannot be opened or is not one.
  explicit ByteStream(const std::string& path);
  // `bytes` stay the caller's and outlive the stream; `origin` names them.
  ByteStream(std::span<const uint8_t> bytes, std::string origin);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  const std::string& origin() const { return origin_; }
  // Bytes in all; nothing where only decompressing would tell.
  std::optional<uint64_t> size() const { return inflater_ ? std::nullopt : std::optional(size_); }
  // The next bytes, and how many came: fewer than out.size() at the end. Throws Error if gzip data
  // is damaged.
  size_t ReadUpTo(std::span<uint8_t> out);
  // The next out.size() bytes. Throws Error if there are fewer, or gzip data is damaged.
  void Read(std::span<uint8_t> out);
  // Throws Error if anything follows, the gzip data is not complete, or the file has changed since
  // it was opened.
  void CheckEnd();

 private:
  struct InflateEnd {
    void operator()(z_stream_s* stream) const;
  };

  void Begin();
  // Gets more raw bytes where none are left; false at the end.
  bool Refill();
  size_t Inflate(std::span<uint8_t> out);

  std::string origin_;
  std::unique_ptr<RegularFile> file_;  // null: the bytes are in memory
  std::vector<uint8_t> buffer_;        // of the file
  std::span<const uint8_t> raw_;       // not yet used
  uint64_t size_ = 0, unread_ = 0;     // of the raw bytes: all, those still in the file
  std::unique_ptr<z_stream_s, InflateEnd> inflater_;  // null: not gzip
  bool inflated_ = false;                             // gzip's end has come
};

}  // namespace mjp

#endif  // IMAGE_DIFFUSION_DATA_BYTE_STREAM_H_
