// From a model to a scored policy by commands, with the cart and pole of
// docs/tutorials/4-your-task.md.

#include <gmock/gmock.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "base/folders.h"
#include "base/json.h"
#include "policy/pictures/picture_look.h"
#include "tests/support/program.h"
#include "tests/support/renderer.h"

namespace mjp::app {
namespace {

using mjp_test::Outcome;
using mjp_test::ReadText;
using mjp_test::RunMjpolicy;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kModels = std::string(MJPOLICY_SOURCE_DIR) + "/models/";
const std::string kFast = " --sampler ddim --steps 2 --backend cpu ";

class TaskFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
    const Outcome made = RunMjpolicy("random-checkpoint " + checkpoint_ +
                                     " --state 2 --action 1 --picture 96x72 --range 4");
    ASSERT_EQ(made.code, 0) << made.text;
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  Outcome Evaluate(const std::string& out, const std::string& more) const {
    return RunMjpolicy("evaluate " + kModels + "cart_pole.xml --checkpoint " + checkpoint_ + kFast +
                       "--out " + Path(out) + " " + more);
  }
  // Everything that must be equal between runs of one configuration.
  std::string Episodes(const std::string& out) const {
    std::istringstream lines(ReadText(Path(out) + "/episodes.jsonl"));
    std::string text;
    for (std::string line; std::getline(lines, line);) {
      text += line.substr(0, line.find(",\"timing\"")) + "\n";
    }
    return text;
  }

  mjp_test::TempDir folder_;
  const std::string checkpoint_ = Path("cart_random");
};

TEST_F(TaskFileTest, IsCheckedRunAndScored) {
  Outcome outcome = RunMjpolicy("check " + kModels + "cart_pole.xml --checkpoint " + checkpoint_ +
                                " --out " + Path("check"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("joint:pole rad"), HasSubstr("96 x 72"),
                                  HasSubstr("nothing looks wrong")));
  EXPECT_TRUE(std::filesystem::exists(Path("check/front.png")));
  outcome = RunMjpolicy("check " + kModels + "cart_pole.xml --out /proc/check");
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("/proc/check: cannot create the folder of the pictures"));

  outcome = RunMjpolicy("run " + kModels + "cart_pole.xml --checkpoint " + checkpoint_ + kFast +
                        "--seconds 500ms --seed 3 --video " + Path("video.mp4"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("0.50 s (5 control steps"), HasSubstr("success "),
                                  HasSubstr("upright"), HasSubstr("control         push: ")));
  EXPECT_TRUE(std::filesystem::exists(Path("video.mp4")) ||
              std::filesystem::exists(Path("video.avi")));

  outcome = Evaluate("one", "--episodes 3 --max-steps 12 --videos 1");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("of 3, 95 % interval"), HasSubstr("final upright"),
                                  HasSubstr("eval_episode_0.")));
  EXPECT_THAT(ReadText(Path("one/run.json")), HasSubstr("\"task\": \"cart_pole\""));
}

TEST_F(TaskFileTest, AVideoHasTheNameItIsGivenOrIsRefused) {
  const std::string run =
      "run " + kModels + "cart_pole.xml --checkpoint " + checkpoint_ + kFast + "--seconds 200ms ";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(RunMjpolicy(run + "--video " + Path("video.mp4")).code, 0);
  EXPECT_FALSE(std::filesystem::exists(Path("video-2.mp4")));
  EXPECT_FALSE(std::filesystem::exists(Path("video-2.avi")));
  const Outcome refused = RunMjpolicy(run + "--video " + Path("video.gif"));
  EXPECT_EQ(refused.code, 1) << refused.text;
  EXPECT_THAT(refused.text, HasSubstr("name one in place of .gif"));
  // /proc refuses new files even to root
  const Outcome locked = RunMjpolicy(run + "--video /proc/video.mp4");
  EXPECT_EQ(locked.code, 2) << locked.text;
  EXPECT_THAT(locked.text, AllOf(HasSubstr("cannot create the video: "), Not(HasSubstr("disk"))));
  EXPECT_THAT(RunMjpolicy(run + "--seed -1").text, HasSubstr("is not a whole number from 0 to"));
}

