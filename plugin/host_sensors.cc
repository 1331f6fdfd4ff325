#include "plugin/host_sensors.h"

#include <algorithm>

#include "base/error.h"
#include "plugin/guard.h"
#include "plugin/notices.h"

namespace mjp {
namespace {

// Viewers draw row 0 at the bottom, and take the last number for a version that is never 0.
void WritePicture(const HostReport& report, int width, int height, mjtNum* out) {
  const size_t row = static_cast<size_t>(width) * 3;
  if (report.picture.size() != row * height) return;
  for (int y = 0; y < height; ++y) {
    std::copy_n(report.picture.data() + (height - 1 - y) * row, row, out + y * row);
  }
  out[row * height - 1] = static_cast<mjtNum>(std::max<int64_t>(report.tick, 0) + 1);
}

void WriteStages(const HostReport& report, mjtNum* out) {
  constexpr double kMilliseconds = 1e3;
  for (size_t i = 0; i < kStageCount; ++i) {
    const StageTimes::Span& span = report.times.spans[i];
    out[i] = kMilliseconds * (span.end - span.begin);
  }
}

// The sensor of `instance` called `what`; empty: an instance without a name has none.
std::string OwnName(const mjModel* model, int instance, const Config& config,
                    const std::string& what) {
  const char* name = mj_id2name(model, mjOBJ_PLUGIN, instance);
  if (!name) return {};
  const std::string whole = name;
  return whole.substr(0, whole.size() - config.suffix.size()) + "_" + what + config.suffix;
}

}  // namespace

TimingDetail HostSensors::TimingOf(const mjModel* model, int instance, const Config& config) {
  const std::string name = OwnName(model, instance, config, "stages");
  const bool shown = !name.empty() && mj_name2id(model, mjOBJ_SENSOR, name.c_str()) >= 0;
  return shown || !config.label.empty() ? TimingDetail::kStages : TimingDetail::kNone;
}

bool HostSensors::Add(const mjModel* model, const std::string& name, int size, Writer writer) {
  const int sensor = mj_name2id(model, mjOBJ_SENSOR, name.c_str());
  if (sensor < 0 || model->sensor_type[sensor] != mjSENS_USER) return false;
  if (model->sensor_dim[sensor] != size || model->sensor_needstage[sensor] != mjSTAGE_POS) {
    throw BadInput("sensor \"" + name + "\" is filled by the policy: write dim=\"" +
                   std::to_string(size) + "\" needstage=\"pos\"");
  }
  writers_.emplace_back(model->sensor_adr[sensor], std::move(writer));
  return true;
}

HostSensors::HostSensors(const mjModel* model, int instance, const Config& config,
                         const PolicyConfig& policy) {
  if (!mj_id2name(model, mjOBJ_PLUGIN, instance)) return;
  const auto own = [&](const std::string& what) { return OwnName(model, instance, config, what); };
  if (!policy.cameras.empty()) {
    const int width = policy.cameras[0].width, height = policy.cameras[0].height;
    const std::string view = own("view");
    has_view_ = Add(model, view, width * height * 3,
                    [width, height](const HostReport& report, const mjModel*, const mjData*,
                                    mjtNum* out) { WritePicture(report, width, height, out); });
    if (has_view_) {
      int* size = model->sensor_intprm + mj_name2id(model, mjOBJ_SENSOR, view.c_str()) * mjNSENS;
      // within the compiler; instances made later, maybe at once in many threads, find it done
      if (size[0] != width || size[1] != height) {
        size[0] = width;
        size[1] = height;
      }
    }
  }
  Add(model, own("stages"), kStageCount,
      [](const HostReport& report, const mjModel*, const mjData*, mjtNum* out) {
        WriteStages(report, out);
      });
  Add(model, own("decisions"), 1,
      [](const HostReport& report, const mjModel*, const mjData*, mjtNum* out) {
        out[0] = report.decisions;
      });
  Add(model, own("passes"), 1,
      [](const HostReport& report, const mjModel*, const mjData*, mjtNum* out) {
        out[0] = report.times.passes;
      });
  Add(model, own("chunk"), policy.horizon * policy.action_dim,
      [](const HostReport& report, const mjModel*, const mjData*, mjtNum* out) {
        std::ranges::copy(report.chunk, out);
      });
  for (auto& [score_name, score] : ScoresOf(model)) {
    const bool shown =
        Add(model, own(score_name), 1,
            [read = score.read](const HostReport&, const mjModel* current, const mjData* data,
                                mjtNum* out) { out[0] = read(current, data); });
    if (shown) score.check(model);
  }
  for (const std::string& score_name : ScoreNames()) {
    const int sensor = mj_name2id(model, mjOBJ_SENSOR, own(score_name).c_str());
    const bool filled = std::ranges::any_of(writers_, [&](const auto& writer) {
      return sensor >= 0 && writer.first == model->sensor_adr[sensor];
    });
    if (sensor < 0 || filled || model->sensor_type[sensor] != mjSENS_USER) continue;
    if (WithinCompiler(model) || !FirstNotice(model, instance, Notice::kNoScore)) continue;
    Warn((InstanceName(model, instance) + ": sensor \"" + own(score_name) +
          "\" stays 0, for this model has not what the score is of: its joints and bodies have "
          "other names")
             .c_str());
  }
}

void HostSensors::Write(const HostReport& report, const mjModel* model, mjData* data) const {
  for (const auto& [address, write] : writers_) {
    write(report, model, data, data->sensordata + address);
  }
}

}  // namespace mjp
