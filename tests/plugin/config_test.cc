#include "plugin/model/config.h"

#include "plugin/model/random_checkpoint_command.h"
#include "plugin/pictures/mujoco_renderer.h"
#include "plugin/policies/cache.h"
#include "plugin/state.h"
#include "tests/plugin/plugin_fixture.h"

namespace mjp_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ConfigTest : public PluginTest {
 protected:
  // The message of a compilation that must fail.
  std::string Refusal(const std::string& config, const std::string& options = "") {
    std::string error;
    const ModelPtr model = Compile(Xml(config, options), &error);
    EXPECT_EQ(model, nullptr) << config;
    TakeWarnings();
    return error;
  }
};

TEST_F(ConfigTest, ReadsEveryAttribute) {
  const ModelPtr model = Compile(
      Xml(Basic() + Set("state_scale", "100 50") + Set("action_scale", "100") +
          Set("period", "0.05") + Set("latency", "20") + Set("action_steps", "4") +
          Set("replan_beyond", "2.5") + Set("sampler", "ddim") + Set("steps", "10") +
          Set("parallel", "16,0.01") + Set("hold_noise", "5") + Set("temperature", "0.5") +
          Set("seed", "9007199254740992") + Set("backend", "cpu") + Set("precision", "fp32") +
          Set("threads", "3") + Set("renderer", "mujoco") + Set("instruction", "push the T")));
  ASSERT_NE(model, nullptr);
  const mjp::Config config = mjp::Config::FromModel(model.get(), 0);
  EXPECT_EQ(config.checkpoint, Folder());
  EXPECT_THAT(config.state, ElementsAre("ax", "ay"));
  EXPECT_THAT(config.actuators, ElementsAre("ax", "ay"));
  EXPECT_THAT(config.state_map.gain, ElementsAre(100, 50));
  EXPECT_THAT(config.action_scale, ElementsAre(100));
  EXPECT_EQ(config.period, 0.05);
  EXPECT_DOUBLE_EQ(config.latency, 0.02);
  EXPECT_EQ(config.action_steps, 4);
  EXPECT_EQ(config.replan_beyond, 2.5);
  EXPECT_EQ(config.policy.sampler.kind, mjp::SamplerKind::kDdim);
  EXPECT_EQ(config.policy.sampler.steps, 10);
  EXPECT_EQ(config.policy.sampler.parallel_window, 16);
  EXPECT_EQ(config.policy.sampler.parallel_tolerance, 0.01f);
  EXPECT_EQ(config.policy.sampler.hold_noise, 5);
  EXPECT_EQ(config.policy.sampler.temperature, 0.5f);
  EXPECT_EQ(config.seed, mjp::kMaxSeed);
  EXPECT_EQ(config.policy.backend, mjp::Backend::kCpu);
  EXPECT_EQ(config.policy.precision, mjp::Precision::kFp32);
  EXPECT_EQ(config.policy.threads, 3);
  EXPECT_EQ(config.renderer, "mujoco");
  EXPECT_EQ(config.policy.instruction, "push the T");
}

TEST_F(ConfigTest, APolicyThatReadsATextNeedsOne) {
  policy_.text_tokens = 10;
  EXPECT_THAT(Refusal(Basic()), HasSubstr("attribute instruction is missing"));
  EXPECT_NE(Compile(Xml(Basic() + Set("instruction", "push the T"))), nullptr);
}

