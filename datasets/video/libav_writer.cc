#include <cstdlib>

#include "base/error.h"
#include "datasets/video/libav.h"

namespace mjp::datasets {
namespace {

constexpr int kSmallest = 64;  // SVT-AV1's limit

class LibavWriter : public VideoWriter {
 public:
  LibavWriter(const std::string& path, int height, int width, int fps);
  ~LibavWriter() override { Close(); }
  LibavWriter(const LibavWriter&) = delete;
  LibavWriter& operator=(const LibavWriter&) = delete;

  void Add(const Picture& picture) override;
  void Finish() override;

 private:
  void OpenEncoder(int fps);
  void OpenFile(int fps);
  // Gives a frame (null: the end) to the encoder and writes what comes out.
  void Encode(const AVFrame* frame);
  void Close();

  std::string path_;
  int height_, width_;
  AVFormatContext* format_ = nullptr;
  AVStream* stream_ = nullptr;
  Libav<AVCodecContext> encoder_;
  Libav<AVFrame> frame_{av_frame_alloc()};
  Libav<AVPacket> packet_{av_packet_alloc()};
  Libav<SwsContext> to_yuv_;
  int64_t frames_ = 0;
};

LibavWriter::LibavWriter(const std::string& path, int height, int width, int fps)
    : path_(path), height_(height), width_(width) {
  if (height < kSmallest || width < kSmallest || height % 2 != 0 || width % 2 != 0) {
    throw Unsupported(path + ": frames of " + std::to_string(height) + " x " +
                      std::to_string(width) +
                      " pixels cannot be AV1: sides are even and at least 64; store images");
  }
  av_log_set_level(AV_LOG_FATAL);
  setenv("SVT_LOG", "1", 0);  // errors alone
  try {
    OpenEncoder(fps);
    OpenFile(fps);
  } catch (...) {
    Close();
    throw;
  }
}

void LibavWriter::OpenEncoder(int fps) {
  const AVCodec* codec = avcodec_find_encoder_by_name("libsvtav1");
  if (codec == nullptr) {
    throw EnvironmentError(path_ + ": this FFmpeg has no encoder libsvtav1; store images");
  }
  encoder_.reset(avcodec_alloc_context3(codec));
  if (!encoder_ || !frame_ || !packet_) throw std::bad_alloc();
  encoder_->width = width_;
  encoder_->height = height_;
  encoder_->pix_fmt = AV_PIX_FMT_YUV420P;
  encoder_->time_base = {1, fps};
  encoder_->framerate = {fps, 1};
  encoder_->gop_size = 2;
  encoder_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  av_opt_set(encoder_->priv_data, "crf", "30", 0);
  av_opt_set(encoder_->priv_data, "preset", "12", 0);
  CheckLibav(avcodec_open2(encoder_.get(), codec, nullptr), path_, "cannot open the encoder");
  frame_->format = AV_PIX_FMT_YUV420P;
  frame_->width = width_;
  frame_->height = height_;
  CheckLibav(av_frame_get_buffer(frame_.get(), 0), path_, "no memory for a frame");
  to_yuv_.reset(sws_getContext(width_, height_, AV_PIX_FMT_RGB24, width_, height_,
                               AV_PIX_FMT_YUV420P, SWS_BICUBIC, nullptr, nullptr, nullptr));
  if (!to_yuv_) throw std::bad_alloc();
}

void LibavWriter::OpenFile(int fps) {
  CheckLibav(avformat_alloc_output_context2(&format_, nullptr, "mp4", path_.c_str()), path_,
             "cannot make an MP4 file");
  stream_ = avformat_new_stream(format_, nullptr);
  if (stream_ == nullptr) throw std::bad_alloc();
  CheckLibav(avcodec_parameters_from_context(stream_->codecpar, encoder_.get()), path_,
             "cannot make an MP4 file");
  stream_->time_base = encoder_->time_base;
  stream_->avg_frame_rate = encoder_->framerate;
  CheckLibav(avio_open(&format_->pb, ("file:" + path_).c_str(), AVIO_FLAG_WRITE), path_,
             "cannot create");
  AVDictionary* options = nullptr;
  av_dict_set(&options, "movflags", "faststart", 0);
  av_dict_set_int(&options, "video_track_timescale", int64_t{fps} * 1024, 0);
  const int written = avformat_write_header(format_, &options);
  av_dict_free(&options);
  CheckLibav(written, path_, "cannot write");
}

void LibavWriter::Encode(const AVFrame* frame) {
  CheckLibav(avcodec_send_frame(encoder_.get(), frame), path_, "cannot encode a frame");
  while (true) {
    const int got = avcodec_receive_packet(encoder_.get(), packet_.get());
    if (got == AVERROR(EAGAIN) || got == AVERROR_EOF) return;
    CheckLibav(got, path_, "cannot encode a frame");
    packet_->stream_index = stream_->index;
    packet_->duration = 1;
    av_packet_rescale_ts(packet_.get(), encoder_->time_base, stream_->time_base);
    CheckLibav(av_interleaved_write_frame(format_, packet_.get()), path_, "cannot write");
  }
}

void LibavWriter::Add(const Picture& picture) {
  if (picture.height != height_ || picture.width != width_) {
    throw BadInput(path_ + ": frame " + std::to_string(frames_) + " has another size");
  }
  CheckLibav(av_frame_make_writable(frame_.get()), path_, "no memory for a frame");
  const uint8_t* planes[4] = {picture.rgb.data(), nullptr, nullptr, nullptr};
  const int strides[4] = {3 * width_, 0, 0, 0};
  sws_scale(to_yuv_.get(), planes, strides, 0, height_, frame_->data, frame_->linesize);
  frame_->pts = frames_++;
  Encode(frame_.get());
}

void LibavWriter::Finish() {
  Encode(nullptr);
  CheckLibav(av_write_trailer(format_), path_, "cannot write");
  CheckLibav(avio_closep(&format_->pb), path_, "cannot write");
  Close();
}

void LibavWriter::Close() {
  if (format_ == nullptr) return;
  if (format_->pb != nullptr) avio_closep(&format_->pb);
  avformat_free_context(format_);
  format_ = nullptr;
}

}  // namespace

std::unique_ptr<VideoWriter> CreateWithLibav(const std::string& path, int height, int width,
                                             int fps) {
  return std::make_unique<LibavWriter>(path, height, width, fps);
}

}  // namespace mjp::datasets
