#include "image_diffusion/data/byte_stream.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace mjp {
namespace {

constexpr uint64_t kBuffer = uint64_t{1} << 16;

Error Damaged(const std::string& origin) {
  return BadInput(origin + ": the gzip data is damaged or not complete; download it again");
}

}  // namespace

void ByteStream::InflateEnd::operator()(z_stream_s* stream) const {
  inflateEnd(stream);
  delete stream;
}

ByteStream::ByteStream(const std::string& path) : origin_(path) {
  try {
    file_ = std::make_unique<RegularFile>(path, std::numeric_limits<uint64_t>::max());
  } catch (const Error& error) {
    throw BadInput(std::string(error.what()) + "; put the data set's file there");
  }
  size_ = unread_ = file_->size();
  Begin();
}

ByteStream::ByteStream(std::span<const uint8_t> bytes, std::string origin)
    : origin_(std::move(origin)), raw_(bytes), size_(bytes.size()) {
  Begin();
}

ByteStream::~ByteStream() = default;

void ByteStream::Begin() {
  Refill();
  if (raw_.size() < 2 || raw_[0] != 0x1F || raw_[1] != 0x8B) return;
  constexpr int kGzip = 16 + MAX_WBITS;
  auto stream = std::make_unique<z_stream>();
  if (inflateInit2(stream.get(), kGzip) != Z_OK) throw EnvironmentError("zlib cannot start");
  inflater_.reset(stream.release());
}

bool ByteStream::Refill() {
  if (!raw_.empty()) return true;
  if (unread_ == 0) return false;
  const uint64_t count = std::min(unread_, kBuffer);
  buffer_.clear();
  file_->Read(count, buffer_);
  unread_ -= count;
  raw_ = buffer_;
  return true;
}

size_t ByteStream::Inflate(std::span<uint8_t> out) {
  inflater_->next_out = out.data();
  inflater_->avail_out = static_cast<unsigned>(out.size());
  while (inflater_->avail_out > 0 && !inflated_) {
    if (!Refill()) throw Damaged(origin_);
    const size_t offered = std::min<size_t>(raw_.size(), kBuffer);
    inflater_->next_in = const_cast<uint8_t*>(raw_.data());
    inflater_->avail_in = static_cast<unsigned>(offered);
    const int status = inflate(inflater_.get(), Z_NO_FLUSH);
    raw_ = raw_.subspan(offered - inflater_->avail_in);
    if (status == Z_STREAM_END) inflated_ = true;
    if (status != Z_OK && status != Z_STREAM_END) throw Damaged(origin_);
  }
  return out.size() - inflater_->avail_out;
}

size_t ByteStream::ReadUpTo(std::span<uint8_t> out) {
  size_t done = 0;
  while (done < out.size()) {
    const std::span<uint8_t> rest = out.subspan(done, std::min(out.size() - done, kBuffer));
    size_t came = 0;
    if (inflater_) {
      came = Inflate(rest);
    } else if (Refill()) {
      came = std::min(rest.size(), raw_.size());
      std::copy_n(raw_.begin(), came, rest.begin());
      raw_ = raw_.subspan(came);
    }
    if (came == 0) break;
    done += came;
  }
  return done;
}

void ByteStream::Read(std::span<uint8_t> out) {
  if (ReadUpTo(out) < out.size()) {
    throw BadInput(origin_ + ": ends before what its header announces; download it again");
  }
}

void ByteStream::CheckEnd() {
  uint8_t more = 0;
  if (ReadUpTo({&more, 1}) > 0) {
    throw BadInput(origin_ + ": goes on behind what its header announces; download it again");
  }
  if (Refill()) throw Damaged(origin_);
  if (file_) file_->CheckUnchanged();
}

}  // namespace mjp
