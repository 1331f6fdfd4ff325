#ifndef TESTS_PLUGIN_RECORDING_RECORDING_FIXTURE_H_
#define TESTS_PLUGIN_RECORDING_RECORDING_FIXTURE_H_

#include <cmath>
#include <string>
#include <vector>

#include "base/file.h"
#include "datasets/check.h"
#include "datasets/dataset.h"
#include "tests/plugin/plugin_fixture.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {

inline void Replace(std::string& text, const std::string& what, const std::string& by) {
  const size_t place = text.find(what);
  ASSERT_NE(place, std::string::npos) << what;
  text.replace(place, what.size(), by);
}

// models/cart_pole.xml in a host's loop: control steps of ten steps of the engine.
class RecordingTest : public PluginTest {
 protected:
  RecordingTest() {
    policy_.config.action_dim = 1;
    policy_.act = [this](const SeenInput& seen) {
      std::vector<float> actions(policy_.config.horizon * policy_.config.action_dim);
      for (size_t i = 0; i < actions.size(); ++i) {
        actions[i] = 0.3f * std::sin(0.7f * i + seen.key.decision + seen.state.back());
      }
      return actions;
    };
  }

  // Without a camera, which not every machine can draw.
  static std::string CartPole(const std::string& record, const std::string& more = "") {
    const auto bytes = mjp::ReadFile(MJPOLICY_SOURCE_DIR "/models/cart_pole.xml", 1 << 20);
    std::string xml(bytes.begin(), bytes.end());
    Replace(xml, "value=\"cart_random\"", "value=\"" + Folder() + "\"");
    Replace(xml, R"(<config key="camera" value="front"/>)",
            more + (record.empty() ? "" : Set("record", record)));
    return xml;
  }
  static std::vector<mjtNum> Run(const mjModel* model, mjData* data, int steps) {
    std::vector<mjtNum> states;
    for (int i = 0; i < steps; ++i) {
      mj_step(model, data);
      states.insert(states.end(), data->qpos, data->qpos + model->nq);
      states.insert(states.end(), data->ctrl, data->ctrl + model->nu);
    }
    return states;
  }
  std::string Recorded() const { return folder_ / "data"; }
  std::vector<int64_t> Lengths() const {
    mjp::datasets::Dataset dataset(Recorded());
    EXPECT_THAT(mjp::datasets::Check(dataset, {}).problems, ::testing::IsEmpty());
    std::vector<int64_t> lengths;
    for (const auto& episode : dataset.episodes()) lengths.push_back(episode.length);
    return lengths;
  }

  TempDir folder_;
};

}  // namespace mjp_test

#endif  // TESTS_PLUGIN_RECORDING_RECORDING_FIXTURE_H_
