#include "tasks/pusht/pictures/drawn_scene.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "base/error.h"
#include "kernels/shared/picture_taps.h"
#include "tasks/pusht/physics/scene.h"
#include "tasks/pusht/physics/table.h"

namespace mjp::app {
namespace {

using Rgb = std::array<uint8_t, 3>;
constexpr Rgb kWhite = {255, 255, 255}, kWall = {211, 211, 211}, kGoal = {144, 238, 144};
constexpr Rgb kBlock = {143, 163, 184}, kEdge = {119, 136, 153};
constexpr Rgb kAgent = {65, 105, 225}, kAgentInner = {78, 126, 255};

enum Root { kWorld, kTable, kOfAgent, kOfBlock };

// A geom of models/pusht.xml as it is compiled.
struct Drawn {
  const char* what;
  Root root;
  int type;
  std::array<double, 3> size, pos;
  std::array<double, 4> quat;
  Rgb colour;
};

constexpr double kHalf = 0.70710678118654752, kCos = 0.92387953251128674,
                 kSin = 0.38268343236508977;
constexpr std::array<double, 4> kStraight = {1, 0, 0, 0}, kTurned = {kCos, 0, 0, kSin};
constexpr std::array<double, 4> kLeft = {kHalf, 0, -kHalf, 0}, kRight = {kHalf, 0, kHalf, 0};
constexpr std::array<double, 4> kDown = {kHalf, kHalf, 0, 0}, kUp = {kHalf, -kHalf, 0, 0};

constexpr Drawn kDrawn[] = {
    {"the ground", kWorld, mjGEOM_BOX, {2.7, 2.7, .05}, {2.56, 2.56, -.05}, kStraight, kWhite},
    {"a wall", kTable, mjGEOM_BOX, {.025, 2.51, .11}, {.05, 2.555, -.11}, kStraight, kWall},
    {"a wall", kTable, mjGEOM_BOX, {.025, 2.51, .11}, {5.06, 2.555, -.11}, kStraight, kWall},
    {"a wall", kTable, mjGEOM_BOX, {2.51, .025, .11}, {2.555, .05, -.11}, kStraight, kWall},
    {"a wall", kTable, mjGEOM_BOX, {2.51, .025, .11}, {2.555, 5.06, -.11}, kStraight, kWall},
    {"the goal",
     kTable,
     mjGEOM_BOX,
     {.6025, .157028, .005},
     {2.4525, 2.6675, -.005},
     kTurned,
     kGoal},
    {"the goal", kTable, mjGEOM_BOX, {.153492, .450477, .005}, {2.03, 3.09, -.005}, kTurned, kGoal},
    {"the agent",
     kOfAgent,
     mjGEOM_CYLINDER,
     {.148, .09, 0},
     {-.005, -.005, -.1},
     kStraight,
     kAgent},
    {"the agent",
     kOfAgent,
     mjGEOM_CYLINDER,
     {.10667, .01, 0},
     {-.005, -.005, -.19},
     kStraight,
     kAgentInner},
    {"the block", kOfBlock, mjGEOM_BOX, {.605, .155, .05}, {0, -.3, -.06}, kStraight, kBlock},
    {"the block", kOfBlock, mjGEOM_BOX, {.155, .455, .05}, {0, .3, -.06}, kStraight, kBlock},
    {"the block's edge", kOfBlock, mjGEOM_CAPSULE, {.0205, .6, 0}, {0, -.45, -.11}, kLeft, kEdge},
    {"the block's edge", kOfBlock, mjGEOM_CAPSULE, {.0205, .15, 0}, {.6, -.3, -.11}, kDown, kEdge},
    {"the block's edge", kOfBlock, mjGEOM_CAPSULE, {.0205, .6, 0}, {0, -.15, -.11}, kRight, kEdge},
    {"the block's edge", kOfBlock, mjGEOM_CAPSULE, {.0205, .15, 0}, {-.6, -.3, -.11}, kUp, kEdge},
    {"the block's edge", kOfBlock, mjGEOM_CAPSULE, {.0205, .45, 0}, {-.15, .3, -.11}, kDown, kEdge},
    {"the block's edge", kOfBlock, mjGEOM_CAPSULE, {.0205, .15, 0}, {0, .75, -.11}, kLeft, kEdge},
    {"the block's edge", kOfBlock, mjGEOM_CAPSULE, {.0205, .45, 0}, {.15, .3, -.11}, kUp, kEdge},
};
constexpr double kNear = 1e-4;  // units: a hundredth of a pixel

// The table of models/pusht.xml in the world: turned by pi about x.
Frame DrawnTable() {
  Frame table;
  table.pos[1] = 5.12;
  table.quat[0] = 0, table.quat[1] = 1;
  return table;
}

std::string NameOf(const mjModel* model, mjtObj type, int id, const char* kind) {
  const char* name = mj_id2name(model, type, id);
  return std::string(kind) + " " + (name ? "\"" + std::string(name) + "\"" : std::to_string(id));
}

// What the renderer makes of a geom's or site's material and colour: red, green, blue, opacity.
std::array<float, 4> ColourOf(const mjModel* model, int material, const float* rgba) {
  const bool own =
      material < 0 || rgba[0] != 0.5f || rgba[1] != 0.5f || rgba[2] != 0.5f || rgba[3] != 1;
  const float* from = own ? rgba : model->mat_rgba + 4 * material;
  return {from[0], from[1], from[2], from[3]};
}

bool Visible(const mjtByte* groups, int group, float opacity) {
  const int clamped = group < 0 ? 0 : group >= mjNGROUP ? mjNGROUP - 1 : group;
  return groups[clamped] && opacity != 0;
}

// Whether it is shown as flat as the benchmark's colours, which are exact without any light.
bool IsFlat(const mjModel* model, int material) {
  if (material < 0) return false;
  for (int role = 0; role < mjNTEXROLE; ++role) {
    if (model->mat_texid[mjNTEXROLE * material + role] >= 0) return false;
  }
  return model->mat_emission[material] == 0.7f && model->mat_reflectance[material] == 0;
}

bool HasColour(const std::array<float, 4>& colour, const Rgb& rgb) {
  for (int i = 0; i < 3; ++i) {
    if (!(std::abs(255 * colour[i] - rgb[i]) < 0.1)) return false;
  }
  return colour[3] == 1;
}

bool HasShape(const mjModel* model, int geom, const Drawn& drawn) {
  if (model->geom_type[geom] != drawn.type) return false;
  const int numbers = drawn.type == mjGEOM_BOX ? 3 : 2;
  for (int i = 0; i < numbers; ++i) {
    if (!(std::abs(model->geom_size[3 * geom + i] - drawn.size[i]) < kNear)) return false;
  }
  return true;
}

std::string LightDifference(const mjModel* model) {
  for (int light = 0; light < model->nlight; ++light) {
    if (model->light_active[light]) return NameOf(model, mjOBJ_LIGHT, light, "light") + " is on";
  }
  if (model->vis.headlight.active) return "the headlight is on";
  return "";
}

std::string CameraDifference(const mjModel* model, int camera) {
  const std::string name = NameOf(model, mjOBJ_CAMERA, camera, "camera");
  const int* resolution = model->cam_resolution + 2 * camera;
  if (resolution[0] != kDrawingSize || resolution[1] != kDrawingSize)
    return name + " has another resolution than 512 x 512";
  if (model->cam_projection[camera] != mjPROJ_ORTHOGRAPHIC ||
      !(std::abs(model->cam_fovy[camera] - kWorldSize / kPixelsPerUnit) < 1e-9) ||
      model->cam_sensorsize[2 * camera] != 0 || model->cam_sensorsize[2 * camera + 1] != 0) {
    return name + " does not see the whole table in parallel projection";
  }
  Frame expected;
  expected.pos[0] = 2.555, expected.pos[1] = 2.565, expected.pos[2] = 3;
  const int body = model->cam_bodyid[camera];
  const Frame place = Compose(BodyFrame(model, body, 0),
                              FrameOf(model->cam_pos + 3 * camera, model->cam_quat + 4 * camera));
  if (model->cam_mode[camera] != mjCAMLIGHT_FIXED || model->body_weldid[body] != 0 ||
      !Same(place, expected)) {
    return name + " stands elsewhere or is turned";
  }
  const double extent = model->stat.extent, nearest = model->vis.map.znear * extent;
  if (!(nearest < 2.5) || !(model->vis.map.zfar * extent > 3.5))
    return "the clipping planes (map znear, zfar) cut the table";
  if (model->vis.quality.numslices != 32) return "round things are drawn with other numslices";
  return "";
}

// What is neither a geom nor ever in the benchmark's picture.
std::string OtherDifference(const mjModel* model, const mjvOption& option) {
  for (int site = 0; site < model->nsite; ++site) {
    const auto colour = ColourOf(model, model->site_matid[site], model->site_rgba + 4 * site);
    if (Visible(option.sitegroup, model->site_group[site], colour[3]))
      return NameOf(model, mjOBJ_SITE, site, "site") + " is visible";
  }
  for (int tendon = 0; tendon < model->ntendon; ++tendon) {
    if (Visible(option.tendongroup, model->tendon_group[tendon], 1))
      return NameOf(model, mjOBJ_TENDON, tendon, "tendon") + " is visible";
  }
  for (int skin = 0; skin < model->nskin; ++skin) {
    if (Visible(option.skingroup, model->skin_group[skin], 1))
      return NameOf(model, mjOBJ_SKIN, skin, "skin") + " is visible";
  }
  for (int flex = 0; flex < model->nflex; ++flex) {
    if (Visible(option.flexgroup, model->flex_group[flex], 1))
      return NameOf(model, mjOBJ_FLEX, flex, "flex") + " is visible";
  }
  return "";
}

// Matches visible geoms with those of the benchmark, each once.
class Geoms {
 public:
  Geoms(const mjModel* model, const TableBodies& bodies) : model_(model), bodies_(bodies) {}