TEST_F(TaskFileTest, AFailedStartLeavesNothingThatRefusesTheNext) {
  const std::string command = "evaluate " + kModels +
                              "cart_pole.xml --checkpoint " MJPOLICY_SOURCE_DIR
                              "/assets/pusht_image --backend cpu --episodes 1 --out " +
                              Path("out");
  for (int i = 0; i < 2; ++i) {
    const Outcome outcome = RunMjpolicy(command);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr("the checkpoint's action has 2"));
  }
  EXPECT_FALSE(std::filesystem::exists(Path("out/run.json")));
}

TEST_F(TaskFileTest, PicturesUnlikeThoseOfTrainingAreSaid) {
  const PictureLook look = {"mujoco", 72, 96, 4, true, true, true, true};
  WriteFileAtomically(checkpoint_ + "/look.json",
                      LooksToJson({{"observation.image", look}}).dump());
  const auto unlike = HasSubstr(
      "drawn with 4 samples a pixel, with shadows then, with 1 sample a pixel, without shadows "
      "now");
  Outcome outcome = RunMjpolicy("check " + kModels + "cart_pole.xml --checkpoint " + checkpoint_ +
                                " --out " + Path("check"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(unlike, HasSubstr("fits, with the warnings above"),
                                  HasSubstr("look            observation.image in training")));
  EXPECT_THAT(RunMjpolicy("inspect " + checkpoint_).text, HasSubstr("with shadows"));
  for (const char* through : {"plugin", "batch"}) {
    outcome = Evaluate(through, std::string("--episodes 1 --max-steps 3 --through ") + through);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_THAT(outcome.text, unlike);
    EXPECT_THAT(ReadText(Path(through) + "/run.json"), unlike);
  }
}

TEST_F(TaskFileTest, UnitsThatLookForgottenAreSaidOnceInABatchToo) {
  const std::string narrow = Path("narrow");
  ASSERT_EQ(RunMjpolicy("random-checkpoint " + narrow +
                        " --state 2 --action 1 --picture 96x72 --range 0.00001")
                .code,
            0);
  for (const char* through : {"plugin", "batch --batch 2"}) {
    const Outcome outcome = RunMjpolicy(
        "evaluate " + kModels + "cart_pole.xml --checkpoint " + narrow + kFast +
        "--overwrite --episodes 3 --max-steps 3 --out " + Path("units") + " --through " + through);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    const size_t said = outcome.text.find("is attribute state_scale right?");
    EXPECT_NE(said, std::string::npos) << through << ": " << outcome.text;
    EXPECT_EQ(outcome.text.find("is attribute state_scale right?", said + 1), std::string::npos)
        << outcome.text;
  }
}

TEST_F(TaskFileTest, EpisodesAreAFunctionOfTheirSeed) {
  ASSERT_EQ(Evaluate("whole", "--episodes 3 --max-steps 10").code, 0);
  ASSERT_EQ(Evaluate("thread", "--episodes 3 --max-steps 10 --threads 1").code, 0);
  EXPECT_EQ(Episodes("thread"), Episodes("whole"));
  ASSERT_EQ(Evaluate("s0", "--episodes 3 --max-steps 10 --shard 0/2").code, 0);
  ASSERT_EQ(Evaluate("s1", "--episodes 3 --max-steps 10 --shard 1/2").code, 0);
  const Outcome merged =
      RunMjpolicy("merge --out " + Path("merged") + " " + Path("s0") + " " + Path("s1"));
  ASSERT_EQ(merged.code, 0) << merged.text;
  EXPECT_EQ(Episodes("merged"), Episodes("whole"));
  const Outcome same = RunMjpolicy("compare " + Path("whole") + " " + Path("merged"));
  EXPECT_EQ(same.code, 0) << same.text;
}

// the plugin, one simulation at a time, is what a batch is held against
TEST_F(TaskFileTest, ABatchGivesTheEpisodesOfThePlugin) {
  const std::string more = "--episodes 3 --max-steps 10 --threads 2 ";
  for (const char* also : {"", "--latency 2 ", "--action-steps 2 "}) {
    ASSERT_EQ(Evaluate("plugin", more + also + "--through plugin --overwrite").code, 0);
    const std::string plugin = Episodes("plugin");
    for (const char* batch : {"--batch 2 ", "--batch 8 "}) {
      const Outcome outcome = Evaluate("batch", more + also + batch + "--overwrite");
      ASSERT_EQ(outcome.code, 0) << outcome.text;
      EXPECT_THAT(outcome.text, HasSubstr("border jump"));  // which the plugin does not know
      EXPECT_EQ(Episodes("batch"), plugin) << also << batch;
    }
  }
}

TEST_F(TaskFileTest, DisturbancesAreFunctionsOfTheSeedAndDisturb) {
  const std::string more = "--episodes 3 --max-steps 10 ";
  ASSERT_EQ(Evaluate("plain", more).code, 0);
  for (const char* disturbance :
       {"--picture-noise 30", "--brightness 0.6", "--picture-shift 12", "--action-noise 0.2"}) {
    ASSERT_EQ(Evaluate("one", more + disturbance + " --batch 1 --overwrite").code, 0);
    ASSERT_EQ(Evaluate("three", more + disturbance + " --overwrite").code, 0);
    EXPECT_EQ(Episodes("one"), Episodes("three")) << disturbance;
    EXPECT_NE(Episodes("one"), Episodes("plain")) << disturbance;
  }
}

TEST_F(TaskFileTest, ResumesItsOwnAndRefusesAChangedFile) {
  const std::string xml = ReadText(kModels + "cart_pole.xml");
  const std::string file = folder_.Write("cart.xml", xml);
  const auto evaluate = [&](const std::string& more) {
    return RunMjpolicy("evaluate " + file + " --checkpoint " + checkpoint_ + kFast + "--out " +
                       Path("out") + " --max-steps 4 --episodes 2 " + more);
  };
  ASSERT_EQ(evaluate("").code, 0);
  EXPECT_THAT(evaluate("--resume").text, HasSubstr("complete already"));
  const std::string attribute = "<config key=\"action_clip\"";
  const std::pair<std::string, std::string> changes[] = {
      {"damping=\"0.5\"", "damping=\"0.6\""},
      {"timestep=\"0.01\"", "timestep=\"0.005\""},
      {"rgba=\"0.9 0.5 0.2 1\"", "rgba=\"0.9 0.5 0.3 1\""},
      {"fovy=\"50\"", "fovy=\"51\""},
      {"ambient=\"0.4 0.4 0.4\"", "ambient=\"0.5 0.4 0.4\""},
      {"key=\"action_gain\" value=\"10\"", "key=\"action_gain\" value=\"5\""},
      {"value=\"-1 1\"", "value=\"-0.5 0.5\""},
      {"\"joint:cart joint:pole\"", "\"joint:pole joint:cart\""},
      {"key=\"period\" value=\"0.1\"", "key=\"period\" value=\"0.05\""},
      {attribute, "<config key=\"action_steps\" value=\"3\"/>" + attribute},
      {attribute, "<config key=\"state_offset\" value=\"0.1\"/>" + attribute},
      {"joint pole around 0.2", "joint pole around 0.3"},
      {"tip[2] > 0.55", "tip[2] > 0.54"},
      {"cart_position > 1.7", "cart_position > 1.6"},
      {"from 0 to 0.6", "from 0 to 0.7"},
      {"data=\"200\"", "data=\"100\""}};
  for (const auto& [from, to] : changes) {
    std::string changed = xml;
    ASSERT_NE(changed.find(from), std::string::npos) << from;
    folder_.Write("cart.xml", changed.replace(changed.find(from), from.size(), to));
    const Outcome outcome = evaluate("--resume");
    EXPECT_EQ(outcome.code, 2) << to << outcome.text;
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("of another evaluation"), HasSubstr("model was")))
        << to;
  }
}

