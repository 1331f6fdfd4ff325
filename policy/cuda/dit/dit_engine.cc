#include "policy/cuda/dit/dit_engine.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/graph_capture.h"
#include "kernels/shared/crop.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/cuda/dit/dit_schedule.h"
#include "policy/cuda/dit/sequence_pass.h"
#include "policy/cuda/format_of.h"
#include "policy/dit/dit_trace.h"
#include "policy/flow_sampler.h"

namespace mjp {
namespace {

// With the tolerance that the chain's steps take.
PolicyOptions ChainOptions(const DitConfig& config, PolicyOptions options) {
  float& tolerance = options.sampler.parallel_tolerance;
  if (config.objective == DitObjective::kFlowMatching) tolerance = FlowTolerance(tolerance);
  return options;
}

}  // namespace

DitEngine::DitEngine(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options)
    : CudaEngine(std::move(checkpoint), options),
      model_(DitOf(*checkpoint_)),
      config_(model_.config),
      chain_(checkpoint_->config, DitSchedule(config_, options.sampler),
             ChainOptions(config_, options), FormatOf(options.precision)),
      plan_(ChooseDitExecution(config_, {chain_.format, chain_.environments, chain_.window},
                               GpuTraits::Current())),
      weights_(DeviceDit::Get(checkpoint_, chain_.format)),
      packed_(cpu::PackedDitOf(checkpoint_)),
      pool_(options.threads),
      drawer_(options.scene_drawer ? options.scene_drawer->MakeGpuDrawer() : nullptr),
      timing_(options.timing) {
  if (config_.TextDim() > 0) texts_.emplace(model_, packed_->text, packed_->text_projection);
  if (config_.encoder)
    encoders_.emplace(config_, *config_.encoder, weights_->encoders, weights_->picture_tables,
                      chain_.format, options.batch, nullptr);
  const std::vector<float> terms = DitTimeTerms(config_, packed_->trunk, options.sampler, pool_);
  PlanTable(terms);
  table_arena_.Seal();
  PlanTable(terms);
  Plan();
  arena_.Seal();
  Plan();
  chain_.UploadSchedule(arena_);
  host_x_ = PinnedArray<float>(size_t{1} * chain_.environments * chain_.Elements());
  // what is wrong with it is said now, and the first decision does not wait for it
  if (!options.instruction.empty()) texts_->Of({}, options_, 0, pool_);
  const PictureSource source =
      config_.cameras.empty() ? PictureSource::kNone : PictureSource::kFrames;
  CaptureGraph(stream_.get(), [&] {
    Prepare(source);
    Encode(source);
    Condition();
    denoiser_->EnqueueEachPass(stream_.get());
  });
}

DitEngine::~DitEngine() {
  // a decision may be under way; how it ends does not matter any more
  static_cast<void>(cudaStreamSynchronize(stream_.get()));
}

void DitEngine::PlanTable(const std::vector<float>& terms) {
  LayerLoader loader(table_arena_, chain_.format);
  film_.width = 6 * config_.hidden * config_.layers;
  film_.cond = weights_->condition;
  film_.step_table = loader.Floats(terms);
}

// Places everything in the arena: first to measure it, then in its memory.
void DitEngine::Plan() {
  const size_t scene_bytes = options_.scene_drawer ? options_.scene_drawer->scene_bytes() : 0;
  input_.Plan(config_, scene_bytes, options_.batch, arena_, config_.TextDim());
  PlanTowers();
  cond_ = arena_.Take<float>(size_t{1} * options_.batch * config_.CondDim());
  given_ = arena_.Take<float>(size_t{1} * options_.batch * config_.CondDim());
  chain_.Plan(arena_);
  PlanDenoiser();
  timing_.Plan(denoiser_->MostPasses(), arena_);
}

void DitEngine::PlanTowers() {
  if (encoders_) return encoders_->Plan(arena_);
  towers_.clear();
  const int cameras = static_cast<int>(config_.cameras.size());
  features_ = arena_.Take<float>(FeatureSize() * cameras);
  for (const DeviceVision& vision : weights_->vision) {
    const int frames = Frames() * cameras / static_cast<int>(weights_->vision.size());
    float* features = features_ + towers_.size() * FeatureSize();
    towers_.push_back(std::make_unique<ClipLaunches>(vision, config_.clip, chain_.format, frames,
                                                     features, arena_));
  }
}

void DitEngine::PlanDenoiser() {
  const int window = chain_.window, rows = chain_.environments * window;
  denoiser_.reset();
  if (config_.TextDim() > 0)
    text_terms_.emplace(*weights_, config_, chain_.format, chain_.environments, arena_);
  film_.of_environment = text_terms_ ? text_terms_->terms() : nullptr;
  conditioning_.emplace(film_, chain_.format, rows, window, arena_);
  const SequencePass* first = nullptr;
  const auto pass = [&](DitForm form, int pass_rows,
                        const FilmConditioning& conditioning) -> std::unique_ptr<NetworkPass> {
    if (form == DitForm::kLaunches)
      return std::make_unique<DitPass>(*weights_, config_, chain_.format, pass_rows, conditioning,
                                       arena_);
    auto made = std::make_unique<SequencePass>(*weights_, config_, chain_.format, pass_rows,
                                               conditioning, arena_, form, first);
    first = made.get();
    return made;
  };
  PassLaunches launches;
  launches.pass = pass(plan_.form, rows, *conditioning_);
  if (options_.sampler.kind == SamplerKind::kRk4) {
    denoiser_ = MakeRungeKuttaDenoiser(chain_, std::move(launches.pass), arena_);
    return;
  }
  if (window > 1)
    launches.pass_fallback = pass(plan_.fallback, chain_.environments, conditioning_->Shared(1));
  denoiser_ = MakePassDenoiser(chain_, std::move(launches), arena_);
}

void DitEngine::Prepare(PictureSource source) {
  if (source == PictureSource::kNone) return;
  encoders_ ? encoders_->Prepare(source, input_, stream_.get()) : PrepareTowers();
}

void DitEngine::PrepareTowers() {
  const int cameras = static_cast<int>(config_.cameras.size());
  const bool resized = config_.resize_height > 0;
  for (int i = 0; i < cameras; ++i) {
    const CameraFeature& camera = config_.cameras[i];
    const bool separate = config_.separate_encoders;
    const ClipLaunches& tower = *towers_[separate ? i : 0];
    PrepareArgs a;
    a.frames = Frames();
    a.in_stride = cameras, a.in_first = i;
    a.in_h = camera.height, a.in_w = camera.width;
    a.out_h = a.out_w = config_.clip.image;
    a.top = CropOffset(resized ? config_.resize_height : camera.height, a.out_h);
    a.left = CropOffset(resized ? config_.resize_width : camera.width, a.out_w);
    a.rgb = input_.device_frames();
    a.cameras = cameras;
    a.table = weights_->picture_tables;
    a.patch = config_.clip.patch, a.patch_pitch = tower.patch_pitch();
    a.y = static_cast<uint8_t*>(tower.input()) + (separate ? 0 : tower.FrameBytes() * Frames() * i);
    if (resized) {
      LaunchPrepareResized(chain_.format, {a, weights_->resize_x[i], weights_->resize_y[i]},
                           stream_.get());
    } else {
      LaunchPrepare(chain_.format, a, stream_.get());
    }
  }
}

void DitEngine::Encode(PictureSource source) {
  if (source == PictureSource::kNone) return;
  if (encoders_) return encoders_->Encode(source, stream_.get());
  for (const auto& tower : towers_) tower->Run(stream_.get());
}

// For each step state, the cameras' features, text.
void DitEngine::Condition() {
  ConditioningArgs a;
  a.environments = options_.batch;
  a.steps = config_.n_obs_steps;
  a.state_dim = config_.state_dim;
  a.state = input_.device().state;
  a.environment_dim = config_.TextDim();
  a.environment = input_.device().text;
  const int cameras = static_cast<int>(config_.cameras.size());
  a.feature_dim = cameras * config_.FeatureDim();
  a.feature_parts = encoders_ ? encoders_->parts() : std::max(1, cameras);
  a.features = encoders_ ? encoders_->features() : features_;
  a.part_stride = encoders_ ? encoders_->part_stride() : FeatureSize();
  a.given = given_;
  a.use_given = &input_.device().flags->use_given_cond;
  a.cond = cond_;
  a.mish = conditioning_->input();
  a.mish_pitch = weights_->condition.shape.in_c;
  a.silu = true;
  a.without_environment = true;
  LaunchConditioning(chain_.format, a, stream_.get());
  conditioning_->Run(stream_.get());
}

void DitEngine::Enqueue(PictureSource source, TraceRecorder* trace) {
  const cudaStream_t stream = stream_.get();
  input_.Upload(source, stream);
  timing_.RecordBorder(StageBorder::kUploaded, stream);
  if (source == PictureSource::kScenes)
    drawer_->EnqueueDraw(input_.device().scenes, Frames(), input_.device_frames(), stream);
  if (drawer_) timing_.RecordBorder(StageBorder::kRendered, stream);
  Prepare(source);
  timing_.RecordBorder(StageBorder::kPrepared, stream);
  Encode(source);
  timing_.RecordBorder(StageBorder::kEncoded, stream);
  Condition();
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

void DitEngine::WriteText(const PolicyInput& input) {
  if (!texts_) return;
  if (!input.global_cond.empty())
    return text_terms_->SetFromConditioning(input.global_cond, arena_, stream_.get());
  float* out = input_.text();
  for (int n = 0; n < input.count; ++n) {
    const std::vector<float>& text = texts_->Of(input, options_, n, pool_);
    for (int t = 0; t < config_.n_obs_steps; ++t) out = std::copy(text.begin(), text.end(), out);
  }
  const size_t size = size_t{1} * options_.batch * config_.n_obs_steps * config_.TextDim();
  text_terms_->Set({input_.text(), size}, arena_, stream_.get());
}

void DitEngine::Launch(const PolicyInput& input, PolicyTrace* trace) {
  denoiser_->CheckFinished();
  count_ = input.count;
  timing_.Begin();
  WriteText(input);
  const PictureSource source = SourceOf(config_, input);
  input_.Write(*checkpoint_, options_.sampler, input);
  input_.PlacePictures(source, input, stream_.get(), &pool_);
  chain_.UploadGiven(input, arena_);
  chain_.WriteHeld(*checkpoint_, input);
  arena_.Upload(given_, input.global_cond.data(), input.global_cond.size_bytes());
  trace_ = trace;
  const cudaStream_t stream = stream_.get();
  if (trace == nullptr) return graphs_.Launch(source, stream, [&] { Enqueue(source, nullptr); });
  *trace = {};
  if (config_.objective == DitObjective::kDiffusion) {
    for (const DenoiseStep& step : chain_.steps) trace->timesteps.push_back(step.timestep);
  }
  TraceRecorder recorder(*trace, count_, stream);
  Enqueue(source, &recorder);
  trace->global_cond =
      FetchValues(Format::kFp32, cond_, size_t{1} * count_ * config_.CondDim(), stream);
}

void DitEngine::Wait(PolicyOutput& output) {
  CheckCuda(cudaStreamSynchronize(stream_.get()), "the decision");
  denoiser_->CheckFinished();
  output.times = timing_.Read(denoiser_->Passes(count_));
  // windows of steps evaluate some of them again: their passes have no stored counterpart
  if (trace_ != nullptr && chain_.window == 1)
    CompleteDitTrace(config_, options_.sampler, host_x_.data(), count_, *trace_);
  output.actions.assign(host_x_.data(), host_x_.data() + size_t{1} * count_ * chain_.Elements());
  Unnormalize(checkpoint_->stats.action, chain_.action_dim, output.actions);
}

}  // namespace mjp
