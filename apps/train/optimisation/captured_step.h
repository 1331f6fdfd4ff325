#ifndef APPS_TRAIN_OPTIMISATION_CAPTURED_STEP_H_
#define APPS_TRAIN_OPTIMISATION_CAPTURED_STEP_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace mjp::app {

// One step of a training, the same work every time. On a GPU it is captured as a CUDA graph after a
// few plain runs, since a step is a thousand small launches; all work must be on one stream that is
// not the default one.
class CapturedStep {
 public:
  CapturedStep(const at::Device& device, std::function<void()> body);
  ~CapturedStep();

  void Run();

 private:
  struct Graph;
  bool on_gpu_;
  std::function<void()> body_;
  [[maybe_unused]] int64_t runs_ = 0;  // without CUDA there is nothing to wait for
  std::unique_ptr<Graph> graph_;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_OPTIMISATION_CAPTURED_STEP_H_
