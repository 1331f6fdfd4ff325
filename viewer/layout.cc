#include "viewer/layout.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mjp::app {
namespace {

// layout pixels
constexpr float kLeft = 264, kRight = 400;         // columns of the widest layout
constexpr float kThreeColumns = 1200;              // a window of this width has all three
constexpr float kStrip = 204, kStripWindow = 640;  // the strip below the scene; window's height
constexpr float kChunkColumn = 300, kFlat = 700;   // a fourth column; width left for it and scene
constexpr float kStripWidth = 560;                 // that holds what stands side by side in it
constexpr float kTall = 1.3f;                      // height of a window over its width
constexpr float kTallShare = 0.3f;                 // of the height, for the scene above the panels
constexpr float kSideShare = 0.46f;                // of the width, for a column beside the scene
constexpr float kDenoising = 296;                  // width of that panel in a strip
constexpr float kBar = 30, kTabs = 30, kGap = 2;

struct Member {
  Panel panel;
  float height;  // at least, layout pixels
};

std::vector<Member> MembersOf(PanelGroup group) {
  switch (group) {
    case PanelGroup::kRun:
      return {{Panel::kControl, 362}, {Panel::kPictures, 172}, {Panel::kEpisodes, 120}};
    case PanelGroup::kTiming:
      return {{Panel::kTiming, 366}, {Panel::kTimeline, 158}, {Panel::kHistory, 190}};
    case PanelGroup::kChunk:
      return {{Panel::kDenoising, kStrip}, {Panel::kScore, 150}};
  }
  return {};
}

// A dock of `area`, the top of which is taken by tabs where it has several groups.
Dock MakeDock(const Area& area, std::vector<PanelGroup> groups) {
  Dock dock{area, std::move(groups), {}, false};
  if (dock.groups.size() < 2) return dock;
  dock.tabs = {area.x, area.y, area.width, kTabs};
  dock.area.y += kTabs + kGap;
  dock.area.height -= kTabs + kGap;
  return dock;
}

// The scene fills `area`, below its captions.
void PlaceScene(const Area& area, Layout& layout) {
  layout.captions = {area.x, area.y, area.width, kBar};
  layout.scene = {area.x, area.y + kBar + kGap, area.width, area.height - kBar - kGap};
}

// The chunk's panels side by side below what is left of `area`.
Area TakeStrip(Area area, Layout& layout) {
  const float y = area.y + area.height - kStrip;
  layout.docks.push_back({{area.x, y, area.width, kStrip}, {PanelGroup::kChunk}, {}, true});
  area.height -= kStrip + kGap;
  return area;
}

Layout ThreeColumns(float width, float height) {
  Layout layout;
  Area middle = {kLeft + kGap, 0, width - kLeft - kRight - 2 * kGap, height};
  std::vector<PanelGroup> left = {PanelGroup::kRun};
  if (height >= kStripWindow) {
    middle = TakeStrip(middle, layout);
  } else if (middle.width >= kFlat) {
    middle.width -= kChunkColumn + kGap;
    const float x = middle.x + middle.width + kGap;
    layout.docks.push_back(MakeDock({x, 0, kChunkColumn, height}, {PanelGroup::kChunk}));
  } else {
    left.push_back(PanelGroup::kChunk);
  }
  layout.docks.push_back(MakeDock({0, 0, kLeft, height}, left));
  layout.docks.push_back(MakeDock({width - kRight, 0, kRight, height}, {PanelGroup::kTiming}));
  PlaceScene(middle, layout);
  return layout;
}

Layout TwoColumns(float width, float height) {
  Layout layout;
  const float side = std::clamp(kSideShare * width, kLeft, kRight);
  Area scene = {0, 0, width - side - kGap, height};
  std::vector<PanelGroup> groups = {PanelGroup::kTiming, PanelGroup::kRun};
  if (height >= kStripWindow && scene.width >= kStripWidth) {
    scene = TakeStrip(scene, layout);
  } else {
    groups.push_back(PanelGroup::kChunk);
  }
  layout.docks.push_back(MakeDock({width - side, 0, side, height}, groups));
  PlaceScene(scene, layout);
  return layout;
}

Layout SceneAbove(float width, float height) {
  Layout layout;
  const float scene = std::max(std::min(kBar + width, height / 2), kTallShare * height);
  layout.docks.push_back(MakeDock({0, scene + kGap, width, height - scene - kGap},
                                  {PanelGroup::kTiming, PanelGroup::kRun, PanelGroup::kChunk}));
  PlaceScene({0, 0, width, scene}, layout);
  return layout;
}

Layout LayOut(float width, float height) {
  if (width >= kThreeColumns) return ThreeColumns(width, height);
  return height > kTall * width ? SceneAbove(width, height) : TwoColumns(width, height);
}

// Edges are whole screen pixels: what adjoins goes on doing so.
Area Scaled(const Area& area, float scale) {
  const float x = std::round(area.x * scale), y = std::round(area.y * scale);
  return {x, y, std::round((area.x + area.width) * scale) - x,
          std::round((area.y + area.height) * scale) - y};
}

std::vector<PanelPlace> SideBySide(const Dock& dock, float scale) {
  const float right = kDenoising * scale, gap = kGap * scale, height = dock.area.height;
  const float left = dock.area.width - right - gap;
  return {{Panel::kScore, {0, 0, left, height}},
          {Panel::kDenoising, {left + gap, 0, right, height}}};
}

}  // namespace

Layout MakeLayout(float width, float height, float scale) {
  // a window smaller than the smallest shows a part of that one's layout
  Layout layout = LayOut(std::max<float>(width / scale, kLeastWidth),
                         std::max<float>(height / scale, kLeastHeight));
  layout.captions = Scaled(layout.captions, scale);
  layout.scene = Scaled(layout.scene, scale);
  for (Dock& dock : layout.docks) {
    dock.area = Scaled(dock.area, scale);
    dock.tabs = Scaled(dock.tabs, scale);
  }
  return layout;
}

std::vector<PanelPlace> PlacePanels(const Dock& dock, PanelGroup group, float scale,
                                    float scrollbar) {
  if (dock.row) return SideBySide(dock, scale);
  const std::vector<Member> members = MembersOf(group);
  const float gap = kGap * scale;
  float needed = -gap;
  for (const Member& member : members) needed += member.height * scale + gap;
  const float width = dock.area.width - (needed > dock.area.height ? scrollbar : 0);
  std::vector<PanelPlace> places;
  float y = 0;
  for (const Member& member : members) {
    places.push_back({member.panel, {0, y, width, member.height * scale}});
    y += member.height * scale + gap;
  }
  // the last one has what is left
  places.back().area.height += std::max(0.0f, dock.area.height - needed);
  return places;
}

PanelGroup ShownGroup(const Dock& dock, PanelGroup chosen) {
  const bool here = std::find(dock.groups.begin(), dock.groups.end(), chosen) != dock.groups.end();
  return here ? chosen : dock.groups[0];
}

}  // namespace mjp::app