TEST_F(TaskFileTest, OptionsOfOtherTasksAreRefused) {
  EXPECT_THAT(Evaluate("a", "--push 3").text, HasSubstr("--push is an option of Push-T"));
  EXPECT_THAT(Evaluate("c", "--latency 150ms").text, HasSubstr("control steps of 100 ms each"));
  EXPECT_THAT(Evaluate("d", "--picture-noise 3 --through plugin").text,
              HasSubstr("need --through batch"));
  const Outcome outcome = Evaluate("b", "--batch 8 --through plugin");
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("--batch 8: --through plugin runs one episode at a time"));
  EXPECT_EQ(Evaluate("b", "--batch 1 --through plugin --episodes 1 --max-steps 2").code, 0);
  EXPECT_EQ(Evaluate("e", "--latency 200ms --episodes 1 --max-steps 4").code, 0);
}

TEST_F(TaskFileTest, CheckFindsWrongUnitsAndMisfits) {
  std::string xml = ReadText(kModels + "cart_pole.xml");
  const std::string gain = "<config key=\"state_gain\" value=\"100 1\"/>";
  xml.insert(xml.find("<config key=\"actuators\""), gain);
  Outcome outcome = RunMjpolicy("check " + folder_.Write("cart.xml", xml) + " --checkpoint " +
                                checkpoint_ + " --out " + Path("check"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr("state joint:cart: the unit looks wrong by a factor of about 1"),
                    HasSubstr("see state_gain"), HasSubstr("with the warnings above")));
  const std::string own = "<config key=\"action_gain\" value=\"10\"/>";
  for (const char* unit : {"1000", "0.1"}) {
    xml = ReadText(kModels + "cart_pole.xml");
    xml.replace(xml.find(own), own.size(),
                std::string("<config key=\"action_gain\" value=\"") + unit + "\"/>");
    outcome = RunMjpolicy("check " + folder_.Write("cart.xml", xml) + " --checkpoint " +
                          checkpoint_ + " --out " + Path("check"));
    EXPECT_THAT(outcome.text,
                AllOf(HasSubstr("the unit looks wrong by"), HasSubstr("see action_gain")))
        << unit;
  }
  ASSERT_EQ(RunMjpolicy("random-checkpoint " + Path("other") + " --state 3 --action 1").code, 0);
  outcome = RunMjpolicy("check " + kModels + "cart_pole.xml --checkpoint " + Path("other") +
                        " --out " + Path("check"));
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("attribute state gives 2 numbers"));
}

