#ifndef PLUGIN_TRAIL_H_
#define PLUGIN_TRAIL_H_

#include <mujoco/mujoco.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plugin/model/binding.h"
#include "plugin/model/config.h"

namespace mjp {

// Where a chunk of actions would lead: the way of a site or body with the joints of the driven
// actuators at the targets that each action gives them, and everything else as it is.
class Trail {
 public:
  // Uses the actuators that act on a hinge or slide like a servo (affine bias); others leave their
  // joints alone. Throws Error where attribute `trail` names nothing in the model, or there is no
  // such actuator to follow.
  Trail(const mjModel* model, const Config& config, const ControlBinding& controls);

  // The positions (world) that the rows (action_dim) of `actions` lead to from the pose of `data`.
  std::vector<std::array<mjtNum, 3>> Positions(const mjModel* model, const mjData* data,
                                               std::span<const mjtNum> actions);
  // Adds them to a scene as a line of beads that fades with time.
  void Draw(const mjModel* model, const mjData* data, std::span<const mjtNum> actions,
            mjvScene* scene);

 private:
  // qpos = slope * (control `index` of the policy) + offset
  struct Servo {
    int index, qpos;
    mjtNum slope, offset;
  };
  struct DataDeleter {
    void operator()(mjData* data) const { mj_deleteData(data); }
  };

  ControlBinding controls_;
  std::vector<Servo> servos_;
  bool is_site_ = false;
  int traced_ = -1;                               // site or body; negative: nothing is drawn
  std::unique_ptr<mjData, DataDeleter> scratch_;  // made at need, without plugins
};

// Adds `text` to a scene at `position` (world).
void DrawLabel(const std::string& text, const mjtNum* position, mjvScene* scene);

}  // namespace mjp

#endif  // PLUGIN_TRAIL_H_
