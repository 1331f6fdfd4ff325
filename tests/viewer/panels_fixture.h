#ifndef TESTS_VIEWER_PANELS_FIXTURE_H_
#define TESTS_VIEWER_PANELS_FIXTURE_H_

#include <gtest/gtest.h>
#include <imgui.h>

#include <cmath>
#include <memory>
#include <variant>

#include "viewer/draw_panels.h"
#include "viewer/drawing/changes.h"
#include "viewer/panels/panels.h"
#include "viewer/theme.h"

namespace mjp::app {
// ImGui without a window or a renderer: frames are laid out and thrown away.
class PanelsTest : public testing::Test {
 protected:
  PanelsTest() {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DeltaTime = 1.0f / 60;
    io.DisplaySize = ImVec2(1280, 800);
    io.MousePos = ImVec2(-1, -1);
    ApplyTheme(1);
    unsigned char* pixels = nullptr;
    int width = 0, height = 0;
    io.Fonts->GetTexDataAsRGBA32(&pixels, &width, &height);
    snapshot_.coverage = std::make_shared<std::vector<float>>(1, 0.0f);
    snapshot_.log = std::make_shared<DecisionLog>();
    auto policy = std::make_shared<PolicyInfo>();
    policy->horizon = 16;
    policy->action_dim = 2;
    policy->on_table = true;
    policy->options.sampler.steps = 100;
    snapshot_.policy = policy;
  }
  ~PanelsTest() override { ImGui::DestroyContext(); }

  void AddDecisions(int count) {
    auto log = std::make_shared<DecisionLog>();
    for (int i = 0; i < count; ++i) {
      auto record = std::make_shared<DecisionRecord>();
      record->decision = i;
      record->times[mjp::Stage::kEncode] = {1.0 * i, i + 0.01};
      record->times[mjp::Stage::kDenoise] = {i + 0.01, i + 0.05 + 0.001 * i};
      record->actions.assign(32, 200.0f + i);
      record->denoising.assign(10 * 32, 100.0f);
      record->samples.assign(2 * 32, 300.0f);
      log->push_back(record);
    }
    snapshot_.log = log;
    snapshot_.coverage = std::make_shared<std::vector<float>>(8 * count + 1, 0.5f);
    snapshot_.step = 8 * count;
  }

  // Two frames, because windows settle in the second. Returns the number of vertices.
  int Draw(ImVec2 mouse = ImVec2(-1, -1), bool down = false) {
    for (int i = 0; i < 2; ++i) {
      ImGui::GetIO().MousePos = mouse;
      ImGui::GetIO().MouseDown[0] = down && i == 1;
      ImGui::NewFrame();
      layout_ = DrawPanels(snapshot_, ui_, 1);
      ImGui::Render();
    }
    return ImGui::GetDrawData()->TotalVtxCount;
  }

  bool EveryVertexIsFinite() const {
    const ImDrawData& data = *ImGui::GetDrawData();
    for (int i = 0; i < data.CmdListsCount; ++i) {
      for (const ImDrawVert& vertex : data.CmdLists[i]->VtxBuffer) {
        if (!std::isfinite(vertex.pos.x) || !std::isfinite(vertex.pos.y)) return false;
      }
    }
    return true;
  }

  // What of a dock's lists is not clipped away lies within the dock.
  void ExpectDocksHoldTheirLists() const {
    const ImDrawData& data = *ImGui::GetDrawData();
    for (int i = 0; i < data.CmdListsCount; ++i) {
      const ImDrawList& list = *data.CmdLists[i];
      const int part = Changes::PartOf(list);
      if (part <= 0) continue;
      const Dock& dock = layout_.docks[part - 1];
      const Area& a = dock.area;
      const float top = dock.groups.size() > 1 ? dock.tabs.y : a.y;
      for (const ImDrawCmd& command : list.CmdBuffer) {
        const ImVec4& clip = command.ClipRect;
        for (unsigned k = 0; k < command.ElemCount; ++k) {
          const ImVec2 p = list.VtxBuffer[list.IdxBuffer[command.IdxOffset + k]].pos;
          if (p.x < clip.x || p.x > clip.z || p.y < clip.y || p.y > clip.w) continue;
          ASSERT_TRUE(p.x >= a.x && p.x <= a.x + a.width && p.y >= top && p.y <= a.y + a.height)
              << list._OwnerName << " at " << p.x << ", " << p.y;
        }
      }
    }
  }

  template <typename T>
  const T* Asked() const {
    for (const Command& command : ui_.commands) {
      if (const T* found = std::get_if<T>(&command)) return found;
    }
    return nullptr;
  }

  SimSnapshot snapshot_;
  UiState ui_;
  Layout layout_;
};

}  // namespace mjp::app

#endif  // TESTS_VIEWER_PANELS_FIXTURE_H_
