#include "viewer/panels/attention_map.h"

#include <algorithm>

namespace mjp::app {
namespace {

constexpr int kStride = 32;  // pixels from token to token; token i sees the most around pixel 32 i

// Dark blue, violet, orange, yellow; the picture shines through.
ImU32 Heat(float share) {
  struct Stop {
    float at;
    float color[4];
  };
  constexpr Stop kStops[] = {{0.0f, {8, 10, 34, 150}},
                             {0.35f, {104, 30, 128, 130}},
                             {0.7f, {232, 96, 64, 135}},
                             {1.0f, {255, 226, 110, 175}}};
  int i = 0;
  while (i < 2 && share > kStops[i + 1].at) ++i;
  const Stop &a = kStops[i], &b = kStops[i + 1];
  const float t = std::clamp((share - a.at) / (b.at - a.at), 0.0f, 1.0f);
  const auto mix = [&](int c) {
    return static_cast<int>(a.color[c] + t * (b.color[c] - a.color[c]) + 0.5f);
  };
  return IM_COL32(mix(0), mix(1), mix(2), mix(3));
}

// Where tokens stand along one side of a picture, as shares of it, with both its ends.
std::vector<float> Places(int tokens, int pixels) {
  std::vector<float> places = {0};
  for (int i = 0; i < tokens; ++i) {
    const float middle = static_cast<float>(kStride * i) + 0.5f;
    places.push_back(std::min(1.0f, middle / static_cast<float>(pixels)));
  }
  places.push_back(1);
  return places;
}

}  // namespace

AttentionView ViewOf(const Attention& attention, const PolicyInfo& policy, int action) {
  AttentionView view;
  if (policy.attended.empty()) return view;
  const mjp::PictureTokens& last = policy.attended.back();
  const size_t tokens = last.first + size_t{1} * last.height * last.width;
  if (attention.weights.size() != tokens * policy.horizon) return view;
  const int first = action < 0 ? 0 : std::min(action, policy.horizon - 1);
  const int end = action < 0 ? policy.horizon : first + 1;
  view.weights.assign(tokens, 0.0f);
  for (int k = first; k < end; ++k) {
    for (size_t i = 0; i < tokens; ++i) {
      view.weights[i] += attention.weights[k * tokens + i] / static_cast<float>(end - first);
    }
  }
  const auto begin = view.weights.begin() + policy.attended.front().first;
  const auto [low, high] = std::minmax_element(begin, view.weights.end());
  view.low = *low;
  view.high = *high;
  for (auto weight = begin; weight != view.weights.end(); ++weight) view.pictures += *weight;
  return view;
}

void DrawAttention(const AttentionView& view, const PolicyInfo& policy, int camera, ImVec2 corner,
                   ImVec2 size) {
  const mjp::PictureTokens& tokens = policy.attended[camera];
  const float range = std::max(view.high - view.low, 1e-12f);
  const auto color = [&](size_t row, size_t column) {
    const int y = std::clamp(static_cast<int>(row) - 1, 0, tokens.height - 1);
    const int x = std::clamp(static_cast<int>(column) - 1, 0, tokens.width - 1);
    return Heat((view.weights[tokens.first + y * tokens.width + x] - view.low) / range);
  };
  const std::vector<float> down = Places(tokens.height, policy.picture_height);
  const std::vector<float> right = Places(tokens.width, policy.picture_width);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  for (size_t y = 0; y + 1 < down.size(); ++y) {
    for (size_t x = 0; x + 1 < right.size(); ++x) {
      const ImVec2 low(corner.x + right[x] * size.x, corner.y + down[y] * size.y);
      const ImVec2 high(corner.x + right[x + 1] * size.x, corner.y + down[y + 1] * size.y);
      draw.AddRectFilledMultiColor(low, high, color(y, x), color(y, x + 1), color(y + 1, x + 1),
                                   color(y + 1, x));
    }
  }
}

}  // namespace mjp::app
