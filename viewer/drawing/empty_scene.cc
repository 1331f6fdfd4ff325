#include "viewer/drawing/empty_scene.h"

namespace mjp::app {
namespace {

constexpr int kShownGroups = 3;  // 0 to 2, by mjv_defaultOption

// As MuJoCo's renderer has it: a geom's own colour before its material's.
bool IsTransparent(const mjModel& model, int geom) {
  const float* own = model.geom_rgba + 4 * geom;
  const int material = model.geom_matid[geom];
  const bool plain = own[0] == 0.5f && own[1] == 0.5f && own[2] == 0.5f && own[3] == 1;
  return (plain && material >= 0 ? model.mat_rgba[4 * material + 3] : own[3]) == 0;
}

// Whether one of `count` things is in a group that is shown, and not transparent.
bool AnyShown(int count, const int* group, const float* rgba) {
  for (int i = 0; i < count; ++i) {
    if (group[i] < kShownGroups && rgba[4 * i + 3] > 0) return true;
  }
  return false;
}

// A fixed tendon has no path in space.
bool ShowsTendon(const mjModel& model) {
  for (int i = 0; i < model.ntendon; ++i) {
    const bool path = model.wrap_type[model.tendon_adr[i]] != mjWRAP_JOINT;
    if (path && AnyShown(1, model.tendon_group + i, model.tendon_rgba + 4 * i)) return true;
  }
  return false;
}

bool ShowsMoreThanGeoms(const mjModel& model) {
  return AnyShown(model.nflex, model.flex_group, model.flex_rgba) ||
         AnyShown(model.nskin, model.skin_group, model.skin_rgba) ||
         AnyShown(model.nsite, model.site_group, model.site_rgba) || ShowsTendon(model);
}

}  // namespace

std::string WhyEmpty(const mjModel& model, bool hidden_groups) {
  int hidden = 0;
  for (int i = 0; i < model.ngeom; ++i) {
    if (IsTransparent(model, i)) continue;
    if (model.geom_group[i] < kShownGroups || hidden_groups) return "";
    ++hidden;
  }
  if (ShowsMoreThanGeoms(model)) return "";
  if (hidden == 0) {
    return "There is nothing to see, nor for the policy's cameras: this model has no geom that is "
           "not transparent. Give its bodies geoms of the groups 0 to 2.";
  }
  return "There is nothing to see, nor for the policy's cameras: all geoms of this model (" +
         std::to_string(hidden) +
         ") are in the hidden groups 3 to 5, as after <compiler discardvisual=\"true\"/>. Press G "
         "to show them here, or open the model that still has its visual geoms.";
}

}  // namespace mjp::app