TEST_F(ConfigTest, SaysWhichAttributeIsWrong) {
  struct Case {
    const char *key, *value, *reason;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"checkpoint", "/no/such/place", "/no/such/place"},
           {"state", "ax nothing", "attribute state names \"nothing\""},
           {"state", "ax", "attribute state gives 1 numbers"},
           {"state", "both", "write joint:both or site:both"},
           {"state", "site:ax", "no site of that name"},
           {"state", "speed ax", "attribute state names \"speed\": a policy acts before"},
           {"state", "sensor:mark[0:4]", "it has only 3 components"},
           {"state", "mark[2:1]", "components are chosen as"},
           {"state", "mark[x]", "components are chosen as"},
           {"state", "mark[0:2", "components are chosen as"},
           {"state", "mark[0]]", "components are chosen as"},
           {"environment", "hinge", "observation.environment_state has 0"},
           {"actuators", "ax ax", "\"ax\" twice"},
           {"actuators", "ax no", "no actuator of that name"},
           {"actuators", "ax", "attribute actuators gives 1 numbers"},
           {"actuators", " ", "attribute actuators is missing"},
           {"camera", "top", "attribute camera names 1 cameras: the checkpoint has 0"},
           {"state_scale", "1 2 3", "attribute state_scale has 3 numbers: expected 1 or 2"},
           {"state_gain", "1 2 3", "attribute state_gain has 3 numbers: expected 1 or 2"},
           {"state_gain", "1 0",
            "attribute state_gain is \"1 0\": expected numbers that are not 0"},
           {"state_offset", "1 2 3", "attribute state_offset has 3 numbers: expected 1 or 2"},
           {"state_offset", "one", "attribute state_offset is \"one\""},
           {"action_gain", "1 2 3", "attribute action_gain has 3 numbers: expected 1 or 2"},
           {"action_clip", "1", "the lowest and the highest number"},
           {"action_clip", "1 -1", "the lowest and the highest number"},
           {"action_clip", "-1 1 -1 1 -1 1",
            "attribute action_clip has 6 numbers: expected 2 or 4"},
           {"action_index", "0", "expected one for each of the 2 controls"},
           {"action_index", "0 0.5", "whole numbers"},
           {"action_index", "0 2", "leaves out number 1"},
           {"action_index", "0 0", "attribute actuators gives 1 numbers"},
           {"state_scale", "0", "attribute state_scale is \"0\""},
           {"state_scale", "1e400", "attribute state_scale is \"1e400\""},
           {"action_scale", "-1", "attribute action_scale is \"-1\""},
           {"period", "0.001", "shorter than the model's timestep"},
           {"period", "nan", "attribute period is \"nan\""},
           {"period", "inf", "attribute period is \"inf\""},
           {"period", "0.1x", "attribute period is \"0.1x\""},
           {"period", "0.5ms", "shorter than the model's timestep"},
           {"latency", "900ms", "attribute latency is longer than the 8 control steps"},
           {"latency", "0.9s", "attribute latency is longer than the 8 control steps"},
           {"period", "0.1 ", "attribute period is \"0.1 \""},
           {"latency", "801", "attribute latency is longer than the 8 control steps"},
           {"latency", "-1", "attribute latency is \"-1\""},
           {"async", "yes", "attribute async is \"yes\""},
           {"action_steps", "16", "has only 15 actions"},
           {"action_steps", "0", "attribute action_steps is \"0\""},
           {"replan_beyond", "-1", "attribute replan_beyond is \"-1\""},
           {"replan_beyond", "nan", "attribute replan_beyond is \"nan\""},
           {"replan_beyond", "5", "a chunk is followed for 8 control steps at most"},
           {"replan_after", "0", "attribute replan_after is \"0\""},
           {"replan_after", "4", "attribute replan_beyond: is missing"},
           {"steps", "0", "attribute steps is \"0\""},
           {"action_steps", "2.5", "attribute action_steps is \"2.5\""},
           {"sampler", "heun", "attribute sampler is \"heun\": choose one of ddpm, ddim"},
           {"steps", "-3", "attribute steps is \"-3\""},
           {"steps", "99999999999999999999999", "attribute steps is"},
           {"parallel", "16;1", "attribute parallel is \"16;1\""},
           {"parallel", "16,", "attribute parallel is \"16,\""},
           {"parallel", "16,nan", "attribute parallel is \"16,nan\""},
           {"temperature", "-1", "attribute temperature is \"-1\""},
           {"hold_noise", "-1", "attribute hold_noise is \"-1\""},
           {"hold_noise", "1001", "attribute hold_noise is \"1001\""},
           {"hold_noise", "1.5", "attribute hold_noise is \"1.5\""},
           {"seed", "-1", "attribute seed is \"-1\""},
           {"seed", "9007199254740993", "attribute seed is"},
           {"backend", "tpu", "attribute backend is \"tpu\": choose one of auto, cpu, cuda"},
           {"precision", "int8", "attribute precision is \"int8\""},
           {"threads", "0", "attribute threads is \"0\""},
       }) {
    std::string config;
    for (const char* key : {"checkpoint", "state", "actuators"}) {
      if (std::string(key) != c.key) {
        config += Set(key, std::string(key) == "checkpoint" ? Folder() : "ax ay");
      }
    }
    EXPECT_THAT(Refusal(config + Set(c.key, c.value)), HasSubstr(c.reason))
        << c.key << "=" << c.value;
  }
}

TEST_F(ConfigTest, NamesWhatIsMissing) {
  EXPECT_THAT(Refusal(Set("state", "ax ay") + Set("actuators", "ax ay")),
              HasSubstr("attribute checkpoint is missing"));
  EXPECT_THAT(Refusal(Set("checkpoint", Folder()) + Set("state", "ax ay")),
              HasSubstr("attribute actuators is missing"));
}

