#include "tasks/recording/video_container.h"

#include <unistd.h>

#include <fstream>
#include <optional>
#include <stdexcept>

#include "base/file.h"

namespace mjp::app {
namespace {

constexpr char kPart[] = ".part";

// A file by offsets; every read is within it.
class Source {
 public:
  explicit Source(const std::string& file) : file_(file), in_(file, std::ios::binary) {
    if (!in_ || !in_.seekg(0, std::ios::end)) throw FileError("cannot open", file);
    size_ = static_cast<uint64_t>(in_.tellg());
  }

  uint64_t size() const { return size_; }

  std::string Text(uint64_t at, size_t count) {
    if (at > size_ || count > size_ - at) throw std::range_error("it ends too early");
    std::string text(count, '\0');
    in_.seekg(static_cast<std::streamoff>(at));
    if (!in_.read(text.data(), static_cast<std::streamsize>(count))) {
      throw FileError("cannot read", file_);
    }
    return text;
  }

  uint64_t BigEndian(uint64_t at, size_t bytes) {
    uint64_t value = 0;
    for (const char c : Text(at, bytes)) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }

  uint64_t LittleEndian(uint64_t at) {
    const std::string text = Text(at, 4);
    uint64_t value = 0;
    for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<uint8_t>(text[i]);
    return value;
  }

 private:
  const std::string file_;
  std::ifstream in_;
  uint64_t size_ = 0;
};

// A box of an mp4, or a chunk of a RIFF file: its content is begin ... end.
struct Part {
  std::string type;
  uint64_t begin = 0, end = 0;
};

Part NextBox(Source& source, uint64_t at, uint64_t limit) {
  uint64_t size = source.BigEndian(at, 4), header = 8;
  const std::string type = source.Text(at + 4, 4);
  if (size == 1) size = source.BigEndian(at + 8, 8), header = 16;
  if (size < header || size > limit - at) {
    throw std::range_error("its part '" + type + "' is cut off");
  }
  return {type, at + header, at + size};
}

Part NextChunk(Source& source, uint64_t at, uint64_t limit) {
  const uint64_t size = source.LittleEndian(at + 4);
  if (size > limit - at - 8) {
    throw std::range_error("its part '" + source.Text(at, 4) + "' is cut off");
  }
  return {source.Text(at, 4), at + 8, at + 8 + size};
}

// The first part of `type` within begin ... end, which parts must fill.
template <class Next>
std::optional<Part> Find(Source& source, uint64_t begin, uint64_t end, const std::string& type,
                         Next next) {
  std::optional<Part> found;
  for (uint64_t at = begin; at < end;) {
    const Part part = next(source, at, end);
    if (!found && part.type == type) found = part;
    at = part.end + (next == NextChunk ? part.end % 2 : 0);  // chunks begin at even bytes
  }
  return found;
}

Part Need(const std::optional<Part>& part, const char* type) {
  if (!part) throw std::range_error(std::string("it has no '") + type + "'");
  return *part;
}

// Pictures of an mp4: of its first track's table of sizes, which must fit the data.
int64_t PicturesOfMp4(Source& source) {
  const auto find = [&](const Part& in, const char* type) {
    return Need(Find(source, in.begin, in.end, type, NextBox), type);
  };
  const Part whole{"", 0, source.size()};
  const Part data = find(whole, "mdat");
  Part part = find(whole, "moov");
  for (const char* type : {"trak", "mdia", "minf", "stbl", "stsz"}) part = find(part, type);
  const uint64_t each = source.BigEndian(part.begin + 4, 4);
  const uint64_t count = source.BigEndian(part.begin + 8, 4);
  uint64_t sum = each * count;
  for (uint64_t i = 0; each == 0 && i < count; ++i) {
    sum += source.BigEndian(part.begin + 12 + 4 * i, 4);
  }
  if (sum > data.end - data.begin) throw std::range_error("it lacks the last pictures");
  return static_cast<int64_t>(count);
}

// Pictures of an AVI: of its index.
int64_t PicturesOfAvi(Source& source) {
  const Part riff = NextChunk(source, 0, source.size());
  if (riff.end != source.size()) throw std::range_error("it has something behind its end");
  const uint64_t first = riff.begin + 4;  // past "AVI "
  Need(Find(source, first, riff.end, "LIST", NextChunk), "LIST");
  const Part index = Need(Find(source, first, riff.end, "idx1", NextChunk), "idx1");
  return static_cast<int64_t>((index.end - index.begin) / 16);
}

}  // namespace

std::string VideoFault(const std::string& file, int64_t pictures) {
  Source source(file);
  if (source.size() == 0) return "it is empty";
  try {
    const bool avi = source.Text(0, 4) == "RIFF";
    const int64_t here = avi ? PicturesOfAvi(source) : PicturesOfMp4(source);
    if (here == 0) return "it has no pictures";
    if (pictures >= 0 && here != pictures) {
      return "it has " + std::to_string(here) + " of " + std::to_string(pictures) + " pictures";
    }
  } catch (const std::range_error& error) {
    return error.what();
  }
  return "";
}

std::string UnfinishedVideoName(const std::string& name) {
  return "." + name + "." + std::to_string(::getpid()) + kPart;
}

bool IsUnfinishedVideo(const std::string& name) {
  return name.starts_with(".") && name.ends_with(kPart);
}

}  // namespace mjp::app
