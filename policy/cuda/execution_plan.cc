#include "policy/cuda/execution_plan.h"

#include <algorithm>
#include <optional>

#include "kernels/cuda/sampler/picard.cuh"
#include "policy/cuda/format_of.h"
#include "policy/cuda/unet/megakernel_plan.h"
#include "policy/cuda/unet/row_kernel_unet.h"
#include "policy/cuda/unet/unet_shapes.h"

namespace mjp {
namespace {

// Positions of the deepest level from which on a launch per layer has
// kernels/cuda/conv/implicit_gemm_wgmma.cu for all of them, and takes no longer than several
// launches of the megakernel (`mjpolicy bench pass`).
constexpr int kLayerLaunchPositions = 512;

// Rows x horizon; beyond this a separate normalisation is cheaper than one in every CTA of out
// channels.
constexpr int kMaxNormConvPositions = 512;

// What `mjpolicy bench pass` says: beyond so many bytes of weights, or of one CTA's part of them,
// other forms are faster; a cluster pays where each of its CTAs is left with so many; beyond so
// many rows for each multiprocessor a launch per layer is no slower.
constexpr size_t kMostWeightBytes = 40 << 20, kMostCtaBytes = 20 << 20,
                 kLeastWeightBytes = 800 << 10;
constexpr int kMostWaves = 4;
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

// How the row kernel runs `rows` rows of the network of `unet` on a GPU; none where it does not, or
// where other forms are faster.
std::optional<row_kernel::Config> ChooseRowKernel(const NormConvUnet& unet, Format format,
                                                  int horizon, int rows, const GpuTraits& gpu) {
  const size_t bytes = WeightBytes(unet);
  if (bytes > kMostWeightBytes || rows > kMostWaves * gpu.multiprocessors) return std::nullopt;
  for (const int ctas : {8, 4, 2, 1}) {
    const bool worthwhile = ctas == 1 || bytes / ctas >= kLeastWeightBytes;
    if (!worthwhile || bytes / ctas > kMostCtaBytes ||
        (ctas > 1 && rows * ctas > gpu.multiprocessors * kClusteredPart))
      continue;
    for (const int ring : {row_kernel::kDeepRing, row_kernel::kShallowRing})
      if (RowKernelRuns(unet, format, horizon, {ctas, ring}, gpu))
        return row_kernel::Config{ctas, ring};
  }
  return std::nullopt;
}

// One question: rows of one launch, of each environment.
struct Rows {
  int launch, per_env;
};

// Everything that the answers depend on.
struct Chooser {
  const UnetPolicyConfig& config;
  Format format;
  const GpuTraits& gpu;
  NormConvUnet unet;
  bool can_specialize_warps;

  Chooser(const UnetPolicyConfig& c, Format f, const GpuTraits& g)
      : config(c),
        format(f),
        gpu(g),
        unet(UnetShapes(c)),
        can_specialize_warps(CanSpecializeWarps(unet, c.horizon)) {}

  // Why no form but a launch per layer takes the format or the first convolution; null: one may.
  const char* FirstConvLacks() const {
    if (FormatBytes(format) != 2) return "the other forms have fp16 and bf16 alone";
    if (config.action_dim > kMaxFirstChannels ||
        config.action_dim * config.unet.kernel_size > kMaxFirstTerms ||
        config.action_dim * config.horizon > kMaxFirstElements)
      return "the first convolution has more terms than the other forms take";
    return nullptr;
  }

  // Why norm_conv does not run every layer for this many rows; null: it does.
  const char* NormConvLacks(int rows) const {
    if (const char* lacks = FirstConvLacks()) return lacks;
    if (gpu.ClusterBlocks() < kMaxClusterCtas)
      return "device and code have no clusters of 8 blocks";
    if (gpu.shared_bytes < kMaxSharedBytesSm90)
      return "a block has less than 227 KiB of shared memory";
    if (rows * config.horizon > kMaxNormConvPositions)
      return "so many positions are faster with a launch for each norm";
    return NormConvUnetPlan::Supports(unet, format, config.horizon, rows)
               ? nullptr
               : "its norm groups or lengths are not those that the other forms take";
  }

  // Whether the portable form takes a launch: where it has run on a GPU, and no other has been
  // measured to be faster. norm_conv is at one row, where there are clusters.
  bool PortablePays(const LaunchNeeds& needs) const {
    constexpr int kLeastMeasuredCtas = 108;
    return format == Format::kFp16 && needs.ctas >= kLeastMeasuredCtas && needs.as_measured &&
           gpu.ClusterBlocks() < kMaxClusterCtas;
  }

  // The megakernel's form of one launch; none where it does not run it: the kernel has no such
  // layers, or the GPU does not hold all CTAs at once.
  std::optional<UnetForm> MegakernelForm(const Rows& rows) const {
    const megakernel::Target target = megakernel::Target::On(gpu);
    if (!gpu.cooperative || target.ctas < megakernel::kLeastCtas ||
        rows.launch > (target.portable ? megakernel::kRowsPerBatch : megakernel::kMaxRows))
      return std::nullopt;
    const UnetForm form = target.portable        ? UnetForm::kMegakernelPortable
                          : can_specialize_warps ? UnetForm::kMegakernelRoles
                                                 : UnetForm::kMegakernel;
    const LaunchNeeds needs =
        MegakernelNeeds(unet, format, config.horizon, rows.launch, rows.per_env,
                        form == UnetForm::kMegakernelRoles, target);
    if (!needs.supported || needs.shared_bytes > target.shared_bytes) return std::nullopt;
    if (target.portable && !PortablePays(needs)) return std::nullopt;
    return form;
  }

