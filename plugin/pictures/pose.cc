#include "plugin/pictures/pose.h"

#include <algorithm>
#include <array>

namespace mjp {
namespace {

struct Part {
  mjtNum* values;
  int count;
};

std::array<Part, 3> Parts(const mjModel* model, const mjData* data) {
  const int mocaps = static_cast<int>(model->nmocap);
  return {Part{data->qpos, static_cast<int>(model->nq)}, Part{data->mocap_pos, 3 * mocaps},
          Part{data->mocap_quat, 4 * mocaps}};
}

}  // namespace

int PoseSize(const mjModel* model) { return static_cast<int>(model->nq + 7 * model->nmocap); }

void ReadPose(const mjModel* model, const mjData* data, std::span<mjtNum> pose) {
  auto out = pose.begin();
  for (const Part& part : Parts(model, data)) out = std::copy_n(part.values, part.count, out);
}

void ApplyPose(const mjModel* model, std::span<const mjtNum> pose, mjData* data) {
  auto in = pose.begin();
  for (const Part& part : Parts(model, data)) {
    std::copy_n(in, part.count, part.values);
    in += part.count;
  }
  mj_kinematics(model, data);
  mj_comPos(model, data);
  mj_camlight(model, data);
  mj_flex(model, data);
  mj_tendon(model, data);
}

}  // namespace mjp
