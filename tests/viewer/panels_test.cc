#include "viewer/panels/panels.h"

#include <gtest/gtest.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/viewer/panels_fixture.h"

namespace mjp::app {
namespace {

TEST_F(PanelsTest, DrawBeforeTheFirstDecision) {
  EXPECT_GT(Draw(), 100);
  EXPECT_TRUE(EveryVertexIsFinite());
  EXPECT_TRUE(ui_.commands.empty());
}

TEST_F(PanelsTest, DrawAFullLogWithinTheWindow) {
  AddDecisions(100);
  Pin(snapshot_, ui_);
  ui_.show_help = true;
  snapshot_.message = "something went wrong";
  const int few = Draw();
  EXPECT_GT(few, 1000);
  EXPECT_LT(few, 60000);
  EXPECT_TRUE(EveryVertexIsFinite());
  EXPECT_GT(layout_.scene.width, 500);
  EXPECT_GT(layout_.scene.height, 500);
}

TEST_F(PanelsTest, AClickOnCoverageGoesBackThere) {
  AddDecisions(10);
  const ImVec2 mouse(layout_.scene.x + 400, 720);
  Draw(mouse, true);
  Draw(mouse, false);
  const SeekCommand* seek = Asked<SeekCommand>();
  ASSERT_NE(seek, nullptr);
  EXPECT_GT(seek->step, 0);
  EXPECT_LE(seek->step, snapshot_.step);
}

TEST_F(PanelsTest, ThePlayButtonAsksToPlay) {
  Draw(ImVec2(40, 42), true);
  Draw(ImVec2(40, 42), false);
  const PlayCommand* play = Asked<PlayCommand>();
  ASSERT_NE(play, nullptr);
  EXPECT_TRUE(play->playing);
}

TEST_F(PanelsTest, TheWheelOverTheStripShowsFewerDecisions) {
  AddDecisions(100);
  EXPECT_EQ(VisibleRange(*snapshot_.log, ui_), std::pair(36, 100));
  Draw(ImVec2(1100, 590));
  ImGui::GetIO().MouseWheel = 3;
  Draw(ImVec2(1100, 590));
  const auto [first, last] = VisibleRange(*snapshot_.log, ui_);
  EXPECT_EQ(last, 100);
  EXPECT_LT(last - first, 64);
  ui_.first_visible = 10;
  EXPECT_EQ(VisibleRange(*snapshot_.log, ui_).first, 10);
  AddDecisions(5);
  EXPECT_EQ(VisibleRange(*snapshot_.log, ui_), std::pair(0, 5));
}

TEST_F(PanelsTest, PassesAreAsLongAsTheyWereTimed) {
  // width on screen of the second of two passes, which alone has this colour
  const ImU32 second = Darker(RowColor(static_cast<int>(mjp::Stage::kDenoise)));
  const auto width = [&](const std::vector<mjp::StageTimes::Span>& steps) {
    auto record = std::make_shared<DecisionRecord>();
    record->times[mjp::Stage::kDenoise] = {1, 1.1};
    record->times.passes = 2;
    record->times.steps = steps;
    snapshot_.log = std::make_shared<DecisionLog>(1, record);
    Draw();
    float low = 1e9, high = -1e9;
    for (int i = 0; i < ImGui::GetDrawData()->CmdListsCount; ++i) {
      for (const ImDrawVert& vertex : ImGui::GetDrawData()->CmdLists[i]->VtxBuffer) {
        if (vertex.col != second) continue;
        low = std::min(low, vertex.pos.x);
        high = std::max(high, vertex.pos.x);
      }
    }
    return high - low;
  };
  const float equal = width({});
  EXPECT_GT(equal, 100);
  EXPECT_NEAR(width({{1, 1.075}, {1.075, 1.1}}), equal / 2, 1.5);
}

TEST_F(PanelsTest, TheDevicesStagesStandBelowTheHosts) {
  using mjp::Stage;
  // what was drawn in a stage's colour on the clock, screen pixels
  const auto find = [](Stage stage) {
    Area box{1e9f, 1e9f, -1e9f, -1e9f};  // low and high corner
    for (int i = 0; i < ImGui::GetDrawData()->CmdListsCount; ++i) {
      const ImDrawList& list = *ImGui::GetDrawData()->CmdLists[i];
      if (std::string(list._OwnerName).find("/timeline_") == std::string::npos) continue;
      for (const ImDrawVert& vertex : list.VtxBuffer) {
        if (vertex.col != RowColor(static_cast<int>(stage))) continue;
        box = {std::min(box.x, vertex.pos.x), std::min(box.y, vertex.pos.y),
               std::max(box.width, vertex.pos.x), std::max(box.height, vertex.pos.y)};
      }
    }
    return box;
  };
  auto record = std::make_shared<DecisionRecord>();
  record->backend = mjp::Backend::kCuda;
  record->times[Stage::kScene] = {1, 1.001};
  record->times[Stage::kUpload] = {1.001, 1.002};
  record->times[Stage::kEncode] = {1.002, 1.006};
  record->times[Stage::kFetch] = {1.006, 1.008};
  record->times[Stage::kPhysics] = {1.008, 1.013};
  snapshot_.log = std::make_shared<DecisionLog>(1, record);
  Draw();
  const Area scene = find(Stage::kScene), encode = find(Stage::kEncode),
             fetch = find(Stage::kFetch), physics = find(Stage::kPhysics);
  EXPECT_GT(encode.y, scene.height) << "the GPU has a lane of its own";
  EXPECT_NEAR(fetch.y, encode.y, 0.1);
  EXPECT_NEAR(physics.y, scene.y, 0.1);
  EXPECT_NEAR(find(Stage::kUpload).y, scene.y, 0.1);
  // one axis: lengths and places are those of the stamps on either lane
  const float millisecond = (physics.x - scene.x) / 8;
  EXPECT_NEAR(encode.x - scene.x, 2 * millisecond, 1.5);
  EXPECT_NEAR(encode.width - encode.x, 4 * millisecond, 1.5);
  EXPECT_NEAR(fetch.width - scene.x, 8 * millisecond, 1.5);
  EXPECT_NEAR(physics.width - physics.x, 2 * millisecond, 1.5);  // of 5, a quarter of the decision
  auto host = std::make_shared<DecisionRecord>(*record);
  host->backend = mjp::Backend::kCpu;
  snapshot_.log = std::make_shared<DecisionLog>(1, host);
  Draw();
  EXPECT_NEAR(find(Stage::kEncode).y, find(Stage::kScene).y, 0.1);
}

TEST_F(PanelsTest, DrawAnyModelsActions) {
  AddDecisions(3);
  auto policy = std::make_shared<PolicyInfo>(*snapshot_.policy);
  policy->on_table = false;
  snapshot_.policy = policy;
  snapshot_.coverage = std::make_shared<std::vector<float>>();  // no score
  EXPECT_GT(Draw(), 500);
  EXPECT_TRUE(EveryVertexIsFinite());
  snapshot_.policy = std::make_shared<PolicyInfo>();  // no policy at all
  snapshot_.log = std::make_shared<DecisionLog>();
  EXPECT_GT(Draw(), 100);
  EXPECT_TRUE(EveryVertexIsFinite());
}

TEST_F(PanelsTest, AChosenDecisionStaysShownWhileNewOnesCome) {
  AddDecisions(5);
  ui_.selected = (*snapshot_.log)[2];
  AddDecisions(9);
  EXPECT_EQ(ShownDecision(snapshot_, ui_)->decision, 2);
  ui_.selected = nullptr;
  EXPECT_EQ(ShownDecision(snapshot_, ui_)->decision, 8);
}

TEST_F(PanelsTest, DrawWithinTheirDocksAtEverySize) {
  AddDecisions(20);
  snapshot_.message = std::string(600, 'x') + " is not a folder";
  for (const auto& [width, height] :
       {std::pair(480, 300), std::pair(640, 480), std::pair(800, 600), std::pair(1000, 800),
        std::pair(1280, 800), std::pair(1600, 300), std::pair(500, 1000)}) {
    ImGui::GetIO().DisplaySize = ImVec2(static_cast<float>(width), static_cast<float>(height));
    for (const PanelGroup group : {PanelGroup::kRun, PanelGroup::kTiming, PanelGroup::kChunk}) {
      ui_.group = group;
      Draw();
      EXPECT_TRUE(EveryVertexIsFinite());
      ExpectDocksHoldTheirLists();
    }
  }
}

TEST_F(PanelsTest, TabsChooseWhatASmallWindowShows) {
  ImGui::GetIO().DisplaySize = ImVec2(640, 480);
  AddDecisions(3);
  Draw();
  ASSERT_EQ(layout_.docks.size(), 1u);
  const Area tabs = layout_.docks[0].tabs;
  const ImVec2 run(tabs.x + tabs.width / 2, tabs.y + tabs.height / 2);
  Draw(run, true);
  Draw(run, false);
  EXPECT_EQ(ui_.group, PanelGroup::kRun);
  for (const PanelGroup next : {PanelGroup::kChunk, PanelGroup::kTiming, PanelGroup::kRun}) {
    ui_.next_group = true;
    Draw();
    EXPECT_EQ(ui_.group, next);
  }
}

TEST_F(PanelsTest, AColumnThatIsTooShortScrolls) {
  ImGui::GetIO().DisplaySize = ImVec2(640, 480);
  ui_.group = PanelGroup::kRun;
  const auto play = [this] {
    ui_.commands.clear();
    const Area& dock = layout_.docks[0].area;
    const ImVec2 button(dock.x + 30, dock.y + 42);
    Draw(button, true);
    Draw(button, false);
    return Asked<PlayCommand>() != nullptr;
  };
  Draw();
  EXPECT_TRUE(play());
  const Area dock = layout_.docks[0].area;
  const ImVec2 middle(dock.x + dock.width / 2, dock.y + dock.height - 40);
  Draw(middle);
  ImGui::GetIO().MouseWheel = -2;
  Draw(middle);
  EXPECT_FALSE(play()) << "the button is still there";
}

// A second frame of what is on the screen, and which of its parts look other than before.
class ChangesTest : public PanelsTest {
 protected:
  std::vector<bool> Find(uint64_t scene, ImVec2 mouse = ImVec2(-1, -1)) {
    Draw(mouse);
    return changes_.Find(*ImGui::GetDrawData(), layout_.docks.size(), scene);
  }
  // Where a panel's dock is among the parts.
  int PartWith(PanelGroup group) const {
    for (size_t i = 0; i < layout_.docks.size(); ++i) {
      if (layout_.docks[i].groups[0] == group) return static_cast<int>(i) + 1;
    }
    return -1;
  }
  Changes changes_;
};

TEST_F(ChangesTest, OnlyWhatLooksOtherIsDrawnAgain) {
  AddDecisions(5);
  const std::vector<bool> all(4, true), none(4, false);
  EXPECT_EQ(Find(1), all);
  EXPECT_EQ(Find(1), none);
  std::vector<bool> scene = none;
  scene[0] = true;
  EXPECT_EQ(Find(2), scene);
  ++snapshot_.step;  // in the captions
  EXPECT_EQ(Find(2), scene);
  ui_.histogram_row = 0;
  const std::vector<bool> timing = Find(2);
  EXPECT_TRUE(timing[PartWith(PanelGroup::kTiming)]);
  EXPECT_FALSE(timing[0] || timing[PartWith(PanelGroup::kRun)]);
  changes_.Forget();
  EXPECT_EQ(Find(2), all);
}

TEST_F(ChangesTest, WhatCoversSeveralPartsLeavesNothingBehind) {
  const std::vector<bool> all(4, true), none(4, false);
  Find(1);
  ui_.show_help = true;
  EXPECT_EQ(Find(1), all);
  ui_.show_help = false;
  EXPECT_EQ(Find(1), all) << "where it was is drawn again";
  EXPECT_EQ(Find(1), none);
}

}  // namespace
}  // namespace mjp::app
