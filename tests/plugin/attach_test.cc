// Models that are attached to others, with a prefix or a suffix to all their names.

#include <string>
#include <vector>

#include "plugin/state.h"
#include "tests/plugin/plugin_fixture.h"

namespace mjp_test {
namespace {

using ::testing::HasSubstr;

struct SpecDeleter {
  void operator()(mjSpec* spec) const { mj_deleteSpec(spec); }
};
using SpecPtr = std::unique_ptr<mjSpec, SpecDeleter>;

class AttachTest : public PluginTest {
 protected:
  AttachTest() { AddCamera(); }

  static SpecPtr Parse(const std::string& xml) {
    char message[1000] = "";
    SpecPtr spec(mj_parseXMLString(xml.c_str(), nullptr, message, sizeof(message)));
    EXPECT_NE(spec, nullptr) << message;
    return spec;
  }
  // The robot with a policy, and the line that makes the engine take it along.
  static std::string Robot(const std::string& config) {
    std::string xml = Xml(config);
    const std::string end = "</sensor>";
    xml.insert(xml.find(end),
               R"(<plugin name="policy" plugin="mjpolicy.policy" instance="policy"/>
                  <user name="policy_decisions" dim="1" needstage="pos"/>)");
    return xml;
  }
  struct Part {
    std::string xml, prefix, suffix;
  };
  // Robots side by side in `parent`; null with `error` where that does not compile.
  static ModelPtr Attach(
      const std::vector<Part>& parts, std::string* error = nullptr,
      const std::string& parent = "<mujoco><option timestep=\"0.01\"/></mujoco>") {
    const SpecPtr spec = Parse(parent);
    std::vector<SpecPtr> children;
    for (const Part& part : parts) {
      mjsFrame* frame = mjs_addFrame(mjs_findBody(spec.get(), "world"), nullptr);
      frame->pos[1] = 100.0 * static_cast<double>(children.size());
      children.push_back(Parse(part.xml));
      EXPECT_NE(mjs_attach(frame->element, children.back()->element, part.prefix.c_str(),
                           part.suffix.c_str()),
                nullptr)
          << mjs_getError(spec.get());
    }
    ModelPtr model(mj_compile(spec.get(), nullptr));
    if (!model && error) *error = mjs_getError(spec.get());
    if (!model && !error) ADD_FAILURE() << mjs_getError(spec.get());
    return model;
  }
  // The controls of actuator `name` after each of `steps` steps.
  static std::vector<mjtNum> Controls(const mjModel* model, const std::string& name, int steps) {
    const DataPtr data(mj_makeData(model));
    const int actuator = mj_name2id(model, mjOBJ_ACTUATOR, name.c_str());
    std::vector<mjtNum> controls;
    for (int i = 0; i < steps; ++i) {
      mj_step(model, data.get());
      controls.push_back(data->ctrl[model->actuator_ctrladr[actuator]]);
    }
    return controls;
  }
};

TEST_F(AttachTest, PolicyGoesAlongAndFindsItsOwnNames) {
  const std::string config = BasicWithCamera() + Set("renderer", "probe");
  const auto expected = Controls(Compile(Robot(config)).get(), "ax", 200);
  EXPECT_NE(expected.front(), 0);
  struct Case {
    const char *prefix, *suffix;
  };
  for (const Case& c :
       {Case{"L_", ""}, Case{"", "_2"}, Case{"a/", "-b"}, Case{"left", "2"}, Case{"", ""}}) {
    const ModelPtr model = Attach({{Robot(config), c.prefix, c.suffix}});
    ASSERT_NE(model, nullptr);
    ASSERT_EQ(mjp::PolicyInstances(model.get()).size(), 1u) << c.prefix << "|" << c.suffix;
    EXPECT_EQ(Controls(model.get(), c.prefix + std::string("ax") + c.suffix, 200), expected)
        << c.prefix << "|" << c.suffix;
    const DataPtr data(mj_makeData(model.get()));
    for (int i = 0; i < 85; ++i) mj_step(model.get(), data.get());
    const std::string sensor = c.prefix + std::string("policy_decisions") + c.suffix;
    const int id = mj_name2id(model.get(), mjOBJ_SENSOR, sensor.c_str());
    ASSERT_GE(id, 0);
    EXPECT_EQ(data->sensordata[model->sensor_adr[id]], 2) << sensor;
  }
  TakeWarnings();  // the engine's, of the empty prefix
}

// two arms, each with its own policy, in a world that has things of the same names
TEST_F(AttachTest, TwoRobotsActAsEachAlone) {
  const std::string left = BasicWithCamera() + Set("renderer", "probe") + Set("seed", "1");
  const std::string right = BasicWithCamera() + Set("renderer", "probe") + Set("seed", "2");
  const auto expected_left = Controls(Compile(Robot(left)).get(), "ax", 200);
  const auto expected_right = Controls(Compile(Robot(right)).get(), "ax", 200);
  EXPECT_NE(expected_left, expected_right);
  const ModelPtr model = Attach({{Robot(left), "L_", ""}, {Robot(right), "R_", ""}}, nullptr,
                                R"(<mujoco><option timestep="0.01"/><worldbody>
      <camera name="top" pos="0 0 9"/>
      <body name="other" pos="0 0 50"><joint name="ax" type="slide"/><joint name="ay"/>
        <geom size="0.1"/></body></worldbody>
      <actuator><motor name="ax" joint="ax"/><motor name="ay" joint="ay"/></actuator></mujoco>)");
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(Controls(model.get(), "L_ax", 200), expected_left);
  EXPECT_EQ(Controls(model.get(), "R_ax", 200), expected_right);
  for (const mjtNum control : Controls(model.get(), "ax", 100)) EXPECT_EQ(control, 0);
}

// "px" only looks like "x" with a prefix that "policy" has too
TEST_F(AttachTest, NamesOfAModelThatIsNotAttachedStandForThemselves) {
  std::string xml = Xml(Set("checkpoint", Folder()) + Set("camera", "top") + Set("state", "x y") +
                        Set("actuators", "x y") + Set("renderer", "probe"));
  xml.insert(
      xml.find("</worldbody>"),
      R"(<body><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
      <joint name="px" axis="1 0 0"/>
      <joint name="py" axis="0 1 0"/><geom size="0.1"/><camera name="ptop"/></body>)");
  xml.insert(xml.find("</actuator>"), R"(<motor name="x" joint="x"/><motor name="y" joint="y"/>
      <motor name="px" joint="px"/><motor name="py" joint="py"/>)");
  const ModelPtr model = Compile(xml);
  ASSERT_NE(model, nullptr);
  EXPECT_NE(Controls(model.get(), "x", 3).back(), 0);
  EXPECT_EQ(Controls(model.get(), "px", 3).back(), 0);
}

TEST_F(AttachTest, FullNamesAreTakenAsTheyAre) {
  std::string xml = Robot(Set("checkpoint", Folder()) + Set("camera", "L_top") +
                          Set("state", "joint:L_ax[0] L_ay") + Set("actuators", "L_ax L_ay") +
                          Set("renderer", "probe"));
  const auto expected =
      Controls(Compile(Robot(BasicWithCamera() + Set("renderer", "probe"))).get(), "ax", 100);
  const ModelPtr model = Attach({{xml, "L_", ""}});
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(Controls(model.get(), "L_ax", 100), expected);
}

TEST_F(AttachTest, SaysWhatIsMissingByItsFullName) {
  std::string error;
  const std::string xml = Robot(Basic() + Set("camera", "side") + Set("renderer", "probe"));
  EXPECT_EQ(Attach({{xml, "L_", ""}}, &error), nullptr);
  EXPECT_THAT(error, HasSubstr("\"L_side\""));
  TakeWarnings();
}

// some names of the attached model, and all as they are written: nobody can tell which are meant
TEST_F(AttachTest, NamesWithTwoMeaningsAreRefused) {
  std::string error;
  const std::string xml = Robot(BasicWithCamera() + Set("renderer", "probe"));
  std::string without = xml;
  const std::string camera = "<camera name=\"top\" pos=\"0 0 3\"/>";
  without.erase(without.find(camera), camera.size());
  EXPECT_EQ(Attach({{without, "L_", ""}}, &error, R"(<mujoco><worldbody>
      <camera name="top"/><body><joint name="ax" type="slide"/><joint name="ay"/>
        <geom size="0.1"/></body></worldbody>
      <actuator><motor name="ax" joint="ax"/><motor name="ay" joint="ay"/></actuator></mujoco>)"),
            nullptr);
  EXPECT_THAT(error, HasSubstr("\"L_a"));
  EXPECT_THAT(error, HasSubstr("no \"L_top\""));
  TakeWarnings();
}

}  // namespace
}  // namespace mjp_test
