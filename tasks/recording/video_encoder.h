#ifndef TASKS_RECORDING_VIDEO_ENCODER_H_
#define TASKS_RECORDING_VIDEO_ENCODER_H_

#include <memory>
#include <string>

#include "tasks/recording/video.h"

namespace mjp::app {

// Turns pictures into a file; whether that is whole is for the caller to look at.
class VideoEncoder {
 public:
  virtual ~VideoEncoder() = default;
  // Appends one picture. Throws Error when the file cannot be written.
  virtual void Add(const Picture& picture) = 0;
  // Completes the file. Throws Error if that is seen to fail.
  virtual void Close() = 0;
};

// Write `file`; `name` is what errors call it. Throw Error if it cannot be created.
std::unique_ptr<VideoEncoder> OpenAvi(const std::string& file, const std::string& name, int width,
                                      int height, int fps);
std::unique_ptr<VideoEncoder> OpenFfmpeg(const std::string& program, const std::string& file,
                                         const std::string& name, int width, int height, int fps);

}  // namespace mjp::app

#endif  // TASKS_RECORDING_VIDEO_ENCODER_H_
