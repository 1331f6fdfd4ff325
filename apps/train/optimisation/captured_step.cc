#include "apps/train/optimisation/captured_step.h"

#include <utility>
#if MJPOLICY_HAVE_CUDA
#include <ATen/cuda/CUDAGraph.h>
#endif

namespace mjp::app {
namespace {

// before the capture: cuDNN chooses its algorithms meanwhile
[[maybe_unused]] constexpr int64_t kPlainRuns = 5;

}  // namespace

struct CapturedStep::Graph {
#if MJPOLICY_HAVE_CUDA
  at::cuda::CUDAGraph graph;
#endif
};

CapturedStep::CapturedStep(const at::Device& device, std::function<void()> body)
    : on_gpu_(device.is_cuda()), body_(std::move(body)) {}

CapturedStep::~CapturedStep() = default;

void CapturedStep::Run() {
#if MJPOLICY_HAVE_CUDA
  if (on_gpu_ && runs_ == kPlainRuns) {
    graph_ = std::make_unique<Graph>();
    graph_->graph.capture_begin();
    body_();
    graph_->graph.capture_end();
  }
  ++runs_;
  if (graph_) {
    graph_->graph.replay();
    return;
  }
#endif
  body_();
}

}  // namespace mjp::app
