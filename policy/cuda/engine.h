#ifndef POLICY_CUDA_ENGINE_H_
#define POLICY_CUDA_ENGINE_H_

#include <memory>
#include <string>
#include <utility>

#include "policy/policy.h"

namespace mjp {

// One checkpoint, ready to run on the GPU with one set of options: memory, launches and the CUDA
// graphs made of them. A decision is one graph launch and one synchronisation.
class CudaEngine {
 public:
  // `options` as resolved.
  CudaEngine(std::shared_ptr<const Checkpoint> checkpoint, const PolicyOptions& options)
      : checkpoint_(std::move(checkpoint)), options_(options) {}
  virtual ~CudaEngine() = default;
  CudaEngine(const CudaEngine&) = delete;
  CudaEngine& operator=(const CudaEngine&) = delete;

  // Starts a decision on a valid `input`, which is not read after the call, but for the memory of
  // its gpu_pictures: that must live until Wait. With a trace the decision is computed step by
  // step. Throws Error after a fault of the GPU.
  virtual void Launch(const PolicyInput& input, PolicyTrace* trace) = 0;
  // Waits for the decision and reads its actions and times.
  virtual void Wait(PolicyOutput& output) = 0;
  // How it runs, and why so, for people.
  virtual std::string PlanText() const = 0;
  // Whether the device still holds every weight as it was uploaded.
  virtual bool WeightsIntact() const = 0;

  const Checkpoint& checkpoint() const { return *checkpoint_; }
  const PolicyOptions& options() const { return options_; }

 protected:
  const std::shared_ptr<const Checkpoint> checkpoint_;
  const PolicyOptions options_;
};

// What the GPU's policies need to know of one network.
struct CudaNetwork {
  // Throws Error for a checkpoint that no GPU kernel runs.
  void (*check)(const Checkpoint& checkpoint);
  // Completes resolved `options` by what the network's default on the GPU is.
  void (*resolve)(const Checkpoint& checkpoint, PolicyOptions& options);
  // Throws Error for a shape no kernel supports, or if memory is short.
  std::unique_ptr<CudaEngine> (*make)(std::shared_ptr<const Checkpoint> checkpoint,
                                      const PolicyOptions& options);
  // Largest difference of normalised actions from the CPU's, by precision: docs/NUMERICS.md.
  double (*limit)(Precision precision);
};

// Throws Error for a camera whose pictures are not RGB.
void CheckRgb(const Checkpoint& checkpoint);

}  // namespace mjp

#endif  // POLICY_CUDA_ENGINE_H_
