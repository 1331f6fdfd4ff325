#ifndef DATASETS_VIDEO_LIBAV_H_
#define DATASETS_VIDEO_LIBAV_H_

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
}

#include <memory>
#include <string>

#include "datasets/video/video.h"

// FFmpeg's objects with an owner, for the library mjpolicy_video alone.

namespace mjp::datasets {

struct LibavDeleter {
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(SwsContext* context) const { sws_freeContext(context); }
};
template <class T>
using Libav = std::unique_ptr<T, LibavDeleter>;

// Throws Error "path: what: reason" for a result below 0; returns it otherwise.
int CheckLibav(int result, const std::string& path, const char* what);

std::unique_ptr<VideoReader> OpenWithLibav(const std::string& path);
std::unique_ptr<VideoWriter> CreateWithLibav(const std::string& path, int height, int width,
                                             int fps);

}  // namespace mjp::datasets

#endif  // DATASETS_VIDEO_LIBAV_H_
