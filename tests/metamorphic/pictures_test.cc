#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mujoco/mjbatch.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "tasks/pusht/coverage.h"
#include "tasks/pusht/physics/scene.h"
#include "tests/metamorphic/pictures_fixture.h"

// Relations that must hold between what a model shows, what its policy sees and how it is scored.
// No golden: each compares two runs. A feature that changes a picture adds a row to a table.

namespace mjp_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A change of the scene that can be seen.
struct Change {
  const char* name;
  std::vector<Edit> edits;
  std::string camera = "top";
  std::string reason;  // what a message says of it
};

void PrintTo(const Change& change, std::ostream* out) { *out << change.name; }

const char kWorld[] = "<worldbody>";
const Change kChanges[] = {
    {"Occluder",
     {{kWorld,
       "<worldbody><geom name=\"occluder\" type=\"box\" size=\".6 .6 .01\" pos=\"2 2 1\" "
       "rgba=\"1 0 0 1\" contype=\"0\" conaffinity=\"0\"/>"}},
     "top",
     "\"occluder\""},
    {"BlockRed",
     {{"name=\"block\" rgba=\"0.560784 0.639216 0.721569 1\"", "name=\"block\" rgba=\"1 0 0 1\""}},
     "top",
     "another colour"},
    {"OneGeomRed",
     {{"material=\"block\" pos=\"0 -0.3", "material=\"block\" rgba=\"1 0 0 1\" pos=\"0 -0.3"}},
     "top",
     "another colour"},
    {"BlockWide", {{"size=\"0.605 0.155 0.05\"", "size=\"1.2 0.155 0.05\""}}, "top", "shape"},
    {"GoalElsewhere",
     {{"name=\"goal\" pos=\"2.56 2.56 0\"", "name=\"goal\" pos=\"1.3 1.3 0\""}},
     "top",
     "\"goal\""},
    {"TableMoved", {{"pos=\"0 5.12 0\"", "pos=\"1.5 5.12 0\""}}, "top", "place"},
    {"CameraTurned",
     {{"pos=\"2.555 2.565 3\"", "pos=\"2.555 2.565 3\" euler=\"0 0 1.5708\""}},
     "top",
     "turned"},
    {"CameraMoved", {{"pos=\"2.555 2.565 3\"", "pos=\"3.555 2.565 3\""}}, "top", "elsewhere"},
    {"OtherCamera",
     {{kWorld,
       "<worldbody><camera name=\"other\" projection=\"orthographic\" fovy=\"5.12\" "
       "pos=\"5 5 3\" resolution=\"512 512\"/>"}},
     "other",
     "camera \"other\""},
    {"Headlight",
     {{"<headlight active=\"0\" ambient=\"0 0 0\" diffuse=\"0 0 0\"",
       "<headlight active=\"1\" ambient=\"0 0 0\" diffuse=\".4 .4 .4\""}},
     "top",
     "headlight"},
    {"Light",
     {{kWorld,
       "<worldbody><light name=\"lamp\" pos=\"2 2 3\" dir=\"0 0 -1\" diffuse=\".4 0 0\"/>"}},
     "top",
     "\"lamp\" is on"},
    {"HiddenShapesShown", {{"<geom group=\"3\"/>", "<geom group=\"0\"/>"}}, "top", "geom"},
    {"SiteShown",
     {{"pos=\"2.56 5.3 .2\" group=\"4\"", "pos=\"2.56 2 .2\" size=\".4\" group=\"0\""}},
     "top",
     "site \"label\""},
    {"VisualsGone",
     {{"<compiler angle", "<compiler discardvisual=\"true\" angle"}},
     "top",
     "missing"},
};

class Changes : public PicturesTest, public ::testing::WithParamInterface<Change> {};

// auto shows the change as MuJoCo's renderer does, and says why; raster by name says what differs
TEST_P(Changes, AreSeen) {
  const Change& change = GetParam();
  const Frames before = FirstSight(Xml({}, "mujoco"));
  const Frames shown = FirstSight(Xml(change.edits, "mujoco", change.camera));
  EXPECT_GT(MeanDifference(shown, before), 0.2);
  ASSERT_THAT(TakeWarnings(), IsEmpty());
  const Frames seen = FirstSight(Xml(change.edits, "auto", change.camera));
  EXPECT_EQ(MeanDifference(seen, shown), 0);
  const std::vector<std::string> warnings = TakeWarnings();
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], HasSubstr(change.reason));
  std::string refusal;
  EXPECT_THAT(FirstSight(Xml(change.edits, "raster", change.camera), &refusal), IsEmpty());
  EXPECT_THAT(refusal, HasSubstr(change.reason));
  TakeWarnings();
}

