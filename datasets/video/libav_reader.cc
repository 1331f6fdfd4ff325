#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "datasets/video/libav.h"

namespace mjp::datasets {
namespace {

constexpr int64_t kMostPixels = 64 << 20;
constexpr double kNear = 2;  // seconds ahead that are decoded through rather than sought

class LibavReader : public VideoReader {
 public:
  explicit LibavReader(const std::string& path);
  ~LibavReader() override { avformat_close_input(&format_); }
  LibavReader(const LibavReader&) = delete;
  LibavReader& operator=(const LibavReader&) = delete;

  const Picture& At(double seconds, double tolerance) override;
  int64_t frames() const override { return avformat_index_get_entries_count(stream_); }
  int height() const override { return stream_->codecpar->height; }
  int width() const override { return stream_->codecpar->width; }
  const char* codec() const override { return avcodec_get_name(stream_->codecpar->codec_id); }

 private:
  void OpenDecoder();
  void Seek(double seconds);
  // Decodes the next frame in order of time; false after the last.
  bool Next();
  void ToRgb();
  double Time() const;

  std::string path_;
  AVFormatContext* format_ = nullptr;
  AVStream* stream_ = nullptr;
  Libav<AVCodecContext> decoder_;
  Libav<AVFrame> frame_{av_frame_alloc()};
  Libav<AVPacket> packet_{av_packet_alloc()};
  Libav<SwsContext> to_rgb_;
  Picture picture_;
  bool has_frame_ = false, picture_is_frame_ = false;
};

LibavReader::LibavReader(const std::string& path) : path_(path) {
  av_log_set_level(AV_LOG_FATAL);
  std::error_code none;  // a missing file is said below; a pipe would be waited for
  if (std::filesystem::exists(path, none) && !std::filesystem::is_regular_file(path, none)) {
    throw BadInput(path + ": is no file");
  }
  // the MP4 reader alone: others of FFmpeg's follow links to other files
  const AVInputFormat* mp4 = av_find_input_format("mov");
  CheckLibav(avformat_open_input(&format_, ("file:" + path).c_str(), mp4, nullptr), path,
             "is not an MP4 file, or is cut off");
  for (unsigned i = 0; i < format_->nb_streams && stream_ == nullptr; ++i) {
    if (format_->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_VIDEO) {
      stream_ = format_->streams[i];
    } else {
      format_->streams[i]->discard = AVDISCARD_ALL;
    }
  }
  try {
    OpenDecoder();
  } catch (...) {
    avformat_close_input(&format_);
    throw;
  }
}

void LibavReader::OpenDecoder() {
  if (stream_ == nullptr) throw BadInput(path_ + ": has no video");
  if (width() <= 0 || height() <= 0 || int64_t{width()} * height() > kMostPixels) {
    throw BadInput(path_ + ": has frames of " + std::to_string(height()) + " x " +
                   std::to_string(width()) + " pixels");
  }
  const AVCodecID id = stream_->codecpar->codec_id;
  const AVCodec* codec = id == AV_CODEC_ID_AV1 ? avcodec_find_decoder_by_name("libdav1d") : nullptr;
  if (codec == nullptr) codec = avcodec_find_decoder(id);
  if (codec == nullptr) throw Unsupported(path_ + ": no decoder for " + this->codec());
  decoder_.reset(avcodec_alloc_context3(codec));
  if (!decoder_ || !frame_ || !packet_) throw std::bad_alloc();
  CheckLibav(avcodec_parameters_to_context(decoder_.get(), stream_->codecpar), path_,
             "cannot open");
  decoder_->thread_count = 1;  // many frames in flight would only delay the one that is asked for
  CheckLibav(avcodec_open2(decoder_.get(), codec, nullptr), path_, "cannot open the decoder");
}

double LibavReader::Time() const {
  return static_cast<double>(frame_->best_effort_timestamp) * av_q2d(stream_->time_base);
}

void LibavReader::Seek(double seconds) {
  // a little later, so that rounding does not choose the keyframe before the one that is meant
  const double ticks = seconds / av_q2d(stream_->time_base);
  if (!(ticks > -1e15 && ticks < 1e15)) throw BadInput(path_ + ": has no such time");
  CheckLibav(av_seek_frame(format_, stream_->index, std::llround(ticks), AVSEEK_FLAG_BACKWARD),
             path_, "cannot find a keyframe");
  avcodec_flush_buffers(decoder_.get());
  has_frame_ = false;
}

bool LibavReader::Next() {
  picture_is_frame_ = false;
  while (true) {
    const int got = avcodec_receive_frame(decoder_.get(), frame_.get());
    has_frame_ = got >= 0;
    if (has_frame_ || got == AVERROR_EOF) return has_frame_;
    if (got != AVERROR(EAGAIN)) CheckLibav(got, path_, "cannot decode a frame");
    const int read = av_read_frame(format_, packet_.get());
    if (read == AVERROR_EOF) {
      CheckLibav(avcodec_send_packet(decoder_.get(), nullptr), path_, "cannot decode a frame");
      continue;
    }
    CheckLibav(read, path_, "cannot read a frame");
    const int sent = packet_->stream_index == stream_->index
                         ? avcodec_send_packet(decoder_.get(), packet_.get())
                         : 0;
    av_packet_unref(packet_.get());
    CheckLibav(sent, path_, "cannot decode a frame");
  }
}

void LibavReader::ToRgb() {
  if (frame_->width != width() || frame_->height != height()) {
    throw BadInput(path_ + ": a frame has another size than the file says");
  }
  SwsContext* context = sws_getCachedContext(
      to_rgb_.release(), width(), height(), static_cast<AVPixelFormat>(frame_->format), width(),
      height(), AV_PIX_FMT_RGB24, SWS_BILINEAR, nullptr, nullptr, nullptr);
  to_rgb_.reset(context);
  if (context == nullptr) throw Unsupported(path_ + ": its frames cannot be made RGB");
  const int* table = sws_getCoefficients(frame_->colorspace);
  sws_setColorspaceDetails(context, table, frame_->color_range == AVCOL_RANGE_JPEG, table, 0, 0,
                           1 << 16, 1 << 16);
  picture_.height = height();
  picture_.width = width();
  // FFmpeg may write in blocks of pixels beyond a row's end
  constexpr size_t kBeyond = 64;
  picture_.rgb.resize(picture_.Bytes() + kBeyond);
  uint8_t* planes[4] = {picture_.rgb.data(), nullptr, nullptr, nullptr};
  const int strides[4] = {3 * width(), 0, 0, 0};
  sws_scale(context, frame_->data, frame_->linesize, 0, height(), planes, strides);
  picture_.rgb.resize(picture_.Bytes());
  picture_is_frame_ = true;
}

const Picture& LibavReader::At(double seconds, double tolerance) {
  const double half = 0.5 / std::max(1.0, av_q2d(stream_->avg_frame_rate));
  const bool near = has_frame_ && seconds > Time() - tolerance && seconds < Time() + kNear;
  if (!near) Seek(seconds + std::min(half, tolerance));
  while (!has_frame_ || Time() < seconds - tolerance) {
    if (!Next()) break;
  }
  if (!has_frame_ || !(std::abs(Time() - seconds) <= tolerance)) {
    throw BadInput(path_ + ": has no frame at " + std::to_string(seconds) + " s" +
                   (has_frame_ ? "; the next is at " + std::to_string(Time()) + " s" : ""));
  }
  if (!picture_is_frame_) ToRgb();
  return picture_;
}

}  // namespace

std::unique_ptr<VideoReader> OpenWithLibav(const std::string& path) {
  return std::make_unique<LibavReader>(path);
}

}  // namespace mjp::datasets
