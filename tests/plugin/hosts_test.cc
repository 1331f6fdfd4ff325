// Hosts that come by their model or their clock in another way than by compiling MJCF and starting
// at zero: saved models, other start times, sensors or actuation switched off.

#include <dlfcn.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "plugin/guard.h"
#include "plugin/model/model_folder.h"
#include "plugin/model/outline.h"
#include "plugin/policies/cache.h"
#include "plugin/state.h"
#include "tests/plugin/plugin_fixture.h"

namespace mjp_test {
namespace {

// Processors that the engine believes to have; 0: as many as there are.
int processors = 0;

}  // namespace
}  // namespace mjp_test

// stands before the C library's for the engine, whose compiler takes half of the processors
extern "C" [[gnu::visibility("default")]] long sysconf(int name) noexcept {
  if (name == _SC_NPROCESSORS_ONLN && mjp_test::processors > 0) return mjp_test::processors;
  static const auto of_the_system = reinterpret_cast<long (*)(int)>(dlsym(RTLD_NEXT, "sysconf"));
  return of_the_system(name);
}

namespace mjp_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class HostsTest : public PluginTest {
 protected:
  // The controls after each of `steps` steps.
  static std::vector<mjtNum> Run(const mjModel* model, mjData* data, int steps) {
    std::vector<mjtNum> controls;
    for (int i = 0; i < steps; ++i) {
      mj_step(model, data);
      controls.insert(controls.end(), data->ctrl, data->ctrl + model->nu);
    }
    return controls;
  }
  static std::vector<mjtNum> Run(const mjModel* model, int steps) {
    const DataPtr data(mj_makeData(model));
    return Run(model, data.get(), steps);
  }
  // A model whose `body` has this sleep policy, and a keyframe.
  static std::string WithSleeper(const std::string& body, const std::string& policy,
                                 const std::string& config) {
    std::string xml = Xml(config, "gravity=\"0 0 0\"");
    const std::string element = "<body name=\"" + body + "\"";
    xml.insert(xml.find(element) + element.size(), " sleep=\"" + policy + "\"");
    xml.insert(xml.find("<worldbody>"),
               "<option><flag sleep=\"enable\"/></option>"
               "<keyframe><key qpos=\"0.5 0 0 0 0 0 0 1 0 0 0\"/></keyframe>");
    return xml;
  }
  // `model` as a host has it that reads it from an .mjb file, or from a pickle of Python's.
  static std::vector<char> Saved(const mjModel* model) {
    std::vector<char> bytes(mj_sizeModel(model));
    mj_saveModel(model, nullptr, bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }
  static ModelPtr Loaded(const std::vector<char>& bytes) {
    return ModelPtr(mj_loadModelBuffer(bytes.data(), static_cast<int>(bytes.size())));
  }
};

TEST_F(HostsTest, SavedModelActsAsTheCompiledOne) {
  const ModelPtr model = Compile(Xml(Basic() + Set("seed", "3")));
  const ModelPtr loaded = Loaded(Saved(model.get()));
  ASSERT_NE(loaded, nullptr);
  const auto expected = Run(model.get(), 200);
  EXPECT_NE(expected.front(), 0);
  EXPECT_EQ(Run(loaded.get(), 200), expected);
  EXPECT_EQ(Run(ModelPtr(mj_copyModel(nullptr, loaded.get())).get(), 200), expected);
  EXPECT_FALSE(mjp::WithinCompiler(loaded.get()));
}

// a compilation that ended between the questions for the state's size and the trial, and a model
// that comes to lie where its own did
TEST_F(HostsTest, SavedModelActsAfterACompilationThatFailed) {
  const ModelPtr model = Compile(Xml(Basic()));
  const std::vector<char> bytes = Saved(model.get());
  const auto expected = Run(model.get(), 100);
  for (int i = 0; i < 5; ++i) {
    std::string error;
    EXPECT_EQ(Compile(Xml(Basic() + Set("state_scale", "x")), &error), nullptr);
    TakeWarnings();
    EXPECT_EQ(Run(Loaded(bytes).get(), 100), expected);
  }
}

TEST_F(HostsTest, SavedModelWhosePolicyIsGoneWarnsAndLives) {
  const std::filesystem::path folder = std::filesystem::path(Folder()) / "to_be_removed";
  std::filesystem::create_directories(folder);
  const ModelPtr model = Compile(
      Xml(Set("checkpoint", folder.string()) + Set("state", "ax ay") + Set("actuators", "ax ay")));
  const ModelPtr loaded = Loaded(Saved(model.get()));
  std::filesystem::remove_all(folder);
  const DataPtr data(mj_makeData(loaded.get()));
  ASSERT_NE(data, nullptr) << "the host goes on";
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("there is no checkpoint directory")));
  data->ctrl[0] = 5;
  mj_step(loaded.get(), data.get());
  EXPECT_EQ(data->ctrl[0], 5);
  EXPECT_TRUE(mjp::PolicyFailed(loaded.get(), data.get()));
}