  // Why `geom` is none of those that are left; empty: it was one of them.
  std::string Take(int geom, const std::array<float, 4>& colour) {
    const std::string name = NameOf(model_, mjOBJ_GEOM, geom, "geom") + " of " +
                             NameOf(model_, mjOBJ_BODY, model_->geom_bodyid[geom], "body");
    for (size_t i = 0; i < std::size(kDrawn); ++i) {
      if (taken_[i] || !IsAt(geom, kDrawn[i]) || !HasShape(model_, geom, kDrawn[i])) continue;
      if (!IsFlat(model_, model_->geom_matid[geom]))
        return name + ", " + kDrawn[i].what + ", is lit, shiny or textured";
      if (!HasColour(colour, kDrawn[i].colour))
        return name + ", " + kDrawn[i].what + ", has another colour";
      taken_[i] = true;
      return "";
    }
    return name + " has a shape or place that the benchmark's picture does not have";
  }
  std::string Missing() const {
    for (size_t i = 0; i < std::size(kDrawn); ++i) {
      if (!taken_[i]) return "a visible geom is missing: " + std::string(kDrawn[i].what);
    }
    return "";
  }

 private:
  bool IsAt(int geom, const Drawn& drawn) const {
    const int moving = model_->body_weldid[model_->geom_bodyid[geom]];
    const int root = drawn.root == kOfAgent   ? bodies_.agent
                     : drawn.root == kOfBlock ? bodies_.block
                                              : 0;
    if (moving != root) return false;
    Frame expected = FrameOf(drawn.pos.data(), drawn.quat.data());
    if (drawn.root == kTable) expected = Compose(DrawnTable(), expected);
    return Same(GeomFrame(model_, geom, root), expected);
  }

  const mjModel* model_;
  TableBodies bodies_;
  std::array<bool, std::size(kDrawn)> taken_ = {};
};

std::string GeomDifference(const mjModel* model, const mjvOption& option) {
  TableBodies bodies;
  try {
    bodies = FindBodies(model);
  } catch (const Error& error) {
    return error.what();
  }
  Geoms geoms(model, bodies);
  for (int geom = 0; geom < model->ngeom; ++geom) {
    const auto colour = ColourOf(model, model->geom_matid[geom], model->geom_rgba + 4 * geom);
    if (!Visible(option.geomgroup, model->geom_group[geom], colour[3])) continue;
    std::string difference = geoms.Take(geom, colour);
    if (!difference.empty()) return difference;
  }
  if (!Same(TableFrame(model, bodies), DrawnTable())) return "the table stands elsewhere";
  return geoms.Missing();
}

}  // namespace

std::string DifferenceFromDrawn(const mjModel* model, int camera) {
  mjvOption option;
  mjv_defaultOption(&option);
  for (const std::string& difference :
       {CameraDifference(model, camera), LightDifference(model), OtherDifference(model, option)}) {
    if (!difference.empty()) return difference;
  }
  return GeomDifference(model, option);
}

}  // namespace mjp::app
