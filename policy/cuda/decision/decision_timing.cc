#include "policy/cuda/decision/decision_timing.h"

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/graph_capture.h"

namespace mjp {

void DecisionTiming::Plan(int most_passes, DeviceArena& arena) {
  if (detail_ != TimingDetail::kSteps) return;
  timestamps_.capacity = most_passes + 1;
  timestamps_.times = arena.Take<uint64_t>(timestamps_.capacity);
  timestamps_.count = arena.Take<int>(1);
  if (!arena.measuring()) host_timestamps_ = PinnedArray<uint64_t>(timestamps_.capacity);
}

void DecisionTiming::RecordBorder(StageBorder border, cudaStream_t stream) {
  if (detail_ == TimingDetail::kNone) return;
  CudaEvent& event = borders_[static_cast<size_t>(border)];
  if (!event) event = MakeCudaEvent();
  const unsigned flags = IsCapturing(stream) ? cudaEventRecordExternal : cudaEventRecordDefault;
  CheckCuda(cudaEventRecordWithFlags(event.get(), stream, flags), "stage border");
}

void DecisionTiming::RecordPass(bool first, cudaStream_t stream) const {
  if (timestamps_.capacity > 0) LaunchTimestamp(timestamps_, first, stream);
}

void DecisionTiming::FetchTimestamps(cudaStream_t stream) const {
  if (timestamps_.capacity == 0) return;
  CheckCuda(cudaMemcpyAsync(host_timestamps_.data(), timestamps_.times, host_timestamps_.bytes(),
                            cudaMemcpyDeviceToHost, stream),
            "copy of the timestamps");
}

StageTimes DecisionTiming::Read(int passes) const {
  StageTimes times;
  times.passes = passes;
  if (detail_ != TimingDetail::kNone) ReadStages(times, Now());
  if (timestamps_.capacity > 0) ReadPasses(times);
  return times;
}

// Puts the borders on the host's clock, which showed `end` at the last one.
void DecisionTiming::ReadStages(StageTimes& times, double end) const {
  // that end at each border
  constexpr std::array<Stage, kBorders> kStages = {Stage::kUpload, Stage::kRender, Stage::kPrepare,
                                                   Stage::kEncode, Stage::kFilm,   Stage::kDenoise,
                                                   Stage::kFetch};
  double at = begin_;
  for (size_t i = 0; i < kBorders; ++i) {
    const double before = at;
    float ms = 0;
    if (borders_[i]) {
      CheckCuda(cudaEventElapsedTime(&ms, borders_[i].get(), borders_.back().get()), "stage time");
      at = end - 1e-3 * ms;
    }
    times[kStages[i]] = {before, at};
  }
}

// Puts the timestamps on the host's clock: the first one is the beginning of the denoising.
void DecisionTiming::ReadPasses(StageTimes& times) const {
  const auto at = [&](int i) {
    return times[Stage::kDenoise].begin +
           1e-9 * static_cast<double>(host_timestamps_[i] - host_timestamps_[0]);
  };
  for (int pass = 0; pass < times.passes; ++pass) times.steps.push_back({at(pass), at(pass + 1)});
}

}  // namespace mjp
