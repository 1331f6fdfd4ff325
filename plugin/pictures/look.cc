#include "plugin/pictures/look.h"

#include <mujoco/mjxmacro.h>

#include <cstddef>
#include <cstring>
#include <string_view>

namespace mjp {
namespace {

// Four lanes of 64 bits; every step of a lane is reversible, so words that differ stay different.
class Hasher {
 public:
  void Add(const void* data, size_t bytes) {
    const auto* from = static_cast<const uint8_t*>(data);
    Mix(0, bytes);
    for (; bytes >= sizeof(lanes_); bytes -= sizeof(lanes_), from += sizeof(lanes_)) {
      uint64_t words[kLanes];
      std::memcpy(words, from, sizeof(words));
      for (int lane = 0; lane < kLanes; ++lane) Mix(lane, words[lane]);
    }
    uint64_t rest[kLanes] = {};
    if (bytes > 0) std::memcpy(rest, from, bytes);
    for (int lane = 0; lane < kLanes; ++lane) Mix(lane, rest[lane]);
  }
  uint64_t Hash() {
    for (int lane = 1; lane < kLanes; ++lane) Mix(0, lanes_[lane]);
    Mix(0, 0);
    return lanes_[0];
  }

 private:
  static constexpr int kLanes = 4;
  void Mix(int lane, uint64_t word) {
    const uint64_t mixed = (lanes_[lane] ^ word) * 0x9fb21c651e98df25;
    lanes_[lane] = mixed ^ (mixed >> 32);
  }
  uint64_t lanes_[kLanes] = {1, 2, 3, 4};
};

template <size_t kCount>
constexpr bool StartsWithOneOf(std::string_view name, const std::string_view (&words)[kCount]) {
  for (const std::string_view word : words) {
    if (name.starts_with(word)) return true;
  }
  return false;
}

template <size_t kCount>
constexpr bool HasOneOf(std::string_view name, const std::string_view (&words)[kCount]) {
  for (const std::string_view word : words) {
    if (name.find(word) != std::string_view::npos) return true;
  }
  return false;
}

constexpr std::string_view kDrawn[] = {"qpos0",  "body_", "jnt_",      "geom_", "site_", "cam_",
                                       "light_", "flex_", "flexedge_", "mesh_", "skin_", "hfield_",
                                       "tex_",   "mat_",  "tendon_",   "wrap_"};
constexpr std::string_view kUploaded[] = {"mesh_",   "skin_",     "hfield_",    "tex_",
                                          "mat_tex", "geom_type", "geom_matid", "geom_dataid"};
// of the kinds above, what only the physics reads or people look up
constexpr std::string_view kNotDrawn[] = {
    "user",        "path",     "plugin",    "solref",  "solimp",  "solmix",   "contype",
    "conaffinity", "condim",   "friction",  "margin",  "gap",     "adhesion", "surfacevel",
    "fluid",       "priority", "stiffness", "bending", "damping", "armature", "invweight",
    "inertia",     "gravcomp", "actfrc",    "actgrav", "bvh",     "_oct",     "graph",
    "poly",        "extrema",  "aabb",      "collide", "passive"};

constexpr bool IsDrawn(std::string_view name) {
  // how a slack tendon hangs depends on its springs too
  return name.starts_with("tendon_") ||
         (StartsWithOneOf(name, kDrawn) && !HasOneOf(name, kNotDrawn));
}
constexpr bool IsUploaded(std::string_view name) {
  return StartsWithOneOf(name, kUploaded) && !HasOneOf(name, kNotDrawn);
}

// Calls visit(name, address, bytes) for every array of `model`.
template <typename Visit>
void ForEachArray(const mjModel* model, Visit visit) {
  MJMODEL_POINTERS_PREAMBLE(model)
#undef MJ_M
#define MJ_M(n) model->n
#define X(type, name, rows, columns)                         \
  visit([] { return std::string_view(#name); }, model->name, \
        sizeof(type) * static_cast<size_t>(model->rows) * static_cast<size_t>(columns));
  MJMODEL_POINTERS
#undef X
#undef MJ_M
#define MJ_M(n) n
  static_cast<void>(nuser_body), static_cast<void>(nuser_jnt), static_cast<void>(nuser_geom);
  static_cast<void>(nuser_site), static_cast<void>(nuser_cam), static_cast<void>(nuser_tendon);
  static_cast<void>(nuser_actuator), static_cast<void>(nuser_sensor), static_cast<void>(nq);
  static_cast<void>(nv), static_cast<void>(na), static_cast<void>(nu), static_cast<void>(nmocap);
  static_cast<void>(nplastic);
}

}  // namespace

uint64_t HashLook(const mjModel* model) {
  Hasher hasher;
  ForEachArray(model, [&](auto name, const void* data, size_t bytes) {
    if constexpr (IsDrawn(name())) {
      if (bytes > 0) hasher.Add(data, bytes);
    }
  });
  hasher.Add(&model->vis, sizeof(model->vis));
  hasher.Add(&model->stat, sizeof(model->stat));
  hasher.Add(model->opt.gravity, sizeof(model->opt.gravity));  // slack tendons hang
  return hasher.Hash() >> 11;
}

uint64_t HashUploads(const mjModel* model) {
  Hasher hasher;
  ForEachArray(model, [&](auto name, const void* data, size_t bytes) {
    if constexpr (IsUploaded(name())) {
      if (bytes > 0) hasher.Add(data, bytes);
    }
  });
  for (int geom = 0; geom < model->ngeom; ++geom) {  // planes are lists of their own
    if (model->geom_type[geom] == mjGEOM_PLANE) {
      hasher.Add(model->geom_size + 3 * geom, 3 * sizeof(mjtNum));
    }
  }
  hasher.Add(&model->vis, sizeof(model->vis));
  hasher.Add(&model->stat, sizeof(model->stat));
  return hasher.Hash();
}

}  // namespace mjp
