#ifndef POLICY_CUDA_UNET_MEGAKERNEL_LAUNCH_H_
#define POLICY_CUDA_UNET_MEGAKERNEL_LAUNCH_H_

#include <memory>
#include <vector>

#include "kernels/cuda/primitives/cuda_raii.h"
#include "policy/cuda/execution_plan.h"
#include "policy/cuda/unet/megakernel_layers.h"

namespace mjp {

// Denoising chains of a few rows in one launch of the megakernel: its layers and their memory. Step
// by step, more rows than a launch takes are split over several launches, one after the other.
class MegakernelLaunch {
 public:
  // The chain of `plan`, whose form is the megakernel, for the environments that it was made for;
  // row r is of environment r / (rows of an environment).
  MegakernelLaunch(const NormConvUnet& unet, Format format, int horizon, const ExecutionPlan& plan,
                   DeviceArena& arena);

  // The sequential fallback `plan`: one launch, of a row per environment, that takes chains whose
  // windows were abandoned to their ends; in the same arena.
  std::unique_ptr<MegakernelLaunch> Fallback(const NormConvUnet& unet,
                                             const MegakernelPlan& plan) const;
  // Launches that run the steps, where rows_per_env is 1.
  int launches() const { return launches_; }
  int rows() const { return args_.rows; }  // of a launch; the last one may have fewer
  const FilmConditioning& conditioning() const { return conditioning_; }
  const MegakernelLayers& layers() const { return layers_; }
  float* output() const { return args_.output; }  // (rows, horizon * action_dim), of the last step
  // Pinned host memory, which becomes 1 where a wait lasted seconds.
  int* timed_out() const { return args_.timed_out; }
  // Enqueues the steps [begin, end) of `steps` on x (rows, horizon * action_dim), device memory;
  // noise (steps, rows, horizon * action_dim) or null. Where rows_per_env is 1. The end of pass i
  // is timestamp i + 1; passes are counted in the order in which they run, those of each launch
  // alone.
  void RunSteps(const DenoiseStep* steps, const float* noise, float* x, int begin, int end,
                const TimestampList& timestamps, cudaStream_t stream) const;
  // Enqueues a time-parallel chain until each environment is done or its window is abandoned, which
  // its state says.
  void RunWindows(const PicardSweepArgs& picard, const TimestampList& timestamps,
                  cudaStream_t stream) const;
  // Enqueues the remaining steps of the chains whose windows were abandoned, one by one.
  void RunFallback(const PicardSweepArgs& picard, const TimestampList& timestamps,
                   cudaStream_t stream) const;

 private:
  // One launch, of `all_rows` rows' launches. `first`: of the same network, whose weights,
  // conditioning and output buffer this one borrows; or null.
  MegakernelLaunch(const NormConvUnet& unet, Format format, int horizon, const MegakernelPlan& plan,
                   int all_rows, const MegakernelLaunch* first, DeviceArena& arena);
  megakernel::CommonArgs PlaceArgs(const NormConvUnet& unet, int horizon,
                                   const MegakernelPlan& plan, int all_rows,
                                   const MegakernelLaunch* first) const;

  Format format_;
  DeviceArena& arena_;
  FilmConditioning conditioning_;
  PinnedArray<int> timed_out_;  // of all that borrow from this one; empty where it borrows
  megakernel::CommonArgs args_;
  MegakernelLayers layers_;
  int launches_ = 1;
  std::unique_ptr<MegakernelLaunch> remainder_;  // the last launch, where it has fewer rows
};

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_MEGAKERNEL_LAUNCH_H_
