#include "tasks/mjcf/start.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "tests/tasks/mjcf/task_text.h"

namespace mjp_test {
namespace {

using mjp::app::TaskFile;
using mjp::app::TaskWorld;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StartTest : public TaskTextTest {
 protected:
  std::vector<double> Positions(const TaskFile& file, uint32_t seed) const {
    TaskWorld world(file);
    world.Start(seed);
    return {world.data()->qpos, world.data()->qpos + file.model()->nq};
  }
};

TEST_F(StartTest, BeginsAtTheKeyOrAtTheModelsOwn) {
  const TaskFile key = Load(Basic());
  EXPECT_THAT(Positions(key, 3), ElementsAre(0, 0, 0.5, 1, 0, 0, 0, 0.25));
  TaskWorld world(key);
  world.Start(3);
  EXPECT_EQ(world.data()->ctrl[0], 0.5);
  EXPECT_THAT(Positions(Load(With("task.start", " ")), 3), ElementsAre(0, 0, 1, 1, 0, 0, 0, 0));
}

TEST_F(StartTest, DrawsAreWithinTheirRangesAndAFunctionOfTheSeed) {
  const TaskFile file = Load(
      With("task.start", "key up; joint ball[0:2] uniform -0.2 0 0.3 0.4; joint slide around 0.1"));
  std::set<double> seen;
  double least = 1, most = -1, sum = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const std::vector<double> start = Positions(file, seed);
    EXPECT_EQ(start, Positions(file, seed));
    EXPECT_TRUE(start[0] >= -0.2 && start[0] < 0 && start[1] >= 0.3 && start[1] < 0.4) << seed;
    EXPECT_EQ(start[2], 0.5);
    EXPECT_NEAR(start[7], 0.25, 0.1);
    seen.insert(start[0]);
    least = std::min(least, start[7]);
    most = std::max(most, start[7]);
    sum += start[0];
  }
  EXPECT_EQ(seen.size(), 200u);
  EXPECT_NEAR(sum / 200, -0.1, 5 * 0.2 / std::sqrt(12.0 * 200));
  EXPECT_LT(least, 0.17);
  EXPECT_GT(most, 0.33);
}

TEST_F(StartTest, ADrawnQuaternionIsOfUnitLength) {
  const TaskFile file = Load(With("task.start", "key up; joint ball[4:7] uniform -2 2"));
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const std::vector<double> start = Positions(file, seed);
    EXPECT_NEAR(std::hypot(std::hypot(start[3], start[4]), std::hypot(start[5], start[6])), 1,
                1e-12);
    EXPECT_NE(start[4], 0) << seed;
  }
}

// An entry's numbers are addressed by its place, so another one after it changes nothing.
TEST_F(StartTest, AnEntryMoreChangesNoOther) {
  const std::string one = "joint slide uniform -1 1", two = one + "; joint ball[0] normal 0 1";
  const auto before = Positions(Load(With("task.start", one)), 5);
  const auto after = Positions(Load(With("task.start", two)), 5);
  EXPECT_EQ(before[7], after[7]);
  EXPECT_NE(before[0], after[0]);
}

// numpy.random.RandomState(7): uniform(0, .2), uniform(.4, .6), randn(), randint(0, 3)
TEST_F(StartTest, NumpysOrderAndNumbers) {
  Elements elements = With("task.start",
                           "joint ball[0:2] uniform 0 .2 .4 .6; joint slide normal 0 1; joint "
                           "ball[2] choice 1 2 3");
  elements["task.random"] = "numpy";
  const auto start = Positions(Load(elements), 7);
  EXPECT_EQ(start[0], 0.2 * 0.07630828937395717);
  EXPECT_EQ(start[1], 0.4 + (0.6 - 0.4) * 0.7799187922401146);
  EXPECT_DOUBLE_EQ(start[7], 1.690525703800356);
  EXPECT_EQ(start[2], 1);
}

TEST_F(StartTest, NormalsHaveTheirMeanAndDeviation) {
  const TaskFile file = Load(With("task.start", "joint slide normal 2 0.5"));
  double sum = 0, squares = 0;
  constexpr int kDraws = 2000;
  TaskWorld world(file);
  for (uint32_t seed = 0; seed < kDraws; ++seed) {
    world.Start(seed);
    const double z = (world.data()->qpos[7] - 2) / 0.5;
    sum += z;
    squares += z * z;
  }
  EXPECT_NEAR(sum / kDraws, 0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
}

TEST_F(StartTest, ChoicesAreTakenWhole) {
  const TaskFile file = Load(With("task.start", "joint ball[0:2] choice 1 2  3 4  5 6"));
  std::set<std::pair<double, double>> seen;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const auto start = Positions(file, seed);
    seen.emplace(start[0], start[1]);
  }
  EXPECT_THAT(seen, ElementsAre(std::pair(1., 2.), std::pair(3., 4.), std::pair(5., 6.)));
}

