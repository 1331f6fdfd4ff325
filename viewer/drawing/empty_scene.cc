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

bool ShowsMoreThanGeoms(const mjModel& model) {
  if (model.nflex > 0 || model.nskin > 0 || model.ntendon > 0) return true;
  for (int i = 0; i < model.nsite; ++i) {
    if (model.site_group[i] < kShownGroups && model.site_rgba[4 * i + 3] > 0) return true;
  }
  return false;
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
