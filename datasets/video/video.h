#ifndef DATASETS_VIDEO_VIDEO_H_
#define DATASETS_VIDEO_VIDEO_H_

#include <cstdint>
#include <memory>
#include <string>

#include "datasets/pictures/picture.h"

// Videos of data sets: MP4 files. The work is done by a library of ours that is opened when the
// first video is, because FFmpeg's libraries, which it needs, take 0.1 s to load.

namespace mjp::datasets {

// Reads frames of an MP4 file by their time.
class VideoReader {
 public:
  virtual ~VideoReader() = default;
  // The frame that is shown from `seconds` on. Throws Error "file: ..." if none starts within
  // `tolerance` seconds of it, or if it cannot be decoded. Frames in the order of time are quick.
  virtual const Picture& At(double seconds, double tolerance) = 0;
  // Frames in the file, by its index.
  virtual int64_t frames() const = 0;
  // Of each frame; "av1", "h264".
  virtual int height() const = 0;
  virtual int width() const = 0;
  virtual const char* codec() const = 0;
};

// Writes an MP4 file as LeRobot does: AV1, yuv420p, a keyframe at every second frame, quality
// (CRF) 30, frame k at k / fps exactly.
class VideoWriter {
 public:
  virtual ~VideoWriter() = default;
  // The next frame, of the size that the writer was made for.
  virtual void Add(const Picture& picture) = 0;
  // Ends the file. Without it, what is there is no video.
  virtual void Finish() = 0;
};

// Opens a video. Throws Error if it is none, or EnvironmentError where FFmpeg's libraries are
// absent.
std::unique_ptr<VideoReader> OpenVideo(const std::string& path);

// Creates one; height and width are even and at least 64.
std::unique_ptr<VideoWriter> CreateVideo(const std::string& path, int height, int width, int fps);

// What the library gives, by the name "mjpolicy_video_functions".
struct VideoFunctions {
  std::unique_ptr<VideoReader> (*open)(const std::string& path);
  std::unique_ptr<VideoWriter> (*create)(const std::string& path, int height, int width, int fps);
};

}  // namespace mjp::datasets

#endif  // DATASETS_VIDEO_VIDEO_H_
