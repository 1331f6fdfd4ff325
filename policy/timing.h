#ifndef POLICY_TIMING_H_
#define POLICY_TIMING_H_

#include <array>
#include <cstddef>
#include <vector>

// The one list of stages, from kernel to overlay to CSV.

namespace mjp {

enum class Stage {
  kScene,    // update of the abstract scene (host)
  kRender,   // picture drawn
  kUpload,   // picture to the policy's device
  kPrepare,  // u8 -> crop -> normalise
  kEncode,   // picture encoder
  kFilm,     // conditioning products that do not depend on the denoising step
  kDenoise,  // all denoising steps, or the one pass of a network without
  kFetch,    // actions to the host
  kApply,    // actions to d->ctrl
  kPhysics,  // mj_step
  kCount,
};
inline constexpr size_t kStageCount = static_cast<size_t>(Stage::kCount);

// Lower-case name, as files and their tables have it. That of kUpload is "hand-over" there: files
// keep the names that they began with.
const char* StageName(Stage stage);

// How closely a policy times its decisions.
enum class TimingDetail {
  kNone,    // not at all
  kStages,  // every stage; costs some microseconds each on a GPU: what follows may not begin early
  kSteps,   // and every network pass within the denoising loop
};

// Begin and end of every stage of one decision, seconds on one host clock (steady_clock).
// A stage that did not run has end == begin.
struct StageTimes {
  struct Span {
    double begin = 0, end = 0;
  };
  std::array<Span, kStageCount> spans;
  // Network passes of the denoising loop; where several launches share the batch, those of each.
  int passes = 0;
  std::vector<Span> steps;  // of each pass with the denoising after it; with kSteps alone

  Span& operator[](Stage s) { return spans[static_cast<size_t>(s)]; }
  const Span& operator[](Stage s) const { return spans[static_cast<size_t>(s)]; }
};

// Seconds on the clock of StageTimes.
double Now();

}  // namespace mjp

#endif  // POLICY_TIMING_H_
