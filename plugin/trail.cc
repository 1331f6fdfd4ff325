#include "plugin/trail.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"

namespace mjp {
namespace {

constexpr float kColour[3] = {0.95f, 0.35f, 0.1f};
constexpr float kFirstAlpha = 1, kLastAlpha = 0.15f;

// The next free geom of a scene, as decoration; null where the scene is full.
mjvGeom* AddGeom(mjvScene* scene, mjtGeom type, const mjtNum* size, const mjtNum* position,
                 float alpha) {
  if (scene->ngeom >= scene->maxgeom) return nullptr;
  mjvGeom* geom = scene->geoms + scene->ngeom++;
  const float rgba[4] = {kColour[0], kColour[1], kColour[2], alpha};
  mjv_initGeom(geom, type, size, position, nullptr, rgba);
  geom->category = mjCAT_DECOR;
  geom->objtype = mjOBJ_UNKNOWN;
  geom->objid = -1;
  geom->segid = -1;
  geom->emission = 0.5f;
  return geom;
}

// mjData for kinematics alone. An instance of this plugin in it would ask for one in turn.
mjData* MakeKinematicsData(const mjModel* model) {
  mjModel bare = *model;
  bare.nplugin = 0;
  bare.npluginstate = 0;
  return mj_makeData(&bare);
}

}  // namespace

Trail::Trail(const mjModel* model, const Config& config, const ControlBinding& controls)
    : controls_(controls) {
  int index = 0, body = -1;
  for (const std::string& name : config.actuators) {
    const int id = FindActuator(model, name);
    const int count = model->actuator_ctrlnum[id];
    const int joint = model->actuator_trnid[2 * id];
    const mjtNum* gain = model->actuator_gainprm + mjNGAIN * id;
    const mjtNum* bias = model->actuator_biasprm + mjNBIAS * id;
    const mjtNum gear = model->actuator_gear[6 * id];
    // at rest gain x control + bias[0] + bias[1] x gear x qpos = 0
    if (count == 1 && model->actuator_trntype[id] == mjTRN_JOINT &&
        model->jnt_type[joint] >= mjJNT_SLIDE && model->actuator_gaintype[id] == mjGAIN_FIXED &&
        model->actuator_biastype[id] == mjBIAS_AFFINE && bias[1] * gear != 0) {
      servos_.push_back({index, model->jnt_qposadr[joint], -gain[0] / (bias[1] * gear),
                         -bias[0] / (bias[1] * gear)});
      body = model->jnt_bodyid[joint];
    }
    index += count;
  }
  if (config.trail.empty()) {
    traced_ = body;
    return;
  }
  if (servos_.empty()) {
    throw BadInput("attribute trail is given, but no actuator of the policy is a position servo");
  }
  traced_ = mj_name2id(model, mjOBJ_SITE, config.trail.c_str());
  is_site_ = traced_ >= 0;
  if (!is_site_) traced_ = mj_name2id(model, mjOBJ_BODY, config.trail.c_str());
  if (traced_ < 0) {
    throw BadInput("attribute trail names \"" + config.trail +
                   "\": the model has no site or body of that name");
  }
}

std::vector<std::array<mjtNum, 3>> Trail::Positions(const mjModel* model, const mjData* data,
                                                    std::span<const mjtNum> actions) {
  if (!scratch_) scratch_.reset(MakeKinematicsData(model));
  if (!scratch_) throw EnvironmentError("no memory for the kinematics of the trail");
  std::copy_n(data->qpos, model->nq, scratch_->qpos);
  std::copy_n(data->mocap_pos, 3 * model->nmocap, scratch_->mocap_pos);
  std::copy_n(data->mocap_quat, 4 * model->nmocap, scratch_->mocap_quat);
  const mjtNum* traced = (is_site_ ? scratch_->site_xpos : scratch_->xpos) + 3 * traced_;
  std::vector<std::array<mjtNum, 3>> positions;
  for (size_t row = 0; row < actions.size(); row += controls_.action_size()) {
    for (const Servo& servo : servos_) {
      const mjtNum control =
          controls_.ToControl(servo.index, actions[row + controls_.indices()[servo.index]]);
      scratch_->qpos[servo.qpos] = servo.slope * control + servo.offset;
    }
    mj_kinematics(model, scratch_.get());
    positions.push_back({traced[0], traced[1], traced[2]});
  }
  return positions;
}

void Trail::Draw(const mjModel* model, const mjData* data, std::span<const mjtNum> actions,
                 mjvScene* scene) {
  if (traced_ < 0) return;
  const auto positions = Positions(model, data, actions);
  const mjtNum radius = 0.008 * model->stat.extent;
  const mjtNum size[3] = {radius, radius, radius};
  for (size_t i = 0; i < positions.size(); ++i) {
    const float age = static_cast<float>(i) / static_cast<float>(positions.size());
    const float alpha = kFirstAlpha + age * (kLastAlpha - kFirstAlpha);
    AddGeom(scene, mjGEOM_SPHERE, size, positions[i].data(), alpha);
    if (i == 0) continue;
    mjvGeom* line = AddGeom(scene, mjGEOM_CAPSULE, size, positions[i].data(), alpha);
    if (line) {
      mjv_connector(line, mjGEOM_CAPSULE, 0.4 * radius, positions[i - 1].data(),
                    positions[i].data());
    }
  }
}

void DrawLabel(const std::string& text, const mjtNum* position, mjvScene* scene) {
  const mjtNum size[3] = {0.01, 0.01, 0.01};
  mjvGeom* geom = AddGeom(scene, mjGEOM_LABEL, size, position, 1);
  if (geom) std::snprintf(geom->label, sizeof(geom->label), "%s", text.c_str());
}

}  // namespace mjp
