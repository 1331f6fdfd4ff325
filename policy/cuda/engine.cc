#include "policy/cuda/engine.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "kernels/cuda/primitives/cuda_check.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/cuda/format_of.h"
#include "policy/cuda/unet/layer_unet.h"
#include "policy/scheduler.h"

namespace mjp {

CudaEngine::CudaEngine(const PolicyOptions& options, std::shared_ptr<const Checkpoint> checkpoint)
    : checkpoint_(std::move(checkpoint)),
      options_(options),
      format_(FormatOf(options.precision)),
      steps_(
          MakeSchedule(checkpoint_->config.scheduler, options.sampler.kind, options.sampler.steps)),
      plan_(ChooseExecution(checkpoint_->config, options)),
      weights_(DeviceWeights::Get(checkpoint_, format_, UsesNormConvWeights(plan_))),
      drawer_(options.scene_drawer ? options.scene_drawer->MakeGpuDrawer() : nullptr) {}

// Delegates, so that the destructor gives back what was made before an Error.
CudaEngine::CudaEngine(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options)
    : CudaEngine(options, std::move(checkpoint)) {
  Plan();
  arena_.Seal();
  Plan();
  UploadTables();
  CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
  CheckCuda(cudaStreamCreateWithFlags(&loop_stream_, cudaStreamNonBlocking), "stream");
  for (cudaEvent_t& e : borders_) CheckCuda(cudaEventCreate(&e), "event");
  CheckShapes();
}

CudaEngine::~CudaEngine() {
  // results of the last calls do not matter any more
  if (stream_ != nullptr) static_cast<void>(cudaStreamSynchronize(stream_));
  for (cudaGraphExec_t g : graphs_)
    if (g != nullptr) static_cast<void>(cudaGraphExecDestroy(g));
  for (cudaEvent_t e : borders_)
    if (e != nullptr) static_cast<void>(cudaEventDestroy(e));
  if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
  if (loop_stream_ != nullptr) static_cast<void>(cudaStreamDestroy(loop_stream_));
  if (host_states_ != nullptr) static_cast<void>(cudaFreeHost(host_states_));
  if (host_stuck_ != nullptr) static_cast<void>(cudaFreeHost(host_stuck_));
  if (host_x_ != nullptr) static_cast<void>(cudaFreeHost(host_x_));
  if (host_stamps_ != nullptr) static_cast<void>(cudaFreeHost(host_stamps_));
}

void CudaEngine::Plan() {
  const PolicyConfig& config = checkpoint_->config;
  const size_t batch = options_.batch;
  const size_t scene_bytes = drawer_ ? options_.scene_drawer->scene_bytes() : 0;
  input_.Plan(config, scene_bytes, options_.batch, arena_);
  encoders_.clear();
  const int cameras = static_cast<int>(config.cameras.size());
  const int encoders = static_cast<int>(weights_->encoders().size());
  for (int i = 0; i < encoders; ++i) {
    const CameraFeature& camera = config.cameras[i];
    const int height = config.encoder.crop_height ? config.encoder.crop_height : camera.height;
    const int width = config.encoder.crop_width ? config.encoder.crop_width : camera.width;
    const int frames = options_.batch * config.n_obs_steps * cameras / encoders;
    encoders_.push_back(std::make_unique<EncoderPlan>(weights_->encoders()[i], config.encoder,
                                                      format_, frames, height, width, arena_));
  }
  const int rows = plan_.rows, per_env = rows / options_.batch;
  unet_.reset(), unet_rest_.reset();
  chain_.reset(), chain_rest_.reset();
  if (IsPersistent(plan_.form)) {
    const NormConvUnet& unet = weights_->norm_conv_unet();
    chain_ = std::make_unique<MegakernelDenoiser>(unet, format_, config.horizon, plan_, arena_);
    if (per_env > 1) chain_rest_ = chain_->Fallback(unet, plan_.fallback);
  } else {
    unet_ = MakePass(rows, per_env, nullptr);
    if (per_env > 1) unet_rest_ = MakePass(options_.batch, 1, &unet_->condition());
  }
  cond_ = arena_.Take<float>(batch * config.CondDim());
  given_cond_ = arena_.Take<float>(batch * config.CondDim());
  const size_t elements = batch * config.horizon * config.action_dim;
  x_ = arena_.Take<float>(elements);
  noise_ = options_.sampler.kind == SamplerKind::kDdpm
               ? arena_.Take<float>(elements * steps_.size())
               : nullptr;
  timesteps_ = arena_.Take<int>(steps_.size());
  schedule_ = arena_.Take<DenoiseStep>(steps_.size());
  const bool parallel = options_.sampler.parallel_window > 0;
  row_step_ = arena_.Take<int>(parallel ? rows : rows * steps_.size());
  if (parallel) PlanPicard();
  if (options_.timing == TimingDetail::kSteps) {
    stamps_.capacity = Passes() + 1;
    stamps_.times = arena_.Take<uint64_t>(stamps_.capacity);
    stamps_.count = arena_.Take<int>(1);
  }
}

// The launches of passes over `rows`, with the condition's part of FiLM shared or their own.
std::unique_ptr<UnetPass> CudaEngine::MakePass(int rows, int rows_per_env,
                                               const FilmCondition* condition) {
  const int horizon = checkpoint_->config.horizon;
  if (weights_->fused()) {
    return std::make_unique<NormConvUnetPlan>(weights_->norm_conv_unet(), format_, horizon, rows,
                                              rows_per_env, arena_, condition);
  }
  return std::make_unique<UnetPlan>(weights_->unet(), format_, horizon, rows, rows_per_env, arena_,
                                    condition);
}

// The most passes of a chain: each finishes a step or more, of all rows or of a launch's.
int CudaEngine::Passes() const {
  return static_cast<int>(steps_.size()) * (chain_ ? chain_->launches() : 1);
}

int CudaEngine::Elements() const {
  return checkpoint_->config.horizon * checkpoint_->config.action_dim;
}

void CudaEngine::UploadTables() {
  std::vector<int> timesteps, row_step;
  for (const DenoiseStep& step : steps_) {
    timesteps.push_back(step.timestep);
    row_step.insert(row_step.end(), options_.batch, step.timestep);
  }
  arena_.Upload(timesteps_, timesteps.data(), timesteps.size() * sizeof(int));
  arena_.Upload(schedule_, steps_.data(), steps_.size() * sizeof(DenoiseStep));
  if (options_.sampler.parallel_window == 0)
    arena_.Upload(row_step_, row_step.data(), row_step.size() * sizeof(int));
  CheckCuda(cudaHostAlloc(reinterpret_cast<void**>(&host_states_),
                          sizeof(PicardState) * options_.batch, cudaHostAllocDefault),
            "pinned memory");
  const PolicyConfig& config = checkpoint_->config;
  CheckCuda(
      cudaHostAlloc(reinterpret_cast<void**>(&host_stuck_), sizeof(int), cudaHostAllocDefault),
      "pinned memory");
  *host_stuck_ = 0;
  CheckCuda(cudaHostAlloc(reinterpret_cast<void**>(&host_x_),
                          sizeof(float) * options_.batch * config.horizon * config.action_dim,
                          cudaHostAllocDefault),
            "pinned memory for the actions");
  if (stamps_.capacity > 0)
    CheckCuda(cudaHostAlloc(reinterpret_cast<void**>(&host_stamps_),
                            sizeof(uint64_t) * stamps_.capacity, cudaHostAllocDefault),
              "pinned memory for the stamps");
}

CudaEngine::Pictures CudaEngine::Source(const PolicyInput& input) const {
  if (checkpoint_->config.cameras.empty()) return kNoPictures;
  if (!input.global_cond.empty() && input.frames.empty() && input.scenes.empty())
    return kNoPictures;
  return input.scenes.empty() ? kFrames : kScenes;
}

void CudaEngine::RecordBorder(size_t border) {
  if (options_.timing == TimingDetail::kNone) return;
  const unsigned flags = capturing_ ? cudaEventRecordExternal : cudaEventRecordDefault;
  CheckCuda(cudaEventRecordWithFlags(borders_[border], stream_, flags), "stage border");
}

void CudaEngine::EnqueueEncoder(Pictures pictures) {
  const PolicyConfig& config = checkpoint_->config;
  const int cameras = static_cast<int>(config.cameras.size());
  if (pictures == kScenes) {
    drawer_->EnqueueDraw(input_.device().scenes, options_.batch * config.n_obs_steps,
                         input_.device_frames(), stream_);
  }
  RecordBorder(2);
  const int encoders = pictures == kNoPictures ? 0 : static_cast<int>(encoders_.size());
  for (int i = 0; i < encoders; ++i) {
    const CameraFeature& camera = config.cameras[i];
    PrepareArgs a;
    a.in_stride = encoders == 1 ? 1 : cameras;
    a.in_first = i;
    a.frames = options_.batch * config.n_obs_steps * cameras / encoders;
    a.in_h = camera.height, a.in_w = camera.width;
    a.out_h = config.encoder.crop_height ? config.encoder.crop_height : camera.height;
    a.out_w = config.encoder.crop_width ? config.encoder.crop_width : camera.width;
    a.top = (a.in_h - a.out_h) / 2, a.left = (a.in_w - a.out_w) / 2;
    a.rgb = input_.device_frames();
    a.table = weights_->picture_table(i);
    a.y = encoders_[i]->input();
    a.space_to_depth = weights_->encoders()[i].space_to_depth;
    LaunchPrepare(format_, a, stream_);
  }
  RecordBorder(3);
  for (int i = 0; i < encoders; ++i) encoders_[i]->Run(stream_);
  RecordBorder(4);
}

void CudaEngine::EnqueueCondition() {
  const PolicyConfig& config = checkpoint_->config;
  ConditioningArgs a;
  a.environments = options_.batch;
  a.steps = config.n_obs_steps;
  a.state_dim = config.state_dim;
  a.environment_dim = config.environment_dim;
  a.image_first = config.cond_order == CondOrder::kImageState;
  a.state = input_.device().state;
  a.environment = input_.device().environment;
  if (!encoders_.empty()) {
    a.feature_dim = config.encoder.feature_dim * static_cast<int>(config.cameras.size());
    a.feature_parts = static_cast<int>(encoders_.size());
    a.features = encoders_[0]->features();
    if (encoders_.size() > 1) a.part_stride = encoders_[1]->features() - encoders_[0]->features();
  }
  a.given = given_cond_;
  a.use_given = &input_.device().flags->use_given_cond;
  a.cond = cond_;
  const FilmCondition& film = chain_ ? chain_->condition() : unet_->condition();
  a.mish = film.input();
  a.mish_pitch = PaddedChannels(config.CondDim());
  LaunchConditioning(format_, a, stream_);
  film.Run(stream_);
}

void CudaEngine::Enqueue(Pictures pictures, PolicyTrace* trace, int count) {
  RecordBorder(0);
  input_.CopyBlock(stream_);
  if (pictures == kFrames) input_.CopyFrames(stream_);
  RecordBorder(1);
  EnqueueEncoder(pictures);
  EnqueueCondition();
  RecordBorder(5);
  EnqueueChain(trace, count);
  RecordBorder(6);
  const PolicyConfig& config = checkpoint_->config;
  CheckCuda(cudaMemcpyAsync(host_x_, x_,
                            sizeof(float) * options_.batch * config.horizon * config.action_dim,
                            cudaMemcpyDeviceToHost, stream_),
            "copy of the actions");
  FetchStamps();
  RecordBorder(7);
}

// The graph of what `enqueue` puts into stream_.
cudaGraph_t CudaEngine::Capture(const std::function<void()>& enqueue) {
  cudaGraph_t graph = nullptr;
  CheckCuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
  capturing_ = true;
  try {
    enqueue();
  } catch (...) {
    capturing_ = false;
    static_cast<void>(cudaStreamEndCapture(stream_, &graph));
    throw;
  }
  capturing_ = false;
  CheckCuda(cudaStreamEndCapture(stream_, &graph), "end of the capture");
  return graph;
}

// Throws Error for a shape without a kernel: every launch but the chain's repetitions, not run.
void CudaEngine::CheckShapes() {
  cudaGraph_t graph = Capture([&] {
    EnqueueEncoder(encoders_.empty() ? kNoPictures : kFrames);
    EnqueueCondition();
    if (unet_) unet_->RunPass(row_step_, stream_);
    if (unet_rest_) unet_rest_->RunPass(row_step_, stream_);
  });
  static_cast<void>(cudaGraphDestroy(graph));
}

cudaGraphExec_t CudaEngine::Captured(Pictures pictures) {
  if (graphs_[pictures] != nullptr) return graphs_[pictures];
  cudaGraph_t graph = Capture([&] { Enqueue(pictures, nullptr, 0); });
  const cudaError_t made = cudaGraphInstantiate(&graphs_[pictures], graph, 0);
  static_cast<void>(cudaGraphDestroy(graph));
  CheckCuda(made, "instantiation of the graph");
  return graphs_[pictures];
}

void CudaEngine::FillInputs(const PolicyInput& input, Pictures pictures) {
  const PolicyConfig& config = checkpoint_->config;
  const InputBlock::View& host = input_.host();
  std::copy(input.state.begin(), input.state.end(), host.state);
  std::copy(input.environment.begin(), input.environment.end(), host.environment);
  Normalize(checkpoint_->stats.state, config.state_dim, {host.state, input.state.size()});
  Normalize(checkpoint_->stats.environment, config.environment_dim,
            {host.environment, input.environment.size()});
  for (size_t i = 0; i < input.keys.size(); ++i) {
    const NoiseKey& key = input.keys[i];
    host.keys[i] = {key.seed, NoiseNumber(options_.sampler, key.decision), 0};
  }
  if (pictures == kScenes) std::copy(input.scenes.begin(), input.scenes.end(), host.scenes);
  if (pictures == kFrames)
    std::memcpy(input_.host_frames(), input.frames.data(), input.frames.size());
  host.flags->use_given_cond = !input.global_cond.empty();
  host.flags->keep[0] = !input.x_start.empty();
  host.flags->keep[1] = !input.noise_by_t.empty();
  UploadTapes(input);
}

// What a chain that stood still left behind is of no known pass: no decision after it is trusted.
void CudaEngine::CheckNotStuck() const {
  if (!stuck_) return;
  throw Error(ExitCode::kRetryable,
              "the denoising chain on the GPU stood still for seconds: blocks of it were not "
              "running; start the same command again, or use the CPU backend");
}

void CudaEngine::Launch(const PolicyInput& input, PolicyTrace* trace) {
  CheckNotStuck();
  count_ = input.count;
  begin_ = Now();
  const Pictures pictures = Source(input);
  FillInputs(input, pictures);
  if (trace == nullptr) {
    CheckCuda(cudaGraphLaunch(Captured(pictures), stream_), "launch of the decision");
    return;
  }
  *trace = {};
  for (const DenoiseStep& step : steps_) trace->timesteps.push_back(step.timestep);
  Enqueue(pictures, trace, input.count);
  trace->global_cond.resize(static_cast<size_t>(input.count) * checkpoint_->config.CondDim());
  CheckCuda(
      cudaMemcpyAsync(trace->global_cond.data(), cond_, trace->global_cond.size() * sizeof(float),
                      cudaMemcpyDeviceToHost, stream_),
      "copy of the trace");
}

void CudaEngine::Wait(PolicyOutput& output) {
  const PolicyConfig& config = checkpoint_->config;
  CheckCuda(cudaStreamSynchronize(stream_), "the decision");
  if (*host_stuck_ != 0) stuck_ = true;
  CheckNotStuck();
  output.times = {};
  ReadTimes(output.times, Now());
  output.times.passes = Passes();
  if (options_.sampler.parallel_window > 0) {
    output.times.passes = 0;
    for (int n = 0; n < count_; ++n)
      output.times.passes = std::max(output.times.passes, host_states_[n].passes);
  }
  ReadSteps(output.times);
  const size_t elements = size_t{1} * config.horizon * config.action_dim;
  output.actions.assign(host_x_, host_x_ + count_ * elements);
  Unnormalize(checkpoint_->stats.action, config.action_dim, output.actions);
}

// Start, noise and condition given from outside: tests and `mjpolicy infer` alone.
void CudaEngine::UploadTapes(const PolicyInput& input) {
  const PolicyConfig& config = checkpoint_->config;
  const size_t n = static_cast<size_t>(input.count) * config.horizon * config.action_dim;
  const size_t pitch = static_cast<size_t>(options_.batch) * config.horizon * config.action_dim;
  arena_.Upload(x_, input.x_start.data(), input.x_start.size_bytes());
  arena_.Upload(given_cond_, input.global_cond.data(), input.global_cond.size_bytes());
  if (input.noise_by_t.empty() || noise_ == nullptr) return;
  for (size_t k = 0; k < steps_.size(); ++k)
    arena_.Upload(noise_ + k * pitch, input.noise_by_t.data() + steps_[k].timestep * n,
                  n * sizeof(float));
}

// Puts the graph's stage borders on the host's clock, whose reading at the last one is `end`.
void CudaEngine::ReadTimes(StageTimes& times, double end) const {
  if (options_.timing == TimingDetail::kNone) return;
  constexpr size_t kLast = kBorderStages.size();
  std::array<double, kLast + 1> at;
  at[kLast] = end;
  for (size_t i = 0; i < kLast; ++i) {
    float ms = 0;
    CheckCuda(cudaEventElapsedTime(&ms, borders_[i], borders_[kLast]), "stage time");
    at[i] = end - 1e-3 * ms;
  }
  for (size_t i = 0; i < kLast; ++i) times[kBorderStages[i]] = {at[i], at[i + 1]};
  times[Stage::kHandOver].begin = begin_;
}

}  // namespace mjp