TEST_F(TaskFileTest, RunTakesModelsThatAreNoTasks) {
  ASSERT_EQ(RunMjpolicy("random-checkpoint " + Path("reach") + " --environment 3 --range 1.5").code,
            0);
  const Outcome outcome = RunMjpolicy("run " + kModels + "reach_policy.xml --checkpoint " +
                                      Path("reach") + kFast + "--seconds 0.5");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("10 control steps of 0.05 s"),
                                  HasSubstr("decisions       2"), Not(HasSubstr("success"))));
}

TEST_F(TaskFileTest, ScaffoldProposesATaskThatRuns) {
  const std::string robot = folder_.Write("arm.xml", R"(<mujoco model="arm"><worldbody>
    <camera name="side" pos="0 -2 0.5" xyaxes="1 0 0 0 0 1"/><light pos="0 0 3"/>
    <body name="upper"><joint name="shoulder" axis="0 1 0" range="-60 60"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.4" size="0.04"/>
      <body name="lower" pos="0 0 0.4"><joint name="elbow" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.03"/></body></body></worldbody>
    <actuator><position name="first" joint="shoulder" ctrlrange="-1 1" kp="5"/>
      <position joint="elbow" ctrlrange="-1.999 1.999" kp="5"/></actuator></mujoco>)");
  Outcome outcome = RunMjpolicy("scaffold " + robot + " --camera side");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("mjpolicy random-checkpoint arm_random"));
  EXPECT_THAT(ReadText(Path("arm_task.xml")),
              AllOf(HasSubstr("value=\"joint:shoulder joint:elbow\""),
                    HasSubstr("value=\"first elbow\""), Not(HasSubstr("action_clip"))));
  ASSERT_EQ(RunMjpolicy("random-checkpoint " + Path("arm_random") + " --range 2").code, 0);
  outcome = RunMjpolicy("run " + Path("arm_task.xml") + kFast + "--seconds 0.4");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("progress"), HasSubstr("first: -2 to 2, cut to its"),
                                  HasSubstr("elbow: -2"), Not(ContainsRegex("elbow: [^\n]*cut"))));
  EXPECT_THAT(RunMjpolicy("scaffold " + robot + " --camera side").text, HasSubstr("give --force"));
  EXPECT_THAT(RunMjpolicy("scaffold " + robot + " --camera sied --force").text,
              HasSubstr("did you mean \"side\"?"));
  EXPECT_THAT(RunMjpolicy("scaffold " + robot + " --actuators frist --force").text,
              HasSubstr("did you mean \"first\"?"));
  EXPECT_THAT(RunMjpolicy("scaffold " + Path("arm_task.xml")).text,
              HasSubstr("has a policy already"));
}

TEST_F(TaskFileTest, ScaffoldSaysThatAPolicyMovesNoMocapBody) {
  for (const bool welded : {false, true}) {
    const std::string robot = folder_.Write(
        "pulled.xml",
        std::string("<mujoco><worldbody><body name=\"hand\"><joint name=\"j\"/><geom size=\".1\"/>"
                    "</body><body name=\"pull\" mocap=\"true\"/></worldbody><actuator><motor "
                    "joint=\"j\"/></actuator><equality>") +
            (welded ? "<weld body1=\"pull\" body2=\"hand\"/>" : "") + "</equality></mujoco>");
    const Outcome outcome = RunMjpolicy("scaffold " + robot + " --force");
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_EQ(outcome.text.find("mocap body \"pull\"") != std::string::npos, welded);
  }
}

