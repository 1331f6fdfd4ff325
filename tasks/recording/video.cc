#include "tasks/recording/video.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#define STB_EASY_FONT_IMPLEMENTATION
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_easy_font.h>
#pragma GCC diagnostic pop

extern char** environ;

namespace mjp::app {
namespace {

// Full path of a program on PATH, or "".
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

// Pipes raw pictures into ffmpeg.
class FfmpegWriter : public VideoWriter {
 public:
  FfmpegWriter(const std::string& program, const std::string& file, int width, int height,
               int fps) {
    file_ = file;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw mjp::EnvironmentError("video: cannot make a pipe");
    pipe_ = ends[1];
    const std::string size = std::to_string(width) + "x" + std::to_string(height);
    const std::string rate = std::to_string(fps);
    std::vector<std::string> words = {
        program,    "-y",   "-loglevel", "error",      "-f", "rawvideo", "-pix_fmt",
        "rgb24",    "-s",   size,        "-r",         rate, "-i",       "-",
        "-an",      "-c:v", "libx264",   "-crf",       "20", "-pix_fmt", "yuv420p",
        "-threads", "1",    "-movflags", "+faststart", file};
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    // a Ctrl-C for the evaluator must not tear the video: ffmpeg ends when its input does
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    const int code =
        ::posix_spawn(&child_, program.c_str(), &actions, &attributes, arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[0]);
    if (code != 0) {
      ::close(pipe_);
      throw mjp::EnvironmentError("video: cannot start " + program + ": " + std::strerror(code));
    }
  }

  ~FfmpegWriter() override {
    if (pipe_ >= 0) ::close(pipe_);
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
  }

  void Add(const Picture& picture) override {
    size_t done = 0;
    while (done < picture.rgb.size()) {
      const ssize_t n = ::write(pipe_, picture.rgb.data() + done, picture.rgb.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0)
        throw mjp::BadInput(file_ + ": ffmpeg stopped taking pictures (is the disk full?)");
      done += static_cast<size_t>(n);
    }
  }

  void Close() override {
    ::close(pipe_);
    pipe_ = -1;
    int status = 0;
    const pid_t child = child_;
    child_ = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      throw mjp::BadInput(file_ + ": ffmpeg failed to complete the video");
    }
  }

 private:
  int pipe_ = -1;
  pid_t child_ = 0;
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
                                               int fps) {
  const std::string ffmpeg = FindProgram("ffmpeg");
  if (ffmpeg.empty()) return OpenAvi(stem + ".avi", width, height, fps);
  return std::make_unique<FfmpegWriter>(ffmpeg, stem + ".mp4", width, height, fps);
}

}  // namespace mjp::app
