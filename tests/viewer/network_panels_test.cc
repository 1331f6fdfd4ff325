// What panels show of one kind of network alone: windows of steps, attention, averaged chunks.

#include <string>

#include "tests/viewer/panels_fixture.h"

namespace mjp::app {
namespace {

using NetworkPanelsTest = PanelsTest;

TEST_F(NetworkPanelsTest, WindowsShowWhichStepsBecameFinal) {
  AddDecisions(1);
  auto record = std::make_shared<DecisionRecord>(*snapshot_.log->back());
  // three passes over the ten steps: two final and one near, then all but one, then the last
  record->residuals = {0,  0.5f, 3,  0.2f,  -1, -1, -1,    -1,   -1, -1,     //
                       -1, -1,   0,  0.01f, 1,  1,  0.25f, 0.5f, 1,  1.01f,  //
                       -1, -1,   -1, -1,    -1, -1, -1,    -1,   -1, 0};
  snapshot_.log = std::make_shared<DecisionLog>(1, record);
  const auto cells = [](ImU32 color) {
    int vertices = 0;
    for (int i = 0; i < ImGui::GetDrawData()->CmdListsCount; ++i) {
      const ImDrawList& list = *ImGui::GetDrawData()->CmdLists[i];
      if (std::string(list._OwnerName).find("/denoising_") == std::string::npos) continue;
      for (const ImDrawVert& vertex : list.VtxBuffer) vertices += vertex.col == color;
    }
    return vertices / 4;
  };
  Draw();
  const int before = cells(color::kGood);  // the ring around the agent
  ui_.show_windows = true;
  Draw();
  EXPECT_TRUE(EveryVertexIsFinite());
  EXPECT_EQ(cells(color::kGood), 2 + 7 + 1 + 1) << "with one in the legend";
  EXPECT_NE(before, cells(color::kGood));
  ExpectDocksHoldTheirLists();
}

TEST_F(NetworkPanelsTest, AChunkOfOnePassHasNoChain) {
  AddDecisions(2);
  auto policy = std::make_shared<PolicyInfo>(*snapshot_.policy);
  policy->attended = {{1, 3, 3}};
  policy->cameras = {"observation.image"};
  policy->picture_width = policy->picture_height = 96;
  snapshot_.policy = policy;
  auto record = std::make_shared<DecisionRecord>(*snapshot_.log->back());
  record->denoising.clear();
  record->shares = {0.5f, 0.3f, 0.2f};
  snapshot_.log = std::make_shared<DecisionLog>(1, record);
  auto attention = std::make_shared<Attention>();
  attention->decision = record;
  attention->weights.assign(16 * 10, 0.1f);
  ui_.found_attention = attention;
  ui_.attention = ui_.large_pictures = true;
  ui_.pictures = {ImTextureID{}};
  for (const int action : {-1, 0, 15, 99}) {
    ui_.attention_action = action;
    EXPECT_GT(Draw(), 500);
    EXPECT_TRUE(EveryVertexIsFinite());
  }
  attention->weights.clear();
  attention->error = "no memory";
  Draw();
  EXPECT_TRUE(EveryVertexIsFinite());
}

}  // namespace
}  // namespace mjp::app
