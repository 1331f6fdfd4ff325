// What an instance shows in hosts that know nothing of it: user sensors, the trail, the label.

#include <cmath>
#include <string>
#include <vector>

#include "plugin/score.h"
#include "plugin/state.h"
#include "tests/plugin/plugin_fixture.h"

namespace mjp_test {
namespace {

using ::testing::HasSubstr;

class HostViewTest : public PluginTest {
 protected:
  HostViewTest() {
    mjp::RegisterScore("height", [](const mjModel* model) -> mjp::Score {
      if (mj_name2id(model, mjOBJ_BODY, "ball") < 0) return {};
      return {[](const mjModel*, const mjData* data) { return data->qpos[0] + 0.5; },
              [](const mjModel*) {}};
    });
    AddCamera();
  }
  void Load(const std::string& config, const std::string& sensors) {
    std::string xml = Xml(config);
    xml.insert(xml.find("</sensor>"), sensors);
    model_ = Compile(xml, &error_);
    if (!model_) return;
    data_.reset(mj_makeData(model_.get()));
    mjv_makeScene(model_.get(), &scene_, 1000);
  }
  ~HostViewTest() override { mjv_freeScene(&scene_); }

  static std::string Attributes() { return BasicWithCamera() + Set("renderer", "probe"); }
  static std::string User(const std::string& name, int dim, const std::string& stage = "pos") {
    return "<user name=\"" + name + "\" dim=\"" + std::to_string(dim) + "\" needstage=\"" + stage +
           "\"/>";
  }
  const mjtNum* Sensor(const char* name) const {
    return data_->sensordata + model_->sensor_adr[mj_name2id(model_.get(), mjOBJ_SENSOR, name)];
  }
  // The decoration that a viewer would draw.
  std::vector<mjvGeom> Decoration() {
    mjvOption option;
    mjv_defaultOption(&option);
    mjvCamera camera;
    mjv_defaultCamera(&camera);
    mjv_updateScene(model_.get(), data_.get(), &option, nullptr, &camera, mjCAT_ALL, &scene_);
    std::vector<mjvGeom> decoration;
    for (int i = 0; i < scene_.ngeom; ++i) {
      if (scene_.geoms[i].category == mjCAT_DECOR) decoration.push_back(scene_.geoms[i]);
    }
    return decoration;
  }

