#include "policy/cuda/act/act_engine.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/graph_capture.h"
#include "kernels/cuda/sampler/conditioning.cuh"
#include "policy/act/act_trace.h"
#include "policy/act/folded_backbone.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/cuda/format_of.h"
#include "policy/cuda/plan_rows.h"

namespace mjp {
namespace {

constexpr char kForm[] = "a launch for each layer";
constexpr char kWhy[] = "one pass makes a chunk";

void CheckAct(const Checkpoint& checkpoint) {
  CheckRgb(checkpoint);
  const ActPolicyConfig& config = ActOf(checkpoint).config;
  if (config.feedforward % 8 != 0)
    throw Unsupported("dim_feedforward " + std::to_string(config.feedforward) +
                      ": the GPU kernels take multiples of 8; use the CPU backend");
  for (const CameraFeature& camera : config.cameras) {
    const CameraFeature& first = config.cameras.front();
    if (camera.height != first.height || camera.width != first.width)
      throw Unsupported(camera.name + ": the GPU backend takes cameras of one size");
  }
}

void ResolveAct(const Checkpoint&, PolicyOptions&) {}

std::unique_ptr<CudaEngine> MakeAct(std::shared_ptr<const Checkpoint> checkpoint,
                                    const PolicyOptions& options) {
  return std::make_unique<ActEngine>(std::move(checkpoint), options);
}

double ActLimit(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return 6e-5;
    case Precision::kBf16:
      return 8e-2;
    default:
      return 1e-2;
  }
}

}  // namespace

const CudaNetwork kActOnCuda = {CheckAct, ResolveAct, MakeAct, ActLimit};

ActEngine::ActEngine(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options)
    : CudaEngine(std::move(checkpoint), options),
      config_(ActOf(*checkpoint_).config),
      format_(FormatOf(options.precision)),
      pool_(options.threads),
      weights_(DeviceAct::Get(checkpoint_, format_)),
      drawer_(options.scene_drawer ? options.scene_drawer->MakeGpuDrawer() : nullptr),
      projection_(format_),
      timing_(options.timing) {
  Plan();
  arena_.Seal();
  Plan();
  host_actions_ =
      PinnedArray<float>(size_t{1} * options_.batch * config_.horizon * config_.action_dim);
  PlanShares();
  // throws for a shape without a kernel
  CaptureGraph(stream_.get(), [&] {
    if (backbone_) EnqueueEncoder(false);
    transformer_->launches().Run(stream_.get());
  });
}

ActEngine::~ActEngine() {
  // a decision may be under way; how it ends does not matter any more
  if (upload_stream_) static_cast<void>(cudaStreamSynchronize(upload_stream_.get()));
  static_cast<void>(cudaStreamSynchronize(stream_.get()));
}

int ActEngine::Cells() const { return backbone_->map_height() * backbone_->map_width(); }

// Places everything in the arena: first to measure it, then in its memory.
void ActEngine::Plan() {
  const size_t scene_bytes = options_.scene_drawer ? options_.scene_drawer->scene_bytes() : 0;
  input_.Plan(config_, scene_bytes, options_.batch, arena_);
  ActInputs inputs;
  inputs.state = input_.device().state;
  inputs.environment = input_.device().environment;
  if (!config_.cameras.empty()) {
    const CameraFeature& camera = config_.cameras.front();
    const int frames = options_.batch * static_cast<int>(config_.cameras.size());
    backbone_ = std::make_unique<EncoderLayers>(weights_->backbone, ActBackbone(), format_, frames,
                                                camera.height, camera.width, arena_);
    const int cells = frames * Cells();
    void* maps = arena_.TakeBytes(size_t{1} * cells * config_.width * FormatBytes(format_));
    projection_ = TokenLaunches(format_);
    projection_.Linear(weights_->image, backbone_->map(), cells, maps);
    inputs.maps = maps;
  }
  transformer_ =
      std::make_unique<ActLaunches>(*weights_, config_, format_, options_.batch, inputs, arena_);
  timing_.Plan(1, arena_);
}

