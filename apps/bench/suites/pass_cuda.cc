#include <map>
#include <utility>
#include <variant>

#include "apps/bench/device.h"
#include "apps/bench/gpu_timer.h"
#include "policy/cuda/device_weights.h"
#include "policy/cuda/execution_plan.h"
#include "policy/cuda/format_of.h"
#include "policy/cuda/unet/layer_unet.h"
#include "policy/cuda/unet/unet_launches.h"
#include "policy/scheduler.h"
#include "policy/unet/unet_model.h"

// The launches of the networks at one batch, each alone and all together, as captured graphs.

namespace mjp::app {
namespace {

struct OpName {
  std::string operator()(const mjp::ConvArgs& a) const {
    const mjp::ConvShape& s = a.shape;
    return (s.phases == 2 ? "transposed " : "conv ") + std::to_string(s.in_c) + "->" +
           std::to_string(s.out_c) + " k" + std::to_string(s.kernel_h) + "x" +
           std::to_string(s.kernel_w) + " at " + std::to_string(s.out_h) + "x" +
           std::to_string(s.out_w) + (s.stride == 2 ? " stride 2" : "");
  }
  std::string operator()(const mjp::GroupNormArgs& a) const {
    return "norm of " + std::to_string(a.channels) + " at " + std::to_string(a.positions) +
           (a.film.step_table ? " with FiLM"
            : a.residual      ? " with residual"
                              : "");
  }
  std::string operator()(const mjp::ConvGroupNormArgs& a) const {
    return (*this)(a.conv) + ", norm" + (a.conv.residual ? " with residual" : "");
  }
  std::string operator()(const mjp::encoder_kernel::Args& a) const {
    return std::to_string(a.layer_count) + " convolutions with norms, encoder kernel";
  }
  std::string operator()(const mjp::MaxPoolArgs&) const { return "max-pool"; }
  std::string operator()(const mjp::GroupNormMaxPoolArgs&) const { return "norm and max-pool"; }
  std::string operator()(const mjp::StemMaxPoolArgs& a) const {
    return (*this)(a.conv) + " and max-pool";
  }
  std::string operator()(const mjp::FeatureHeadArgs& a) const {
    return (*this)(a.pool) + (a.pos_grid ? ", keypoints, dense" : ", dense");
  }
  std::string operator()(const mjp::AveragePoolOp&) const { return "average pool"; }
  std::string operator()(const mjp::SpatialSoftmaxOp&) const { return "spatial softmax"; }
};

double Operations(const mjp::encoder_kernel::Args& a) {
  double all = 0;
  for (int i = 0; i < a.layer_count; ++i) {
    const mjp::encoder_kernel::Layer& l = a.layers[i];
    all += 2.0 * l.out_h * l.out_w * l.out_c * l.in_c * l.kernel * l.kernel;
  }
  return all * a.pictures;
}

double Operations(const mjp::Op& op) {
  if (const auto* encoder = std::get_if<mjp::encoder_kernel::Args>(&op))
    return Operations(*encoder);
  const auto* conv = std::get_if<mjp::ConvArgs>(&op);
  if (const auto* both = std::get_if<mjp::ConvGroupNormArgs>(&op)) conv = &both->conv;
  if (const auto* both = std::get_if<mjp::StemMaxPoolArgs>(&op)) conv = &both->conv;
  if (conv == nullptr) return 0;
  return 2.0 * conv->shape.Positions() * conv->shape.phases * conv->shape.out_c * conv->shape.K();
}

// One row for each kind of launch: its time beside copies of itself, its rate, how many there are.
void AddOps(const std::string& part, const std::vector<mjp::Op>& ops, mjp::Format format,
            const int* row_step, double seconds, BenchRows& rows) {
  constexpr int kCopies = 10;
  std::map<std::string, int> launches;
  for (const mjp::Op& op : ops) ++launches[std::visit(OpName{}, op)];
  for (mjp::Op op : ops) {
    const std::string name = std::visit(OpName{}, op);
    const int count = std::exchange(launches[name], 0);
    if (count == 0) continue;
    if (auto* norm = std::get_if<mjp::GroupNormArgs>(&op); norm && norm->film.step_table)
      norm->film.row_step = row_step;
    BenchRow row = TimeInLoop("pass", part + ": " + name, seconds, kCopies,
                              [&](cudaStream_t stream) { mjp::LaunchOp(format, op, stream); });
    if (Operations(op) > 0) {
      row.items = Operations(op) * 1e-9;
      row.unit = "GFLOP";
    }
    row.note = std::to_string(count) + (count == 1 ? " launch" : " launches");
    rows.push_back(row);
  }
}

// The networks of a policy on the device, as the engine plans them.
class Networks {
 public:
  explicit Networks(const BenchOptions& options)
      : config_(mjp::UnetOf(*options.network).config),
        batch_(options.policy.batch),
        format_(mjp::FormatOf(options.policy.precision)),
        plan_(mjp::ChooseExecution(config_, {format_, batch_}, mjp::GpuTraits::Current())),
        passes_(mjp::ChooseLaunches(config_, format_, batch_, mjp::GpuTraits::Current())),
        weights_(
            mjp::DeviceWeights::Get(options.network, format_, mjp::UsesPackedWeights(passes_))) {
    if (plan_.form == mjp::UnetForm::kMegakernel)
      chain_weights_ = mjp::DeviceWeights::Get(options.network, format_, true);
    Plan();
    arena_.Seal();
    Plan();
  }

