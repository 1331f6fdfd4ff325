#ifndef POLICY_CUDA_UNET_MEGAKERNEL_DENOISER_H_
#define POLICY_CUDA_UNET_MEGAKERNEL_DENOISER_H_

#include <memory>
#include <vector>

#include "policy/cuda/unet/megakernel_layers.h"

namespace mjp {

// What of a device decides which chains it runs.
struct ChainDevice {
  bool clusters = false;  // of blocks
  bool wgmma = false;     // and the code for it
  int processors = 0;

  static const ChainDevice& Current();
};

// Denoising chains of a few rows in one persistent launch: its stages and their memory. Step by
// step, more rows than a launch takes are those of several, one behind the other.
class ChainPlan {
 public:
  // Rows are environments x window; row r is of environment r / rows_per_env.
  ChainPlan(const FusedUnet& unet, Format format, int horizon, int rows, int rows_per_env,
            DeviceArena& arena, const ChainDevice& device = ChainDevice::Current());

  // Whether the kernels run every stage of this plan on this device.
  bool Supported() const;
  // Whether it runs chains of these environments with a window of steps each (1: none).
  static bool Supports(const FusedUnet& unet, Format format, int horizon, int environments,
                       int window, const ChainDevice& device = ChainDevice::Current());
  // The same before the weights are on the device.
  static bool Supports(const Checkpoint& checkpoint, Format format, int environments, int window);
  // Whether step by step the threads that run them have roles: the shortest passes there are.
  static bool HasRoles(const FusedUnet& unet, Format format, int horizon, int environments,
                       const ChainDevice& device = ChainDevice::Current());
  static bool HasRoles(const Checkpoint& checkpoint, Format format, int environments);
  // The plan, of a row per environment, of one launch that finishes what this one's windows gave
  // up; in the same arena.
  std::unique_ptr<ChainPlan> Rest(const FusedUnet& unet) const;
  // That take the steps, where rows_per_env is 1.
  int launches() const { return (args_.all_rows + rows_ - 1) / rows_; }
  int rows() const { return rows_; }  // of a launch; the last one may have fewer
  const FilmCondition& condition() const { return condition_; }
  float* output() const { return args_.output; }  // (rows, horizon * action_dim), of the last step
  int* stuck() const { return args_.stuck; }
  // Enqueues the steps [begin, end) of `steps` on x (rows, horizon * action_dim), device memory;
  // noise (steps, rows, horizon * action_dim) or null. Where rows_per_env is 1. The end of pass i
  // is stamp i + 1; passes are counted in the order in which they run, those of each launch alone.
  void RunSteps(const DenoiseStep* steps, const float* noise, float* x, int begin, int end,
                const StampList& stamps, cudaStream_t stream) const;
  // Enqueues a time-parallel chain until each environment is done or its window gives up, which
  // its state says; `output`, `evaluated`, `input`, `kept` and `row_step` are not used.
  void RunWindows(const PicardArgs& picard, const StampList& stamps, cudaStream_t stream) const;
  // Enqueues the rest of the environments that gave up, step by step.
  void RunRest(const PicardArgs& picard, const StampList& stamps, cudaStream_t stream) const;

 private:
  struct Rows {
    int launch, all, per_env;
  };
  // The plan of one launch. `first`: of the same network; what both only read, and what of their
  // results only one has at a time, is its.
  ChainPlan(const FusedUnet& unet, Format format, int horizon, const Rows& rows,
            const ChainPlan* first, DeviceArena& arena, const ChainDevice& device);
  // How many of `rows` rows a launch takes, step by step.
  static int RowsOfLaunch(const FusedUnet& unet, Format format, int horizon, int rows,
                          const ChainDevice& device);
  // What a layer hands to the next ones: to be finished by its first reader, which keeps it.
  struct Signal {
    ChainSource source;
    int length = 0;
  };
  bool PlanWide(const FusedUnet& unet, const ChainPlan* first);
  void PlanStages(const FusedUnet& unet);
  void Launch(const ChainArgs& args, cudaStream_t stream) const;
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
  ChainDevice device_;
  int rows_;
  bool owned_;  // the blocks finish each stage's output, rather than each reader what it needs
  DeviceArena& arena_;
  FilmCondition condition_;
  std::unique_ptr<WideStages> wide_;  // or, where it does not run the network:
  std::vector<ChainStage> stages_;
  ChainArgs args_;
  size_t shared_bytes_ = 0;
  bool supported_ = true;
  std::unique_ptr<ChainPlan> last_;  // the last of several launches, where it has fewer rows
};

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_MEGAKERNEL_DENOISER_H_