TEST_F(TaskFileTest, ScaffoldTakesAnyRobotOrWritesNothing) {
  struct Robot {
    const char* name;
    std::string joint, actuator, more;
    const char* refusal;  // "": a task that loads
  };
  const std::string motor = "<motor joint=\"j\" gear=\"1 0 0\"/>";
  const Robot robots[] = {
      {"ball", "<joint name=\"j\" type=\"ball\"/>", motor, "", ""},
      {"free", "<freejoint name=\"j\"/>", motor, "", ""},
      {"both", "<joint name=\"j\" type=\"slide\"/><joint name=\"b\" type=\"ball\"/>",
       "<motor joint=\"b\" gear=\"1 0 0\"/><motor joint=\"j\"/>", "", ""},
      {"keyed", "<joint name=\"j\"/>", "<motor joint=\"j\"/>",
       "<keyframe><key name=\"my home\"/></keyframe>", "the name \"my home\" has a blank"},
      {"cut", "<joint name=\"j[1]\"/>", "<motor joint=\"j[1]\"/>", "", "the name \"j[1]\" has"},
      {"same", "<joint name=\"j\"/>", "<motor joint=\"j\"/>",
       "<sensor><clock name=\"task_measure\"/></sensor>", "not written"},
  };
  for (const Robot& robot : robots) {
    SCOPED_TRACE(robot.name);
    const std::string file = folder_.Write(
        robot.name + std::string(".xml"),
        "<mujoco><worldbody><body>" + robot.joint + "<geom size=\"0.1\"/></body></worldbody>" +
            "<actuator>" + robot.actuator + "</actuator>" + robot.more + "</mujoco>");
    const std::string task = folder_.Write(robot.name + std::string("_task.xml"), "mine");
    const Outcome outcome = RunMjpolicy("scaffold " + file + " --force");
    const bool refused = *robot.refusal;
    EXPECT_EQ(outcome.code, refused ? 2 : 0) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr(robot.refusal));
    EXPECT_EQ(ReadText(task) == "mine", refused);
    EXPECT_FALSE(std::filesystem::exists(task + ".draft"));
    if (!refused) {
      EXPECT_THAT(ReadText(task), HasSubstr(std::string("model=\"") + robot.name + "_task\""));
      EXPECT_EQ(RunMjpolicy("check " + task + " --resets 3 --out " + Path("check")).code, 0);
    }
  }
}

// The policy that ships for ALOHA TransferCube, which the file names: from the start of a seed that
// it was not trained on.
TEST(ShippedAlohaTest, FitsItsTaskAndSolvesAStart) {
  if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
  const std::string model = kModels + "aloha_transfer_cube.xml";
  const mjp_test::TempDir folder;
  const Outcome checked =
      RunMjpolicy("check " + model + " --checkpoint " + MJPOLICY_SOURCE_DIR +
                  "/assets/aloha_transfer_cube --out " + folder.path() + "/check");
  EXPECT_EQ(checked.code, 0) << checked.text;
  EXPECT_THAT(checked.text,
              AllOf(HasSubstr("160 x 120"), HasSubstr("verdict         nothing looks wrong")));

  const Outcome run = RunMjpolicy(
      "run " + model + " --sampler ddim --steps 4 --backend cpu --seconds 5 --seed 300000");
  EXPECT_EQ(run.code, 0) << run.text;
  EXPECT_THAT(run.text, AllOf(HasSubstr("success         yes"),
                              HasSubstr("let_go          1.0000 at the end")));
}

// A second of Push-T's own policy through the same command.
TEST_F(TaskFileTest, PushtsFileMustBeItsOwn) {
  std::string xml = ReadText(kModels + "pusht.xml");
  xml.replace(xml.find("damping=\"30\""), 12, "damping=\"31\"");
  const Outcome outcome = RunMjpolicy("evaluate " + folder_.Write("pusht.xml", xml) +
                                      " --checkpoint " + checkpoint_ + " --out " + Path("out"));
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("this is another model"));
}

}  // namespace
}  // namespace mjp::app
