#ifndef VIEWER_THEME_H_
#define VIEWER_THEME_H_

#include <imgui.h>

namespace mjp::app {

// The viewer's colours. One hue, one meaning, in every panel.
namespace color {
inline constexpr ImU32 kAccent = IM_COL32(94, 176, 255, 255);  // what is selected or shown now
inline constexpr ImU32 kGood = IM_COL32(92, 201, 134, 255);    // success, within the budget
inline constexpr ImU32 kBad = IM_COL32(255, 107, 107, 255);    // misses, errors
inline constexpr ImU32 kWarn = IM_COL32(255, 190, 92, 255);    // the budget, cautions
inline constexpr ImU32 kText = IM_COL32(226, 230, 236, 255);
inline constexpr ImU32 kDim = IM_COL32(140, 149, 163, 255);  // units, axes, captions
inline constexpr ImU32 kGrid = IM_COL32(255, 255, 255, 22);
inline constexpr ImU32 kPlot = IM_COL32(16, 19, 25, 255);  // background of plots
inline constexpr ImU32 kPanel = IM_COL32(27, 31, 39, 255);
}  // namespace color

// The colour of a row of the timing table (viewer/stage_summary.h).
ImU32 RowColor(int row);
// The same hue, darker: every other one of many bars of one row.
ImU32 Darker(ImU32 color);

// Loads fonts for `scale` screen pixels per layout pixel and sets the style. Call before the
// first frame of the current ImGui context.
void ApplyTheme(float scale);

// The larger font for figures that are read from afar.
ImFont* FigureFont();

}  // namespace mjp::app

#endif  // VIEWER_THEME_H_
