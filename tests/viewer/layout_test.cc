#include "viewer/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace mjp::app {
namespace {

bool Overlap(const Area& a, const Area& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

bool Within(const Area& inner, float width, float height) {
  return inner.x >= 0 && inner.y >= 0 && inner.x + inner.width <= width &&
         inner.y + inner.height <= height;
}

// Layouts of all windows that can be, in steps, by their size in screen pixels and the scale.
class LayoutTest : public testing::TestWithParam<float> {
 protected:
  template <typename Check>
  void ForEverySize(Check check) const {
    const float scale = GetParam();
    std::vector<float> widths, heights;
    for (float w = kLeastWidth; w <= 4000; w += 53) widths.push_back(std::round(w * scale));
    for (float h = kLeastHeight; h <= 2400; h += 47) heights.push_back(std::round(h * scale));
    // where the layout changes, and what people have
    for (const float w : {500, 640, 800, 961, 962, 963, 1024, 1199, 1200, 1280, 1600, 1920}) {
      widths.push_back(std::round(w * scale));
    }
    for (const float h : {480, 600, 639, 640, 768, 800, 1000, 1080})
      heights.push_back(std::round(h * scale));
    for (const float width : widths) {
      for (const float height : heights) {
        SCOPED_TRACE(std::to_string(width) + " x " + std::to_string(height));
        check(width, height, MakeLayout(width, height, scale));
        if (HasFailure()) return;  // one size is enough to read
      }
    }
  }
};

TEST_P(LayoutTest, NothingOverlapsAndNothingLeavesTheWindow) {
  ForEverySize([](float width, float height, const Layout& layout) {
    std::vector<Area> all = {layout.captions, layout.scene};
    for (const Dock& dock : layout.docks) {
      all.push_back(dock.area);
      if (dock.groups.size() > 1) all.push_back(dock.tabs);
    }
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_TRUE(Within(all[i], width, height)) << "part " << i;
      EXPECT_GT(all[i].width, 0) << "part " << i;
      EXPECT_GT(all[i].height, 0) << "part " << i;
      for (size_t j = 0; j < i; ++j) EXPECT_FALSE(Overlap(all[i], all[j])) << i << ", " << j;
    }
  });
}

TEST_P(LayoutTest, TheSceneHasAQuarterOfTheWindow) {
  const float least = 210 * GetParam();
  ForEverySize([least](float width, float height, const Layout& layout) {
    EXPECT_GE(layout.scene.width * layout.scene.height, 0.25f * width * height);
    EXPECT_GE(layout.scene.width, least);
    EXPECT_GE(layout.scene.height, least);
    EXPECT_EQ(layout.captions.width, layout.scene.width);
  });
}

TEST_P(LayoutTest, EachGroupIsInOneDockAndEachPanelReachable) {
  const float scale = GetParam(), scrollbar = 10 * scale;
  ForEverySize([=](float, float, const Layout& layout) {
    std::vector<Panel> panels;
    for (const Dock& dock : layout.docks) {
      for (const PanelGroup group : dock.groups) {
        const std::vector<PanelPlace> places = PlacePanels(dock, group, scale, scrollbar);
        float bottom = 0;
        for (const PanelPlace& place : places) {
          panels.push_back(place.panel);
          EXPECT_GE(place.area.width, 230 * scale) << "no room for what is in it";
          EXPECT_GE(place.area.height, 100 * scale);
          EXPECT_GE(place.area.x, 0);
          EXPECT_LE(place.area.x + place.area.width, dock.area.width + 0.01f);
          bottom = std::max(bottom, place.area.y + place.area.height);
        }
        // they fill the dock, or scroll; then the bar has its room
        EXPECT_GE(bottom, dock.area.height - 0.01f);
        if (bottom > dock.area.height + 0.01f) {
          EXPECT_LE(places[0].area.width, dock.area.width - scrollbar + 0.01f);
        }
        for (size_t i = 1; i < places.size(); ++i) {
          EXPECT_FALSE(Overlap(places[i].area, places[i - 1].area)) << i;
        }
      }
    }
    std::sort(panels.begin(), panels.end());
    EXPECT_EQ(panels.size(), 8u);
    EXPECT_EQ(std::unique(panels.begin(), panels.end()), panels.end()) << "one is there twice";
  });
}

INSTANTIATE_TEST_SUITE_P(Scales, LayoutTest, testing::Values(1.0f, 1.25f, 2.0f));

TEST(Layout, AWindowOfUsualSizeShowsAllPanelsAtOnce) {
  for (const auto& [width, height] : {std::pair(1280, 800), std::pair(1600, 1000)}) {
    for (const Dock& dock : MakeLayout(width, height, 1).docks) {
      EXPECT_EQ(dock.groups.size(), 1u);
      for (const PanelPlace& place : PlacePanels(dock, dock.groups[0], 1, 10)) {
        EXPECT_LE(place.area.y + place.area.height, dock.area.height) << "it scrolls";
      }
    }
  }
}

TEST(Layout, ADockWithoutTheChosenGroupShowsItsFirst) {
  Dock dock;
  dock.groups = {PanelGroup::kRun, PanelGroup::kChunk};
  EXPECT_EQ(ShownGroup(dock, PanelGroup::kChunk), PanelGroup::kChunk);
  EXPECT_EQ(ShownGroup(dock, PanelGroup::kTiming), PanelGroup::kRun);
}

TEST(Layout, AWindowBelowTheSmallestIsCutOff) {
  EXPECT_EQ(MakeLayout(10, 10, 1).scene.width,
            MakeLayout(kLeastWidth, kLeastHeight, 1).scene.width);
}

}  // namespace
}  // namespace mjp::app
