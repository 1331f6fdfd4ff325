// A person who records: what the hand does, what is kept, and what a second back means.

#include "tasks/demonstration/session.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "datasets/check.h"
#include "datasets/dataset.h"
#include "tests/support/renderer.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

using ::testing::HasSubstr;

const std::string kSource = MJPOLICY_SOURCE_DIR;

std::shared_ptr<const TaskFile> Arm() {
  return std::make_shared<const TaskFile>(kSource + "/models/arm_lift.xml");
}

class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
  }
  RecordOptions Options(const std::string& name) const {
    RecordOptions options;
    options.out = folder_ / name;
    options.pictures = {64, 48, false};
    return options;
  }
  mjp_test::TempDir folder_;
};

const mjtNum* Site(RecordingSession& session, const char* name) {
  return session.world().data()->site_xpos +
         3 * mj_name2id(session.world().model(), mjOBJ_SITE, name);
}

const mjtNum* Cube(RecordingSession& session) {
  return session.world().data()->xpos + 3 * mj_name2id(session.world().model(), mjOBJ_BODY, "cube");
}

void Steps(RecordingSession& session, int steps) {
  const int end = session.step() + steps;
  while (session.step() < end && session.phase() == RecordingSession::Phase::kShowing) {
    session.Advance();
  }
}

// Drags the hand to a place, at most 2 cm a control step.
void Go(RecordingSession& session, std::array<double, 3> place, int steps) {
  for (int i = 0; i < steps && session.phase() == RecordingSession::Phase::kShowing; ++i) {
    std::array<double, 3> by{};
    for (int k = 0; k < 3; ++k) {
      by[k] = std::clamp(place[k] - session.person().target()[k], -0.02, 0.02);
    }
    session.person().Drag(by);
    Steps(session, 1);
  }
}

// What somebody does who lifts the cube.
void Lift(RecordingSession& session) {
  session.Start();
  const std::array<double, 3> cube = {Cube(session)[0], Cube(session)[1], Cube(session)[2]};
  DriveInput open;
  open.squeeze = 1;
  session.person().Drive(open);
  Go(session, {cube[0], cube[1], cube[2] + 0.08}, 25);
  Go(session, {cube[0], cube[1], cube[2] + 0.005}, 15);
  DriveInput close;
  close.squeeze = -1;
  session.person().Drive(close);
  Steps(session, 15);
  Go(session, {cube[0], cube[1], cube[2] + 0.15}, 40);
}

TEST_F(SessionTest, TheHandGoesWhereItIsDragged) {
  RecordingSession session(Options("arm"), Arm(), "");
  EXPECT_EQ(session.person().hand_name(), "grip");
  EXPECT_EQ(session.person().gripper(), 6);
  session.Start();
  const std::array<double, 3> place = {0.3, 0.12, 0.2};
  Go(session, place, 60);
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(Site(session, "grip")[k], place[k], 0.01) << k;
}

TEST_F(SessionTest, KeysMoveItAsThePersonSeesIt) {
  RecordingSession session(Options("arm"), Arm(), "");
  session.Start();
  const std::array<mjtNum, 3> begin = session.person().target();
  DriveInput input;
  input.heading = M_PI / 2;  // the person's right is the world's y
  input.move = {1, 0, 0.5};
  session.person().Drive(input);
  Steps(session, 5);
  const std::array<mjtNum, 3> end = session.person().target();
  EXPECT_NEAR(end[0], begin[0], 1e-6);
  EXPECT_GT(end[1], begin[1] + 0.02);
  EXPECT_NEAR(end[2] - begin[2], (end[1] - begin[1]) / 2, 1e-6);
}

TEST_F(SessionTest, ATargetOutOfReachWaits) {
  RecordingSession session(Options("arm"), Arm(), "");
  session.Start();
  DriveInput input;
  input.move = {1, 0, 0};
  session.person().Drive(input);
  Steps(session, 140);
  EXPECT_LT(mju_norm3(session.person().target().data()), 1.0);
  for (int i = 0; i < session.world().model()->nq; ++i) {
    EXPECT_TRUE(std::isfinite(session.world().data()->qpos[i]));
  }
}

