#ifndef POLICY_CUDA_UNET_MEGAKERNEL_LAUNCH_H_
#define POLICY_CUDA_UNET_MEGAKERNEL_LAUNCH_H_

#include <memory>
#include <vector>

#include "policy/cuda/execution_plan.h"
#include "policy/cuda/unet/megakernel_layers.h"

namespace mjp {

// What one persistent launch needs of a GPU.
struct LaunchNeeds {
  bool supported = false;         // the kernel runs every layer, the head and the sampler
  bool layers_supported = false;  // of the megakernel: it runs every layer
  bool warp_specialized = false;  // likewise: by MMA warps and epilogue warps
  int ctas = 0;                   // all resident at once
  size_t shared_bytes = 0;        // of a CTA
};

// Denoising chains of a few rows in one persistent launch: its layers and their memory. Step by
// step, more rows than a launch takes are split over several launches, one after the other.
class MegakernelLaunch {
 public:
  // The chain of `plan`, whose form is persistent, for the environments that it was made for; row r
  // is of environment r / (rows of an environment).
  MegakernelLaunch(const NormConvUnet& unet, Format format, int horizon, const ExecutionPlan& plan,
                   DeviceArena& arena);

  // What one launch of `form` over `rows` of `all_rows` rows needs: a function of shapes alone,
  // which execution_plan asks.
  static LaunchNeeds Needs(const NormConvUnet& unet, Format format, int horizon, UnetForm form,
                           int rows, int all_rows, int rows_per_env);
  // The same launch, planned in an arena that measures, which must outlive it.
  static std::unique_ptr<const MegakernelLaunch> Measured(const NormConvUnet& unet, Format format,
                                                          int horizon, UnetForm form, int rows,
                                                          int all_rows, int rows_per_env,
                                                          DeviceArena& measuring);
  // Whether the kernel runs every layer; on which device is not asked.
  bool Supported() const;
  // Of the megakernel: whether it runs every layer, apart from the head and the sampler.
  bool LayersSupported() const { return layers_ && layers_->Supported(); }
  bool warp_specialized() const { return layers_ && layers_->warp_specialized(); }
  int ctas() const { return ctas_; }                     // all resident at once
  size_t shared_bytes() const { return shared_bytes_; }  // of a CTA
  // The sequential fallback: one launch, of a row per environment, that takes chains whose windows
  // were abandoned to their ends; in the same arena.
  std::unique_ptr<MegakernelLaunch> Fallback(const NormConvUnet& unet, UnetForm form) const;
  // Launches that run the steps, where rows_per_env is 1.
  int launches() const { return (args_.all_rows + rows_ - 1) / rows_; }
  int rows() const { return rows_; }  // of a launch; the last one may have fewer
  const FilmConditioning& conditioning() const { return conditioning_; }
  // Of the owner-epilogue kernel; null where it does not run the network.
  const MegakernelLayers* layers() const { return layers_.get(); }
  // Of the reader-epilogue kernel; empty where the other one runs.
  const std::vector<megakernel::ReaderLayer>& reader_layers() const { return reader_layers_; }
  // The epilogue of the final convolution, whose norm groups the head's partial sums are of.
  const megakernel::EpilogueSource& last() const { return args_.last; }
  float* output() const { return args_.output; }  // (rows, horizon * action_dim), of the last step
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
  struct Rows {
    int launch, all, per_env;
  };
  // One launch. `first`: a denoiser of the same network whose weights, conditioning and output
  // buffer this one borrows; or null.
  MegakernelLaunch(const NormConvUnet& unet, Format format, int horizon, UnetForm form,
                   const Rows& rows, const MegakernelLaunch* first, DeviceArena& arena);
  // A value of the graph, whose epilogue its first reader runs and materialises.
  struct Value {
    megakernel::EpilogueSource source;
    int length = 0;
  };
  void PlanMegakernel(const NormConvUnet& unet, const MegakernelLaunch* first);
  void PlanReaderEpilogue(const NormConvUnet& unet);
  void Launch(const megakernel::CommonArgs& args, cudaStream_t stream) const;
  megakernel::ReaderLayer Convolve(const DeviceNormConv& conv, int in_length, int out_length);
  static megakernel::EpilogueSource DeferredEpilogue(const DeviceNormConv& conv);
  megakernel::EpilogueSource Consume(Value& value) const;
  void Append(megakernel::ReaderLayer& layer, Value& output, bool materialize);
  Value Block(const NormConvBlock& block, Value& x, Value* skip);
  Value FirstBlock(const NormConvBlock& block, const FirstConvArgs& conv, int horizon);
  Value SecondHalf(const NormConvBlock& block, Value& hidden,
                   const megakernel::EpilogueSource& residual);
  Value Resample(const DeviceNormConv& conv, Value& x);
  float* TakeTagged(int splits, int length, int channels);

  Format format_;
  int rows_;
  bool owner_epilogue_;  // owners run the epilogue once, rather than each reader for what it reads
  DeviceArena& arena_;
  FilmConditioning conditioning_;
  std::unique_ptr<MegakernelLayers> layers_;  // or, where it cannot run the network:
  std::vector<megakernel::ReaderLayer> reader_layers_;
  megakernel::ReaderArgs reader_;  // of those; all but its common part
  megakernel::CommonArgs args_;
  int ctas_ = 0;
  size_t shared_bytes_ = 0;
  bool supported_ = true;
  std::unique_ptr<MegakernelLaunch>
      remainder_;  // the last of several launches, where it has fewer rows
};

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_MEGAKERNEL_LAUNCH_H_
