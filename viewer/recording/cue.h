#ifndef VIEWER_RECORDING_CUE_H_
#define VIEWER_RECORDING_CUE_H_

#include <imgui.h>

#include <string>

#include "viewer/snapshot.h"

namespace mjp::app {

// What a person who records is to know: where the episode stands, what the next key does.
struct Cue {
  std::string text;
  ImU32 colour;
};

// `snapshot` has a recording.
Cue CueOf(const SimSnapshot& snapshot);

// The control step that is a second before this one, or the start.
int SecondBefore(const SimSnapshot& snapshot);

}  // namespace mjp::app

#endif  // VIEWER_RECORDING_CUE_H_
