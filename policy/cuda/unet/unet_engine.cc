#include "policy/cuda/unet/unet_engine.h"

#include <string>
#include <utility>

#include "base/json.h"
#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/graph_capture.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/cuda/format_of.h"
#include "policy/cuda/plan_rows.h"
#include "policy/cuda/unet/unet_launches.h"
#include "policy/sampler.h"
#include "policy/scheduler.h"
#include "policy/unet/unet_model.h"

namespace mjp {
namespace {

std::unique_ptr<const GpuSceneDrawer> MakeDrawer(const PolicyOptions& options) {
  return options.scene_drawer ? options.scene_drawer->MakeGpuDrawer() : nullptr;
}

void CheckUnet(const Checkpoint& checkpoint) {
  if (UnetOf(checkpoint).config.encoder.resize_height > 0)
    throw Unsupported("the GPU backend does not resize pictures; use the CPU backend");
  CheckRgb(checkpoint);
}

void ResolveUnet(const Checkpoint& checkpoint, PolicyOptions& options) {
  int& window = options.sampler.parallel_window;
  if (window == kAutoWindow) window = ChooseExecution(UnetOf(checkpoint).config, options).window;
  float& tolerance = options.sampler.parallel_tolerance;
  if (tolerance == 0) tolerance = DefaultTolerance(options.precision);
}

std::unique_ptr<CudaEngine> MakeUnet(std::shared_ptr<const Checkpoint> checkpoint,
                                     const PolicyOptions& options) {
  return std::make_unique<UnetEngine>(std::move(checkpoint), options);
}

double UnetLimit(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return 6e-5;
    case Precision::kBf16:
      return 6e-2;
    default:
      return 1e-2;
  }
}

}  // namespace

const CudaNetwork kUnetOnCuda = {CheckUnet, ResolveUnet, MakeUnet, UnetLimit};

UnetEngine::UnetEngine(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options)
    : CudaEngine(std::move(checkpoint), options),
      chain_(checkpoint_->config,
             MakeSchedule(UnetOf(*checkpoint_).config.scheduler, options.sampler.kind,
                          options.sampler.steps),
             options, FormatOf(options.precision)),
      plan_(ChooseExecution(UnetOf(*checkpoint_).config, options)),
      weights_(DeviceWeights::Get(checkpoint_, chain_.format, UsesPackedWeights(plan_))),
      pictures_(UnetOf(*checkpoint_).config, UnetOf(*checkpoint_).config.encoder,
                weights_->encoders(), weights_->picture_tables(), chain_.format, options.batch,
                MakeDrawer(options)),
      conditioning_(UnetOf(*checkpoint_).config, chain_.format, options.batch),
      timing_(options.timing) {
  Plan();
  arena_.Seal();
  Plan();
  chain_.UploadSchedule(arena_);
  host_x_ = PinnedArray<float>(size_t{1} * chain_.environments * chain_.Elements());
  CheckShapes();
}

UnetEngine::~UnetEngine() {
  // a decision may be under way; how it ends does not matter any more
  static_cast<void>(cudaStreamSynchronize(stream_.get()));
}

// Places everything in the arena: first to measure it, then in its memory.
void UnetEngine::Plan() {
  const PolicyConfig& config = checkpoint_->config;
  const size_t scene_bytes = options_.scene_drawer ? options_.scene_drawer->scene_bytes() : 0;
  input_.Plan(config, scene_bytes, options_.batch, arena_);
  pictures_.Plan(arena_);
  denoiser_.reset();
  PassLaunches unet = PlaceUnet(*weights_, chain_.format, config.horizon, plan_, arena_);
  film_ = &unet.conditioning();
  conditioning_.Plan(arena_);
  chain_.Plan(arena_);
  denoiser_ = unet.megakernel ? MakeMegakernelDenoiser(chain_, std::move(unet), arena_)
                              : MakePassDenoiser(chain_, std::move(unet), arena_);
  timing_.Plan(denoiser_->MostPasses(), arena_);
}

