#ifndef POLICY_CUDA_CHAIN_PLAN_H_
#define POLICY_CUDA_CHAIN_PLAN_H_

#include <memory>
#include <vector>

#include "policy/cuda/wide_plan.h"

namespace dp {

// Denoising chains of a few rows in one persistent launch: its stages and their memory. Step by
// step, more rows than a launch takes are those of several, one behind the other.
class ChainPlan {
 public:
  // Rows are environments x window; row r is of environment r / rows_per_env.
  ChainPlan(const FusedUnet& unet, Format format, int horizon, int rows, int rows_per_env,
            DeviceArena& arena);

  // Whether the kernels run every stage of this plan on this device.
  bool Supported() const;
  // Whether it runs chains of these environments with a window of steps each (1: none).
  static bool Supports(const FusedUnet& unet, Format format, int horizon, int environments,
                       int window);
  // The same before the weights are on the device.
  static bool Supports(const Checkpoint& checkpoint, Format format, int environments, int window);
  // Makes this plan, of a row per environment, finish what the windows of `windows` gave up.
  void Follow(const ChainPlan& windows);
  const FilmCondition& condition() const { return condition_; }
  float* output() const { return args_.output; }  // (rows, horizon * action_dim), of the last step
  int* stuck() const { return args_.stuck; }
  // Enqueues the steps [begin, end) of `steps` on x (rows, horizon * action_dim), device memory;
  // noise (steps, rows, horizon * action_dim) or null. Where rows_per_env is 1. The end of pass i
  // is stamp i + 1, of several launches the last one's.
  void RunSteps(const DenoiseStep* steps, const float* noise, float* x, int begin, int end,
                const StampList& stamps, cudaStream_t stream) const;
  // Enqueues a time-parallel chain until each environment is done or its window gives up, which
  // its state says; `output`, `evaluated`, `input`, `kept` and `row_step` are not used.
  void RunWindows(const PicardArgs& picard, const StampList& stamps, cudaStream_t stream) const;
  // Enqueues the rest of the environments that gave up, step by step.
  void RunRest(const PicardArgs& picard, const StampList& stamps, cudaStream_t stream) const;

 private:
  // The plan of one launch, of `rows` of all rows.
  ChainPlan(const FusedUnet& unet, Format format, int horizon, int rows, int all_rows,
            int rows_per_env, DeviceArena& arena);
  // How many of `rows` rows the first launch takes, step by step.
  static int RowsOfTurn(const FusedUnet& unet, Format format, int horizon, int rows);
  // What a layer hands to the next ones: to be finished by its first reader, which keeps it.
  struct Signal {
    ChainSource source;
    int length = 0;
  };
  bool PlanWide(const FusedUnet& unet);
  void PlanStages(const FusedUnet& unet);
  void Launch(const ChainArgs& args, cudaStream_t stream) const;
  void RunTurn(const ChainArgs& all, int first, cudaStream_t stream) const;
  ChainStage Convolve(const DeviceFusedConv& conv, int in_length, int out_length);
  static ChainSource Sums(const DeviceFusedConv& conv);
  ChainSource Consume(Signal& signal) const;
  void Push(ChainStage& stage, Signal& output, bool finish);
  Signal Block(const FusedBlock1d& block, Signal* x, Signal* skip);
  Signal FirstBlock(const FusedBlock1d& block, int horizon);
  Signal SecondHalf(const FusedBlock1d& block, Signal& hidden, const ChainSource& residual);
  Signal Resample(const DeviceFusedConv& conv, Signal& x);
  float* TakeWords(int splits, int length, int channels);

  Format format_;
  int rows_;
  bool owned_;  // the blocks finish each stage's output, rather than each reader what it needs
  DeviceArena& arena_;
  FilmCondition condition_;
  std::unique_ptr<WideStages> wide_;  // or, where it does not run the network:
  std::vector<ChainStage> stages_;
  ChainArgs args_;
  size_t shared_bytes_ = 0;
  bool supported_ = true;
  std::vector<std::unique_ptr<ChainPlan>> later_;  // launches of the rows behind this one's
};

}  // namespace dp

#endif  // POLICY_CUDA_CHAIN_PLAN_H_
