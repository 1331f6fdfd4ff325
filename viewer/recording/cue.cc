#include "viewer/recording/cue.h"

#include <algorithm>
#include <cmath>

#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace mjp::app {
namespace {

std::string Driven(const RecordingState& state) {
  std::string text = state.hand ? "arrows move the hand" : "arrows drive";
  if (state.hand && !state.mocap) text = "arrows and Ctrl-drag move " + state.dragged;
  if (state.mocap) text += ", Ctrl-drag and Ctrl-wheel " + state.dragged;
  if (state.targets > 1) text += " (M: another)";
  return text + (!state.hand || state.gripper < 0 ? "" : ", J and K grip");
}

}  // namespace

Cue CueOf(const SimSnapshot& snapshot) {
  const RecordingState& state = *snapshot.recording;
  const std::string kept = Format("kept %lld%s", static_cast<long long>(state.kept),
                                  state.saving ? ", saving one more" : "");
  switch (state.phase) {
    case RecordingState::Phase::kReady:
      return {Format("READY, start %u. Enter starts, N takes another start. %s", snapshot.seed,
                     kept.c_str()),
              color::kAccent};
    case RecordingState::Phase::kShowing:
      return {
          Format("%s %.1f of %.0f s%s. Enter keeps, Backspace discards, R goes back 1 s; %s. %s",
                 snapshot.playing ? "RECORDING" : "PAUSED (Space goes on),",
                 snapshot.step * snapshot.period, state.steps * snapshot.period,
                 state.success ? ", solved" : "", Driven(state).c_str(), kept.c_str()),
          snapshot.playing ? color::kBad : color::kWarn};
    case RecordingState::Phase::kOver:
      break;
  }
  return {Format("OVER, %s. Enter keeps, Backspace discards, R goes back 1 s. %s",
                 state.success ? "solved" : "not solved", kept.c_str()),
          state.success ? color::kGood : color::kWarn};
}

int SecondBefore(const SimSnapshot& snapshot) {
  const int steps = std::max(1, static_cast<int>(std::lround(1 / snapshot.period)));
  return std::max(0, snapshot.step - steps);
}

}  // namespace mjp::app
