#include "tasks/recording/video.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "tasks/recording/free_name.h"
#include "tasks/recording/video_container.h"
#include "tasks/recording/video_encoder.h"
#define STB_EASY_FONT_IMPLEMENTATION
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_easy_font.h>
#pragma GCC diagnostic pop

namespace mjp::app {
namespace {

// Has an encoder write a hidden file beside the video, and gives it the video's name once it is
// found to be whole: what stands under that name can be played, whoever is killed and whatever is
// full.
class WholeVideo : public VideoWriter {
 public:
  WholeVideo(const std::string& ffmpeg, const std::string& stem, int width, int height, int fps,
             Before before)
      : stem_(stem), suffix_(ffmpeg.empty() ? ".avi" : ".mp4"), before_(before) {
    file_ = stem_ + suffix_;
    target_ = before_ == Before::kReplaced ? mjp::FollowLinks(file_) : file_;
    const std::filesystem::path path(target_);
    part_ = (path.parent_path() / UnfinishedVideoName(path.filename().string())).string();
    CheckFolder();
    encoder_ = ffmpeg.empty() ? OpenAvi(part_, file_, width, height, fps)
                              : OpenFfmpeg(ffmpeg, part_, file_, width, height, fps);
  }

  ~WholeVideo() override {
    encoder_.reset();  // ends the encoder
    if (!part_.empty()) ::unlink(part_.c_str());
  }

  void Add(const Picture& picture) override {
    encoder_->Add(picture);
    ++pictures_;
  }

  void Close() override {
    encoder_->Close();
    const std::string fault = VideoFault(part_, pictures_);
    if (!fault.empty()) {
      throw mjp::BadInput(file_ + ": the video is not complete: " + fault + " (is the disk full?)");
    }
    const std::string part = std::exchange(part_, "");
    if (before_ == Before::kKept) {
      file_ = RenameToFreeName(part, stem_, suffix_);
    } else {
      mjp::RenameDurably(part, target_);
    }
  }

 private:
  // A folder that takes no file says why itself: of an encoder it is not learnt.
  void CheckFolder() const {
    const mjp::FileDescriptor part(::open(part_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (part.get() < 0) throw mjp::FileError("cannot create the video", target_);
    ::unlink(part_.c_str());
  }

  const std::string stem_, suffix_;
  const Before before_;
  std::string target_;  // the file, where links lead
  std::string part_;    // what is written; empty once it has its name
  std::unique_ptr<VideoEncoder> encoder_;
  int64_t pictures_ = 0;
};

}  // namespace

Picture::Picture(int w, int h, uint8_t level)
    : width(w), height(h), rgb(static_cast<size_t>(w) * h * 3, level) {}

void Paste(Picture& target, const uint8_t* rgb, int width, int height, int factor, int x, int y) {
  for (int row = 0; row < height * factor; ++row) {
    const int ty = y + row;
    if (ty < 0 || ty >= target.height) continue;
    for (int column = 0; column < width * factor; ++column) {
      const int tx = x + column;
      if (tx < 0 || tx >= target.width) continue;
      const uint8_t* from = rgb + (static_cast<size_t>(row / factor) * width + column / factor) * 3;
      std::copy(from, from + 3, &target.rgb[(static_cast<size_t>(ty) * target.width + tx) * 3]);
    }
  }
}

void FillRectangle(Picture& target, int x, int y, int width, int height, Color color) {
  const int x_end = std::min(x + width, target.width), y_end = std::min(y + height, target.height);
  for (int row = std::max(y, 0); row < y_end; ++row) {
    for (int column = std::max(x, 0); column < x_end; ++column) {
      uint8_t* pixel = &target.rgb[(static_cast<size_t>(row) * target.width + column) * 3];
      pixel[0] = color.r, pixel[1] = color.g, pixel[2] = color.b;
    }
  }
}

void DrawText(Picture& target, const std::string& text, int x, int y, int scale, Color color) {
  struct Vertex {
    float x, y, z;
    uint8_t rgba[4];
  };
  static_assert(sizeof(Vertex) == 16, "layout of stb_easy_font");
  std::vector<Vertex> quads(text.size() * 80 + 4);
  std::string copy = text;
  const int count = stb_easy_font_print(0, 0, copy.data(), nullptr, quads.data(),
                                        static_cast<int>(quads.size() * sizeof(Vertex)));
  for (int i = 0; i < count; ++i) {
    const Vertex &a = quads[i * 4], &b = quads[i * 4 + 2];
    FillRectangle(target, x + static_cast<int>(a.x * scale), y + static_cast<int>(a.y * scale),
                  static_cast<int>((b.x - a.x) * scale), static_cast<int>((b.y - a.y) * scale),
                  color);
  }
}

std::unique_ptr<VideoWriter> VideoWriter::Open(const std::string& stem, int width, int height,
                                               int fps, Before before) {
  const std::string ffmpeg = FindProgram("ffmpeg");
  return std::make_unique<WholeVideo>(ffmpeg, stem, width, height, fps, before);
}

std::string FindProgram(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string rest = path ? path : "";
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    std::string candidate = rest.substr(0, colon) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return "";
}

}  // namespace mjp::app