// the engine runs a forward pass of its own as it puts bodies to sleep, before the host has said
// where the episode starts
TEST_F(HostsTest, EpisodeOfAModelWithSleepersStartsWhereTheHostPutsIt) {
  const ModelPtr model = Compile(WithSleeper("ball", "init", Basic()));
  DataPtr data(mj_makeData(model.get()));
  const auto expect_fresh_start = [&](const char* after) {
    SCOPED_TRACE(after);
    EXPECT_THAT(policy_.Take(), IsEmpty());
    EXPECT_EQ(mjp::PolicyDecisions(model.get(), data.get()), 0u);
    EXPECT_EQ(data->ctrl[0], 0);
    data->qpos[0] = 1.5;
    mjp::SetEpisodeSeed(model.get(), data.get(), 7);
    mj_step(model.get(), data.get());
    const std::vector<SeenInput> seen = policy_.Take();
    ASSERT_THAT(seen, SizeIs(1));
    EXPECT_EQ(seen[0].state[0], 1.5f);
    EXPECT_EQ(seen[0].key.seed, 7u);
    EXPECT_NE(data->ctrl[0], 0);
  };
  expect_fresh_start("mj_makeData");
  mj_resetData(model.get(), data.get());
  expect_fresh_start("mj_resetData");
  mj_resetDataKeyframe(model.get(), data.get(), 0);
  expect_fresh_start("mj_resetDataKeyframe");
}

TEST_F(HostsTest, ModelWithSleepersIsTriedByTheCompiler) {
  std::string error;
  EXPECT_EQ(Compile(WithSleeper("ball", "init", Basic() + Set("state_scale", "x")), &error),
            nullptr);
  EXPECT_THAT(error, HasSubstr("state_scale"));
  TakeWarnings();
}

// the engine says nothing of where a model lies; its assets do, and so may a host
TEST_F(HostsTest, RelativeCheckpointIsFoundBesideTheModel) {
  const std::filesystem::path folder = std::filesystem::path(Folder()) / "robot";
  std::filesystem::create_directories(folder / "assets/visual");
  std::filesystem::create_directories(folder / "beside_the_model");
  std::ofstream(folder / "assets/visual/tetrahedron.obj")
      << "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";
  const auto load = [&](const std::string& mesh, std::string* why) {
    std::string xml = Xml(Set("checkpoint", "beside_the_model") + Set("state", "ax ay") +
                          Set("actuators", "ax ay"));
    xml.insert(xml.find("<worldbody>"), mesh);
    std::ofstream(folder / "robot.xml") << xml;
    char text[2000] = "";
    ModelPtr model(mj_loadXML((folder / "robot.xml").c_str(), nullptr, text, sizeof(text)));
    *why = text;
    TakeWarnings();
    return model;
  };
  const std::string mesh =
      "<asset><mesh name=\"m\" file=\"assets/visual/tetrahedron.obj\"/></asset>";
  std::string why;
  const ModelPtr model = load(mesh, &why);
  ASSERT_NE(model, nullptr) << why;
  EXPECT_NE(Run(model.get(), 3).front(), 0);
  EXPECT_EQ(load("", &why), nullptr) << "nothing tells where it lies";
  EXPECT_THAT(why, HasSubstr("there is no checkpoint directory beside_the_model"));
  mjp::SetModelFolder(folder);
  EXPECT_NE(load("", &why), nullptr) << why;
  mjp::SetModelFolder("");
}

