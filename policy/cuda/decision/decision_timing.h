#ifndef POLICY_CUDA_DECISION_DECISION_TIMING_H_
#define POLICY_CUDA_DECISION_DECISION_TIMING_H_

#include <cuda_runtime_api.h>

#include <array>

#include "kernels/cuda/primitives/cuda_raii.h"
#include "kernels/cuda/sampler/timestamp.cuh"
#include "policy/cuda/arena.h"
#include "policy/timing.h"

namespace mjp {

// Where one stage of a decision ends and the next begins. The first one begins with the decision.
enum class StageBorder {
  kUploaded,
  kRendered,
  kPrepared,
  kEncoded,
  kConditioned,
  kDenoised,
  kFetched,
  kCount
};

// When the stages and passes of a decision ran: events at the borders of its stages, and the
// device's own timestamps of its passes, since events may not stand inside a graph's loop.
class DecisionTiming {
 public:
  explicit DecisionTiming(TimingDetail detail) : detail_(detail) {}

  // Room for the timestamps of so many passes; in `arena` and, once it no longer measures, pinned.
  void Plan(int most_passes, DeviceArena& arena);

  // A decision's inputs came now.
  void Begin() { begin_ = Now(); }
  // Enqueues that a stage ends here. An engine without a stage never says so: its border is the one
  // before, and costs nothing.
  void RecordBorder(StageBorder border, cudaStream_t stream);
  // Enqueues that a pass ends here; or, with `first`, that the first one begins.
  void RecordPass(bool first, cudaStream_t stream) const;
  // Enqueues the timestamps' way to the host, after all passes.
  void FetchTimestamps(cudaStream_t stream) const;
  // For kernels that take the timestamps themselves; empty where passes are not timed.
  const TimestampList& timestamps() const { return timestamps_; }

  // The times of a decision that has ended just now, in `passes` passes, on the host's clock.
  StageTimes Read(int passes) const;

 private:
  static constexpr size_t kBorders = static_cast<size_t>(StageBorder::kCount);

  void ReadStages(StageTimes& times, double end) const;
  void ReadPasses(StageTimes& times) const;

  TimingDetail detail_;
  std::array<CudaEvent, kBorders> borders_;  // null: never recorded
  TimestampList timestamps_;
  PinnedArray<uint64_t> host_timestamps_;
  double begin_ = 0;
};

}  // namespace mjp

#endif  // POLICY_CUDA_DECISION_DECISION_TIMING_H_
