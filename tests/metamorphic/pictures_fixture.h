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
#include "tests/support/fake_policy.h"
#include "tests/support/mujoco_fixture.h"

namespace mjp_test {

using Frames = std::vector<uint8_t>;

// A text of MJCF whose first occurrence another takes the place of.
struct Edit {
  std::string from, to;
};

// A robot of models/.
struct Model {
  const char* name;
  const char* file;
  Edit policy;  // puts the policy into it
  int environment_dim = 0;
};

inline const Model kPusht = {"RunMjpolicy", "pusht.xml", {"</mujoco>", R"(
      <extension><plugin plugin="mjpolicy.policy"><instance name="policy">
        <config key="checkpoint" value="CHECKPOINT"/>
        <config key="state" value="ax ay"/>
        <config key="actuators" value="ax ay"/>
        <config key="action_scale" value="100"/>
        <config key="camera" value="CAMERA"/>
        <config key="renderer" value="RENDERER"/>
      </instance></plugin></extension>
      <sensor><user name="policy_coverage" dim="1" needstage="pos"/></sensor></mujoco>)"}};
inline const Model kArm = {"Arm",
                           "reach_policy.xml",
                           {"value=\"reach_random\"/>",
                            "value=\"CHECKPOINT\"/><config key=\"renderer\" value=\"RENDERER\"/>"},
                           3};

// Robots with a policy that reports what it sees; actions are a function of the picture.
class PicturesTest : public MujocoTest {
 protected:
  static void SetUpTestSuite() {
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

  // Makes the policy one of this robot.
  void Use(const Model& robot) { policy_.config.environment_dim = robot.environment_dim; }

  static std::string Folder() {
    return ::testing::TempDir() + "metamorphic_" + std::to_string(getpid());
  }

  // A model of this project with the policy in it and every edit made, each of which must find its
  // text.
  static std::string Xml(const Model& robot, const std::vector<Edit>& edits,
                         const std::string& renderer, const std::string& camera = "top") {
    std::ifstream file(std::string(MJPOLICY_SOURCE_DIR) + "/models/" + robot.file);
    std::string xml{std::istreambuf_iterator<char>(file), {}};
    std::vector<Edit> all = edits;
    all.push_back(robot.policy);
    all.push_back({"CHECKPOINT", Folder()});
    all.push_back({"RENDERER", renderer});
    if (robot.policy.to.find("CAMERA") != std::string::npos) all.push_back({"CAMERA", camera});
    for (const Edit& edit : all) {
      const size_t at = xml.find(edit.from);
      EXPECT_NE(at, std::string::npos) << edit.from;
      if (at != std::string::npos) xml.replace(at, edit.from.size(), edit.to);
    }
    return xml;
  }
  // Push-T.
  static std::string Xml(const std::vector<Edit>& edits, const std::string& renderer,
                         const std::string& camera = "top") {
    return Xml(kPusht, edits, renderer, camera);
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
