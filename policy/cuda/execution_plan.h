#ifndef POLICY_CUDA_EXECUTION_PLAN_H_
#define POLICY_CUDA_EXECUTION_PLAN_H_

#include <memory>
#include <string>

#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/shared/format.h"
#include "policy/checkpoint/config.h"
#include "policy/policy.h"

// In which form a denoising network runs on a GPU: the one place that decides it, and that can be
// asked without a GPU. Operators choose their own kernel: kernels/cuda/conv/dispatch.cc.

namespace mjp {

struct DitConfig;
struct MegakernelPlan;
struct RowKernelPlan;

// The forms in which the same U-Net runs on a GPU.
enum class UnetForm {
  kLayers,     // a launch for each convolution and each norm
  kRowKernel,  // one launch for all layers and steps: a block, or a cluster, for each row; or eight
               // clusters for the only one
  kMegakernel,  // the persistent kernel of 8 to 128 CTAs, which share all rows
};

// What is to run.
struct ExecutionProblem {
  Format format = Format::kFp16;
  int batch = 1;   // environments, as configured
  int window = 0;  // steps of a pass; 0: step by step; kAutoWindow: whichever is faster
  int steps = 100;
};

// How it runs. Whether a form does was found out by planning it, and the plans stay.
struct ExecutionPlan {
  UnetForm form = UnetForm::kLayers;  // of abandoned windows too
  int window = 0;                     // resolved
  int rows = 1;                       // of a pass: environments x window
  int rows_per_launch = 1;            // the megakernel may take them in several launches
  std::shared_ptr<const RowKernelPlan> row_kernel;
  // The megakernel's: of its launches, which are alike; of the last one, where it has fewer rows;
  // and of the one that finishes abandoned windows, a row for each environment.
  std::shared_ptr<const MegakernelPlan> launch, last_launch, fallback_launch;
  std::string why;  // one sentence

  // The form, and which kind of it: "megakernel, warp-specialised".
  const char* FormName() const;
  // Launches of the megakernel that take all rows; 1 for the other forms.
  int Launches() const { return (rows + rows_per_launch - 1) / rows_per_launch; }
  // "megakernel, warp-specialised; 16 rows in one launch; window of 16 steps"
  std::string Text() const;
};

// The plan for the U-Net of `config` on a GPU. A function of its arguments alone.
ExecutionPlan ChooseExecution(const UnetPolicyConfig& config, const ExecutionProblem& problem,
                              const GpuTraits& gpu);

// The plan of a single pass over `rows` rows by launches that end with it: not by the megakernel.
ExecutionPlan ChooseLaunches(const UnetPolicyConfig& config, Format format, int rows,
                             const GpuTraits& gpu);

// ChooseExecution for a policy's options (the window may still be automatic) on this GPU.
ExecutionPlan ChooseExecution(const UnetPolicyConfig& config, const PolicyOptions& options);

// Whether the weights lie as the persistent kernels read them.
inline bool UsesPackedWeights(const ExecutionPlan& plan) { return plan.form != UnetForm::kLayers; }

// The forms in which multi_task_dit's transformer runs.
enum class DitForm {
  kLaunches,          // a launch for each layer
  kSequenceKernel,    // one launch for all layers and steps: a cluster for each sequence
  kSequenceClusters,  // the same, eight clusters for each sequence
};

// How multi_task_dit's transformer runs.
struct DitExecutionPlan {
  DitForm form = DitForm::kLaunches;
  DitForm fallback = DitForm::kLaunches;  // of abandoned windows, a row for each environment
  int window = 0;                         // 0: step by step
  std::string why;                        // one sentence

  const char* FormName() const;
  // "sequence kernel, windows of 16 steps"
  std::string Text() const;
};
DitExecutionPlan ChooseDitExecution(const DitConfig& config, const ExecutionProblem& problem,
                                    const GpuTraits& gpu);

}  // namespace mjp

#endif  // POLICY_CUDA_EXECUTION_PLAN_H_
