#include "viewer/theme.h"

#include <filesystem>

#include "viewer/stage_summary.h"

namespace mjp::app {
namespace {

constexpr float kTextSize = 14, kFigureSize = 25;  // layout pixels

ImFont* LoadFont(float pixels) {
  // where distributions keep a legible sans serif; the built-in bitmap font stands in
  constexpr const char* kPlaces[] = {
      "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
      "/usr/share/fonts/noto/NotoSans-Regular.ttf",
      "/usr/share/fonts/truetype/roboto/unhinted/RobotoTTF/Roboto-Regular.ttf",
      "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
      "/usr/share/fonts/TTF/DejaVuSans.ttf",
      "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf",
  };
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  for (const char* file : kPlaces) {
    std::error_code error;
    if (std::filesystem::exists(file, error)) return atlas.AddFontFromFileTTF(file, pixels);
  }
  ImFontConfig config;
  config.SizePixels = pixels;
  return atlas.AddFontDefault(&config);
}

void SetColor(ImGuiCol index, ImU32 color) {
  ImGui::GetStyle().Colors[index] = ImGui::ColorConvertU32ToFloat4(color);
}

}  // namespace

ImU32 RowColor(int row) {
  // as far apart as ten colours on this ground can be, to people without red, green or blue cones
  // too: found by a search, held by tests/viewer/theme_test.cc
  constexpr ImU32 kColors[kRowCount] = {
      IM_COL32(189, 100, 125, 255),  // scene
      IM_COL32(45, 207, 251, 255),   // render
      IM_COL32(196, 205, 156, 255),  // upload
      IM_COL32(16, 178, 90, 255),    // prepare
      IM_COL32(235, 106, 182, 255),  // encode
      IM_COL32(154, 103, 235, 255),  // film
      IM_COL32(237, 213, 48, 255),   // denoise
      IM_COL32(238, 148, 172, 255),  // fetch
      IM_COL32(255, 98, 0, 255),     // apply
      IM_COL32(142, 255, 150, 255),  // physics
      IM_COL32(235, 238, 244, 255),  // decision
  };
  return kColors[row];
}

ImU32 Darker(ImU32 color) {
  const ImVec4 c = ImGui::ColorConvertU32ToFloat4(color);
  constexpr float kShare = 0.68f;
  return ImGui::ColorConvertFloat4ToU32(ImVec4(kShare * c.x, kShare * c.y, kShare * c.z, c.w));
}

ImFont* FigureFont() { return ImGui::GetIO().Fonts->Fonts.back(); }

void ApplyTheme(float scale) {
  LoadFont(kTextSize * scale);
  LoadFont(kFigureSize * scale);
  ImGui::StyleColorsDark();
  ImGuiStyle& style = ImGui::GetStyle();
  style = ImGuiStyle();
  style.WindowRounding = style.ChildRounding = 0;
  style.FrameRounding = style.GrabRounding = style.PopupRounding = 4;
  style.WindowBorderSize = 0;
  style.FrameBorderSize = 0;
  style.WindowPadding = ImVec2(12, 10);
  style.FramePadding = ImVec2(8, 4);
  style.ItemSpacing = ImVec2(8, 6);
  style.CellPadding = ImVec2(4, 2);
  style.ScrollbarSize = 10;
  style.ScaleAllSizes(scale);
  SetColor(ImGuiCol_Text, color::kText);
  SetColor(ImGuiCol_TextDisabled, color::kDim);
  SetColor(ImGuiCol_WindowBg, color::kPanel);
  SetColor(ImGuiCol_PopupBg, IM_COL32(33, 38, 48, 252));
  SetColor(ImGuiCol_FrameBg, IM_COL32(43, 49, 61, 255));
  SetColor(ImGuiCol_FrameBgHovered, IM_COL32(54, 62, 77, 255));
  SetColor(ImGuiCol_FrameBgActive, IM_COL32(62, 72, 90, 255));
  SetColor(ImGuiCol_Button, IM_COL32(50, 57, 71, 255));
  SetColor(ImGuiCol_ButtonHovered, IM_COL32(64, 74, 92, 255));
  SetColor(ImGuiCol_ButtonActive, IM_COL32(72, 105, 148, 255));
  SetColor(ImGuiCol_Header, IM_COL32(56, 84, 120, 255));
  SetColor(ImGuiCol_HeaderHovered, IM_COL32(60, 70, 88, 255));
  SetColor(ImGuiCol_HeaderActive, IM_COL32(72, 105, 148, 255));
  SetColor(ImGuiCol_CheckMark, color::kAccent);
  SetColor(ImGuiCol_SliderGrab, IM_COL32(52, 104, 160, 255));  // text stands on it
  SetColor(ImGuiCol_SliderGrabActive, IM_COL32(64, 126, 190, 255));
  SetColor(ImGuiCol_ScrollbarBg, IM_COL32(0, 0, 0, 0));
  SetColor(ImGuiCol_Separator, IM_COL32(255, 255, 255, 18));
  SetColor(ImGuiCol_TableHeaderBg, IM_COL32(0, 0, 0, 0));
  SetColor(ImGuiCol_TableRowBgAlt, IM_COL32(255, 255, 255, 6));
}

}  // namespace mjp::app
