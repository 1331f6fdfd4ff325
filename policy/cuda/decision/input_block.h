#ifndef POLICY_CUDA_DECISION_INPUT_BLOCK_H_
#define POLICY_CUDA_DECISION_INPUT_BLOCK_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cpu/thread_pool.h"
#include "kernels/cuda/primitives/cuda_raii.h"
#include "kernels/cuda/sampler/denoise.cuh"
#include "policy/checkpoint/config.h"
#include "policy/cuda/arena.h"
#include "policy/policy.h"

namespace mjp {

// Where a decision's pictures come from; kNone where it has none, or its conditioning is given.
enum class PictureSource { kNone, kFrames, kScenes, kGpuPictures };
inline constexpr size_t kPictureSources = 4;

PictureSource SourceOf(const PolicyConfig& config, const PolicyInput& input);

// What a decision reads, in one pinned block on the host and its mirror on the device, so that one
// copy uploads everything. Pictures are its end, copied only where they are given. Large ones stand
// by themselves and are sent in parts, each on its way to the device while the host copies the
// next, or from where they are, if that is page-locked.
class InputBlock {
 public:
  struct Flags {
    int use_given_cond = 0;  // the conditioning vector was given from outside
    int keep[2] = {};        // start, noise were given from outside
  };
  // Views into one of the two blocks, or of large frames by themselves.
  struct View {
    Flags* flags = nullptr;
    NoiseAddress* keys = nullptr;  // (batch)
    float* state = nullptr;        // (batch, To, state_dim), normalised
    float* environment = nullptr;  // (batch, To, environment_dim), normalised
    float* text = nullptr;         // (batch, To, text_dim): features of the instruction
    std::byte* scenes = nullptr;   // (batch, To, scene_bytes)
    uint8_t* frames = nullptr;     // (batch, To, cameras, height, width, 3)
  };

  // Places the device's side; where the arena no longer measures, allocates the host's.
  // `scene_bytes` 0: no scenes; `text_dim` 0: no instructions.
  void Plan(const PolicyConfig& config, size_t scene_bytes, int batch, DeviceArena& arena,
            int text_dim = 0);
  // Writes a valid `input` to the host's side, normalised as `checkpoint` says, but for large
  // frames.
  void Write(const Checkpoint& checkpoint, const SamplerOptions& sampler, const PolicyInput& input);
  // Enqueues copies of a valid input's `gpu_pictures`, which must live until these are done; or of
  // the block and large frames, which the threads of `pool` copy on the host, if there is one. Not
  // into a graph, since every decision has others.
  void PlacePictures(PictureSource source, const PolicyInput& input, cudaStream_t stream,
                     cpu::ThreadPool* pool = nullptr);
  // Whether it sends frames before the graph begins, so that SendEnvironments may in its place.
  bool SendsFrames(PictureSource source) const { return AheadOfGraph(source); }
  // Enqueues the copy of the frames of environments [begin, end) of a valid input, or of those that
  // it has; with the first ones the block.
  void SendEnvironments(const PolicyInput& input, int begin, int end, cudaStream_t stream,
                        cpu::ThreadPool* pool);
  // Enqueues the upload of the block and of small frames, where PlacePictures did not.
  void Upload(PictureSource source, cudaStream_t stream) const;

  const View& device() const { return device_; }
  uint8_t* device_frames() const { return device_.frames; }
  float* text() const { return host_.text; }  // to be written before Upload

 private:
  // Sends bytes [begin, end) of the frames.
  void SendFrames(const PolicyInput& input, size_t begin, size_t end, cudaStream_t stream,
                  cpu::ThreadPool* pool);
  void SendBlock(size_t bytes, cudaStream_t stream) const;
  bool LargeFrames() const;
  // Whether block and frames are sent before the graph begins.
  bool AheadOfGraph(PictureSource source) const;
  View Lay(uint8_t* base, const PolicyConfig& config, size_t scene_bytes, int batch, int text_dim);

  View host_, device_;
  PinnedArray<uint8_t> host_block_, large_frames_;
  uint8_t* device_block_ = nullptr;
  size_t bytes_ = 0, block_bytes_ = 0, frame_bytes_ = 0;  // without and with small frames; of all
};

}  // namespace mjp

#endif  // POLICY_CUDA_DECISION_INPUT_BLOCK_H_