  // The plan of passes over `rows` rows by the row kernel, if there is one.
  std::optional<ExecutionPlan> ByRowKernel(int rows) const {
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
      if (MegakernelForm({most, 1})) return most;
    }
    return rows;
  }

  // The plan in launches of the megakernel, if there is one.
  std::optional<ExecutionPlan> ByMegakernel(int batch, int window) const {
    const bool windows = window > 1;
    const int rows = batch * (windows ? window : 1);
    ExecutionPlan plan;
    plan.target = megakernel::Target::On(gpu);
    if (plan.target.portable
            ? FirstConvLacks() != nullptr
            : NormConvLacks(windows ? rows : std::min(rows, megakernel::kRowsPerBatch)) != nullptr)
      return std::nullopt;
    plan.rows = rows;
    plan.rows_per_launch = windows ? rows : RowsPerLaunch(rows);
    const auto form = MegakernelForm({plan.rows_per_launch, windows ? window : 1});
    const auto fallback = windows ? MegakernelForm({batch, 1}) : form;
    if (!form || !fallback) return std::nullopt;
    const int remainder = rows % plan.rows_per_launch;
    if (remainder > 0 && !MegakernelForm({remainder, 1})) return std::nullopt;
    plan.form = *form, plan.fallback = *fallback, plan.window = windows ? window : 0;
    return plan;
  }

  // Default Picard window: 16 by the row kernel; 16, else 8, where one launch of the megakernel
  // takes it; else 16 with a launch per layer or convolution, unless the megakernel runs the
  // sequential chain by MMA and epilogue warps, or takes the pass of all windows in parts.
  int FasterWindow(int batch, int steps) const {
    PicardSweepArgs sweep;
    sweep.window = kWindow;
    sweep.elements = config.horizon * config.action_dim;
    if (steps < kLeastWindowSteps || batch > kMostWindowBatch || !PicardSupports(sweep)) return 0;
    if (ByRowKernel(batch * kWindow)) return kWindow;
    for (const int window : {kWindow, kWindow / 2})
      if (ByMegakernel(batch, window)) return window;
    const auto sequential = ByMegakernel(batch, 0);
    const bool slower = (sequential && sequential->form == UnetForm::kMegakernelRoles) ||
                        ByMegakernel(batch * kWindow, 0);
    return slower ? 0 : kWindow;
  }
};

// The plan of passes over `rows` rows by a launch for each convolution at least.
ExecutionPlan ByLaunches(const Chooser& chooser, int rows) {
  ExecutionPlan plan;
  plan.rows = plan.rows_per_launch = rows;
  const char* lacks = chooser.NormConvLacks(rows);
  plan.form = plan.fallback = lacks ? UnetForm::kLayers : UnetForm::kNormConv;
  plan.why =
      lacks ? lacks
            : "neither the megakernel nor the row kernel takes so many rows of these channels here";
  return plan;
}

std::string WhyMegakernel(const ExecutionPlan& plan) {
  if (plan.form == UnetForm::kMegakernelPortable)
    return "the GPU or this build's code lacks what Hopper's form of the megakernel needs";
  return plan.form == UnetForm::kMegakernelRoles
             ? "every output tile fits the epilogue warps"
             : "its output tiles are too large for epilogue warps of their own";
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
    case UnetForm::kMegakernel:
      return "megakernel";
    case UnetForm::kMegakernelRoles:
      return "megakernel, warp-specialised";
    case UnetForm::kMegakernelPortable:
      return "megakernel, portable";
  }
  return "";
}

std::string ExecutionPlan::Text() const {
  std::string text = UnetFormName(form);
  text += "; " + std::to_string(rows) + (rows == 1 ? " row a pass" : " rows a pass");
  if (IsMegakernel(form))
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
  if (auto plan = chooser.ByRowKernel(rows)) {
    plan->window = window > 1 ? window : 0;
    return *plan;
  }
  if (auto plan = chooser.ByMegakernel(problem.batch, window)) {
    plan->why = WhyMegakernel(*plan);
    return *plan;
  }
  ExecutionPlan plan = ByLaunches(chooser, rows);
  plan.window = window > 1 ? window : 0;
  return plan;
}

ExecutionPlan ChooseLaunches(const UnetPolicyConfig& config, Format format, int rows,
                             const GpuTraits& gpu) {
  const Chooser chooser(config, format, gpu);
  if (const auto plan = chooser.ByRowKernel(rows)) return *plan;
  return ByLaunches(chooser, rows);
}

ExecutionPlan ChooseExecution(const UnetPolicyConfig& config, const PolicyOptions& options) {
  return ChooseExecution(config,
                         {FormatOf(options.precision), options.batch,
                          options.sampler.parallel_window, options.sampler.steps},
                         GpuTraits::Current());
}

}  // namespace mjp
