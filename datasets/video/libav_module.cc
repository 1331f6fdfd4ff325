// The library mjpolicy_video: what datasets/video/video.h opens.

#include "base/error.h"
#include "datasets/video/libav.h"

namespace mjp::datasets {

int CheckLibav(int result, const std::string& path, const char* what) {
  if (result >= 0) return result;
  char reason[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(result, reason, sizeof reason);
  throw BadInput(path + ": " + what + ": " + reason);
}

}  // namespace mjp::datasets

extern "C" __attribute__((visibility("default")))
const mjp::datasets::VideoFunctions mjpolicy_video_functions = {mjp::datasets::OpenWithLibav,
                                                                mjp::datasets::CreateWithLibav};