TEST_F(SessionTest, APersonLiftsTheCubeAndItIsKept) {
  RecordingSession session(Options("arm"), Arm(), "");
  for (int episode = 0; episode < 2; ++episode) {
    Lift(session);
    EXPECT_TRUE(session.success()) << "start " << session.seed() << ", score " << session.score();
    EXPECT_EQ(session.phase(), RecordingSession::Phase::kOver);
    session.Keep();
    EXPECT_EQ(session.phase(), RecordingSession::Phase::kReady);
    EXPECT_EQ(session.seed(), episode + 1u);
  }
  session.Finish();
  EXPECT_EQ(session.kept(), 2);
  datasets::Dataset dataset(folder_ / "arm");
  EXPECT_THAT(datasets::Check(dataset, {}).problems, ::testing::IsEmpty());
  ASSERT_EQ(dataset.episodes().size(), 2u);
  const auto success = dataset.Read(1, *dataset.info().Find("next.success"));
  ASSERT_FALSE(success.values.ints.empty());
  EXPECT_EQ(success.values.ints.back(), 1);
}

// a paddle that nothing holds but the mouse pushes the cube
TEST_F(SessionTest, AMocapBodyIsDraggedAndReplayed) {
  const std::string path =
      folder_.Write("paddle.xml", "<mujoco><include file=\"" + kSource +
                                      "/models/arm_lift.xml\"/><worldbody><body name=\"paddle\" "
                                      "mocap=\"true\" pos=\"0.3 0.5 0.02\"><geom type=\"box\" "
                                      "size=\"0.1 0.01 0.02\"/></body></worldbody></mujoco>");
  RecordingSession session(Options("arm"), std::make_shared<const TaskFile>(path), "");
  EXPECT_EQ(session.target_name(), "grip");
  session.NextTarget();
  EXPECT_EQ(session.target_name(), "paddle");
  session.Start();
  const std::array<mjtNum, 3> cube = {Cube(session)[0], Cube(session)[1], Cube(session)[2]};
  const auto push = [&](double until) {
    while (session.target()[1] > until) {
      const double across = std::clamp(cube[0] - session.target()[0], -0.02, 0.02);
      session.Drag({across, -0.02, 0});
      Steps(session, 1);
    }
  };
  push(cube[1] - 0.05);
  const mjtNum pushed = Cube(session)[1];
  EXPECT_LT(pushed, cube[1] - 0.03);
  session.Rewind(session.step() - 10);
  EXPECT_GT(session.target()[1], cube[1] + 0.05);
  push(cube[1] - 0.05);
  EXPECT_LT(Cube(session)[1], cube[1] - 0.03);
  session.Keep();
  session.Finish();  // fails where the cube does not come to lie there again
  EXPECT_EQ(session.kept(), 1);
  session.NextTarget();
  EXPECT_EQ(session.target_name(), "grip");
  session.NextTarget();
  session.Start();
  session.Drag({NAN, 0, 0});
  EXPECT_THROW(session.Advance(), Error);
}

TEST_F(SessionTest, OnlyWhatIsKeptIsThere) {
  {
    RecordingSession session(Options("arm"), Arm(), "");
    session.Start();
    Steps(session, 5);
    session.Again();
    EXPECT_EQ(session.seed(), 0u);
    session.Start();
    Steps(session, 5);
    session.Next();
    EXPECT_EQ(session.seed(), 1u);
    session.Keep();  // nothing was shown
    EXPECT_EQ(session.seed(), 1u);
    session.Start();
    Steps(session, 3);
    session.Keep();
    session.Finish();
    EXPECT_EQ(session.kept(), 1);
  }
  RecordingSession later(Options("arm"), Arm(), "");
  EXPECT_EQ(later.kept(), 1);
  EXPECT_EQ(later.seed(), 2u);
}