TEST_F(StartTest, LooksAndPlacesAreDrawnAnewForEachEpisode) {
  const TaskFile file = Load(With(
      "task.start",
      "geom_rgba brick uniform 0 1; geom_size ball uniform 0.05 0.2; light_pos lamp around 1; "
      "light_diffuse lamp uniform 0 1; camera_pos front[2] around 0.1; body_pos slider around 0.1; "
      "body_pos hand uniform 0 1; body_yaw slider uniform 1 1; joint_yaw ball uniform 0.5 0.5; "
      "joint_velocity ball[5] uniform 2 2"));
  TaskWorld world(file);
  const mjModel* original = file.model();
  const mjModel* model = world.model();
  const int brick = mj_name2id(model, mjOBJ_GEOM, "brick");
  const int ball = mj_name2id(model, mjOBJ_GEOM, "ball");
  const int slider = mj_name2id(model, mjOBJ_BODY, "slider");
  world.Start(1);
  const std::vector<float> first(model->geom_rgba + 4 * brick, model->geom_rgba + 4 * brick + 4);
  const double size = model->geom_size[3 * ball];
  world.Start(2);
  EXPECT_NE(model->geom_rgba[4 * brick], first[0]);
  world.Start(1);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), model->geom_rgba + 4 * brick));
  EXPECT_EQ(model->geom_size[3 * ball], size);
  EXPECT_EQ(model->geom_rbound[ball], size);
  EXPECT_EQ(model->geom_aabb[6 * ball + 5], size);
  EXPECT_TRUE(size >= 0.05 && size < 0.2);
  EXPECT_NE(model->light_pos[0], original->light_pos[0]);
  EXPECT_NEAR(model->cam_pos[2], original->cam_pos[2], 0.1);
  EXPECT_EQ(model->cam_pos[1], original->cam_pos[1]);
  EXPECT_NEAR(model->body_pos[3 * slider], 1, 0.1);
  EXPECT_NEAR(model->body_quat[4 * slider], std::cos(0.5), 1e-12);
  EXPECT_NEAR(world.data()->qpos[6], std::sin(0.25), 1e-12);
  EXPECT_EQ(world.data()->qvel[5], 2);
  EXPECT_NE(world.data()->mocap_pos[0], 0);
}

TEST_F(StartTest, SettlesBeforeTimeBegins) {
  const TaskFile file = Load(With("task.start", "key up; settle 2"));
  TaskWorld world(file);
  world.Start(0);
  EXPECT_EQ(world.data()->time, 0);
  EXPECT_NEAR(world.data()->qpos[2], 0.1, 0.01) << "the ball lies on the floor";
  EXPECT_NEAR(world.data()->qpos[7], 0.5, 0.01) << "the servo holds the key's control";
}

TEST_F(StartTest, SaysWhatIsWrongAndWhatWouldDo) {
  struct Case {
    const char *start, *reason;
  };
  for (const Case& each : std::initializer_list<Case>{
           {"key upp", "did you mean \"up\"?"},
           {"key", "write: key NAME"},
           {"key up; key down", "this is the second"},
           {"joints ball uniform 0 1", "did you mean \"joint\"?"},
           {"joint bal uniform 0 1", "did you mean \"ball\"? There are: ball, slide"},
           {"joint ball unifrom 0 1", "did you mean \"uniform\"?"},
           {"joint slide uniform 1 0", "LOW is above HIGH"},
           {"joint slide uniform 0 x", "\"x\" is no number"},
           {"joint slide uniform 0 nan", "\"nan\" is no number"},
           {"joint slide uniform", "write: joint NAME uniform LOW HIGH"},
           {"joint slide uniform 0 1 2", "expected 2 numbers"},
           {"joint ball[0:2] uniform 0 1 2", "or 4 for 2 components"},
           {"joint ball[0:2] choice 0 1 2", "each choice has 2 numbers"},
           {"joint ball[5:8] uniform 0 1", "it has only 7 components"},
           {"joint ball[a] uniform 0 1", "chosen as NAME[1]"},
           {"joint_yaw slide uniform 0 1", "\"slide\" has no joint_yaw"},
           {"body_pos ball around 0.1", "its free joint places it: write joint ball[0:3]"},
           {"body_pos ball[0:2] around 0.1", "its free joint places it: write joint ball[0:3]"},
           {"body_yaw ball around 1", "its free joint places it: write joint_yaw ball"},
           {"camera_pos chase around 0.1", "has no camera_pos: by its mode, track or trackcom"},
           {"light_pos spot around 0.1", "has no light_pos: by its mode, track or trackcom"},
           {"geom_size floor uniform 0.1 1", "\"floor\" has no geom_size"},
           {"geom_size ball uniform 0 1", "above 0"},
           {"geom_size ball normal 1 1", "above 0"},
           {"settle -1", "give 0 to 1000 seconds"},
           {"settle 1; settle 1", "the second time"}}) {
    EXPECT_THAT(Refusal("task.start", each.start),
                ::testing::AllOf(HasSubstr("\"task.start\", entry"), HasSubstr(each.reason)))
        << each.start;
  }
  EXPECT_THAT(Refusal("task.random", "nunpy"), HasSubstr("did you mean \"numpy\"?"));
}

}  // namespace
}  // namespace mjp_test
