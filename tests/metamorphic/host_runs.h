#ifndef TESTS_METAMORPHIC_HOST_RUNS_H_
#define TESTS_METAMORPHIC_HOST_RUNS_H_

#include <gtest/gtest.h>
#include <mujoco/mjbatch.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/metamorphic/subjects.h"
#include "tests/support/child.h"
#include "tests/support/mujoco_fixture.h"

// Ways to make and to run a model, which hosts_test.cc holds against each other.

namespace mjp_test {

inline constexpr int kSteps = 130;  // two decisions and more, of either model

// Controls of all actuators after each step.
using Controls = std::vector<mjtNum>;

struct Case {
  const Subject* subject;
  std::string file;  // its MJCF
  const mjModel* model;
};

// The actuator of this name, or the first that drives a joint of this name.
inline int ActuatorOf(const mjModel* model, const std::string& name) {
  int id = mj_name2id(model, mjOBJ_ACTUATOR, name.c_str());
  const int joint = mj_name2id(model, mjOBJ_JOINT, name.c_str());
  for (int i = 0; i < model->nu && id < 0; ++i) {
    if (model->actuator_trntype[i] == mjTRN_JOINT && model->actuator_trnid[2 * i] == joint) id = i;
  }
  EXPECT_GE(id, 0) << name;
  return id;
}

inline void Read(const Case& c, const mjModel* model, const mjData* data, Controls& controls,
                 const std::string& prefix = "") {
  for (const std::string& name : c.subject->actuators)
    controls.push_back(data->ctrl[model->actuator_ctrladr[ActuatorOf(model, prefix + name)]]);
}

inline Controls Step(const Case& c, const mjModel* model, mjData* data, int steps,
                     const std::string& prefix = "") {
  Controls controls;
  for (int i = 0; i < steps; ++i) {
    mj_step(model, data);
    Read(c, model, data, controls, prefix);
  }
  return controls;
}

inline Controls ControlsOf(const Case& c, const mjModel* model, const std::string& prefix = "") {
  const DataPtr data(mj_makeData(model));
  return Step(c, model, data.get(), kSteps, prefix);
}

// The controls of the first `before` steps here and of the others as `go_on` makes them.
inline Controls Divided(const Case& c, int before, const std::function<Controls(mjData*)>& go_on) {
  const DataPtr data(mj_makeData(c.model));
  Controls controls = Step(c, c.model, data.get(), before);
  const Controls after = go_on(data.get());
  controls.insert(controls.end(), after.begin(), after.end());
  return controls;
}

inline ModelPtr ThroughFile(const Case& c) {
  const std::string file = c.file + ".mjb";
  mj_saveModel(c.model, file.c_str(), nullptr, 0);
  return ModelPtr(mj_loadModel(file.c_str(), nullptr));
}

// what a pickle of Python's is
inline ModelPtr ThroughBuffer(const Case& c) {
  std::vector<char> bytes(mj_sizeModel(c.model));
  mj_saveModel(c.model, nullptr, bytes.data(), static_cast<int>(bytes.size()));
  return ModelPtr(mj_loadModelBuffer(bytes.data(), static_cast<int>(bytes.size())));
}

inline mjSpec* Parse(const std::string& file) {
  char message[1000] = "";
  mjSpec* spec = mj_parseXML(file.c_str(), nullptr, message, sizeof(message));
  EXPECT_NE(spec, nullptr) << message;
  return spec;
}

// A world with the options and looks of the child, which attaching leaves behind, and nothing else.
inline mjSpec* WorldLike(const mjSpec* child) {
  mjSpec* world = mj_makeSpec();
  world->option = child->option;
  world->visual = child->visual;
  world->stat = child->stat;
  return world;
}

inline void Attach(mjSpec* world, mjSpec* child, const char* prefix) {
  mjsFrame* frame = mjs_addFrame(mjs_findBody(world, "world"), nullptr);
  EXPECT_NE(mjs_attach(frame->element, child->element, prefix, ""), nullptr);
}

inline Controls ControlsOfSpec(const Case& c, mjSpec* spec, const std::string& prefix = "") {
  const ModelPtr model(mj_compile(spec, nullptr));
  EXPECT_NE(model, nullptr) << mjs_getError(spec);
  return model ? ControlsOf(c, model.get(), prefix) : Controls();
}

inline Controls Attached(const Case& c) {
  mjSpec* child = Parse(c.file);
  mjSpec* world = WorldLike(child);
  Attach(world, child, "left_");
  Controls controls = ControlsOfSpec(c, world, "left_");
  mj_deleteSpec(world);
  mj_deleteSpec(child);
  return controls;
}

inline Controls AttachedTwice(const Case& c) {
  mjSpec* child = Parse(c.file);
  mjSpec* cell = WorldLike(child);
  Attach(cell, child, "left_");
  EXPECT_NE(ModelPtr(mj_compile(cell, nullptr)),
            nullptr);  // or its keyframes are not renamed again
  mjSpec* world = WorldLike(child);
  Attach(world, cell, "cell/");
  Controls controls = ControlsOfSpec(c, world, "cell/left_");
  for (mjSpec* spec : {world, cell, child}) mj_deleteSpec(spec);
  return controls;
}

inline Controls CopiedSpec(const Case& c) {
  mjSpec* spec = Parse(c.file);
  mjSpec* copy = mj_copySpec(spec);
  mj_deleteSpec(spec);
  Controls controls = ControlsOfSpec(c, copy);
  mj_deleteSpec(copy);
  return controls;
}

// The rest of a run in a copy of the simulation whose `plugin_data` is not its own: as a pickle of
// an MjData leaves it, here or in another process.
inline Controls Unpickled(const Case& c, const std::function<uintptr_t(const mjData*)>& number) {
  constexpr int kBefore = 45;
  return Divided(c, kBefore, [&](mjData* data) {
    const DataPtr copy(mj_copyData(nullptr, c.model, data)), other(mj_makeData(c.model));
    for (const DataPtr* each : {&copy, &other}) (*each)->plugin_data[0] = number(data);
    mj_resetData(c.model, other.get());
    Step(c, c.model, data, 3);
    const Controls controls = Step(c, c.model, copy.get(), kSteps - kBefore);
    EXPECT_EQ(Step(c, c.model, other.get(), kSteps), ControlsOf(c, c.model));
    return controls;
  });
}

inline Controls ToControls(const std::string& bytes) {
  Controls controls(bytes.size() / sizeof(mjtNum));
  std::memcpy(controls.data(), bytes.data(), controls.size() * sizeof(mjtNum));
  return controls;
}
inline std::string ToBytes(const Controls& controls) {
  return {reinterpret_cast<const char*>(controls.data()), controls.size() * sizeof(mjtNum)};
}

inline Controls Forked(const Case& c) {
  return Divided(c, 50, [&](mjData* data) {
    return ToControls(InChild([&] { return ToBytes(Step(c, c.model, data, kSteps - 50)); }, 60));
  });
}

inline Controls Batched(const Case& c, bool persistent) {
  constexpr int kSimulations = 3;
  mjBatchConfig config;
  mjb_defaultConfig(&config);
  config.nthread = 2;
  config.persistent = persistent;
  mjBatch* batch = mjb_makeBatch(c.model, kSimulations, &config, nullptr, 0);
  const DataPtr data(mj_makeData(c.model));
  const int size = mj_stateSize(c.model, mjSTATE_INTEGRATION);
  EXPECT_EQ(mjb_nstate(batch), size);
  for (int i = 0; i < kSimulations; ++i) {
    mj_getState(c.model, data.get(), mjb_state(batch) + i * size, mjSTATE_INTEGRATION);
  }
  Controls controls;
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_EQ(mjb_step(batch, nullptr, kSimulations, 1, mjSTAGE_NONE), 0);
    const mjtNum* last = mjb_state(batch) + (kSimulations - 1) * size;
    EXPECT_TRUE(std::equal(last, last + size, mjb_state(batch))) << "simulations differ";
    mj_setState(c.model, data.get(), last, mjSTATE_INTEGRATION);
    Read(c, c.model, data.get(), controls);
  }
  mjb_deleteBatch(batch);
  return controls;
}

inline Controls StartedAt(const Case& c, double time) {
  const DataPtr data(mj_makeData(c.model));
  data->time = time;
  return Step(c, c.model, data.get(), kSteps);
}

}  // namespace mjp_test

#endif  // TESTS_METAMORPHIC_HOST_RUNS_H_
