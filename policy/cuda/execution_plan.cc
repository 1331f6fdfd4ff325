#include "policy/cuda/execution_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "kernels/cuda/sampler/picard.cuh"
#include "policy/cuda/dit/sequence_pass.h"
#include "policy/cuda/format_of.h"
#include "policy/cuda/unet/megakernel_plan.h"
#include "policy/cuda/unet/row_kernel_plan.h"
#include "policy/cuda/unet/unet_shapes.h"

namespace mjp {
namespace {

// Positions of the deepest level from which on a launch per layer has
// kernels/cuda/conv/implicit_gemm_wgmma.cu for all of them, and takes no longer than several
// launches of the megakernel (`mjpolicy bench pass`).
constexpr int kLayerLaunchPositions = 512;

// Rows x horizon; beyond this a launch per layer is no slower than Hopper's megakernel.
constexpr int kMaxMegakernelPositions = 512;

// What `mjpolicy bench pass` says of the row kernel in one cluster or CTA: beyond so many bytes of
// weights, or of one CTA's part of them, other forms are faster; a cluster pays where each of its
// CTAs is left with so many; beyond so many rows for each multiprocessor a launch per layer is no
// slower.
constexpr size_t kMostWeightBytes = 40 << 20, kMostCtaBytes = 20 << 20,
                 kLeastWeightBytes = 400 << 10;
constexpr int kMostWaves = 4;
// From so many on Hopper's form of the megakernel is faster than it, where both run.
constexpr size_t kLeastMegakernelBytes = 20 << 20;
// Of the multiprocessors that clusters occupy at once: those of a GPC are no multiple of a cluster.
constexpr double kClusteredPart = 0.875;

// The default window, the steps from which on and the environments up to which it pays
// (`mjpolicy bench chunk`).
constexpr int kWindow = 16, kLeastWindowSteps = 20, kMostWindowBatch = 32;

// Bytes of all weights that a pass multiplies.
size_t WeightBytes(const NormConvUnet& unet) {
  size_t bytes = 0;
  const auto add = [&](const DeviceNormConv& conv) {
    bytes += WeightFragmentBytes(Format::kFp16, conv.shape);
  };
  for (const auto& step : unet.steps) {
    if (const auto* block = std::get_if<NormConvBlock>(&step.layer)) {
      add(block->conv1), add(block->conv2);
    } else {
      add(std::get<DeviceNormConv>(step.layer));
    }
  }
  add(unet.final_conv);
  return bytes;
}

const char* WhyMegakernel(const MegakernelPlan& launch) {
  if (launch.target.portable)
    return "the GPU or this build's code lacks what Hopper's form of the megakernel needs";
  return launch.warp_specialized ? "every output tile fits the epilogue warps"
                                 : "its output tiles are too large for epilogue warps of their own";
}

// Everything that the answers depend on, and what was planned to find them: each plan once.
class Chooser {
 public:
  Chooser(const UnetPolicyConfig& config, Format format, const GpuTraits& gpu)
      : config_(config), format_(format), gpu_(gpu), unet_(UnetShapes(config)) {}

  // The plan of whole chains in one of the persistent kernels, if there is one.
  std::optional<ExecutionPlan> ByPersistentKernel(int batch, int window) {
    const int rows = batch * std::max(1, window);
    const bool large = !target_.portable && weight_bytes_ >= kLeastMegakernelBytes;
    std::optional<ExecutionPlan> plan = ByClusters(rows);
    if (!plan && large) plan = ByMegakernel(batch, window);
    if (!plan) plan = ByRowKernel(rows);
    if (!plan && !large) plan = ByMegakernel(batch, window);
    return plan;
  }

  // The plan of passes over `rows` rows by the row kernel across clusters, if there is one.
  std::optional<ExecutionPlan> ByClusters(int rows) {
    if (rows != 1) return std::nullopt;
    ExecutionPlan plan;
    plan.form = UnetForm::kRowKernel;
    plan.row_kernel =
        RowKernel({row_kernel::kMaxCtas, row_kernel::kClustersRing, row_kernel::kClusters});
    plan.why = "a single row has eight clusters, and each of them a norm group";
    return plan.row_kernel ? std::optional(plan) : std::nullopt;
  }

