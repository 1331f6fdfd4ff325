#include "apps/train/optimisation/ranks.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <new>
#include <optional>

#include "base/error.h"
#if MJPOLICY_HAVE_CUDA
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/cuda/nccl.h>
#endif

namespace mjp::app {

struct Ranks::Shared {
#if MJPOLICY_HAVE_CUDA
  torch::cuda::nccl::ncclUniqueId id;
#endif
  std::atomic<bool> ready = false;
};

Ranks::Ranks(int count) : size_(count) {
  if (size_ == 1) return;
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw mjp::EnvironmentError("no memory to share between the ranks");
  shared_ = new (memory) Shared;
  for (int rank = 1; rank < size_; ++rank) {
    const pid_t child = ::fork();
    if (child < 0) throw mjp::EnvironmentError("cannot start another process: a limit is reached");
    if (child == 0) {
      rank_ = rank;
      children_.clear();
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      // rank 0 decides when all stop
      for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_IGN);
      return;
    }
    children_.push_back(child);
  }
  watch_ = std::thread([this] { Watch(); });
}

Ranks::~Ranks() {
  ending_ = true;
  for (const pid_t child : children_) ::kill(child, SIGKILL);  // they hold nothing of their own
  if (watch_.joinable()) watch_.join();
}

void Ranks::EndOthers() const {
  if (rank_ > 0) ::_exit(0);
}

void Ranks::Watch() {
  size_t alive = children_.size();
  while (alive > 0) {
    int status = 0;
    if (::waitpid(-1, &status, WNOHANG) <= 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    --alive;
    if (!ending_ && status != 0) {
      std::fprintf(stderr, "mjpolicy-train: error: a rank ended; start the same command again\n");
      ::_exit(static_cast<int>(mjp::ExitCode::kRetryable));
    }
  }
}

void Ranks::Connect(const at::Device& device) {
  if (size_ == 1) return;
  if (!device.is_cuda()) {
    throw mjp::Error(mjp::ExitCode::kUsage, "--gpus: several ranks need a GPU each, not the CPU");
  }
#if MJPOLICY_HAVE_CUDA
  if (rank_ == 0) {
    torch::cuda::nccl::get_unique_id(shared_->id);
    shared_->ready = true;
  }
  while (!shared_->ready) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  communicator_ = torch::cuda::nccl::comm_init_rank(size_, shared_->id, rank_);
#endif
}

void Ranks::Sum([[maybe_unused]] at::Tensor& values) const {
  if (size_ == 1) return;
#if MJPOLICY_HAVE_CUDA
  std::vector<at::Tensor> outputs = {values};
  torch::cuda::nccl::all_reduce({values}, outputs,
                                static_cast<int>(torch::cuda::nccl::ncclRedOp::Sum),
                                {c10::cuda::getCurrentCUDAStream()}, {communicator_});
#endif
}

}  // namespace mjp::app