// The head of a share runs while the host sends the next, if shares are large enough to fill the
// GPU. All sources of pictures run in shares then, so that they give the same bits.
void ActEngine::PlanShares() {
  constexpr int kShares = 4, kLeastBatch = 16;
  if (!backbone_ || !backbone_->has_head() || options_.batch < kLeastBatch) return;
  if (!input_.SendsFrames(PictureSource::kFrames)) return;
  shares_ = kShares;
  upload_stream_ = MakeCudaStream();
  for (int i = 0; i < shares_; ++i) sent_.push_back(MakeCudaEvent());
}

void ActEngine::EnqueueShare(int share) {
  const cudaStream_t stream = stream_.get();
  const int cameras = static_cast<int>(config_.cameras.size());
  const int begin = ShareEnd(share - 1), count = ShareEnd(share) - begin;
  const CameraFeature& camera = config_.cameras.front();
  const bool space_to_depth = weights_->backbone.space_to_depth;
  const size_t cells = size_t{1} * camera.height * camera.width;
  const size_t pixel = space_to_depth ? 4 : 8;  // channels of a prepared pixel
  for (int i = 0; i < cameras; ++i) {
    const int first = options_.batch * i + begin;
    PrepareArgs a;
    a.frames = count;
    a.in_stride = cameras, a.in_first = i;
    a.in_h = a.out_h = camera.height, a.in_w = a.out_w = camera.width;
    a.rgb = input_.device_frames() + 3 * cells * cameras * begin;
    a.cameras = cameras;
    a.table = weights_->picture_tables;
    a.y = static_cast<uint8_t*>(backbone_->input()) + pixel * cells * FormatBytes(format_) * first;
    a.space_to_depth = space_to_depth;
    LaunchPrepare(format_, a, stream);
  }
  if (share == 0) timing_.RecordBorder(StageBorder::kPrepared, stream);
  for (int i = 0; shares_ > 1 && i < cameras; ++i)
    backbone_->RunHead(options_.batch * i + begin, count, stream);
}

void ActEngine::EnqueueEncoder(bool heads_ran) {
  const cudaStream_t stream = stream_.get();
  for (int i = 0; !heads_ran && i < shares_; ++i) EnqueueShare(i);
  shares_ > 1 ? backbone_->RunRest(stream) : backbone_->Run(stream);
  projection_.Run(stream);
}

void ActEngine::LaunchShares(const PolicyInput& input) {
  const cudaStream_t stream = stream_.get(), upload = upload_stream_.get();
  for (int i = 0; i < shares_; ++i) {
    input_.SendEnvironments(input, ShareEnd(i - 1), ShareEnd(i), upload, &pool_);
    CheckCuda(cudaEventRecordWithFlags(sent_[i].get(), upload, cudaEventRecordDefault),
              "a share of the pictures");
    CheckCuda(cudaStreamWaitEvent(stream, sent_[i].get()), "a share of the pictures");
    const auto enqueue = [&] {
      if (i == 0) timing_.RecordBorder(StageBorder::kUploaded, stream);
      if (i == 0 && drawer_) timing_.RecordBorder(StageBorder::kRendered, stream);
      EnqueueShare(i);
    };
    graphs_.Launch(PictureSource::kFrames, stream, enqueue, i + 1);
  }
}

void ActEngine::EnqueueInputs(PictureSource source) {
  const cudaStream_t stream = stream_.get();
  input_.Upload(source, stream);
  timing_.RecordBorder(StageBorder::kUploaded, stream);
  if (source == PictureSource::kScenes) {
    drawer_->EnqueueDraw(input_.device().scenes, options_.batch, input_.device_frames(), stream);
  }
  if (drawer_) timing_.RecordBorder(StageBorder::kRendered, stream);
  if (source == PictureSource::kNone) timing_.RecordBorder(StageBorder::kPrepared, stream);
}