INSTANTIATE_TEST_SUITE_P(All, Changes, ::testing::ValuesIn(kChanges),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(PicturesTest, TheBenchmarksOwnSceneIsRasterised) {
  const Frames raster = FirstSight(Xml({}, "raster"));
  EXPECT_EQ(MeanDifference(FirstSight(Xml({}, "auto")), raster), 0);
  const double apart = MeanDifference(FirstSight(Xml({}, "mujoco")), raster);
  EXPECT_GT(apart, 0);  // two renderers
  EXPECT_LT(apart, 0.15);
}

// A change of the compiled model while it runs.
struct Recolour {
  const char* name;
  std::function<void(mjModel*)> change;
  std::vector<Edit> edits = {};  // of the model that is changed
  const Model* robot = &kPusht;
};
void PrintTo(const Recolour& recolour, std::ostream* out) { *out << recolour.name; }

int Material(const mjModel* model, const char* name) {
  return mj_name2id(model, mjOBJ_MATERIAL, name);
}

// things of which OpenGL keeps a copy
const std::vector<Edit> kUploads = {
    {"<asset>",
     "<asset><texture name=\"checker\" type=\"2d\" builtin=\"checker\" width=\"8\" height=\"8\" "
     "rgb1=\"1 0 0\" rgb2=\"0 0 1\"/><material name=\"checked\" texture=\"checker\" "
     "texrepeat=\"3 3\"/><mesh name=\"wedge\" vertex=\"0 0 0  1 0 0  0 1 0  0 0 1\"/>"},
    {kWorld,
     "<worldbody><geom name=\"sheet\" type=\"plane\" size=\"1 1 .1\" pos=\"2 2 1\" "
     "material=\"checked\" contype=\"0\" conaffinity=\"0\"/><geom type=\"mesh\" mesh=\"wedge\" "
     "pos=\"3 3 1\" material=\"checked\" contype=\"0\" conaffinity=\"0\"/>"}};

const Recolour kRecolours[] = {
    {"Texture", [](mjModel* m) { std::fill_n(m->tex_data, m->ntexdata, mjtByte{100}); }, kUploads},
    {"TextureRepeat", [](mjModel* m) { m->mat_texrepeat[2 * Material(m, "checked")] = 1; },
     kUploads},
    {"Mesh", [](mjModel* m) { m->mesh_vert[0] += 1; }, kUploads},
    {"Plane", [](mjModel* m) { m->geom_size[3 * mj_name2id(m, mjOBJ_GEOM, "sheet")] = 0.5; },
     kUploads},
    {"Colour", [](mjModel* m) { m->mat_rgba[4 * Material(m, "block")] = 1; }},
    {"Size", [](mjModel* m) { m->geom_size[3 * 16] *= 2; }},
    {"Place", [](mjModel* m) { m->geom_pos[3 * 5] += 0.5; }},
    {"Body", [](mjModel* m) { m->body_pos[3 * mj_name2id(m, mjOBJ_BODY, "goal")] -= 1; }},
    {"Camera", [](mjModel* m) { m->cam_pos[0] += 1; }},
    {"Headlight", [](mjModel* m) { m->vis.headlight.active = 1, m->vis.headlight.diffuse[0] = 1; }},
    {"Group", [](mjModel* m) { m->geom_group[16] = m->geom_group[17] = 4; }},
    {"Resolution", [](mjModel* m) { m->cam_resolution[0] = m->cam_resolution[1] = 96; }},
    {"ArmColour", [](mjModel* m) { m->geom_rgba[4 * 2] = 1; }, {}, &kArm},
    {"ArmSize", [](mjModel* m) { m->geom_size[3 * 2] *= 3; }, {}, &kArm},
    {"ArmPlace", [](mjModel* m) { m->body_pos[3 * 3] += 0.2; }, {}, &kArm},
    {"ArmCamera", [](mjModel* m) { m->cam_fovy[0] = 30; }, {}, &kArm},
    {"ArmLight", [](mjModel* m) { m->light_diffuse[0] = 0; }, {}, &kArm},
    {"ArmLightPlace", [](mjModel* m) { m->light_dir[0] = 1; }, {}, &kArm},
    {"ArmHeadlight", [](mjModel* m) { m->vis.headlight.diffuse[0] = 0; }, {}, &kArm},
    {"ArmFloor", [](mjModel* m) { m->geom_size[0] = 0.5; }, {}, &kArm},
};

class Recolours : public PicturesTest,
                  public ::testing::WithParamInterface<std::tuple<Recolour, std::string>> {};

// in a simulation that has drawn its old look at the very same pose
TEST_P(Recolours, AreSeenInASimulationThatRuns) {
  const auto& [recolour, renderer] = GetParam();
  Use(*recolour.robot);
  const ModelPtr model = Compile(Xml(*recolour.robot, recolour.edits, renderer));
  ASSERT_TRUE(model);
  const auto sight = [&](mjData* data) {
    policy_.Take();
    mj_resetDataKeyframe(model.get(), data, 0);
    mj_step(model.get(), data);
    const auto seen = policy_.Take();
    return seen.empty() ? Frames() : seen[0].frames;
  };
  const DataPtr data = Home(model.get());
  const Frames before = sight(data.get());
  recolour.change(model.get());
  const Frames after = sight(data.get()), fresh = FirstSight(model.get());
  EXPECT_GT(MeanDifference(after, before), 0.01);
  EXPECT_EQ(MeanDifference(after, fresh), 0);
  TakeWarnings();  // that MuJoCo's renderer draws from now on
}

INSTANTIATE_TEST_SUITE_P(All, Recolours,
                         ::testing::Combine(::testing::ValuesIn(kRecolours),
                                            ::testing::Values("auto", "mujoco")),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::get<1>(info.param);
                         });