TEST_F(SessionTest, ASecondBackIsTheSameStateAgain) {
  RecordingSession session(Options("arm"), Arm(), "");
  session.Start();
  DriveInput input;
  input.move = {0.3, -0.5, -0.2};
  session.person().Drive(input);
  Steps(session, 10);
  const std::vector<mjtNum> there = session.world().State();
  input.move = {-1, 0, 0};
  session.person().Drive(input);
  Steps(session, 4);
  session.Advance();  // and a part of the next control step
  session.Rewind(10);
  EXPECT_EQ(session.step(), 10);
  EXPECT_EQ(session.world().State(), there);
  Steps(session, 3);
  session.Keep();
  session.Finish();  // throws where it does not come out the same
  EXPECT_EQ(session.kept(), 1);
  session.Rewind(0);  // at a start: nothing to go back to
  EXPECT_EQ(session.phase(), RecordingSession::Phase::kReady);
}

TEST_F(SessionTest, WithoutAHandKeysDriveTheNumbers) {
  const auto cart = std::make_shared<const TaskFile>(kSource + "/models/cart_pole.xml");
  RecordingSession session(Options("cart"), cart, "");
  EXPECT_FALSE(session.person().has_hand());
  session.Start();
  DriveInput input;
  input.move = {-1, 0, 0};
  session.person().Drive(input);
  std::vector<mjtNum> action(1);
  session.person().Act(session.world().model(), session.world().data(), action);
  EXPECT_EQ(action[0], -1);
  session.person().Drive({});  // let go: a motor rests
  session.person().Act(session.world().model(), session.world().data(), action);
  EXPECT_EQ(action[0], 0);
}

// An arm of `joints`, each turning the link after it, the last called `last`.
std::string Chain(const std::string& last) {
  const std::string geom = "<geom type='capsule' fromto='0 0 0 0 0 .2' size='.02' contype='0'/>";
  std::string links, ends, motors;
  const std::string joints[] = {"pan", "lift", "flex", last};
  for (int i = 0; i < 4; ++i) {
    links += "<body name='link" + std::to_string(i) + "' pos='0 0 " + (i ? ".2" : "0") +
             "'><joint name='" + joints[i] + "' axis='" + (i ? "0 1 0" : "0 0 1") +
             "' range='-90 90'/>" + geom;
    ends += "</body>";
    motors += "<position joint='" + joints[i] + "' name='" + joints[i] + "' ctrlrange='-1 1'/>";
  }
  return "<mujoco model='chain'><worldbody><camera name='side' pos='0 -2 0'/>" + links + ends +
         "</worldbody><actuator>" + motors +
         "</actuator><extension><plugin "
         "plugin='mjpolicy.policy'><instance name='policy'><config key='checkpoint' value='none'/>"
         "<config key='period' value='0.1'/><config key='camera' value='side'/><config key='state' "
         "value='joint:pan'/><config key='actuators' value='pan lift flex " +
         last +
         "'/></instance></plugin></extension><sensor><plugin name='policy' "
         "plugin='mjpolicy.policy' instance='policy'/><clock name='clock'/></sensor><custom>"
         "<numeric name='task.steps' data='9'/><text name='task.success' data='clock > 9'/>"
         "</custom></mujoco>";
}

TEST_F(SessionTest, AJawThatTurnsAloneIsAGripper) {
  int count = 0;
  for (const auto& [last, hand, gripper] :
       {std::tuple("wrist_roll", "link3", -1), std::tuple("so101/Jaw", "link2", 3),
        std::tuple("gripper", "link2", 3)}) {
    const std::string model = folder_.Write("chain.xml", Chain(last));
    RecordingSession session(Options("set" + std::to_string(count++)),
                             std::make_shared<const TaskFile>(model), "");
    EXPECT_EQ(session.person().hand_name(), hand) << last;
    EXPECT_EQ(session.person().gripper(), gripper) << last;
  }
}

TEST_F(SessionTest, AWrongHandIsNamed) {
  for (const auto& [hand, why] : {std::pair("nobody", "no site or body of that name"),
                                  std::pair("cube", "fewer than two position servos")}) {
    try {
      RecordingSession session(Options("arm"), Arm(), hand);
      FAIL() << hand;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  }
}

}  // namespace
}  // namespace mjp::app