// the engine stores plugins by number: attributes of another plugin, or of another version of this
TEST_F(HostsTest, SavedModelOfOtherPluginsIsASentence) {
  const ModelPtr model = Compile(Xml(Basic()));
  const ModelPtr loaded = Loaded(Saved(model.get()));
  ASSERT_GT(loaded->npluginattr, 40);
  std::fill_n(loaded->plugin_attr + loaded->npluginattr - 10, 9, 'x');
  const DataPtr data(mj_makeData(loaded.get()));
  ASSERT_NE(data, nullptr);
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("compile it from its XML")));
}

TEST_F(HostsTest, ActsFromTheFirstStepWheneverItStarts) {
  const ModelPtr model = Compile(Xml(Basic()));
  const auto expected = Run(model.get(), 30);
  for (const double start : {-0.2, -0.1, -0.3, -1.0, -7777.7, 0.05, 12345.6, 1e6, -1e9}) {
    const DataPtr data(mj_makeData(model.get()));
    data->time = start;
    policy_.Take();
    mj_step(model.get(), data.get());
    EXPECT_THAT(policy_.Take(), SizeIs(1)) << start;
    EXPECT_EQ(data->ctrl[0], expected[0]) << start;
    EXPECT_FALSE(mjp::PolicyFailed(model.get(), data.get())) << start;
  }
}

TEST_F(HostsTest, SaysWhatIsWrongWithATime) {
  const ModelPtr model = Compile(Xml(Basic()));
  const DataPtr data(mj_makeData(model.get()));
  data->time = 1e15;
  mj_forward(model.get(), data.get());
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("time is 1e+15 s, more than")));
  mj_resetData(model.get(), data.get());
  data->time = std::numeric_limits<double>::infinity();
  mj_forward(model.get(), data.get());
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("not a finite number")));
}

TEST_F(HostsTest, SaysOnceThatTheTimestepHasBecomeTooLong) {
  for (const char* latency : {"0", "100"}) {
    const ModelPtr model = Compile(Xml(Basic() + Set("latency", latency)));
    const DataPtr data(mj_makeData(model.get()));
    Run(model.get(), data.get(), 30);
    const double held = data->ctrl[0];
    const size_t decisions = policy_.Take().size();
    EXPECT_NE(held, 0);
    model->opt.timestep = 0.15;
    Run(model.get(), data.get(), 20);
    EXPECT_EQ(data->ctrl[0], held);
    EXPECT_THAT(TakeWarnings(),
                ElementsAre(HasSubstr("shorter than the model's timestep of 0.15")));
    EXPECT_TRUE(mjp::PolicyFailed(model.get(), data.get()));
    EXPECT_THAT(policy_.Take(), IsEmpty());
    model->opt.timestep = 0.01;
    mj_resetData(model.get(), data.get());
    Run(model.get(), data.get(), 30);
    EXPECT_EQ(data->ctrl[0], held);
    EXPECT_THAT(policy_.Take(), SizeIs(decisions));
  }
}

TEST_F(HostsTest, TwoPoliciesOnOneActuatorAreRefused) {
  const auto second = [](const std::string& actuators) {
    return "<instance name=\"second\">" + Set("checkpoint", Folder()) + Set("state", "ax ay") +
           Set("actuators", actuators) + "</instance>";
  };
  std::string error;
  EXPECT_EQ(Compile(Xml(Basic(), "", second("hinge ay")), &error), nullptr);
  EXPECT_THAT(error, HasSubstr("\"second\""));
  EXPECT_THAT(error, HasSubstr("\"policy\""));
  EXPECT_THAT(error, HasSubstr("\"ay\""));
  TakeWarnings();
}

TEST_F(HostsTest, EachPolicyThatIsLeftOutIsChecked) {
  const mjp::PoliciesLeftOut left_out;
  const std::string second = "<instance name=\"second\">" + Set("checkpoint", Folder()) +
                             Set("state", "ax ay") + Set("actuators", "nobody") + "</instance>";
  std::string error;
  EXPECT_EQ(Compile(Xml(Basic(), "", second), &error), nullptr);
  EXPECT_THAT(error, HasSubstr("nobody"));
  TakeWarnings();
}