TEST_F(PicturesTest, RasterByNameStopsWhereTheModelChangesUnderIt) {
  const ModelPtr model = Compile(Xml({}, "raster"));
  ASSERT_TRUE(model);
  const DataPtr data = Home(model.get());
  mj_step(model.get(), data.get());
  model->mat_rgba[4 * Material(model.get(), "block")] = 1;
  while (data->time < 1) mj_step(model.get(), data.get());
  const std::vector<std::string> warnings = TakeWarnings();
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], HasSubstr("another colour"));
}

// threads, one mjData per simulation or not, and who draws
class Batches
    : public PicturesTest,
      public ::testing::WithParamInterface<std::tuple<const Model*, int, bool, std::string>> {};

TEST_P(Batches, GiveEachSimulationItsOwnPicture) {
  const auto& [robot, threads, persistent, renderer] = GetParam();
  constexpr int kSimulations = 4, kSteps = 120;
  Use(*robot);
  const ModelPtr model = Compile(Xml(*robot, {}, renderer));
  ASSERT_TRUE(model);
  // materials of the one, plain colours of the other
  const bool materials = model->nmat > 0;
  const int at = 4 * (materials ? Material(model.get(), "block") : 2);
  const int numbers = static_cast<int>(4 * (materials ? model->nmat : model->ngeom));
  const auto colour = [&](int simulation, float* rgba) { rgba[at] = 0.25f * simulation; };
  std::vector<std::vector<mjtNum>> alone;
  for (int i = 0; i < kSimulations; ++i) {
    const ModelPtr own(mj_copyModel(nullptr, model.get()));
    colour(i, materials ? own->mat_rgba : own->geom_rgba);
    const DataPtr data = Home(own.get());
    for (int step = 0; step < kSteps; ++step) mj_step(own.get(), data.get());
    std::vector<mjtNum> state(mj_stateSize(own.get(), mjSTATE_INTEGRATION));
    mj_getState(own.get(), data.get(), state.data(), mjSTATE_INTEGRATION);
    alone.push_back(state);
  }
  mjBatchConfig config;
  mjb_defaultConfig(&config);
  config.nthread = threads;
  config.persistent = persistent;
  mjBatch* batch = mjb_makeBatch(model.get(), kSimulations, &config, nullptr, 0);
  ASSERT_NE(batch, nullptr);
  auto* rgba = static_cast<float*>(
      mjb_expand(batch, materials ? "mat_rgba" : "geom_rgba", nullptr, nullptr));
  ASSERT_NE(rgba, nullptr);
  for (int i = 0; i < kSimulations; ++i) colour(i, rgba + i * numbers);
  const std::vector<int> keys(kSimulations, model->nkey > 0 ? 0 : -1);
  ASSERT_EQ(mjb_reset(batch, nullptr, kSimulations, keys.data(), mjSTAGE_NONE), 0);
  for (int step = 0; step < kSteps; step += 5)
    ASSERT_EQ(mjb_step(batch, nullptr, kSimulations, 5, mjSTAGE_NONE), 0);
  for (int i = 0; i < kSimulations; ++i) {
    const mjtNum* row = mjb_state(batch) + i * mjb_nstate(batch);
    EXPECT_EQ(std::vector<mjtNum>(row, row + mjb_nstate(batch)), alone[i]) << "simulation " << i;
  }
  mjb_deleteBatch(batch);
  TakeWarnings();
}

