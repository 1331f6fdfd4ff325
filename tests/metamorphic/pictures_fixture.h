#ifndef TESTS_METAMORPHIC_PICTURES_FIXTURE_H_
#define TESTS_METAMORPHIC_PICTURES_FIXTURE_H_

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "plugin/register.h"
#include "tasks/pusht/coverage_score.h"
#include "tasks/pusht/pictures/raster_source.h"
#include "tests/support/fake_policy.h"
#include "tests/support/mujoco_fixture.h"

namespace mjp_test {

using Frames = std::vector<uint8_t>;

// A text of MJCF whose first occurrence another takes the place of.
struct Edit {
  std::string from, to;
};

// Push-T with a policy that reports what it sees; actions are a function of the picture.
class PicturesTest : public MujocoTest {
 protected:
  static void SetUpTestSuite() {
    mjp::app::RegisterRasterSource();
    mjp::app::RegisterCoverageScore();
    mjp::RegisterPlugin();
    std::filesystem::create_directories(Folder());
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(Folder()); }
  PicturesTest() {
    policy_.config.cameras.push_back({"observation.image", 3, 96, 96});
    policy_.act = [this](const SeenInput& seen) {
      const double sum = std::accumulate(seen.frames.begin(), seen.frames.end(), 0.0);
      return std::vector<float>(policy_.config.horizon * policy_.config.action_dim,
                                static_cast<float>(std::fmod(sum, 512)));
    };
    policy_.Install();
  }

  static std::string Folder() {
    return ::testing::TempDir() + "metamorphic_" + std::to_string(getpid());
  }

  // models/pusht.xml with the policy in it and every edit made, each of which must find its text.
  static std::string Xml(const std::vector<Edit>& edits, const std::string& renderer,
                         const std::string& camera = "top") {
    std::ifstream file(std::string(MJPOLICY_SOURCE_DIR) + "/models/pusht.xml");
    std::string xml{std::istreambuf_iterator<char>(file), {}};
    const auto set = [](const std::string& key, const std::string& value) {
      return "<config key=\"" + key + "\" value=\"" + value + "\"/>";
    };
    std::vector<Edit> all = edits;
    all.push_back(
        {"</mujoco>", "<extension><plugin plugin=\"mjpolicy.policy\"><instance name=\"policy\">" +
                          set("checkpoint", Folder()) + set("state", "ax ay") +
                          set("actuators", "ax ay") + set("action_scale", "100") +
                          set("camera", camera) + set("renderer", renderer) +
                          "</instance></plugin></extension><sensor><user name=\"policy_coverage\" "
                          "dim=\"1\" needstage=\"pos\"/></sensor></mujoco>"});
    for (const Edit& edit : all) {
      const size_t at = xml.find(edit.from);
      EXPECT_NE(at, std::string::npos) << edit.from;
      if (at != std::string::npos) xml.replace(at, edit.from.size(), edit.to);
    }
    return xml;
  }

  DataPtr Home(const mjModel* model) const {
    DataPtr data(mj_makeData(model));
    mj_resetDataKeyframe(model, data.get(), 0);
    return data;
  }

  // What the policy sees first, from the keyframe.
  Frames FirstSight(const mjModel* model) {
    const DataPtr data = Home(model);
    policy_.Take();
    mj_step(model, data.get());
    const std::vector<SeenInput> seen = policy_.Take();
    EXPECT_EQ(seen.size(), 1u);
    return seen.empty() ? Frames() : seen[0].frames;
  }
  // The same of a model that is compiled; empty where the compiler refuses it, with its message.
  Frames FirstSight(const std::string& xml, std::string* refusal = nullptr) {
    const ModelPtr model = Compile(xml, refusal);
    return model ? FirstSight(model.get()) : Frames();
  }

  static double MeanDifference(const Frames& a, const Frames& b) {
    if (a.size() != b.size() || a.empty()) return NAN;
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
    return sum / static_cast<double>(a.size());
  }

  FakePolicyLog policy_;
};

}  // namespace mjp_test

#endif  // TESTS_METAMORPHIC_PICTURES_FIXTURE_H_