  ModelPtr model_;
  DataPtr data_;
  mjvScene scene_ = {};
  std::string error_;
};

TEST_F(HostViewTest, FillsTheSensorsThatAreThere) {
  constexpr int kPicture = ProbeSource::kSize * ProbeSource::kSize * 3;
  const int chunk = policy_.config.horizon * policy_.config.action_dim;
  Load(Attributes(), User("policy_view", kPicture) + User("policy_stages", 10) +
                         User("policy_decisions", 1) + User("policy_passes", 1) +
                         User("policy_chunk", chunk) + User("policy_height", 1) + User("other", 2));
  ASSERT_NE(model_, nullptr) << error_;
  const int view = mj_name2id(model_.get(), mjOBJ_SENSOR, "policy_view");
  EXPECT_EQ(model_->sensor_intprm[mjNSENS * view], ProbeSource::kSize);
  EXPECT_EQ(model_->sensor_intprm[mjNSENS * view + 1], ProbeSource::kSize);
  data_->qpos[0] = 0.25;
  for (int i = 0; i < 85; ++i) mj_step(model_.get(), data_.get());
  mj_forward(model_.get(), data_.get());

  EXPECT_EQ(Sensor("policy_decisions")[0], 2);
  EXPECT_EQ(Sensor("policy_height")[0], data_->qpos[0] + 0.5);
  const auto seen = policy_.Take();
  ASSERT_EQ(seen.size(), 2u);
  const std::vector<float> actions = policy_.act(seen[1]);
  for (int i = 0; i < chunk; ++i) EXPECT_EQ(Sensor("policy_chunk")[i], actions[i]);
  // the newer picture of the decision, bottom row first; its last number is a version
  const uint8_t* newest = seen[1].frames.data() + kPicture;
  constexpr int kRow = ProbeSource::kSize * 3;
  for (int i = 0; i < kPicture - 1; ++i) {
    const int row = ProbeSource::kSize - 1 - i / kRow;
    EXPECT_EQ(Sensor("policy_view")[i], newest[row * kRow + i % kRow]);
  }
  const mjtNum version = Sensor("policy_view")[kPicture - 1];
  EXPECT_GT(version, 0);
  for (int i = 0; i < 20; ++i) mj_step(model_.get(), data_.get());
  EXPECT_NE(Sensor("policy_view")[kPicture - 1], version);
  const mjtNum* stages = Sensor("policy_stages");
  EXPECT_GT(stages[static_cast<int>(mjp::Stage::kRender)], 0);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(stages[i] >= 0 && stages[i] < 60000) << i;
  EXPECT_EQ(Sensor("other")[0], 0);
}

TEST_F(HostViewTest, WrongSensorIsASentence) {
  Load(Attributes(), User("policy_view", 100));
  EXPECT_EQ(model_, nullptr);
  EXPECT_THAT(error_,
              HasSubstr("sensor \"policy_view\" is filled by the policy: write dim=\"48\""));
  Load(Attributes(), User("policy_stages", 10, "acc"));
  EXPECT_EQ(model_, nullptr);
  EXPECT_THAT(error_, HasSubstr("needstage=\"pos\""));
  TakeWarnings();
}

// one mjData may show several states: of an earlier moment, or of another simulation
TEST_F(HostViewTest, ViewIsTheNewestObservationOfTheState) {
  Load(Attributes(), User("policy_view", 48));
  const auto shown = [&] {
    mj_forward(model_.get(), data_.get());
    constexpr int kTopRow = (ProbeSource::kSize - 1) * ProbeSource::kSize * 3;
    uint8_t picture[sizeof(mjtNum)];
    std::copy_n(Sensor("policy_view") + kTopRow, sizeof(picture), picture);
    return ProbeSource::Decode(picture);
  };
  data_->qpos[0] = 0.25;
  mj_step(model_.get(), data_.get());
  std::vector<mjtNum> early(mj_stateSize(model_.get(), mjSTATE_FULLPHYSICS));
  mj_getState(model_.get(), data_.get(), early.data(), mjSTATE_FULLPHYSICS);
  EXPECT_EQ(shown(), 0.25);
  for (int i = 0; i < 85; ++i) mj_step(model_.get(), data_.get());
  const double later = shown();
  EXPECT_NE(later, 0.25);
  std::vector<mjtNum> late(early.size());
  mj_getState(model_.get(), data_.get(), late.data(), mjSTATE_FULLPHYSICS);
  for (int i = 0; i < 2; ++i) {
    mj_setState(model_.get(), data_.get(), early.data(), mjSTATE_FULLPHYSICS);
    EXPECT_EQ(shown(), 0.25);
    mj_setState(model_.get(), data_.get(), late.data(), mjSTATE_FULLPHYSICS);
    EXPECT_EQ(shown(), later);
  }
}

// only a user sensor is filled: others keep what the engine reads of them
TEST_F(HostViewTest, OtherSensorOfThatNameIsTheEngines) {
  const auto numbers = [&](const std::string& name) {
    Load(Attributes(),
         "<contact name=\"" + name + "\" body1=\"ball\" data=\"found force\" num=\"2\"/>");
    const int sensor = mj_name2id(model_.get(), mjOBJ_SENSOR, name.c_str());
    const int* numbers = model_->sensor_intprm + mjNSENS * sensor;
    mj_step(model_.get(), data_.get());
    mjv_freeScene(&scene_);
    return std::vector<int>(numbers, numbers + mjNSENS);
  };
  EXPECT_EQ(numbers("policy_view"), numbers("another"));
}

// a model of a task by its sensors, but not by what the score is of, as an attached one may be
TEST_F(HostViewTest, ScoreThatTheModelHasNotIsSaidOnce) {
  mjp::RegisterScore("never", [](const mjModel*) -> mjp::Score { return {}; });
  Load(Attributes(), User("policy_never", 1) + User("policy_height", 1) + User("policy_mine", 1));
  ASSERT_NE(model_, nullptr) << error_;
  const DataPtr another(mj_makeData(model_.get()));
  EXPECT_THAT(TakeWarnings(), ::testing::ElementsAre(HasSubstr("\"policy_never\" stays 0")));
}

// as Push-T's is, once a geom of the block is changed in the model that runs
TEST_F(HostViewTest, ScoreOfAModelThatChangedIsSaidOnce) {
  static bool registered = true, changed = false;
  mjp::RegisterScore("frail", [](const mjModel*) -> mjp::Score {
    if (!registered) return {};
    return {[](const mjModel*, const mjData*) -> double {
              if (changed) throw mjp::BadInput("the block was changed");
              return 1;
            },
            [](const mjModel*) {}};
  });
  Load(Attributes(), User("policy_frail", 1));
  ASSERT_NE(model_, nullptr) << error_;
  mj_step(model_.get(), data_.get());
  EXPECT_THAT(TakeWarnings(), ::testing::IsEmpty());
  changed = true;
  for (int i = 0; i < 200; ++i) mj_step(model_.get(), data_.get());
  Decoration();  // nor does a frame say it again
  EXPECT_THAT(TakeWarnings(), ::testing::ElementsAre(HasSubstr("the block was changed")));
  EXPECT_TRUE(mjp::PolicyFailed(model_.get(), data_.get()));
  registered = false;
}

TEST_F(HostViewTest, SensorsDoNotChangeWhatHappens) {
  Load(Attributes(), "");
  for (int i = 0; i < 300; ++i) mj_step(model_.get(), data_.get());
  const double expected = data_->qpos[0];
  mjv_freeScene(&scene_);
  Load(Attributes(), User("policy_view", 48) + User("policy_stages", 10));
  for (int i = 0; i < 300; ++i) {
    mj_step(model_.get(), data_.get());
    Decoration();
  }
  EXPECT_EQ(data_->qpos[0], expected);
}

TEST_F(HostViewTest, TrailIsWhereTheActionsLead) {
  Load(Attributes() + Set("trail", "robot") + Set("action_scale", "100"), "");
  EXPECT_TRUE(Decoration().empty()) << "no decision yet";
  for (int i = 0; i < 25; ++i) mj_step(model_.get(), data_.get());
  const std::vector<float> actions = policy_.act(policy_.Take()[0]);
  const std::vector<mjvGeom> decoration = Decoration();
  std::vector<mjvGeom> beads;
  for (const mjvGeom& geom : decoration) {
    if (geom.type == mjGEOM_SPHERE) beads.push_back(geom);
  }
  const int first = policy_.config.FirstAction() + 2;  // the third control step is going on
  ASSERT_EQ(static_cast<int>(beads.size()), policy_.config.horizon - first);
  for (size_t i = 0; i < beads.size(); ++i) {
    EXPECT_NEAR(beads[i].pos[0], actions[2 * (first + i)] / 100, 1e-6) << i;
    EXPECT_NEAR(beads[i].pos[1], actions[2 * (first + i) + 1] / 100, 1e-6) << i;
    if (i > 0) {
      EXPECT_LT(beads[i].rgba[3], beads[i - 1].rgba[3]) << "fades";
    }
  }
  EXPECT_EQ(decoration.size(), 2 * beads.size() - 1);  // and the lines between them
  {
    const mjp::PolicyPictureScope scope;
    EXPECT_TRUE(Decoration().empty()) << "never in the policy's own picture";
  }
  mj_resetData(model_.get(), data_.get());
  EXPECT_TRUE(Decoration().empty());
}

// an arm's site moves as its joints do, with gear and bias of the actuator undone
TEST_F(HostViewTest, TrailFollowsJointsAndSites) {
  policy_.config.state_dim = policy_.config.action_dim = 1;
  std::string xml =
      Xml(Set("checkpoint", Folder()) + Set("camera", "top") + Set("renderer", "probe") +
          Set("state", "hinge") + Set("actuators", "servo") + Set("trail", "both"));
  xml.insert(xml.find("</actuator>"),
             "<general name=\"servo\" joint=\"hinge\" gear=\"2\" gainprm=\"3\" biastype=\"affine\" "
             "biasprm=\"0.6 -5 0\"/>");
  const std::string site = "<site name=\"both\"";
  xml.insert(xml.find(site) + site.size(), " pos=\"1 0 0\"");
  model_ = Compile(xml);
  ASSERT_NE(model_, nullptr);
  data_.reset(mj_makeData(model_.get()));
  mjv_makeScene(model_.get(), &scene_, 1000);
  mj_forward(model_.get(), data_.get());
  const std::vector<float> actions = policy_.act(policy_.Take()[0]);
  size_t row = policy_.config.FirstAction();
  for (const mjvGeom& geom : Decoration()) {
    if (geom.type != mjGEOM_SPHERE) continue;
    const double angle = (3 * actions[row] + 0.6) / (5 * 2);  // about y: x turns to -z
    EXPECT_NEAR(geom.pos[0], data_->qpos[0] + std::cos(angle), 1e-5) << row;
    EXPECT_NEAR(geom.pos[2], 1 - std::sin(angle), 1e-5) << row;
    ++row;
  }
  EXPECT_EQ(static_cast<int>(row), policy_.config.horizon);
}

TEST_F(HostViewTest, LabelSaysScoreAndDecision) {
  Load(Attributes() + Set("label", "mark"), "");
  data_->qpos[0] = 0.25;
  mj_step(model_.get(), data_.get());
  std::string text;
  for (const mjvGeom& geom : Decoration()) {
    if (geom.type == mjGEOM_LABEL) text = geom.label;
  }
  EXPECT_THAT(text, ::testing::StartsWith("height 0.7"));
  EXPECT_THAT(text, HasSubstr("decision 1"));
}

TEST_F(HostViewTest, WrongNamesAreSentences) {
  Load(Attributes() + Set("trail", "nothing"), "");
  EXPECT_THAT(error_, HasSubstr("attribute trail names \"nothing\""));
  Load(Attributes() + Set("label", "robot"), "");
  EXPECT_THAT(error_, HasSubstr("attribute label names \"robot\""));
  TakeWarnings();
}

TEST_F(HostViewTest, FullSceneIsNotOverrun) {
  Load(Attributes(), "");
  mj_step(model_.get(), data_.get());
  mjv_freeScene(&scene_);
  mjv_makeScene(model_.get(), &scene_, 8);
  Decoration();
  EXPECT_LE(scene_.ngeom, 8);
  TakeWarnings();
}

}  // namespace
}  // namespace mjp_test
