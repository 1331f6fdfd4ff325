// Motion JPEG in an AVI 1.0 container: RIFF('AVI ' hdrl(avih, strl(strh, strf)) movi(00dc...)
// idx1).

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "tasks/recording/stb_writer.h"
#include "tasks/recording/video_encoder.h"

namespace mjp::app {
namespace {

constexpr int kJpegQuality = 90;
constexpr uint32_t kHasIndex = 0x10, kKeyFrame = 0x10;

class AviEncoder : public VideoEncoder {
 public:
  AviEncoder(const std::string& file, std::string name, int width, int height, int fps)
      : file_(std::move(name)),
        width_(width),
        height_(height),
        fps_(fps),
        out_(std::fopen(file.c_str(), "wb")) {
    if (out_ == nullptr) {
      throw mjp::BadInput(file_ + ": cannot create the video: " + std::strerror(errno));
    }
    WriteHeader();
  }
  ~AviEncoder() override {
    if (out_ != nullptr) std::fclose(out_);
  }

  void Add(const Picture& picture) override {
    std::vector<uint8_t> jpeg;
    const auto append = [](void* context, void* data, int size) {
      auto* bytes = static_cast<std::vector<uint8_t>*>(context);
      bytes->insert(bytes->end(), static_cast<uint8_t*>(data), static_cast<uint8_t*>(data) + size);
    };
    stbi_write_jpg_to_func(append, &jpeg, picture.width, picture.height, 3, picture.rgb.data(),
                           kJpegQuality);
    index_.push_back({static_cast<uint32_t>(std::ftell(out_) - movi_start_),
                      static_cast<uint32_t>(jpeg.size())});
    Tag("00dc");
    Number(static_cast<uint32_t>(jpeg.size()));
    if (jpeg.size() % 2 == 1) jpeg.push_back(0);
    if (std::fwrite(jpeg.data(), 1, jpeg.size(), out_) != jpeg.size()) {
      throw mjp::BadInput(file_ + ": cannot write the video (is the disk full?)");
    }
  }

  void Close() override {
    const long movi_end = std::ftell(out_);
    Tag("idx1");
    Number(static_cast<uint32_t>(index_.size() * 16));
    for (const Entry& entry : index_) {
      Tag("00dc");
      Number(kKeyFrame);
      Number(entry.offset);
      Number(entry.size);
    }
    const long end = std::ftell(out_);
    Patch(4, static_cast<uint32_t>(end - 8));
    Patch(frames_at_[0], static_cast<uint32_t>(index_.size()));
    Patch(frames_at_[1], static_cast<uint32_t>(index_.size()));
    Patch(movi_start_ - 4, static_cast<uint32_t>(movi_end - movi_start_));
    const bool failed = std::ferror(out_) != 0;
    const bool closed = std::fclose(out_) == 0;
    out_ = nullptr;
    if (failed || !closed) {
      throw mjp::BadInput(file_ + ": cannot write the video (is the disk full?)");
    }
  }

 private:
  struct Entry {
    uint32_t offset, size;
  };

  void Tag(const char* tag) { std::fwrite(tag, 1, 4, out_); }
  void Number(uint32_t value) {
    const uint8_t bytes[4] = {static_cast<uint8_t>(value), static_cast<uint8_t>(value >> 8),
                              static_cast<uint8_t>(value >> 16), static_cast<uint8_t>(value >> 24)};
    std::fwrite(bytes, 1, 4, out_);
  }
  void Patch(long at, uint32_t value) {
    std::fseek(out_, at, SEEK_SET);
    Number(value);
    std::fseek(out_, 0, SEEK_END);
  }

  void WriteHeader() {
    const uint32_t width = width_, height = height_;
    Tag("RIFF"), Number(0), Tag("AVI ");
    Tag("LIST"), Number(4 + 8 + 56 + 12 + 8 + 56 + 8 + 40), Tag("hdrl");
    Tag("avih"), Number(56);
    Number(1000000 / fps_), Number(0), Number(0), Number(kHasIndex);
    frames_at_[0] = std::ftell(out_);
    Number(0), Number(0), Number(1), Number(0), Number(width), Number(height);
    for (int i = 0; i < 4; ++i) Number(0);
    Tag("LIST"), Number(4 + 8 + 56 + 8 + 40), Tag("strl");
    Tag("strh"), Number(56), Tag("vids"), Tag("MJPG");
    for (int i = 0; i < 3; ++i) Number(0);
    Number(1), Number(fps_), Number(0);
    frames_at_[1] = std::ftell(out_);
    Number(0), Number(0), Number(~0u), Number(0), Number(0), Number(width | height << 16);
    Tag("strf"), Number(40), Number(40), Number(width), Number(height), Number(1 | 24 << 16);
    Tag("MJPG"), Number(width * height * 3);
    for (int i = 0; i < 4; ++i) Number(0);
    Tag("LIST"), Number(0);
    movi_start_ = std::ftell(out_);
    Tag("movi");
  }

  const std::string file_;  // as people know it
  int width_, height_, fps_;
  std::FILE* out_;
  long movi_start_ = 0;
  long frames_at_[2] = {0, 0};
  std::vector<Entry> index_;
};

}  // namespace

std::unique_ptr<VideoEncoder> OpenAvi(const std::string& file, const std::string& name, int width,
                                      int height, int fps) {
  return std::make_unique<AviEncoder>(file, name, width, height, fps);
}

}  // namespace mjp::app