void ActEngine::Enqueue(PictureSource source, bool heads_ran, PolicyTrace* trace) {
  const cudaStream_t stream = stream_.get();
  if (!heads_ran) EnqueueInputs(source);
  if (source != PictureSource::kNone) EnqueueEncoder(heads_ran);
  timing_.RecordBorder(StageBorder::kEncoded, stream);
  timing_.RecordPass(true, stream);
  if (trace != nullptr) {
    RunTraced(*trace);
  } else {
    transformer_->launches().Run(stream);
  }
  timing_.RecordPass(false, stream);
  timing_.RecordBorder(StageBorder::kDenoised, stream);
  CheckCuda(cudaMemcpyAsync(host_actions_.data(), transformer_->actions(), host_actions_.bytes(),
                            cudaMemcpyDeviceToHost, stream),
            "copy of the actions");
  timing_.FetchTimestamps(stream);
  timing_.RecordBorder(StageBorder::kFetched, stream);
}

void ActEngine::RunTraced(PolicyTrace& trace) {
  trace = {};
  cpu::ActTrace kept(trace, count_);
  if (backbone_) {
    const int channels = backbone_->map_channels(), batch = options_.batch;
    const size_t map = size_t{1} * Cells() * channels;
    const int cameras = static_cast<int>(config_.cameras.size());
    std::vector<float> maps =
        FetchValues(format_, backbone_->map(), map * batch * cameras, stream_.get());
    cpu::Features view;
    view.data = maps.data();
    view.batch = batch * cameras;
    view.height = backbone_->map_height(), view.width = backbone_->map_width();
    view.channels = view.pitch = channels;
    for (int i = 0; i < cameras; ++i) {
      for (int n = 0; n < count_; ++n)
        kept.KeepMap("layer4/" + std::to_string(i), view, i * batch + n, n);
    }
  }
  transformer_->launches().RunTraced(
      [&](const std::string& name, const float* values, int64_t rows, int64_t width) {
        kept.Keep(name, values, 0, count_, static_cast<int>(rows / options_.batch),
                  static_cast<int>(width));
      },
      stream_.get());
  const std::vector<float> actions =
      FetchValues(Format::kFp32, transformer_->actions(), host_actions_.size(), stream_.get());
  kept.Finish(weights_->positions(), config_.Tokens(), config_.width, actions.data(),
              config_.horizon, config_.action_dim);
}

void ActEngine::Launch(const PolicyInput& input, PolicyTrace* trace) {
  count_ = input.count;
  timing_.Begin();
  const PictureSource source = SourceOf(config_, input);
  SamplerOptions no_noise;
  no_noise.hold_noise = 1;
  input_.Write(*checkpoint_, no_noise, input);
  const bool in_shares = shares_ > 1 && source == PictureSource::kFrames && trace == nullptr;
  if (in_shares) {
    LaunchShares(input);
  } else {
    input_.PlacePictures(source, input, stream_.get(), &pool_);
  }
  if (trace != nullptr) return Enqueue(source, false, trace);
  graphs_.Launch(source, stream_.get(), [&] { Enqueue(source, in_shares, nullptr); });
}

void ActEngine::Wait(PolicyOutput& output) {
  CheckCuda(cudaStreamSynchronize(stream_.get()), "the decision");
  output.times = timing_.Read(1);
  const size_t size = size_t{1} * count_ * config_.horizon * config_.action_dim;
  output.actions.assign(host_actions_.data(), host_actions_.data() + size);
  Unnormalize(checkpoint_->stats.action, config_.action_dim, output.actions);
}

std::string ActEngine::PlanText() const {
  return std::string(kForm) + ", " + std::to_string(transformer_->launches().size()) +
         " of the transformer, since " + kWhy;
}

Json ActPlans(const Checkpoint& checkpoint, const std::string& name) {
  CheckAct(checkpoint);
  const GpuTraits gpu = GpuTraits::Named(name);
  Json plans = Json::array();
  for (const int batch : kPlanBatches)
    plans.push_back(
        PlanRow(gpu, {batch, kForm,
                      std::string(kForm) + "; " + std::to_string(batch) +
                          (batch == 1 ? " environment" : " environments") + " in one pass",
                      kWhy}));
  return plans;
}

}  // namespace mjp