TEST_F(ConfigTest, AMissingCheckpointComesWithTheCommandThatMakesOne) {
  const std::string attributes =
      Set("checkpoint", "not there") + Set("state", "ax ay") + Set("actuators", "ax ay");
  EXPECT_THAT(Refusal(attributes + Set("camera", "top")),
              HasSubstr("to try the model: mjpolicy random-checkpoint 'not there'"));
  EXPECT_THAT(Refusal(attributes), Not(HasSubstr("random-checkpoint"))) << "it has no such network";
}

TEST_F(ConfigTest, TheCommandFitsTheModel) {
  std::string xml = Xml(Basic());
  const std::string servo = "joint=\"ay\" kp=\"10\"";
  xml.replace(xml.find(servo), servo.size(), servo + " ctrlrange=\"-3 0.5\"");
  const ModelPtr model = Compile(xml);
  ASSERT_NE(model, nullptr);
  mjp::Config config;
  config.cameras = {"top"};
  config.state = {"ax", "ay"};
  config.actuators = {"ax", "hinge"};
  const std::string command = "mjpolicy random-checkpoint there";
  EXPECT_EQ(mjp::RandomCheckpointCommand(model.get(), config, "there"), command);
  config.actuators = {"ay"};
  config.action_scale = {-100};
  config.state = {"site:both", "ax"};
  config.environment = {"ball[0:2]"};
  EXPECT_EQ(mjp::RandomCheckpointCommand(model.get(), config, "there"),
            command + " --state 4 --environment 2 --action 1 --range 300");
  config.cameras = {"top", "the wrist's"};
  EXPECT_THAT(mjp::RandomCheckpointCommand(model.get(), config, "there"),
              HasSubstr("there --camera observation.images.top "
                        "'observation.images.the wrist'\\''s' --state 4"));
  config.state = {"nothing"};
  EXPECT_EQ(mjp::RandomCheckpointCommand(model.get(), config, "there"), "");
}

TEST_F(ConfigTest, CamerasAgainstTheNamesOfThePicturesAreSaidOnce) {
  for (const char* name : {"observation.images.top", "observation.images.wrist"}) {
    policy_.config.cameras.push_back({name, 3, ProbeSource::kSize, ProbeSource::kSize});
  }
  policy_.Install();
  const auto load = [&](const std::string& cameras) {
    std::string xml = Xml(Basic() + Set("renderer", "probe") + Set("camera", cameras));
    xml.insert(xml.find("<camera"), R"(<camera name="wrist"/><camera name="side"/>)");
    const ModelPtr model = Compile(xml);
    const DataPtr first(mj_makeData(model.get())), second(mj_makeData(model.get()));
    return TakeWarnings();
  };
  for (const char* right : {"top wrist", "top side", "side wrist"}) {
    EXPECT_THAT(load(right), IsEmpty()) << right;
  }
  EXPECT_THAT(load("wrist top"),
              ElementsAre(HasSubstr("instance \"policy\" sees camera \"wrist\" as "
                                    "observation.images.top, and the checkpoint has "
                                    "observation.images.wrist too")));
}

TEST_F(ConfigTest, LooksUpCamerasAndRenderers) {
  AddCamera();
  EXPECT_THAT(Refusal(Basic()), HasSubstr("the checkpoint has 1: observation.image"));
  EXPECT_THAT(Refusal(Basic() + Set("camera", "side")), HasSubstr("no camera of that name"));
  EXPECT_THAT(Refusal(BasicWithCamera() + Set("renderer", "crayon")),
              HasSubstr("renderer \"crayon\" is unknown"));
}

TEST_F(ConfigTest, SaysOnceThatPicturesForTheGpuAreDrawnOnTheCpu) {
  try {
    if (!mjp::MujocoRendererDescription().starts_with("llvmpipe")) GTEST_SKIP() << "a GPU draws";
  } catch (const mjp::Error& error) {
    GTEST_SKIP() << error.what();
  }
  // MuJoCo's renderer, as it is asked for by a policy on a GPU or on the CPU
  static int cuda_device = 0;
  mjp::RegisterPictureSource("beside", [](const mjModel* model, mjp::PictureRequest request) {
    request.cuda_device = cuda_device;
    return mjp::MakeMujocoPictureSource(model, request);
  });
  AddCamera();
  for (const int device : {0, -1}) {
    cuda_device = device;
    const ModelPtr model = Compile(Xml(BasicWithCamera() + Set("renderer", "beside")));
    ASSERT_NE(model, nullptr);
    EXPECT_THAT(TakeWarnings(),
                ::testing::Conditional(
                    device == 0, ElementsAre(HasSubstr("draws its pictures on the CPU (llvmpipe")),
                    ::testing::IsEmpty()));
    for (int copy = 0; copy < 2; ++copy) {
      const DataPtr data(mj_makeData(model.get()));
      mj_step(model.get(), data.get());  // the host goes on
      EXPECT_THAT(policy_.Take(), ::testing::SizeIs(1));
    }
  }
}

