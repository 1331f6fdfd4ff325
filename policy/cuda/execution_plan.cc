#include "policy/cuda/execution_plan.h"

#include <algorithm>
#include <optional>

#include "kernels/cuda/megakernel/megakernel.cuh"
#include "kernels/cuda/sampler/picard.cuh"
#include "policy/cuda/format_of.h"
#include "policy/cuda/unet/megakernel_launch.h"
#include "policy/cuda/unet/row_kernel_unet.h"
#include "policy/cuda/unet/unet_shapes.h"

namespace mjp {
namespace {

// Up to here every reader runs the epilogue of what it reads: a layer costs one exchange between
// CTAs. Beyond, owners run it: two exchanges, but it runs once for each value. With warp
// specialisation that takes less at any number of rows.
constexpr int kMaxReaderEpilogueRows = 2;

// Positions of the deepest level from which on a launch per layer has
// kernels/cuda/conv/implicit_gemm_wgmma.cu for all of them, and takes no longer than several
// launches of the megakernel (`mjpolicy bench pass`).
constexpr int kLayerLaunchPositions = 512;

// The default window, the steps from which on and the environments up to which it pays
// (`mjpolicy bench chunk`).
constexpr int kWindow = 16, kLeastWindowSteps = 20, kMostWindowBatch = 32;

// One question: rows of one launch, of all launches, of each environment.
struct Rows {
  int launch, all, per_env;
};

// Everything that the answers depend on.
struct Chooser {
  const UnetPolicyConfig& config;
  Format format;
  const GpuTraits& gpu;
  NormConvUnet unet;

  Chooser(const UnetPolicyConfig& c, Format f, const GpuTraits& g)
      : config(c), format(f), gpu(g), unet(UnetShapes(c)) {}

  size_t SharedBudget() const {
    return std::min<size_t>(gpu.shared_bytes, size_t{kMaxSharedBytesSm90});
  }

  // Why norm_conv does not run every layer for this many rows; null: it does.
  const char* NormConvLacks(int rows) const {
    if (FormatBytes(format) != 2) return "the other forms have fp16 and bf16 alone";
    if (gpu.ClusterBlocks() < kMaxClusterCtas)
      return "device and code have no clusters of 8 blocks";
    if (gpu.shared_bytes < kMaxSharedBytesSm90)
      return "a block has less than 227 KiB of shared memory";
    if (config.action_dim > kMaxFirstChannels ||
        config.action_dim * config.unet.kernel_size > kMaxFirstTerms ||
        config.action_dim * config.horizon > kMaxFirstElements)
      return "the first convolution has more terms than the other forms take";
    if (rows * config.horizon > kMaxNormConvPositions)
      return "so many positions are faster with a launch for each norm";
    return NormConvUnetPlan::Supports(unet, format, config.horizon, rows)
               ? nullptr
               : "its norm groups or lengths are not those that the other forms take";
  }

  bool OwnerEpilogue(const Rows& rows) const {
    return rows.all > kMaxReaderEpilogueRows || rows.per_env > 1 ||
           config.horizon * unet.first.out_c / unet.final_norm.groups >
               megakernel::kReaderMaxTileValues;
  }

  // Whether this device holds all CTAs of a launch with these needs at once.
  bool Resident(const LaunchNeeds& launch) const {
    return launch.supported && gpu.cooperative && gpu.ClusterBlocks() > 1 &&
           gpu.multiprocessors >= launch.ctas && launch.shared_bytes <= SharedBudget();
  }

  // The persistent form of one launch; none where no persistent kernel runs it.
  std::optional<UnetForm> Persistent(const Rows& rows) const {
    const bool owner = OwnerEpilogue(rows);
    const auto needs = [&](UnetForm form) {
      return MegakernelLaunch::Needs(unet, format, config.horizon, form, rows.launch, rows.all,
                                     rows.per_env);
    };
    if (gpu.Wgmma() && gpu.multiprocessors >= megakernel::kCtas &&
        rows.launch <= megakernel::kMaxRows) {
      const LaunchNeeds megakernel = needs(UnetForm::kMegakernel);
      if (megakernel.layers_supported && megakernel.shared_bytes <= SharedBudget() &&
          (owner || megakernel.warp_specialized)) {
        if (!Resident(megakernel)) return std::nullopt;
        return megakernel.warp_specialized ? UnetForm::kMegakernelRoles : UnetForm::kMegakernel;
      }
    }
    const UnetForm form = owner ? UnetForm::kOwnerEpilogue : UnetForm::kReaderEpilogue;
    if (rows.launch * config.horizon > kMaxNormConvPositions || !Resident(needs(form)))
      return std::nullopt;
    return form;
  }

  // The plan of passes over `rows` rows by the row kernel, if there is one.
  std::optional<ExecutionPlan> RowKernelPlan(int rows) const {
    const auto config = ChooseRowKernel(unet, format, this->config.horizon, rows, gpu);
    if (!config) return std::nullopt;
    ExecutionPlan plan;
    plan.rows = plan.rows_per_launch = rows;
    plan.form = plan.fallback = UnetForm::kRowKernel;
    plan.row_kernel = *config;
    plan.why = "the weights are few enough for each row to have thread blocks of its own";
    return plan;
  }

  // How many of `rows` rows one launch takes, step by step.
  int RowsPerLaunch(int rows) const {
    const auto halvings = std::count_if(unet.steps.begin(), unet.steps.end(),
                                        [](const auto& step) { return step.place.upsamples; });
    for (const int most : {rows, megakernel::kMaxRows, megakernel::kRowsPerBatch}) {
      if (most > rows ||
          (most < rows && rows * (config.horizon >> halvings) >= kLayerLaunchPositions))
        continue;
      const auto form = Persistent({most, rows, 1});
      if (form && IsMegakernel(*form)) return most;
    }
    return rows;
  }

