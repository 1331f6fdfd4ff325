#ifndef APPS_TRAIN_OPTIMISATION_RANKS_H_
#define APPS_TRAIN_OPTIMISATION_RANKS_H_

#include <ATen/ATen.h>
#include <sys/types.h>

#include <atomic>
#include <thread>
#include <vector>

namespace mjp::app {

// The processes of one training, each with a GPU of this machine. Rank 0 is the program itself.
class Ranks {
 public:
  // Starts count - 1 further processes as copies of this one, so nothing may have touched CUDA yet;
  // the constructor returns in all of them. They end when rank 0 does; if one of them ends before,
  // but by EndOthers, rank 0 ends too, with a message and kRetryable.
  explicit Ranks(int count);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  // Ends the processes of the ranks above 0, without words, where all ranks agree that the training
  // is over; returns in rank 0.
  void EndOthers() const;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Joins the GPUs; every rank must call it. Nothing to do for one rank. Throws Error on the CPU.
  void Connect(const at::Device& device);

  // values (float32 or float64, on the device) = their sum over all ranks, on the current stream.
  // A CUDA graph may replay it.
  void Sum(at::Tensor& values) const;

 private:
  struct Shared;
  void Watch();

  int rank_ = 0, size_ = 1;
  Shared* shared_ = nullptr;  // memory of all ranks
  std::vector<pid_t> children_;
  std::atomic<bool> ending_ = false;
  std::thread watch_;
  [[maybe_unused]] void* communicator_ = nullptr;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_OPTIMISATION_RANKS_H_
