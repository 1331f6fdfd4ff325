#include "tasks/mjcf/rules.h"

#include <string>
#include <vector>

#include "tests/tasks/mjcf/task_text.h"

namespace mjp_test {
namespace {

using mjp::app::Condition;
using mjp::app::Rules;
using mjp::app::StepOutcome;
using mjp::app::TaskFile;
using mjp::app::TaskWorld;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RulesTest : public TaskTextTest {
 protected:
  // Numbers of the sensors in place of a simulation's.
  static std::vector<mjtNum> Sensors(const mjModel* model,
                                     const std::map<std::string, std::vector<mjtNum>>& values) {
    std::vector<mjtNum> sensors(static_cast<size_t>(model->nsensordata));
    for (const auto& [name, numbers] : values) {
      const int id = mj_name2id(model, mjOBJ_SENSOR, name.c_str());
      std::copy(numbers.begin(), numbers.end(), sensors.begin() + model->sensor_adr[id]);
    }
    return sensors;
  }
};

TEST_F(RulesTest, ConditionsAreAllOfGroupsOfOne) {
  const TaskFile file = Load(Basic());
  struct Case {
    const char* text;
    double touch, slide, z;
    bool holds;
  };
  for (const Case& each :
       std::initializer_list<Case>{{"touch", 0, 0, 0, false},
                                   {"touch", 2, 0, 0, true},
                                   {"!touch", 0, 0, 0, true},
                                   {"! ! touch", 1, 0, 0, true},
                                   {"slide > 0.5", 0, 0.5, 0, false},
                                   {"slide >= 0.5", 0, 0.5, 0, true},
                                   {"slide<-0.5", 0, -0.6, 0, true},
                                   {"slide<=-0.5", 0, -0.4, 0, false},
                                   {"place[2] > 1", 0, 0, 1.5, true},
                                   {"touch slide > 0", 1, 0, 0, false},
                                   {"touch slide > 0", 1, 1, 0, true},
                                   {"touch | slide > 0", 0, 1, 0, true},
                                   {"touch | slide > 0 place[2] > 1", 0, 1, 0, false},
                                   {"touch | slide > 0 place[2] > 1", 0, 1, 2, true},
                                   {"place[2] > 1 touch | !slide > 0", 0, 0, 2, true},
                                   {"!slide > 0", 0, 1, 0, false}}) {
    const Condition condition(file.model(), each.text, false, {"here", each.text});
    const auto sensors =
        Sensors(file.model(),
                {{"touch", {each.touch}}, {"slide", {each.slide}}, {"place", {7, 7, each.z}}});
    EXPECT_EQ(condition.Holds(sensors.data(), 0), each.holds) << each.text;
  }
}

TEST_F(RulesTest, StagesMeasuresAndSuccessAreThoseOfTheText) {
  Elements elements = With("task.score", "1: slide > 0; 2: slide > 1; 4: slide > 2 !touch");
  elements["task.measures"] = "way: slide from 1 to 3; near: slide from 3 to 1; on: touch";
  elements["task.success"] = "score >= 2";
  elements["task.failure"] = "slide &lt; -5";
  const TaskFile file = Load(elements);
  EXPECT_THAT(file.rules().measures(), ElementsAre("way", "near", "on"));
  int held = 0;
  const auto judge = [&](double slide, double touch) {
    StepOutcome outcome;
    const auto sensors = Sensors(file.model(), {{"slide", {slide}}, {"touch", {touch}}});
    file.rules().Judge(sensors.data(), held, outcome);
    return outcome;
  };
  StepOutcome outcome = judge(0, 0);
  EXPECT_EQ(outcome.reward, 0);
  EXPECT_THAT(outcome.measures, ElementsAre(0, 1, 0));
  outcome = judge(1.5, 1);
  EXPECT_EQ(outcome.reward, 0.5);
  EXPECT_THAT(outcome.measures, ElementsAre(0.25, 0.75, 1));
  EXPECT_TRUE(outcome.success && outcome.enough && !outcome.lost);
  EXPECT_EQ(judge(2.5, 1).reward, 0.5);
  EXPECT_EQ(judge(2.5, 0).reward, 1);
  EXPECT_FALSE(judge(0.5, 0).success);
  EXPECT_TRUE(judge(-6, 0).lost);
}

TEST_F(RulesTest, SuccessHoldsForItsTimeWithoutABreak) {
  // steps of 0.1 s: 0.25 s are over at the end of the fourth step with it
  const TaskFile file = Load(With("task.success", "touch for 0.25"));
  const std::string steps = "1101111110", expected = "0000001110";
  int held = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    StepOutcome outcome;
    const auto sensors = Sensors(file.model(), {{"touch", {steps[i] == '1' ? 1.0 : 0.0}}});
    file.rules().Judge(sensors.data(), held, outcome);
    EXPECT_EQ(outcome.success, expected[i] == '1') << i;
    EXPECT_EQ(outcome.reward, steps[i] == '1' ? 1 : 0) << "without a score";
    EXPECT_THAT(outcome.measures, ElementsAre(outcome.reward));
  }
}

TEST_F(RulesTest, AFailureIsNoSuccessAndRunningOnIsSaid) {
  Elements elements = With("task.failure", "touch");
  elements["task.run_on"] = "1";
  const TaskFile file = Load(elements);
  StepOutcome outcome;
  int held = 0;
  file.rules().Judge(Sensors(file.model(), {{"touch", {1}}}).data(), held, outcome);
  EXPECT_TRUE(outcome.lost && !outcome.success && !outcome.enough);
}

// A contact that the engine finds at the beginning of its next step counts.
TEST_F(RulesTest, JudgesWhatHasBeenReached) {
  const TaskFile file = Load(With("task.start", "key up"));
  TaskWorld world(file);
  world.Start(0);
  const int touch = file.model()->sensor_adr[mj_name2id(file.model(), mjOBJ_SENSOR, "touch")];
  for (int step = 0; step < 100; ++step) {
    mj_step(world.model(), world.data());
    const bool before = world.data()->sensordata[touch] > 0;
    const bool reached = world.data()->qpos[2] < 0.1;
    StepOutcome outcome;
    world.Judge(outcome);
    EXPECT_EQ(outcome.success, reached) << step;
    if (before != outcome.success) return;  // that step tells the two rules apart
  }
  ADD_FAILURE() << "the ball never touched the floor";
}

TEST_F(RulesTest, AccelerationsAreBroughtUpToDateToo) {
  const TaskFile file = Load(With("task.success", "push[0] > 12"));
  EXPECT_EQ(file.rules().stage(), mjSTAGE_ACC);
  TaskWorld world(file);
  world.Start(0);
  StepOutcome outcome;
  world.Judge(outcome);
  EXPECT_TRUE(outcome.success) << "the servo pulls by 50 x 0.25 N at 1 kg";
}

TEST_F(RulesTest, SaysWhatIsWrongAndWhatWouldDo) {
  struct Case {
    const char *element, *value, *reason;
  };
  for (const Case& each : std::initializer_list<Case>{
           {"task.sucess", "touch", "did you mean \"task.success\"?"},
           {"task.steps", "0", "one whole number from 1 to 100000"},
           {"task.steps", "2.5", "one whole number"},
           {"task.steps", "2 3", "one whole number"},
           {"task.run_on", "2", "from 0 to 1"},
           {"task.success", "tuch", "did you mean \"touch\"? There are: touch, place"},
           {"task.success", " ", "a condition is missing"},
           {"task.success", "touch |", "the name of a sensor is missing at the end"},
           {"task.success", "| touch", "\"|\" stands where the name of a sensor is expected"},
           {"task.success", "slide >", "a number is missing"},
           {"task.success", "slide > x", "\"x\" is no number"},
           {"task.success", "slide = 1", "compare by &lt;"},
           {"task.success", "place", "choose one, as in place[0]"},
           {"task.success", "place[3]", "has 3 numbers"},
           {"task.success", "shown", "judge by sensors of the world"},
           {"task.success", "score > 1", "\"score\" is no sensor"},
           {"task.success", "touch for -1", "below 0"},
           {"task.success", "touch for 2", "longer than an episode lasts"},
           {"task.score", "upright", "\"upright\" is no measure of task.measures"},
           {"task.score", "a: touch", "\"a\" is no number"},
           {"task.score", "-1: touch", "0 or more"},
           {"task.score", "0: touch", "more than 0"},
           {"task.measures", "touch", "write NAME: CONDITION"},
           {"task.measures", "a b: touch", "letters, digits and _"},
           {"task.measures", "a: touch; a: slide", "that name already"},
           {"task.measures", "a: slide from 1 to 1", "the same"},
           {"task.measures", "reward: touch", "results call the score so"}}) {
    std::string reason = each.reason;
    if (const size_t at = reason.find("&lt;"); at != std::string::npos) reason.replace(at, 4, "<");
    EXPECT_THAT(Refusal(each.element, each.value), HasSubstr(reason))
        << each.element << " " << each.value;
  }
  Elements elements = Basic();
  elements.erase("task.success");
  EXPECT_THAT(Refusal(elements), HasSubstr("not what success is"));
  elements = Basic();
  elements.erase("task.steps");
  EXPECT_THAT(Refusal(elements), HasSubstr("the model is no task"));
}

// Results have one number for both, which is the same only where the measure is the reward.
TEST_F(RulesTest, AMeasureIsCalledRewardOnlyWhereItIs) {
  Elements elements = With("task.measures", "reward: touch; other: slide from 0 to 1");
  elements["task.score"] = "reward";
  EXPECT_THAT(Load(elements).rules().measures(), ElementsAre("reward", "other"));
  for (const char* score : {"other", "1: touch"}) {
    elements["task.score"] = score;
    EXPECT_THAT(Refusal(elements), HasSubstr("give the measure another name")) << score;
  }
}

TEST_F(RulesTest, APolicyMustBeThereAndFit) {
  EXPECT_THAT(Refusal(Basic(), "<config key=\"period\" value=\"0.015\"/>"),
              HasSubstr("no whole number of the model's timesteps"));
  EXPECT_THAT(Refusal(Basic(), "<config key=\"camera\" value=\"fornt\"/>"),
              HasSubstr("no camera of that name"));
  std::string xml = Xml(Basic());
  const size_t begin = xml.find("<extension>"), end = xml.find("</extension>") + 12;
  xml.erase(begin, end - begin);
  try {
    TaskFile(folder_.Write("task.xml", xml));
    ADD_FAILURE() << "it was read";
  } catch (const mjp::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("has no policy"));
  }
}

// The hash tells files apart by what results depend on, wherever they lie.
TEST_F(RulesTest, TheHashIsOfTheTaskNotOfItsPlaceOrCheckpoint) {
  const std::string hash = Load(Basic()).hash();
  std::filesystem::create_directories(folder_ / "deep");
  EXPECT_EQ(TaskFile(folder_.Write("deep/other.xml", Xml(Basic()))).hash(), hash);
  std::string xml = Xml(Basic());
  xml.replace(xml.find("nowhere"), 7, "elsewhere");
  EXPECT_EQ(TaskFile(folder_.Write("deep/third.xml", xml)).hash(), hash);
  EXPECT_NE(Load(With("task.steps", "21")).hash(), hash);
  EXPECT_NE(Load(Basic(), "<config key=\"state_gain\" value=\"2\"/>").hash(), hash);
}

}  // namespace
}  // namespace mjp_test
