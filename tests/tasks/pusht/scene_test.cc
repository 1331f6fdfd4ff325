#include "tasks/pusht/physics/scene.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/error.h"
#include "tasks/physics/random_state.h"
#include "tasks/pusht/physics/reset.h"

namespace mjp::app {
namespace {

using ::testing::HasSubstr;

std::string Models(const std::string& file) {
  return std::string(MJPOLICY_SOURCE_DIR) + "/models/" + file;
}

// the model of pusht.xml after a change of its text
ModelPtr Edited(const std::function<void(mjSpec*)>& edit) {
  char reason[500] = "";
  mjSpec* spec = mj_parseXML(Models("pusht.xml").c_str(), nullptr, reason, sizeof(reason));
  EXPECT_NE(spec, nullptr) << reason;
  edit(spec);
  ModelPtr model(mj_compile(spec, nullptr));
  EXPECT_NE(model, nullptr) << mjs_getError(spec);
  mj_deleteSpec(spec);
  return model;
}

std::string Refusal(const mjModel* model) {
  try {
    Scene scene(model);
  } catch (const mjp::Error& error) {
    return error.what();
  }
  return "accepted";
}

void ExpectNear(const State& a, const State& b, double tolerance) {
  EXPECT_NEAR(a.agent_x, b.agent_x, tolerance);
  EXPECT_NEAR(a.agent_y, b.agent_y, tolerance);
  EXPECT_NEAR(a.block_x, b.block_x, tolerance);
  EXPECT_NEAR(a.block_y, b.block_y, tolerance);
  EXPECT_NEAR(a.block_angle, b.block_angle, tolerance);
}

TEST(SceneTest, StatesSurviveTheWayThroughQpos) {
  const ModelPtr model = LoadModel(Models("pusht.xml"));
  const Scene scene(model.get());
  const DataPtr data = MakeData(model.get());
  RandomState random(3);
  for (int i = 0; i < 100; ++i) {
    const State state{512 * random.RandomSample(), 512 * random.RandomSample(),
                      512 * random.RandomSample(), 512 * random.RandomSample(), random.Randn() * 9};
    scene.ToQpos(state, data->qpos);
    ExpectNear(scene.Read(data.get()), state, 1e-12);
  }
}

TEST(SceneTest, TheModelsGeometryIsWhereTheStateSays) {
  // the middle of the bar's outer edge, in the world: x right, y up
  const ModelPtr model = LoadModel(Models("pusht.xml"));
  const Scene scene(model.get());
  const DataPtr data = MakeData(model.get());
  const State state{100, 120, 300, 200, 0.6};
  scene.ToQpos(state, data->qpos);
  mj_kinematics(model.get(), data.get());
  const int bar = mj_name2id(model.get(), mjOBJ_GEOM, "bar");
  const mjtNum edge[3] = {0, -model->geom_size[3 * bar + 1], 0};
  mjtNum point[3];
  mju_mulMatVec3(point, data->geom_xmat + 9 * bar, edge);
  mju_addTo3(point, data->geom_xpos + 3 * bar);
  EXPECT_NEAR(point[0] * kPixelsPerUnit, state.block_x, 1e-9);
  EXPECT_NEAR(kWorldSize - point[1] * kPixelsPerUnit, state.block_y, 1e-9);
  const mjtNum* agent = data->geom_xpos + 3 * mj_name2id(model.get(), mjOBJ_GEOM, "agent");
  EXPECT_NEAR(agent[0] * kPixelsPerUnit, state.agent_x, 1e-9);
  EXPECT_NEAR(kWorldSize - agent[1] * kPixelsPerUnit, state.agent_y, 1e-9);
}

TEST(SceneTest, AStartIsSettledAndAsNew) {
  const ModelPtr model = LoadModel(Models("pusht.xml"));
  const Scene scene(model.get());
  const DataPtr fresh = MakeData(model.get()), used = MakeData(model.get());
  // seed 50 starts with the agent inside the block
  for (const uint32_t seed : {100000u, 50u}) {
    const State start = BenchmarkStart(seed);
    scene.SetStart(start, fresh.get());
    EXPECT_EQ(fresh->time, 0);
    EXPECT_EQ(fresh->ctrl[0], start.agent_x / kPixelsPerUnit);
    EXPECT_EQ(fresh->ctrl[1], start.agent_y / kPixelsPerUnit);

    // the same trajectory as plain MuJoCo: place, one step, go on
    mj_resetData(model.get(), used.get());
    scene.ToQpos(start, used->qpos);
    scene.SetTarget(start.agent_x, start.agent_y, used.get());
    mj_step(model.get(), used.get());
    ExpectNear(scene.Read(fresh.get()), scene.Read(used.get()), 0);
    for (int i = 0; i < 100; ++i) {
      scene.SetTarget(256, 256, fresh.get());
      scene.SetTarget(256, 256, used.get());
      mj_step(model.get(), fresh.get());
      mj_step(model.get(), used.get());
    }
    // the solver starts the first step from another guess: equal up to its tolerance
    ExpectNear(scene.Read(fresh.get()), scene.Read(used.get()), 1e-3);

    // no trace of an earlier episode
    const State first = scene.Read(fresh.get());
    used->qacc_warmstart[2] = 5;
    scene.SetStart(start, used.get());
    for (int i = 0; i < 100; ++i) {
      scene.SetTarget(256, 256, used.get());
      mj_step(model.get(), used.get());
    }
    ExpectNear(scene.Read(used.get()), first, 0);
  }
}

TEST(SceneTest, RefusesAModelThatIsNotPushT) {
  EXPECT_EQ(Refusal(Edited([](mjSpec*) {}).get()), "accepted");
  EXPECT_THAT(Refusal(Edited([](mjSpec* spec) {
                        mjs_setName(mjs_findElement(spec, mjOBJ_JOINT, "bt"), "spin");
                      }).get()),
              HasSubstr("joint \"bt\""));
  EXPECT_THAT(Refusal(Edited([](mjSpec* spec) {
                        mjs_setName(mjs_findElement(spec, mjOBJ_ACTUATOR, "ay"), "motor");
                      }).get()),
              HasSubstr("actuator \"ay\""));
  EXPECT_THAT(Refusal(Edited([](mjSpec* spec) { spec->option.timestep = 0.002; }).get()),
              HasSubstr("timestep is 0.002"));
}

TEST(SceneTest, LoadingErrorsNameTheFile) {
  EXPECT_THROW(LoadModel(Models("absent.xml")), mjp::Error);
  for (const std::string& folder : {std::string("."), std::string("/"), Models("")}) {
    try {
      LoadModel(folder);
      FAIL() << folder;
    } catch (const mjp::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(folder + ": is a folder; give the file of a model"));
    }
  }
  EXPECT_EQ(ModelPath("pusht.xml"), Models("pusht.xml"));
  try {
    ModelPath("absent.xml");
    FAIL() << "found";
  } catch (const mjp::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("absent.xml"));
    EXPECT_THAT(error.what(), HasSubstr("MJPOLICY_MODELS"));
  }
}

}  // namespace
}  // namespace mjp::app