  // The plan of passes over `rows` rows by the row kernel, if there is one.
  std::optional<ExecutionPlan> ByRowKernel(int rows) {
    ExecutionPlan plan;
    plan.rows = plan.rows_per_launch = rows;
    plan.form = UnetForm::kRowKernel;
    plan.row_kernel = FastestRowKernel(rows);
    plan.why = "the weights are few enough for each row to have thread blocks of its own";
    return plan.row_kernel ? std::optional(plan) : std::nullopt;
  }

  // The plan in launches of the megakernel, if there is one.
  std::optional<ExecutionPlan> ByMegakernel(int batch, int window) {
    const bool windows = window > 1;
    const int rows = batch * (windows ? window : 1);
    if (FirstConvLacks() != nullptr ||
        (!target_.portable &&
         !HopperTakes(windows ? rows : std::min(rows, megakernel::kRowsPerBatch))))
      return std::nullopt;
    ExecutionPlan plan;
    plan.launch = windows ? Launch(rows, window) : LargestLaunch(rows);
    if (!plan.launch) return std::nullopt;
    plan.rows = rows, plan.rows_per_launch = plan.launch->rows;
    const int remainder = rows % plan.rows_per_launch;
    if (windows) plan.fallback_launch = Launch(batch, 1);
    if (remainder > 0) plan.last_launch = Launch(remainder, 1);
    if ((windows && !plan.fallback_launch) || (remainder > 0 && !plan.last_launch))
      return std::nullopt;
    plan.form = UnetForm::kMegakernel;
    plan.why = WhyMegakernel(*plan.launch);
    return plan;
  }

  // The plan of passes over `rows` rows by a launch for each layer.
  ExecutionPlan ByLaunches(int rows) const {
    ExecutionPlan plan;
    plan.rows = plan.rows_per_launch = rows;
    plan.why = WhyLayers(rows);
    return plan;
  }

  // Default Picard window: 16 where the row kernel could take it; 16, else 8, where one launch of
  // the megakernel takes it; else 16 with a launch per layer, unless the megakernel runs the
  // sequential chain by MMA and epilogue warps or in its portable form, or takes the pass of all
  // windows in parts.
  int FasterWindow(int batch, int steps) {
    PicardSweepArgs sweep;
    sweep.window = kWindow;
    sweep.elements = config_.horizon * config_.action_dim;
    if (steps < kLeastWindowSteps || batch > kMostWindowBatch || !PicardSupports(sweep, gpu_))
      return 0;
    if (ByRowKernel(batch * kWindow)) return kWindow;
    for (const int window : {kWindow, kWindow / 2})
      if (ByMegakernel(batch, window)) return window;
    const auto sequential = ByMegakernel(batch, 0);
    const bool slower =
        (sequential && (target_.portable || sequential->launch->warp_specialized)) ||
        ByMegakernel(batch * kWindow, 0);
    return slower ? 0 : kWindow;
  }

 private:
  // Why the megakernel does not take the format or the first convolution; null: it may.
  const char* FirstConvLacks() const {
    if (FormatBytes(format_) != 2) return "the other forms have fp16 and bf16 alone";
    if (config_.action_dim > kMaxFirstChannels ||
        config_.action_dim * config_.unet.kernel_size > kMaxFirstTerms ||
        config_.action_dim * config_.horizon > kMaxFirstElements)
      return "the first convolution has more terms than the megakernel takes";
    return nullptr;
  }

  // Whether this GPU is as those on which Hopper's form of the megakernel has run, and so few
  // positions pay.
  bool HopperTakes(int rows) const {
    return gpu_.ClusterBlocks() >= kMaxClusterCtas && gpu_.shared_bytes >= kMaxSharedBytesSm90 &&
           rows * config_.horizon <= kMaxMegakernelPositions;
  }

