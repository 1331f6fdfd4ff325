#ifndef TASKS_RECORDING_VIDEO_H_
#define TASKS_RECORDING_VIDEO_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace mjp::app {

// An RGB picture, row 0 at the top.
struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  // (height, width, 3)

  Picture() = default;
  Picture(int w, int h, uint8_t level);
};

struct Color {
  uint8_t r, g, b;
};

// Copies `source`, enlarged by a whole factor (nearest), with its top left corner at (x, y); clips.
void Paste(Picture& target, const uint8_t* rgb, int width, int height, int factor, int x, int y);

// Fills a rectangle; clips.
void FillRectangle(Picture& target, int x, int y, int width, int height, Color color);

// Draws ASCII text with its top left corner at (x, y); one unit of `scale` is about 8 pixels of
// height. Clips.
void DrawText(Picture& target, const std::string& text, int x, int y, int scale, Color color);

// Writes pictures as a video: H.264 (yuv420p, mp4) through ffmpeg where that is on PATH, else
// motion JPEG in an AVI. All pictures have the same, even, size.
class VideoWriter {
 public:
  // What becomes of a file that has the video's name already: replaced by it, or kept, and the
  // video gets the next name that is free (tasks/recording/free_name.h).
  enum class Before { kReplaced, kKept };

  // `stem` is the file without its suffix. Throws Error if the file cannot be created.
  static std::unique_ptr<VideoWriter> Open(const std::string& stem, int width, int height, int fps,
                                           Before before = Before::kReplaced);
  virtual ~VideoWriter() = default;
  // Appends one picture. Throws Error when the file cannot be written (a full disk, ffmpeg died).
  virtual void Add(const Picture& picture) = 0;
  // Completes the file, which has its name only from now on, and whole. Throws Error if it cannot
  // be made whole; nothing is left then.
  virtual void Close() = 0;
  // The file's name; where those before are kept, the one it got, once it is closed.
  const std::string& file() const { return file_; }

 protected:
  std::string file_;
};

// Full path of a program on PATH, or "".
std::string FindProgram(const std::string& name);

}  // namespace mjp::app

#endif  // TASKS_RECORDING_VIDEO_H_
