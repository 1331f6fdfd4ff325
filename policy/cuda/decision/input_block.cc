#include "policy/cuda/decision/input_block.h"

#include <algorithm>

#include "kernels/cuda/primitives/cuda_check.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/pictures/gpu_picture.h"
#include "policy/pictures/page_locked.h"

namespace mjp {
namespace {
constexpr size_t kAlignment = 64;
}

PictureSource SourceOf(const PolicyConfig& config, const PolicyInput& input) {
  const bool pictures =
      !input.frames.empty() || !input.scenes.empty() || !input.gpu_pictures.empty();
  if (config.cameras.empty() || (!input.global_cond.empty() && !pictures))
    return PictureSource::kNone;
  if (!input.gpu_pictures.empty()) return PictureSource::kGpuPictures;
  return input.scenes.empty() ? PictureSource::kFrames : PictureSource::kScenes;
}

InputBlock::View InputBlock::Lay(uint8_t* base, const PolicyConfig& config, size_t scene_bytes,
                                 int batch, int text_dim) {
  size_t offset = 0;
  const auto place = [&]<typename T>(T*& view, size_t count) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the base is null while sizes are measured
    view = reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(base) + offset);
    offset += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  };
  const size_t steps = static_cast<size_t>(batch) * config.n_obs_steps;
  View view;
  place(view.flags, 1);
  place(view.keys, batch);
  place(view.state, steps * config.state_dim);
  place(view.environment, steps * config.environment_dim);
  place(view.text, steps * text_dim);
  place(view.scenes, config.cameras.empty() ? 0 : steps * scene_bytes);
  bytes_ = offset;
  place(view.frames, LargeFrames() ? 0 : frame_bytes_);
  block_bytes_ = offset;
  return view;
}

void InputBlock::Plan(const PolicyConfig& config, size_t scene_bytes, int batch, DeviceArena& arena,
                      int text_dim) {
  frame_bytes_ = 0;
  for (const CameraFeature& camera : config.cameras)
    frame_bytes_ += size_t{3} * batch * config.n_obs_steps * camera.height * camera.width;
  Lay(nullptr, config, scene_bytes, batch, text_dim);
  device_block_ = arena.Take<uint8_t>(block_bytes_);
  device_ = Lay(device_block_, config, scene_bytes, batch, text_dim);
  if (LargeFrames()) device_.frames = arena.Take<uint8_t>(frame_bytes_);
  if (arena.measuring()) return;
  host_block_ = PinnedArray<uint8_t>(block_bytes_);
  host_ = Lay(host_block_.data(), config, scene_bytes, batch, text_dim);
  if (!LargeFrames()) return;
  large_frames_ = PinnedArray<uint8_t>(frame_bytes_);
  host_.frames = large_frames_.data();
}

bool InputBlock::LargeFrames() const {
  constexpr size_t kLarge = size_t{512} << 10;  // less is sent before a second call returns
  return frame_bytes_ >= kLarge;
}

bool InputBlock::AheadOfGraph(PictureSource source) const {
  return source == PictureSource::kFrames && LargeFrames();
}

void InputBlock::SendFrames(const PolicyInput& input, size_t begin, size_t end, cudaStream_t stream,
                            cpu::ThreadPool* pool) {
  const std::span<const uint8_t> frames = input.frames;
  if (input.frames_stay && InPageLockedMemory(frames)) {
    CheckCuda(cudaMemcpyAsync(device_.frames + begin, frames.data() + begin, end - begin,
                              cudaMemcpyHostToDevice, stream),
              "copy of the pictures");
    return;
  }
  constexpr size_t kLeastPart = size_t{256} << 10, kMostParts = 16;
  constexpr size_t kMany = size_t{4} << 20;  // less is copied before threads are awake
  const size_t size = std::max(kLeastPart, (frames.size() + kMostParts - 1) / kMostParts);
  for (size_t at = begin; at < end; at += size) {
    const std::span<const uint8_t> part = frames.subspan(at, std::min(size, end - at));
    const auto copy = [&](size_t from, size_t to) {
      std::copy_n(part.data() + from, to - from, host_.frames + at + from);
    };
    if (pool == nullptr || frames.size() < kMany) {
      copy(0, part.size());
    } else {
      const size_t threads = pool->threads();
      pool->Run([&](int i) { copy(part.size() * i / threads, part.size() * (i + 1) / threads); });
    }
    CheckCuda(cudaMemcpyAsync(device_.frames + at, host_.frames + at, part.size(),
                              cudaMemcpyHostToDevice, stream),
              "copy of the pictures");
  }
}

void InputBlock::SendEnvironments(const PolicyInput& input, int begin, int end, cudaStream_t stream,
                                  cpu::ThreadPool* pool) {
  if (begin == 0) SendBlock(bytes_, stream);
  const size_t each = input.frames.size() / input.count;
  SendFrames(input, each * std::min(begin, input.count), each * std::min(end, input.count), stream,
             pool);
}

void InputBlock::Write(const Checkpoint& checkpoint, const SamplerOptions& sampler,
                       const PolicyInput& input) {
  const PolicyConfig& config = checkpoint.config;
  const PictureSource source = SourceOf(config, input);
  std::copy(input.state.begin(), input.state.end(), host_.state);
  std::copy(input.environment.begin(), input.environment.end(), host_.environment);
  Normalize(checkpoint.stats.state, config.state_dim, {host_.state, input.state.size()});
  Normalize(checkpoint.stats.environment, config.environment_dim,
            {host_.environment, input.environment.size()});
  for (size_t i = 0; i < input.keys.size(); ++i) {
    const NoiseKey& key = input.keys[i];
    host_.keys[i] = {key.seed, NoiseNumber(sampler, key.decision), 0};
  }
  if (source == PictureSource::kScenes)
    std::copy(input.scenes.begin(), input.scenes.end(), host_.scenes);
  if (source == PictureSource::kFrames && !AheadOfGraph(source))
    std::copy(input.frames.begin(), input.frames.end(), host_.frames);
  host_.flags->use_given_cond = !input.global_cond.empty();
  host_.flags->keep[0] = !input.x_start.empty();
  host_.flags->keep[1] = !input.noise_by_t.empty();
}

void InputBlock::PlacePictures(PictureSource source, const PolicyInput& input, cudaStream_t stream,
                               cpu::ThreadPool* pool) {
  if (AheadOfGraph(source)) {
    return SendEnvironments(input, 0, input.count, stream, pool);
  }
  if (source != PictureSource::kGpuPictures) return;
  uint8_t* to = device_.frames;
  for (const std::shared_ptr<const GpuPicture>& picture : input.gpu_pictures) {
    CheckCuda(
        cudaMemcpyAsync(to, picture->data(), picture->bytes(), cudaMemcpyDeviceToDevice, stream),
        "copy of a picture");
    to += picture->bytes();
  }
}

void InputBlock::SendBlock(size_t bytes, cudaStream_t stream) const {
  CheckCuda(
      cudaMemcpyAsync(device_block_, host_block_.data(), bytes, cudaMemcpyHostToDevice, stream),
      "copy of the inputs");
}

void InputBlock::Upload(PictureSource source, cudaStream_t stream) const {
  if (AheadOfGraph(source)) return;
  SendBlock(source == PictureSource::kFrames ? block_bytes_ : bytes_, stream);
}

}  // namespace mjp
