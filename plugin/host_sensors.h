#ifndef PLUGIN_HOST_SENSORS_H_
#define PLUGIN_HOST_SENSORS_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plugin/model/config.h"
#include "plugin/score.h"
#include "policy/checkpoint/config.h"
#include "policy/timing.h"

namespace mjp {

// What an instance can show of itself, as a view of the moment.
struct HostReport {
  int64_t tick = 0;                  // the control tick handled last
  uint32_t decisions = 0;            // taken since the reset
  int chunks_in_a_row = 0;           // the last ones, which temporal ensembling takes the mean of
  StageTimes times;                  // of the last decision
  std::span<const mjtNum> chunk;     // (horizon, action_dim), the policy's units
  std::span<const uint8_t> picture;  // (height, width, 3) of the first camera; empty: none yet
};

// Shows an instance in hosts that know nothing of it: fills the user sensors of the model that are
// called <instance>_view, _stages, _decisions, _passes, _chunk, or by the name of a score
// (plugin/README.md); a suffix that the instance got when its model was attached comes last. What
// the model does not have is not computed.
class HostSensors {
 public:
  // Marks <instance>_view as a picture, which the compiled model can say and MJCF cannot. Throws
  // Error for a sensor of such a name with another size or stage, or of a score that is not that
  // of the model.
  HostSensors(const mjModel* model, int instance, const Config& config, const PolicyConfig& policy);

  // How closely decisions are to be timed: by stages where the model has <instance>_stages or a
  // label, else not at all, since a GPU takes some microseconds for each.
  static TimingDetail TimingOf(const mjModel* model, int instance, const Config& config);

  // True if <instance>_view is there: the report is then to have a picture.
  bool has_view() const { return has_view_; }
  // To be called whenever positions have been computed: the engine clears user sensors each time.
  void Write(const HostReport& report, const mjModel* model, mjData* data) const;

 private:
  using Writer = std::function<void(const HostReport& report, const mjModel* model,
                                    const mjData* data, mjtNum* out)>;
  // False: the model has no such user sensor.
  bool Add(const mjModel* model, const std::string& name, int size, Writer writer);

  bool has_view_ = false;
  std::vector<std::pair<int, Writer>> writers_;  // address in sensordata, what goes there
};

}  // namespace mjp

#endif  // PLUGIN_HOST_SENSORS_H_