// Throws Error for a shape without a kernel: every launch but a chain's repetitions, not run.
void UnetEngine::CheckShapes() {
  const cudaStream_t stream = stream_.get();
  const PictureSource source =
      pictures_.parts() == 0 ? PictureSource::kNone : PictureSource::kFrames;
  CaptureGraph(stream, [&] {
    pictures_.Prepare(source, input_, stream);
    pictures_.Encode(source, stream);
    conditioning_.Enqueue(input_, pictures_, *film_, stream);
    denoiser_->EnqueueEachPass(stream);
  });
}

void UnetEngine::Enqueue(PictureSource source, TraceRecorder* trace) {
  const cudaStream_t stream = stream_.get();
  input_.Upload(source, stream);
  timing_.RecordBorder(StageBorder::kUploaded, stream);
  pictures_.Draw(source, input_, stream);
  if (options_.scene_drawer) timing_.RecordBorder(StageBorder::kRendered, stream);
  pictures_.Prepare(source, input_, stream);
  timing_.RecordBorder(StageBorder::kPrepared, stream);
  pictures_.Encode(source, stream);
  timing_.RecordBorder(StageBorder::kEncoded, stream);
  conditioning_.Enqueue(input_, pictures_, *film_, stream);
  timing_.RecordBorder(StageBorder::kConditioned, stream);
  timing_.RecordPass(true, stream);
  chain_.EnqueueNoise(input_, stream);
  denoiser_->Enqueue({stream, loop_stream_.get(), timing_, trace});
  timing_.RecordBorder(StageBorder::kDenoised, stream);
  CheckCuda(
      cudaMemcpyAsync(host_x_.data(), chain_.x, host_x_.bytes(), cudaMemcpyDeviceToHost, stream),
      "copy of the actions");
  timing_.FetchTimestamps(stream);
  timing_.RecordBorder(StageBorder::kFetched, stream);
}

// The slow path of tests.
void UnetEngine::EnqueueTraced(PictureSource source, PolicyTrace& trace) {
  trace = {};
  for (const DenoiseStep& step : chain_.steps) trace.timesteps.push_back(step.timestep);
  TraceRecorder recorder(trace, count_, stream_.get());
  Enqueue(source, &recorder);
  trace.global_cond.resize(size_t{1} * count_ * UnetOf(*checkpoint_).config.CondDim());
  conditioning_.Fetch(trace.global_cond, stream_.get());
}

void UnetEngine::Launch(const PolicyInput& input, PolicyTrace* trace) {
  denoiser_->CheckFinished();
  count_ = input.count;
  timing_.Begin();
  const PictureSource source = SourceOf(checkpoint_->config, input);
  input_.Write(*checkpoint_, options_.sampler, input);
  input_.PlacePictures(source, input, stream_.get());
  chain_.UploadGiven(input, arena_);
  chain_.WriteHeld(*checkpoint_, input);
  conditioning_.UploadGiven(input.global_cond, arena_);
  if (trace != nullptr) return EnqueueTraced(source, *trace);
  graphs_.Launch(source, stream_.get(), [&] { Enqueue(source, nullptr); });
}

void UnetEngine::Wait(PolicyOutput& output) {
  CheckCuda(cudaStreamSynchronize(stream_.get()), "the decision");
  denoiser_->CheckFinished();
  output.times = timing_.Read(denoiser_->Passes(count_));
  output.actions.assign(host_x_.data(), host_x_.data() + size_t{1} * count_ * chain_.Elements());
  Unnormalize(checkpoint_->stats.action, chain_.action_dim, output.actions);
}

Json UnetPlans(const Checkpoint& checkpoint, const std::string& name) {
  const UnetPolicyConfig& config = UnetOf(checkpoint).config;
  const GpuTraits gpu = GpuTraits::Named(name);
  Json plans = Json::array();
  for (const int batch : kPlanBatches) {
    const ExecutionPlan plan = ChooseExecution(
        config, {Format::kFp16, batch, kAutoWindow, config.scheduler.inference_steps}, gpu);
    Json row = PlanRow(gpu, {batch, plan.FormName(), plan.Text(), plan.why});
    row["window"] = plan.window;
    row["rows"] = plan.rows;
    row["launches"] = plan.Launches();
    plans.push_back(std::move(row));
  }
  return plans;
}

}  // namespace mjp
