#ifndef VIEWER_PANELS_ATTENTION_MAP_H_
#define VIEWER_PANELS_ATTENTION_MAP_H_

#include <imgui.h>

#include <vector>

#include "viewer/snapshot.h"

namespace mjp::app {

// The attention that is shown over pictures: of one action of a chunk, or the mean of all.
struct AttentionView {
  std::vector<float> weights;  // (tokens); empty: there is none to show
  float low = 0, high = 0;     // the least and the most of a picture's token
  float pictures = 0;          // of all attention, what pictures have; the rest has no place
};

// That of `action`, -1: of all. Empty for what is not of this policy.
AttentionView ViewOf(const Attention& attention, const PolicyInfo& policy, int action);

// Draws it over the picture of `camera` that fills `size` screen pixels from `corner` on: from dark
// for the least to light for the most. A token stands where the middle of what it sees is, and
// between tokens the light goes over evenly.
void DrawAttention(const AttentionView& view, const PolicyInfo& policy, int camera, ImVec2 corner,
                   ImVec2 size);

}  // namespace mjp::app

#endif  // VIEWER_PANELS_ATTENTION_MAP_H_
