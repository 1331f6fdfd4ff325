// What `mjpolicy check` warns of, on terms that are made up.

#include "tasks/mjcf/check/terms.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "tasks/mjcf/check/attributes.h"
#include "tasks/mjcf/scaffold/scaffold.h"
#include "tests/tasks/mjcf/task_text.h"

namespace mjp::app {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Optional;
using ::testing::Pair;

// A term in radians that reaches `seen` times as far as training did.
TermRow Row(const std::string& feature, const std::string& name, double seen) {
  return {feature, name, "rad", {{-seen, seen}}, {{-1, 1}}};
}

// An observation of `unit` whose starts reach `seen`, where training reached `trained`.
TermRow Start(const std::string& name, const std::string& unit, double seen, double trained) {
  return {"state", name, unit, {{0, seen}}, {{-trained, trained}}};
}

using TermsOfFileTest = mjp_test::TaskTextTest;

std::string Set(const std::string& key, const std::string& value) {
  return "<config key=\"" + key + "\" value=\"" + value + "\"/>";
}

TEST(TermWarningsTest, OneControlWhoseRangeIsHardlyUsedIsNoOtherUnit) {
  EXPECT_THAT(TermWarnings({Row("action", "waist", 28.8), Row("action", "elbow", 3)}), IsEmpty());
}

TEST(TermWarningsTest, AllControlsOfAUnitAre) {
  EXPECT_THAT(TermWarnings({Row("action", "waist", 28.8), Row("action", "elbow", 12)}),
              ElementsAre(HasSubstr("action waist: the unit looks wrong by a factor of about 28.8"),
                          HasSubstr("action elbow")));
}

TEST(TermWarningsTest, OneControlInDegreesOrTooSmallIs) {
  EXPECT_THAT(TermWarnings({Row("action", "waist", 57.3), Row("action", "elbow", 3),
                            Row("action", "wrist", 0.1)}),
              ElementsAre(HasSubstr("action waist"), HasSubstr("action wrist")));
}

TEST(TermWarningsTest, ObservationsAreJudgedEachForItself) {
  EXPECT_THAT(TermWarnings({Row("state", "waist", 28.8), Row("state", "elbow", 1),
                            Row("state", "wrist", 2)}),
              ElementsAre(HasSubstr("state waist: the unit looks wrong"),
                          HasSubstr("state wrist: starts lie outside")));
}

// a joint that the task leaves alone
TEST(TermWarningsTest, AControlThatTrainingHardlyUsedIsNoOtherUnit) {
  EXPECT_THAT(TermWarnings({Row("action", "waist", 1e5), Row("action", "elbow", 2)}), IsEmpty());
  EXPECT_THAT(
      TermWarnings({Row("action", "waist", 1000), Row("action", "elbow", 1000)}),
      ElementsAre(HasSubstr("action waist: the unit"), HasSubstr("action elbow: the unit")));
}

TEST(TermWarningsTest, StartsNearOnePointAreNoOtherUnit) {
  EXPECT_THAT(TermWarnings({Start("waist", "rad", 1.18e-21, 0.294)}), IsEmpty());
  EXPECT_THAT(TermWarnings({Start("waist", "rad", 1e-4, 1.5), Start("elbow", "rad", 3e-4, 1.5)}),
              IsEmpty());
  EXPECT_THAT(TermWarnings({Start("waist", "rad", 0.02, 1.5), Start("elbow", "rad", 0.4, 1.5)}),
              IsEmpty());
  EXPECT_THAT(TermWarnings({Start("waist", "rad", 0.104, 2), Start("elbow", "rad", 0.0497, 2)}),
              IsEmpty())
      << "around a point, as scaffold proposes";
}

TEST(TermWarningsTest, StartsInRadiansOrMetresAreFound) {
  // a joint that begins at 0 tells nothing of the others
  EXPECT_THAT(TermWarnings({Start("waist", "rad", 0.1, 90), Start("elbow", "rad", 1.5, 100),
                            Start("wrist", "rad", 1e-9, 100), Start("cart", "m", 0.5, 1)}),
              ElementsAre(HasSubstr("state waist: the unit"), HasSubstr("state elbow: the unit")));
  EXPECT_THAT(
      TermWarnings({Start("tip[0]", "m", 0.3, 700), Start("tip[1]", "m", 0.01, 200)}),
      ElementsAre(HasSubstr("state tip[0]: the unit"), HasSubstr("state tip[1]: the unit")));
}

// the servo's range is -1 to 1 m
TEST_F(TermsOfFileTest, AClipInTheWrongUnitIsSaid) {
  const std::string millimetres = Set("action_scale", "1000"), clip = Set("action_clip", "-1 1");
  EXPECT_THAT(TermWarnings(ListTerms(Load(Basic(), millimetres), nullptr)), IsEmpty());
  EXPECT_THAT(TermWarnings(ListTerms(Load(Basic(), clip), nullptr)), IsEmpty());
  const std::vector<TermRow> rows = ListTerms(Load(Basic(), millimetres + clip), nullptr);
  EXPECT_THAT(rows.back().seen, Optional(Pair(-1, 1))) << "and not what ctrlrange allows";
  EXPECT_THAT(TermWarnings(rows),
              ElementsAre(HasSubstr("action slide: action_clip leaves 0.1 % of the control's")));
}

TEST_F(TermsOfFileTest, WarningsNameTheAttributeInUse) {
  NormalizerStats stats;
  stats.action = {Normalization::kMinMax, {-1}, {1}};
  for (const auto& [attribute, factor] :
       {std::pair("action_scale", "100"), std::pair("action_gain", "0.01")}) {
    const TaskFile file = Load(Basic(), Set(attribute, factor));
    EXPECT_THAT(TermWarnings(ListTerms(file, &stats)),
                ElementsAre(EndsWith(std::string("see ") + attribute)));
  }
}

TEST_F(TermsOfFileTest, ScaffoldWritesAClipOnlyWhereTheEngineCutsNothing) {
  std::string robot = R"(<mujoco><option timestep="0.01"><flag/></option>
    <worldbody><body><joint name="turn" axis="0 1 0"/><geom size="0.1" mass="1"/></body></worldbody>
    <actuator><position joint="turn" ctrlrange="-2.6179938779914944 1"/></actuator></mujoco>)";
  const auto propose = [&] {
    const ModelPtr model = CompileWithoutPolicy(folder_.Write("robot.xml", robot));
    return ScaffoldText(model.get(), {"robot.xml", "", {}, "none"});
  };
  EXPECT_THAT(propose(), Not(HasSubstr("action_clip")));
  robot.replace(robot.find("<flag/>"), 7, "<flag clampctrl=\"disable\"/>");
  EXPECT_THAT(propose(), HasSubstr("\"action_clip\" value=\"-2.6179938779914944 1\""));
}

