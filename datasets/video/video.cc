#include "datasets/video/video.h"

#include "datasets/modules/modules.h"

namespace mjp::datasets {
namespace {

const VideoFunctions& Functions() {
  static const auto* functions = static_cast<const VideoFunctions*>(
      ModuleSymbol("mjpolicy_video", "mjpolicy_video_functions",
                   "; videos need FFmpeg's libraries: apt-get install libavformat59 libavcodec59 "
                   "libswscale6"));
  return *functions;
}

}  // namespace

std::unique_ptr<VideoReader> OpenVideo(const std::string& path) { return Functions().open(path); }

std::unique_ptr<VideoWriter> CreateVideo(const std::string& path, int height, int width, int fps) {
  return Functions().create(path, height, width, fps);
}

}  // namespace mjp::datasets