std::string BatchName(const ::testing::TestParamInfo<Batches::ParamType>& info) {
  const auto& [robot, threads, persistent, renderer] = info.param;
  return robot->name + std::to_string(threads) + "Threads" +
         (persistent ? "OwnData_" : "SharedData_") + renderer;
}
INSTANTIATE_TEST_SUITE_P(All, Batches,
                         ::testing::Combine(::testing::Values(&kPusht, &kArm),
                                            ::testing::Values(1, 2), ::testing::Bool(),
                                            ::testing::Values("auto", "mujoco")),
                         BatchName);

// the score is that of the goal, wherever it is: the block at the same place relative to it
TEST_F(PicturesTest, AnotherGoalIsAnotherScore) {
  const auto score = [&](const std::vector<Edit>& edits, double x, double y) {
    const ModelPtr model = Compile(Xml(edits, "mujoco"));
    const DataPtr data = Home(model.get());
    mjp::app::State state = {100, 100, x, y, 0.9};
    mjp::app::Scene(model.get()).ToQpos(state, data->qpos);
    mj_forward(model.get(), data.get());
    return data->sensordata[0];
  };
  const mjp::app::State near = {100, 100, 250, 270, 0.9};
  const double expected = mjp::app::Coverage(near);
  EXPECT_GT(expected, 0.3);
  EXPECT_NEAR(score({}, 250, 270), expected, 1e-9);
  const std::vector<Edit> moved = {
      {"name=\"goal\" pos=\"2.56 2.56 0\"", "name=\"goal\" pos=\"1.36 2.06 0\""}};
  EXPECT_NEAR(score(moved, 130, 220), expected, 1e-9);
  EXPECT_LT(score(moved, 250, 270), expected - 0.05);
  EXPECT_NEAR(score({{"pos=\"0 5.12 0\"", "pos=\"1.5 5.12 0\""}}, 250, 270), expected, 1e-9);
}

// what the score does not know is refused: another T, another goal's T, no goal
TEST_F(PicturesTest, AScoreThatWouldBeAnotherScenesIsRefused) {
  const struct {
    Edit edit;
    const char* reason;
  } rows[] = {
      {{"name=\"bar\" class=\"collision\" type=\"box\" size=\"0.6",
        "name=\"bar\" class=\"collision\" type=\"box\" size=\"1.2"},
       "not the benchmark's T"},
      {{"size=\"0.6025 0.157028 .005\"", "size=\"0.9 0.157028 .005\""}, "in body \"goal\""},
      {{"<body name=\"goal\"", "<body name=\"target\""}, "no fixed body \"goal\""},
  };
  for (const auto& row : rows) {
    std::string refusal;
    EXPECT_FALSE(Compile(Xml({row.edit}, "mujoco"), &refusal));
    EXPECT_THAT(refusal, HasSubstr("coverage"));
    EXPECT_THAT(refusal, HasSubstr(row.reason));
    TakeWarnings();
  }
}

}  // namespace
}  // namespace mjp_test