using AttributesTest = mjp_test::TaskTextTest;

TEST_F(AttributesTest, APeriodThatMayBeMillisecondsIsSaid) {
  EXPECT_THAT(AttributeWarnings(Load(Basic(), Set("period", "2")), nullptr), IsEmpty());
  EXPECT_THAT(AttributeWarnings(Load(Basic(), Set("period", "50")), nullptr),
              ElementsAre(HasSubstr("attribute period is 50 s for one control step; is it meant as "
                                    "\"50ms\"?")));
}

TEST_F(AttributesTest, CamerasInAnotherOrderAreSaid) {
  PolicyConfig config;
  config.cameras = {{"observation.images.front", 3, 8, 8}, {"observation.images.chase", 3, 8, 8}};
  EXPECT_THAT(AttributeWarnings(Load(Basic(), Set("camera", "front chase")), &config), IsEmpty());
  const TaskFile file = Load(Basic(), Set("camera", "chase front"));
  EXPECT_THAT(AttributeWarnings(file, &config),
              ElementsAre(HasSubstr("sees camera \"chase\" as observation.images.front")));
  EXPECT_THAT(CameraOrder(file, config), ElementsAre("observation.images.front <- chase",
                                                     "observation.images.chase <- front"));
}

TEST_F(AttributesTest, ConditionsThatHoldAtTheStartAreSaid) {
  const auto warnings = [&](const std::string& success, const std::string& failure) {
    Elements elements = With("task.success", success);
    elements["task.failure"] = failure;
    elements["task.start"] = "key up; joint slide uniform 0 1";
    const TaskFile file = Load(elements);
    TaskWorld world(file);
    OverAtStart over(file.rules());
    for (uint32_t seed = 0; seed < 20; ++seed) {
      world.Start(seed);
      world.Update();
      over.See(world.data()->sensordata);
    }
    return over.Warnings();
  };
  EXPECT_THAT(warnings("touch", "slide > 2"), IsEmpty());
  EXPECT_THAT(warnings("place[2] > 0.1 for 0.5", "slide > 2"), IsEmpty());
  EXPECT_THAT(warnings("place[2] > 0.1", "slide > 2"),
              ElementsAre("success holds already in 20 of 20 starts; see task.success and "
                          "task.start"));
  EXPECT_THAT(warnings("touch", "slide > 0.5"),
              ElementsAre(::testing::MatchesRegex("failure holds already in 1?[0-9] of 20 .*")));
}

}  // namespace
}  // namespace mjp::app
