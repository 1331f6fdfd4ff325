// H.264 in an mp4 through the program ffmpeg.

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tasks/recording/video_encoder.h"

extern char** environ;

namespace mjp::app {
namespace {

// Pipes raw pictures into ffmpeg.
class FfmpegEncoder : public VideoEncoder {
 public:
  FfmpegEncoder(const std::string& program, const std::string& file, std::string name, int width,
                int height, int fps)
      : file_(std::move(name)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw mjp::EnvironmentError("video: cannot make a pipe");
    pipe_ = ends[1];
    // a relative name could be taken for a protocol ("a:b.mp4") or an option ("-b.mp4")
    const std::string path = std::filesystem::absolute(file).string();
    const std::string size = std::to_string(width) + "x" + std::to_string(height);
    const std::string rate = std::to_string(fps);
    std::vector<std::string> words = {
        program,    "-y",   "-loglevel", "error",      "-f", "rawvideo", "-pix_fmt",
        "rgb24",    "-s",   size,        "-r",         rate, "-i",       "-",
        "-an",      "-c:v", "libx264",   "-crf",       "20", "-pix_fmt", "yuv420p",
        "-threads", "1",    "-movflags", "+faststart", "-f", "mp4",      path};
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

  ~FfmpegEncoder() override {
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
  const std::string file_;  // as people know it
  int pipe_ = -1;
  pid_t child_ = 0;
};

}  // namespace

std::unique_ptr<VideoEncoder> OpenFfmpeg(const std::string& program, const std::string& file,
                                         const std::string& name, int width, int height, int fps) {
  return std::make_unique<FfmpegEncoder>(program, file, name, width, height, fps);
}

}  // namespace mjp::app