TEST_F(ConfigTest, PassesOnWhatThePolicyCannotDo) {
  policy_.refuse = "no kernel for this shape";
  EXPECT_THAT(Refusal(Basic()), HasSubstr("no kernel for this shape"));
  policy_.refuse.clear();
  EXPECT_NE(Compile(Xml(Basic())), nullptr);
}

TEST_F(ConfigTest, MapsObservationsByNameComponentAndScale) {
  policy_.config.state_dim = 3 + 2 + 1 + 7;
  policy_.config.environment_dim = 3;
  const ModelPtr model =
      Compile(Xml(Set("checkpoint", Folder()) + Set("actuators", "hinge ay") +
                  Set("state", "site:mark sensor:mark[0:2] hinge free") +
                  Set("environment", "body:robot") + Set("environment_scale", "10")));
  ASSERT_NE(model, nullptr);
  const DataPtr data(mj_makeData(model.get()));
  data->qpos[0] = 0.25;  // ax
  data->qpos[2] = 0.5;   // hinge
  mj_step(model.get(), data.get());
  const auto seen = policy_.Take();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_THAT(seen[0].state, ElementsAre(1, 2, 3, 1, 2, 0.5f, 0, 0, 0, 1, 0, 0, 0,  //
                                         1, 2, 3, 1, 2, 0.5f, 0, 0, 0, 1, 0, 0, 0));
  EXPECT_THAT(seen[0].environment, ElementsAre(2.5f, 0, 0, 2.5f, 0, 0));
  EXPECT_EQ(data->ctrl[0], 0);
  EXPECT_EQ(data->ctrl[2], policy_.act(seen[0])[2]);
  EXPECT_EQ(data->ctrl[1], policy_.act(seen[0])[3]);
}

TEST_F(ConfigTest, GainsAndScalesAreNotBothGiven) {
  EXPECT_THAT(Refusal(Basic() + Set("state_scale", "2") + Set("state_gain", "2")),
              HasSubstr("attributes state_scale and state_gain say the same"));
}

// policy = model x gain + offset; control = (clipped action) x gain + offset
TEST_F(ConfigTest, MapsBothWaysByGainAndOffset) {
  policy_.act = [](const SeenInput&) { return std::vector<float>(32, 3); };
  const ModelPtr model =
      Compile(Xml(Basic() + Set("state_gain", "-2 4") + Set("state_offset", "1 0.5") +
                  Set("action_gain", "-0.5 10") + Set("action_offset", "0.25") +
                  Set("action_clip", "-9 9 -1 1")));
  ASSERT_NE(model, nullptr);
  const DataPtr data(mj_makeData(model.get()));
  data->qpos[0] = 0.25;
  data->qpos[1] = -1;
  mj_step(model.get(), data.get());
  const auto seen = policy_.Take();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_THAT(seen[0].state, ElementsAre(0.5f, -3.5f, 0.5f, -3.5f));
  EXPECT_EQ(data->ctrl[0], 3 * -0.5 + 0.25);
  EXPECT_EQ(data->ctrl[1], 1 * 10 + 0.25);
}

TEST_F(ConfigTest, OneNumberOfAnActionDrivesSeveralControls) {
  policy_.act = [](const SeenInput&) {
    std::vector<float> actions;
    for (int i = 0; i < 16; ++i) actions.insert(actions.end(), {2, 5});
    return actions;
  };
  const ModelPtr model = Compile(Xml(Set("checkpoint", Folder()) + Set("state", "ax ay") +
                                     Set("actuators", "hinge ax ay") +
                                     Set("action_index", "1 0 0") + Set("action_gain", "1 1 -1")));
  ASSERT_NE(model, nullptr);
  const DataPtr data(mj_makeData(model.get()));
  mj_step(model.get(), data.get());
  EXPECT_THAT(std::vector<mjtNum>(data->ctrl, data->ctrl + 3), ElementsAre(2, -2, 5));
}

TEST_F(ConfigTest, AnActuatorWithoutANameIsFoundByItsJoint) {
  std::string xml = Xml(Basic());
  const std::string name = "<position name=\"ay\"";
  xml.replace(xml.find(name), name.size(), "<position");
  EXPECT_NE(Compile(xml), nullptr);
  const std::string second = "<motor name=\"hinge\" joint=\"hinge\"";
  xml.replace(xml.find(second), second.size(), "<motor name=\"hinge\" joint=\"ay\"");
  std::string error;
  EXPECT_EQ(Compile(xml, &error), nullptr);
  EXPECT_THAT(error, HasSubstr("nor a single one that drives a joint of that name"));
  TakeWarnings();
}

}  // namespace
}  // namespace mjp_test