  // The plan in persistent launches, if there is one.
  std::optional<ExecutionPlan> PersistentPlan(int batch, int window) const {
    const bool windows = window > 1;
    const int rows = batch * (windows ? window : 1);
    if (NormConvLacks(windows ? rows : std::min(rows, megakernel::kRowsPerBatch)) != nullptr)
      return std::nullopt;
    ExecutionPlan plan;
    plan.rows = rows;
    plan.rows_per_launch = windows ? rows : RowsPerLaunch(rows);
    const auto form = Persistent({plan.rows_per_launch, rows, windows ? window : 1});
    const auto fallback = windows ? Persistent({batch, batch, 1}) : form;
    if (!form || !fallback) return std::nullopt;
    const int remainder = rows % plan.rows_per_launch;
    if (remainder > 0 && !Persistent({remainder, rows, 1})) return std::nullopt;
    plan.form = *form, plan.fallback = *fallback, plan.window = windows ? window : 0;
    return plan;
  }

  // Default Picard window: 16 by the row kernel; 16, else 8, where one persistent launch takes it;
  // else 16 with a launch per layer or convolution, unless persistent launches run the sequential
  // chain by MMA and epilogue warps, or take the wide pass in parts.
  int FasterWindow(int batch, int steps) const {
    PicardSweepArgs sweep;
    sweep.window = kWindow;
    sweep.elements = config.horizon * config.action_dim;
    if (steps < kLeastWindowSteps || batch > kMostWindowBatch || !PicardSupports(sweep)) return 0;
    if (RowKernelPlan(batch * kWindow)) return kWindow;
    for (const int window : {kWindow, kWindow / 2})
      if (PersistentPlan(batch, window)) return window;
    const auto sequential = PersistentPlan(batch, 0);
    const bool slower = (sequential && sequential->form == UnetForm::kMegakernelRoles) ||
                        PersistentPlan(batch * kWindow, 0);
    return slower ? 0 : kWindow;
  }
};

// The plan of passes over `rows` rows by a launch for each convolution at least.
ExecutionPlan ByLaunches(const Chooser& chooser, int rows) {
  ExecutionPlan plan;
  plan.rows = plan.rows_per_launch = rows;
  const char* lacks = chooser.NormConvLacks(rows);
  plan.form = plan.fallback = lacks ? UnetForm::kLayers : UnetForm::kNormConv;
  plan.why = lacks ? lacks : "no persistent kernel takes so many rows of these channels here";
  return plan;
}

std::string WhyPersistent(const ExecutionPlan& plan) {
  switch (plan.form) {
    case UnetForm::kMegakernelRoles:
      return "every output tile fits the epilogue warps";
    case UnetForm::kMegakernel:
      return "its output tiles are too large for epilogue warps of their own";
    case UnetForm::kOwnerEpilogue:
      return "the megakernel does not take these channels or this kernel size on this GPU";
    default:
      return "so few rows cost one exchange a layer where readers run the epilogue";
  }
}

}  // namespace

const char* UnetFormName(UnetForm form) {
  switch (form) {
    case UnetForm::kLayers:
      return "launch per layer";
    case UnetForm::kNormConv:
      return "launch per convolution";
    case UnetForm::kRowKernel:
      return "row kernel";
    case UnetForm::kReaderEpilogue:
      return "reader-epilogue kernel";
    case UnetForm::kOwnerEpilogue:
      return "owner-epilogue kernel";
    case UnetForm::kMegakernel:
      return "megakernel";
    case UnetForm::kMegakernelRoles:
      return "megakernel, warp-specialised";
  }
  return "";
}

std::string ExecutionPlan::Text() const {
  std::string text = UnetFormName(form);
  text += "; " + std::to_string(rows) + (rows == 1 ? " row a pass" : " rows a pass");
  if (IsPersistent(form))
    text += Launches() == 1 ? " in one launch" : " in " + std::to_string(Launches()) + " launches";
  if (window > 0) {
    text += "; window of " + std::to_string(window) + " steps";
    if (fallback != form) text += std::string(", abandoned ones by the ") + UnetFormName(fallback);
  }
  return text;
}

ExecutionPlan ChooseExecution(const UnetPolicyConfig& config, const ExecutionProblem& problem,
                              const GpuTraits& gpu) {
  const Chooser chooser(config, problem.format, gpu);
  const int window = problem.window == kAutoWindow
                         ? chooser.FasterWindow(problem.batch, problem.steps)
                         : problem.window;
  const int rows = problem.batch * std::max(1, window);
  if (auto plan = chooser.RowKernelPlan(rows)) {
    plan->window = window > 1 ? window : 0;
    return *plan;
  }
  if (auto plan = chooser.PersistentPlan(problem.batch, window)) {
    plan->why = WhyPersistent(*plan);
    return *plan;
  }
  ExecutionPlan plan = ByLaunches(chooser, rows);
  plan.window = window > 1 ? window : 0;
  return plan;
}

ExecutionPlan ChooseLaunches(const UnetPolicyConfig& config, Format format, int rows,
                             const GpuTraits& gpu) {
  const Chooser chooser(config, format, gpu);
  if (const auto plan = chooser.RowKernelPlan(rows)) return *plan;
  return ByLaunches(chooser, rows);
}

ExecutionPlan ChooseExecution(const UnetPolicyConfig& config, const PolicyOptions& options) {
  return ChooseExecution(config,
                         {FormatOf(options.precision), options.batch,
                          options.sampler.parallel_window, options.sampler.steps},
                         GpuTraits::Current());
}

}  // namespace mjp
