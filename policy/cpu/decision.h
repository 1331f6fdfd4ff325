#ifndef POLICY_CPU_DECISION_H_
#define POLICY_CPU_DECISION_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu/thread_pool.h"
#include "policy/policy.h"
#include "policy/sampler.h"

// What the policies of all networks do alike in a decision on the CPU.

namespace mjp::cpu {

// Completes `options` by what the CPU's default is. Throws Error for a precision other than fp32
// and for pictures of several sizes.
void ResolveCpuOptions(const PolicyConfig& config, PolicyOptions& options);

// "CPU (avx2, fp32, 2 threads)"
std::string CpuDescription(const PolicyOptions& options);

// Runs `f` as one stage.
template <class F>
void Timed(StageTimes& times, Stage stage, F&& f) {
  times[stage].begin = Now();
  f();
  times[stage].end = Now();
}

// A pass begins, and so the one before it ends.
void TimePass(StageTimes& times);

// Draws the scenes of `input` into `frames`.
void DrawScenes(ThreadPool& pool, const SceneDrawer& drawer, const PolicyInput& input,
                std::span<uint8_t> frames);

std::vector<int> TimestepsOf(const std::vector<DenoiseStep>& schedule);

// The sampler of a diffusion chain, as `options` are resolved.
std::unique_ptr<Sampler> MakeChainSampler(const std::vector<DenoiseStep>& schedule, int elements,
                                          const PolicyOptions& options);

// Noise by its address, or as the input gives it. All must outlive it.
class ChainNoise : public NoiseSource {
 public:
  ChainNoise(const PolicyInput& input, const std::vector<DenoiseStep>& schedule,
             const SamplerOptions& sampler, int elements)
      : input_(input), schedule_(schedule), sampler_(sampler), elements_(elements) {}

  void Fill(int step, float* noise) const override;
  // x of the chain's start: (count, elements).
  void FillStart(float* x) const;

 private:
  void Draw(uint32_t step, float* noise) const;

  const PolicyInput& input_;
  const std::vector<DenoiseStep>& schedule_;
  const SamplerOptions& sampler_;
  int elements_;
};

// output.actions = x (count, horizon, action_dim) in raw units. Throws Error for what is not
// finite.
void FetchActions(const Checkpoint& checkpoint, const float* x, int count, PolicyOutput& output);

}  // namespace mjp::cpu

#endif  // POLICY_CPU_DECISION_H_
