#include "viewer/draw_panels.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "viewer/drawing/empty_scene.h"
#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/recording/cue.h"
#include "viewer/theme.h"

namespace mjp::app {
namespace {

constexpr ImGuiWindowFlags kStill = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                                    ImGuiWindowFlags_NoSavedSettings |
                                    ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoNav;

struct PanelKind {
  const char* id;
  void (*draw)(const SimSnapshot&, UiState&);
};

PanelKind KindOf(Panel panel) {
  switch (panel) {
    case Panel::kControl:
      return {"control", DrawControlPanel};
    case Panel::kPictures:
      return {"pictures", DrawPicturePanel};
    case Panel::kEpisodes:
      return {"episodes", DrawEpisodePanel};
    case Panel::kTiming:
      return {"timing", DrawTimingPanel};
    case Panel::kTimeline:
      return {"timeline", DrawTimelinePanel};
    case Panel::kHistory:
      return {"history", DrawHistoryPanel};
    case Panel::kScore:
      return {"score", DrawScorePanel};
    case Panel::kDenoising:
      return {"denoising", DrawDenoisingPanel};
  }
  return {};
}

const char* GroupName(PanelGroup group) {
  switch (group) {
    case PanelGroup::kRun:
      return "Run";
    case PanelGroup::kTiming:
      return "Timing";
    case PanelGroup::kChunk:
      return "Chunk";
  }
  return "";
}

// Begins a window that fills an area, without a margin.
void BeginArea(const char* id, const Area& area, ImU32 background) {
  ImGui::SetNextWindowPos(ImVec2(area.x, area.y));
  ImGui::SetNextWindowSize(ImVec2(area.width, area.height));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
  ImGui::PushStyleColor(ImGuiCol_WindowBg, background);
  ImGui::Begin(id, nullptr, kStill);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

void DrawTabs(int index, const Dock& dock, PanelGroup shown, UiState& ui) {
  BeginArea(Format("tabs %d", index).c_str(), dock.tabs, color::kPanel);
  const float width = dock.tabs.width / static_cast<float>(dock.groups.size());
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  for (size_t i = 0; i < dock.groups.size(); ++i) {
    const PanelGroup group = dock.groups[i];
    const ImVec2 low(dock.tabs.x + width * static_cast<float>(i), dock.tabs.y);
    const ImVec2 high(low.x + width, low.y + dock.tabs.height);
    const char* name = GroupName(group);
    ImGui::SetCursorScreenPos(low);
    if (ImGui::InvisibleButton(name, ImVec2(width, dock.tabs.height))) ui.group = group;
    const ImVec2 text = ImGui::CalcTextSize(name);
    const bool here = group == shown;
    draw.AddText(ImVec2((low.x + high.x - text.x) / 2, (low.y + high.y - text.y) / 2),
                 here || ImGui::IsItemHovered() ? color::kText : color::kDim, name);
    if (here) {
      const float line = std::round(0.15f * text.y);
      draw.AddRectFilled(ImVec2(low.x, high.y - line), high, color::kAccent);
    }
  }
  ImGui::End();
}

// Its windows are called as Changes knows them.
void DrawDock(int index, const Dock& dock, const SimSnapshot& snapshot, UiState& ui, float scale) {
  const PanelGroup shown = ShownGroup(dock, ui.group);
  if (dock.tabs.height > 0) DrawTabs(index, dock, shown, ui);
  BeginArea(Format("dock %d", index).c_str(), dock.area, IM_COL32(0, 0, 0, 0));
  // scrolls, each group by itself
  ImGui::BeginChild(GroupName(shown), ImVec2(0, 0), false, ImGuiWindowFlags_NoNav);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, color::kPanel);
  const ImVec2 origin = ImGui::GetCursorPos();
  for (const auto& [panel, area] :
       PlacePanels(dock, shown, scale, ImGui::GetStyle().ScrollbarSize)) {
    const PanelKind kind = KindOf(panel);
    ImGui::SetCursorPos(ImVec2(origin.x + area.x, origin.y + area.y));
    const bool seen =
        ImGui::BeginChild(kind.id, ImVec2(area.width, area.height), false,
                          ImGuiWindowFlags_AlwaysUseWindowPadding | ImGuiWindowFlags_NoScrollbar |
                              ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoNav);
    if (seen) kind.draw(snapshot, ui);
    ImGui::EndChild();
  }
  ImGui::PopStyleColor();
  ImGui::EndChild();
  ImGui::End();
}

// In which state the simulation is, and in which colour that is said.
std::pair<std::string, ImU32> StateOf(const SimSnapshot& snapshot, const UiState& ui) {
  std::pair<std::string, ImU32> state(snapshot.playing ? "running" : "paused", color::kDim);
  if (snapshot.recording) {
    state = {Format("kept %lld", static_cast<long long>(snapshot.recording->kept)), color::kText};
  } else if (snapshot.finished) {
    state.first = snapshot.success ? Format("solved in %.1f s", snapshot.step * snapshot.period)
                                   : "not solved";
    state.second = snapshot.success ? color::kGood : color::kBad;
  } else if (ui.selected) {
    state = {Format("shown: decision %d", ui.selected->decision), color::kAccent};
  }
  if (snapshot.disturbed) state.first += ", disturbed by hand";
  if (ui.recording) state.first += ", recording";
  return state;
}

// The line above the scene: what it shows at the left, in which state it is at the right. What has
// no room is left out, from the end.
void DrawCaptions(const SimSnapshot& snapshot, const UiState& ui, const Area& bar) {
  ImDrawList& draw = *ImGui::GetBackgroundDrawList();
  const float em = ImGui::GetFontSize(), margin = 0.8f * em;
  const float left = bar.x + margin, top = bar.y + 0.5f * (bar.height - em);
  draw.AddRectFilled(ImVec2(bar.x, bar.y), ImVec2(bar.x + bar.width, bar.y + bar.height),
                     color::kPanel);
  const auto& [state, hue] = StateOf(snapshot, ui);
  const float right = bar.x + bar.width - margin - ImGui::CalcTextSize(state.c_str()).x;
  draw.AddText(ImVec2(right, top), hue, state.c_str());
  std::string text;
  for (const std::string& part : {Format("seed %u", snapshot.seed),
                                  Format("step %d", snapshot.step), Format("%.1f s", snapshot.time),
                                  ui.frames_per_second > 0 ? Format("%.0f frames/s, panels %.1f ms",
                                                                    ui.frames_per_second, ui.ui_ms)
                                                           : std::string()}) {
    const std::string longer = text + (text.empty() ? "" : "   ") + part;
    if (left + ImGui::CalcTextSize(longer.c_str()).x + margin > right) break;
    text = longer;
  }
  draw.AddText(ImVec2(left, top), color::kText, text.c_str());
}

// Text on a plate of the scene, wrapped; its top is at `share` of the room that it leaves.
void DrawPlate(const std::string& text, ImU32 hue, const Area& scene, float share) {
  if (text.empty()) return;
  ImDrawList& draw = *ImGui::GetBackgroundDrawList();
  const float em = ImGui::GetFontSize(), margin = 0.6f * em, inset = 0.4f * em;
  const float wrap = std::max(em, scene.width - 4 * margin);
  const ImVec2 size = ImGui::CalcTextSize(text.c_str(), nullptr, false, wrap);
  const float room = scene.height - size.y - 2 * (margin + inset);
  const ImVec2 low(scene.x + margin, scene.y + margin + std::max(0.0f, share * room));
  draw.PushClipRect(ImVec2(scene.x, scene.y), ImVec2(scene.x + scene.width, scene.y + scene.height),
                    true);
  draw.AddRectFilled(low, ImVec2(low.x + size.x + 2 * margin, low.y + size.y + 2 * inset),
                     IM_COL32(20, 24, 31, 235), 0.3f * em);
  draw.AddText(nullptr, 0, ImVec2(low.x + margin, low.y + inset), hue, text.c_str(), nullptr, wrap);
  draw.PopClipRect();
}

// At the foot of the scene the last error or notice, at its head why it is empty.
void DrawNotices(const SimSnapshot& snapshot, const UiState& ui, const Area& scene) {
  if (snapshot.recording) {
    const Cue cue = CueOf(snapshot);
    DrawPlate(cue.text, cue.colour, scene, 0);
  } else if (snapshot.model) {
    DrawPlate(WhyEmpty(*snapshot.model, ui.show_hidden), color::kWarn, scene, 0);
  }
  const bool error = !snapshot.message.empty();
  DrawPlate(error ? snapshot.message : ui.notice, error ? color::kBad : color::kText, scene, 1);
}

// Chooses the next of the groups that have tabs.
void TurnTabs(const Layout& layout, UiState& ui) {
  if (!ui.next_group) return;
  ui.next_group = false;
  for (const Dock& dock : layout.docks) {
    if (dock.groups.size() < 2) continue;
    const auto shown =
        std::find(dock.groups.begin(), dock.groups.end(), ShownGroup(dock, ui.group));
    ui.group = shown + 1 == dock.groups.end() ? dock.groups[0] : *(shown + 1);
  }
}

}  // namespace

Layout DrawPanels(const SimSnapshot& snapshot, UiState& ui, float scale) {
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const Layout layout = MakeLayout(window.x, window.y, scale);
  TurnTabs(layout, ui);
  for (size_t i = 0; i < layout.docks.size(); ++i) {
    DrawDock(static_cast<int>(i), layout.docks[i], snapshot, ui, scale);
  }
  DrawCaptions(snapshot, ui, layout.captions);
  DrawNotices(snapshot, ui, layout.scene);
  const Area& scene = layout.scene;
  DrawLargePicturePanel(snapshot, ui, ImVec2(scene.x, scene.y),
                        ImVec2(scene.x + scene.width, scene.y + scene.height));
  DrawHelpPanel(snapshot, ui, ImVec2(scene.x, scene.y),
                ImVec2(scene.x + scene.width, scene.y + scene.height));
  return layout;
}

}  // namespace mjp::app
