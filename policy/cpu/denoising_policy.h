#ifndef POLICY_CPU_DENOISING_POLICY_H_
#define POLICY_CPU_DENOISING_POLICY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu/aligned_buffer.h"
#include "kernels/cpu/thread_pool.h"
#include "policy/policy.h"
#include "policy/sampler.h"

namespace mjp::cpu {

// A decision on the CPU by a network that denoises: pictures, condition, all steps, actions. What
// depends on the network is left to those that derive from it.
class DenoisingPolicy : public Policy, private StepNetwork {
 public:
  void Infer(const PolicyInput& input, PolicyOutput& output) override;
  std::string Description() const override;

 protected:
  DenoisingPolicy(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options);
  // Takes the buffers of `batch` decisions: feature_width numbers of a frame of each camera,
  // cond_width of the condition. The end of a constructor.
  void TakeBuffers(int feature_width, int cond_width);
  // A network for the noise of `rows` chunks, as StepNetwork::Evaluate.
  virtual void Forward(const float* x, const int* step, const int* environment, int rows,
                       float* output) = 0;
  // Prepares the network for the condition of `count` environments, (count, cond_width).
  virtual void SetConditioning(std::span<const float> cond, int count) = 0;
  // Frames that a camera's encoder takes at once.
  virtual int FramesAtOnce(size_t camera) const = 0;
  // Takes `count` RGB frames that lie `stride` bytes apart, and encodes them: (count,
  // feature_width).
  virtual void PrepareFrames(size_t camera, const uint8_t* frames, int64_t stride, int count) = 0;
  virtual void EncodePrepared(size_t camera, int count, float* features) = 0;
  // Fills cond_ from the normalised numbers of `input` and from features_.
  virtual void AssembleConditioning(const PolicyInput& input) = 0;
  // Adds to a trace what the network has beyond its fields. `count` environments.
  virtual void CompleteTrace(int count, PolicyTrace& trace) const;

  ThreadPool pool_;
  std::vector<DenoiseStep> schedule_;  // of diffusion; empty for flow matching
  std::unique_ptr<Sampler> sampler_;
  AlignedBuffer features_;  // (cameras, batch * To, feature_width)
  AlignedBuffer cond_;      // (batch, cond_width)
  AlignedBuffer x_;         // (batch, horizon * action_dim)

 private:
  void Evaluate(const float* x, const int* step, const int* environment, int rows,
                float* output) override;
  // Fills features_ from RGB frames (N, To, cameras, height, width, 3).
  void EncodeFrames(const uint8_t* frames, int count, StageTimes& times);
  void FillConditioning(const PolicyInput& input, StageTimes& times);
  // What of the chunks is known, where they may have a prefix; a view of members.
  HeldElements Held(const PolicyInput& input);

  int feature_width_ = 0, cond_width_ = 0;
  std::vector<uint8_t> frames_;  // drawn from scenes
  std::vector<float> clean_;     // of chunks with a prefix, (batch, horizon * action_dim)
  std::vector<int> held_;        // (batch)
  StageTimes* times_ = nullptr;  // of the decision under way
};

}  // namespace mjp::cpu

#endif  // POLICY_CPU_DENOISING_POLICY_H_