  // Why a launch per layer takes `rows` rows.
  std::string WhyLayers(int rows) const {
    if (FormatBytes(format_) == 2 &&
        config_.horizon * config_.action_dim > row_kernel::kMaxElements)
      return "the other forms take horizon x action_dim up to " +
             std::to_string(row_kernel::kMaxElements);
    if (const char* lacks = FirstConvLacks()) return lacks;
    if (rows * config_.horizon > kMaxMegakernelPositions)
      return "so many positions are faster with a launch for each layer";
    if (target_.portable && !IsMeasured())
      return "no other form has been measured to be faster for these weights on such a GPU";
    if (config_.horizon > row_kernel::kMaxPositions)
      return "the row kernel takes a horizon of " + std::to_string(row_kernel::kMaxPositions) +
             " at most, and the megakernel not these sizes";
    return "neither the megakernel nor the row kernel takes so many rows of these channels here";
  }

  // How the row kernel runs `rows` rows; null where it does not, or where other forms are faster.
  std::shared_ptr<const RowKernelPlan> FastestRowKernel(int rows) {
    const size_t bytes = weight_bytes_;
    if (bytes > kMostWeightBytes || rows > kMostWaves * gpu_.multiprocessors) return nullptr;
    for (const int ctas : {8, 4, 2, 1}) {
      const bool worthwhile = ctas == 1 || bytes / ctas >= kLeastWeightBytes;
      if (!worthwhile || bytes / ctas > kMostCtaBytes ||
          (ctas > 1 && rows * ctas > gpu_.multiprocessors * kClusteredPart))
        continue;
      for (const int ring : {row_kernel::kDeepRing, row_kernel::kShallowRing})
        if (const auto& plan = RowKernel({ctas, ring})) return plan;
    }
    return nullptr;
  }

  // The row kernel's plan in one configuration; null where it does not run so.
  const std::shared_ptr<const RowKernelPlan>& RowKernel(const row_kernel::Config& config) {
    const auto [at, is_new] =
        row_kernels_.try_emplace({config.ctas, config.ring_chunks, config.clusters});
    if (is_new)
      if (auto plan = PlanRowKernel(unet_, format_, config_.horizon, config, gpu_))
        at->second = std::make_shared<RowKernelPlan>(*std::move(plan));
    return at->second;
  }

  // A launch of the megakernel that takes all of `rows` rows step by step, or else as many as pay.
  std::shared_ptr<const MegakernelPlan> LargestLaunch(int rows) {
    const auto halvings = std::count_if(unet_.steps.begin(), unet_.steps.end(),
                                        [](const auto& step) { return step.place.upsamples; });
    for (const int most : {rows, megakernel::kMaxRows, megakernel::kRowsPerBatch}) {
      if (most > rows ||
          (most < rows && rows * (config_.horizon >> halvings) >= kLayerLaunchPositions))
        continue;
      if (const auto& launch = Launch(most, 1)) return launch;
    }
    return nullptr;
  }

  // A launch of the megakernel over `rows` rows; null where it does not run it: the kernel has no
  // such layers, or the GPU does not hold all CTAs at once.
  const std::shared_ptr<const MegakernelPlan>& Launch(int rows, int rows_per_env) {
    const auto [at, is_new] = launches_.try_emplace({rows, rows_per_env});
    if (!is_new || !gpu_.cooperative || target_.ctas < megakernel::kLeastCtas ||
        rows > (target_.portable ? megakernel::kRowsPerBatch : megakernel::kMaxRows))
      return at->second;
    MegakernelPlan plan =
        PlanMegakernel(unet_, format_, config_.horizon, rows, rows_per_env, target_);
    if (plan.supported && (!target_.portable || PortablePays(plan)))
      at->second = std::make_shared<MegakernelPlan>(std::move(plan));
    return at->second;
  }

  // Whether the portable form takes a launch: where it has run on a GPU, and no other has been
  // measured to be faster.
  bool PortablePays(const MegakernelPlan& plan) const {
    return IsMeasured() && plan.portable->table_in_shared;
  }
  bool IsMeasured() const {
    constexpr int kLeastMeasuredCtas = 28;
    constexpr size_t kLeastMeasuredShared = 99 * 1024;
    return format_ == Format::kFp16 && target_.ctas >= kLeastMeasuredCtas &&
           target_.shared_bytes >= kLeastMeasuredShared;
  }