  int frames() const { return batch_ * config_.n_obs_steps; }
  void RunPass(cudaStream_t stream) const { unet_->RunPass(row_step_, stream); }
  // Whether the sampler runs such a batch in launches of several passes, and kSteps of its passes.
  bool HasChain() const { return chain_ != nullptr || plan_.form == mjp::UnetForm::kRowKernel; }
  void RunChain(cudaStream_t stream) const {
    if (chain_) return chain_->RunSteps(schedule_, nullptr, x_, 0, kSteps, {}, stream);
    unet_->RunSteps(schedule_, nullptr, x_, 0, kSteps, {}, stream);
  }
  static constexpr int kSteps = 10;
  std::string ChainNote() const {
    const std::string steps =
        std::string(plan_.FormName()) + ", " + std::to_string(kSteps) + " DDIM steps";
    if (!chain_ || chain_->launches() == 1) return steps + " a launch";
    return std::to_string(chain_->launches()) + " launches of up to " +
           std::to_string(chain_->rows()) + " rows and " + steps;
  }
  const mjp::EncoderLayers* encoder() const { return encoder_.get(); }
  // The launches, where each is one of an operator.
  void AddLaunches(double seconds, BenchRows& rows) const {
    if (const auto* plan = dynamic_cast<const mjp::LayerUnet*>(unet_.get()))
      AddOps("U-Net", plan->ops(), format_, row_step_, seconds, rows);
    if (encoder_) AddOps("encoder", encoder_->ops(), format_, row_step_, seconds, rows);
  }

 private:
  void Plan() {
    unet_ = mjp::PlaceUnet(*weights_, format_, config_.horizon, passes_, arena_).pass;
    if (chain_weights_)
      chain_ = std::make_unique<mjp::MegakernelLaunch>(chain_weights_->norm_conv_unet(), format_,
                                                       config_.horizon, plan_, arena_);
    PlanChain();
    if (!config_.cameras.empty()) {
      const auto& camera = config_.cameras.front();
      const mjp::EncoderConfig& encoder = config_.encoder;
      encoder_ = std::make_unique<mjp::EncoderLayers>(
          weights_->encoders().front(), encoder, format_, frames(),
          encoder.crop_height ? encoder.crop_height : camera.height,
          encoder.crop_width ? encoder.crop_width : camera.width, arena_);
    }
    row_step_ = arena_.Take<int>(batch_);
  }

  void PlanChain() {
    const auto steps = mjp::MakeSchedule(config_.scheduler, mjp::SamplerKind::kDdim, kSteps);
    schedule_ = arena_.Take<mjp::DenoiseStep>(kSteps);
    arena_.Upload(schedule_, steps.data(), kSteps * sizeof(mjp::DenoiseStep));
    x_ = arena_.Take<float>(size_t{1} * batch_ * config_.horizon * config_.action_dim);
  }

  const mjp::UnetPolicyConfig& config_;
  int batch_;
  mjp::Format format_;
  mjp::ExecutionPlan plan_, passes_;  // of a chain; of a single pass by launches
  std::shared_ptr<const mjp::DeviceWeights> weights_;
  std::shared_ptr<const mjp::DeviceWeights> chain_weights_;  // null: no chain of such a batch
  mjp::DeviceArena arena_;
  std::unique_ptr<mjp::NetworkPass> unet_;
  std::unique_ptr<mjp::MegakernelLaunch> chain_;
  std::unique_ptr<mjp::EncoderLayers> encoder_;
  int* row_step_ = nullptr;
  mjp::DenoiseStep* schedule_ = nullptr;
  float* x_ = nullptr;
};

}  // namespace

BenchRows BenchPassCuda(const BenchOptions& options) {
  constexpr int kCopies = 10;
  const Networks networks(options);
  BenchRows rows;
  const auto add = [&](const std::string& name, double items, const std::string& unit,
                       const GpuWork& work) {
    rows.push_back(TimeInLoop("pass", name, options.seconds, kCopies, work));
    rows.push_back(TimeCold("pass", name, options.seconds, work));
    for (auto row = rows.end() - 2; row != rows.end(); ++row) row->items = items, row->unit = unit;
  };
  const int batch = options.policy.batch;
  add("U-Net pass, batch " + std::to_string(batch), batch, "rows",
      [&](cudaStream_t stream) { networks.RunPass(stream); });
  if (networks.HasChain()) {
    rows.push_back(TimeCopies("pass", "U-Net pass in a chain, batch " + std::to_string(batch),
                              options.seconds, Networks::kSteps,
                              [&](cudaStream_t stream) { networks.RunChain(stream); }));
    rows.back().items = batch, rows.back().unit = "rows";
    rows.back().note = networks.ChainNote();
  }
  if (networks.encoder() != nullptr)
    add("encoder, " + std::to_string(networks.frames()) + " frames", networks.frames(), "frames",
        [&](cudaStream_t stream) { networks.encoder()->Run(stream); });
  networks.AddLaunches(options.seconds / 20, rows);
  return rows;
}

}  // namespace mjp::app
