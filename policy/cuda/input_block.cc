#include "policy/cuda/input_block.h"

#include "kernels/cuda/primitives/cuda_check.h"

namespace mjp {
namespace {
constexpr size_t kAlignment = 64;
}

InputBlock::View InputBlock::Lay(uint8_t* base, const PolicyConfig& config, size_t scene_bytes,
                                 int batch) {
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
  place(view.scenes, config.cameras.empty() ? 0 : steps * scene_bytes);
  bytes_ = offset;
  return view;
}

void InputBlock::Plan(const PolicyConfig& config, size_t scene_bytes, int batch,
                      DeviceArena& arena) {
  Lay(nullptr, config, scene_bytes, batch);
  frame_bytes_ = 0;
  for (const CameraFeature& camera : config.cameras)
    frame_bytes_ += size_t{3} * batch * config.n_obs_steps * camera.height * camera.width;
  device_block_ = arena.Take<uint8_t>(bytes_);
  device_frames_ = arena.Take<uint8_t>(frame_bytes_);
  if (arena.measuring()) return;
  device_ = Lay(device_block_, config, scene_bytes, batch);
  host_block_ = PinnedArray<uint8_t>(bytes_);
  host_ = Lay(host_block_.data(), config, scene_bytes, batch);
  host_frames_ = PinnedArray<uint8_t>(frame_bytes_);
}

void InputBlock::CopyBlock(cudaStream_t stream) const {
  CheckCuda(
      cudaMemcpyAsync(device_block_, host_block_.data(), bytes_, cudaMemcpyHostToDevice, stream),
      "copy of the inputs");
}

void InputBlock::CopyFrames(cudaStream_t stream) const {
  CheckCuda(cudaMemcpyAsync(device_frames_, host_frames_.data(), frame_bytes_,
                            cudaMemcpyHostToDevice, stream),
            "copy of the pictures");
}

}  // namespace mjp