  const UnetPolicyConfig& config_;
  const Format format_;
  const GpuTraits& gpu_;
  const NormConvUnet unet_;
  const size_t weight_bytes_ = WeightBytes(unet_);
  const megakernel::Target target_ = megakernel::Target::On(gpu_);
  std::map<std::tuple<int, int, int>, std::shared_ptr<const RowKernelPlan>> row_kernels_;
  std::map<std::pair<int, int>, std::shared_ptr<const MegakernelPlan>> launches_;
};

}  // namespace

const char* ExecutionPlan::FormName() const {
  switch (form) {
    case UnetForm::kLayers:
      return "launch per layer";
    case UnetForm::kRowKernel:
      return row_kernel->config.clusters > 1 ? "row kernel across clusters" : "row kernel";
    case UnetForm::kMegakernel:
      if (launch->target.portable) return "megakernel, portable";
      return launch->warp_specialized ? "megakernel, warp-specialised" : "megakernel";
  }
  return "";
}

std::string ExecutionPlan::Text() const {
  std::string text = FormName();
  text += "; " + std::to_string(rows) + (rows == 1 ? " row a pass" : " rows a pass");
  if (form == UnetForm::kMegakernel)
    text += Launches() == 1 ? " in one launch" : " in " + std::to_string(Launches()) + " launches";
  if (window > 0) text += "; window of " + std::to_string(window) + " steps";
  return text;
}

ExecutionPlan ChooseExecution(const UnetPolicyConfig& config, const ExecutionProblem& problem,
                              const GpuTraits& gpu) {
  Chooser chooser(config, problem.format, gpu);
  const int window = problem.window == kAutoWindow
                         ? chooser.FasterWindow(problem.batch, problem.steps)
                         : problem.window;
  std::optional<ExecutionPlan> plan = chooser.ByPersistentKernel(problem.batch, window);
  if (!plan) plan = chooser.ByLaunches(problem.batch * std::max(1, window));
  plan->window = window > 1 ? window : 0;
  return *plan;
}

ExecutionPlan ChooseLaunches(const UnetPolicyConfig& config, Format format, int rows,
                             const GpuTraits& gpu) {
  Chooser chooser(config, format, gpu);
  auto plan = chooser.ByClusters(rows);
  if (!plan) plan = chooser.ByRowKernel(rows);
  return plan ? *plan : chooser.ByLaunches(rows);
}

ExecutionPlan ChooseExecution(const UnetPolicyConfig& config, const PolicyOptions& options) {
  return ChooseExecution(config,
                         {FormatOf(options.precision), options.batch,
                          options.sampler.parallel_window, options.sampler.steps},
                         GpuTraits::Current());
}

DitExecutionPlan ChooseDitExecution(const DitConfig& config, const ExecutionProblem& problem,
                                    const GpuTraits& gpu) {
  const auto form = [&](int rows) {
    return SequenceKernelRuns(config, problem.format, rows, gpu) ? DitForm::kSequenceKernel
                                                                 : DitForm::kLaunches;
  };
  DitExecutionPlan plan;
  plan.window = problem.window > 1 ? problem.window : 0;
  plan.form = form(problem.batch * std::max(1, problem.window));
  plan.fallback = form(problem.batch);
  plan.why = plan.form == DitForm::kSequenceKernel
                 ? "a cluster holds a sequence"
                 : "the sequence kernel takes 16-bit formats, widths of 64, 128, 256 or 512, 32 "
                   "tokens at most, clusters of eight blocks with its shared memory, and as many "
                   "rows as run at once";
  // in windows each pass is a launch, and has as many rows as there are clusters
  if (plan.window == 0 && SequenceClustersRun(config, problem.format, problem.batch, gpu)) {
    plan.form = DitForm::kSequenceClusters;
    plan.why = "so few sequences have eight clusters each";
  }
  return plan;
}

const char* DitExecutionPlan::FormName() const {
  switch (form) {
    case DitForm::kSequenceClusters:
      return "sequence kernel across clusters";
    case DitForm::kSequenceKernel:
      return "sequence kernel";
    default:
      return "launches";
  }
}

std::string DitExecutionPlan::Text() const {
  return std::string(form == DitForm::kLaunches ? "a launch for each layer" : FormName()) +
         (window > 0 ? ", windows of " + std::to_string(window) + " steps" : ", step by step");
}

}  // namespace mjp