// whose lengths the compiler finds in several threads, each with an mjData of its own
TEST_F(HostsTest, ModelWithMusclesIsOnlyTriedByTheCompiler) {
  std::string xml = Xml(Basic());
  for (const std::string name : {"m0", "m1", "m2", "m3"}) {
    const std::string joint = "joint=\"" + name + "\"";
    xml.insert(xml.find("</worldbody>"), "<body><joint name=\"" + name +
                                             "\" damping=\"1\" range=\"-1 1\" limited=\"true\"/>"
                                             "<geom size=\"0.1\" pos=\"0 9 0\"/></body>");
    xml.insert(xml.find("</actuator>"), "<muscle " + joint + "/>");
  }
  processors = 8;
  const ModelPtr model = Compile(xml);
  processors = 0;
  EXPECT_THAT(policy_.Take(), IsEmpty());
  EXPECT_EQ(mjp::model_in_compiler, nullptr);
  EXPECT_NE(Run(model.get(), 1).front(), 0);
}

// a host in which the policy cannot act hears of it once
TEST_F(HostsTest, SaysOnceThatItCannotAct) {
  struct Case {
    int flag;
    const char* said;
  };
  for (const Case& c : {Case{mjDSBL_SENSOR, "sensors are disabled"},
                        Case{mjDSBL_ACTUATION, "actuation is disabled"}}) {
    const ModelPtr model = Compile(Xml(Basic()));
    const DataPtr data(mj_makeData(model.get()));
    model->opt.disableflags |= c.flag;
    for (int i = 0; i < 50; ++i) mj_step(model.get(), data.get());
    EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr(c.said)));
    model->opt.disableflags &= ~c.flag;
    mj_step(model.get(), data.get());
    EXPECT_NE(data->ctrl[0], 0);
  }
}

TEST_F(HostsTest, EachModelThatCannotActSaysSo) {
  std::string with_another_body = Xml(Basic());
  with_another_body.insert(with_another_body.find("</worldbody>"), "<body name=\"another\"/>");
  const ModelPtr models[] = {Compile(Xml(Basic())), Compile(with_another_body)};
  for (const ModelPtr& model : models) {
    model->opt.disableflags |= mjDSBL_SENSOR;
    for (int simulation = 0; simulation < 2; ++simulation) Run(model.get(), 3);
    Run(ModelPtr(mj_copyModel(nullptr, model.get())).get(), 3);
    EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("sensors are disabled")));
  }
}

TEST_F(HostsTest, SaysOnceThatARobotHasFallenAsleep) {
  policy_.act = [this](const SeenInput& seen) {  // waits, then goes
    return std::vector<float>(policy_.config.horizon * 2, seen.key.decision > 1 ? 1.0f : 0.0f);
  };
  const ModelPtr model = Compile(WithSleeper("robot", "allowed", Basic()));
  const DataPtr data(mj_makeData(model.get()));
  Run(model.get(), data.get(), 300);
  EXPECT_EQ(data->ctrl[0], 1);
  EXPECT_EQ(data->qpos[0], 0) << "controls wake nothing";
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("sleep=\"never\" at its body")));
  mj_resetData(model.get(), data.get());
  Run(model.get(), data.get(), 300);

  const ModelPtr awake = Compile(WithSleeper("ball", "allowed", Basic()));
  Run(awake.get(), 300);
}

TEST_F(HostsTest, SaysOnceThatAnActuatorIsInADisabledGroup) {
  std::string xml = Xml(Basic());
  const std::string servo = "<position name=\"ay\"", motor = "<motor name=\"hinge\"";
  xml.insert(xml.find(servo) + servo.size(), " group=\"2\"");
  xml.insert(xml.find(motor) + motor.size(), " group=\"3\"");
  const ModelPtr model = Compile(xml);
  model->opt.disableactuator = 1 << 3;  // not the policy's
  Run(model.get(), 20);
  EXPECT_THAT(TakeWarnings(), IsEmpty());
  model->opt.disableactuator = 1 << 2;
  Run(model.get(), 20);
  Run(model.get(), 20);
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("cannot move actuator \"ay\"")));
}

}  // namespace
}  // namespace mjp_test
