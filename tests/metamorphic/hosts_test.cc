#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "plugin/register.h"
#include "policy/checkpoint/checkpoint.h"
#include "tests/metamorphic/host_runs.h"
#include "tests/metamorphic/subjects.h"
#include "tests/support/child.h"
#include "tests/support/mujoco_fixture.h"
#include "tests/support/renderer.h"
#include "tests/support/temp_dir.h"

// Relations that must hold between hosts: however a model comes to be and whoever steps it, its
// policy acts as in the model that was compiled from its XML, or says why not. No golden: each
// compares two runs of real policies. A new way to run a model is a row of kHosts.

namespace mjp_test {
namespace {

using ::testing::HasSubstr;

// A way to run a model: the controls that it gives.
struct Host {
  const char* name;
  std::function<Controls(const Case&)> run;
};
const Host kHosts[] = {
    {"CompiledAgain",
     [](const Case& c) {
       mjSpec* spec = Parse(c.file);
       const ModelPtr model(mj_compile(spec, nullptr));
       mj_deleteSpec(spec);
       return ControlsOf(c, model.get());
     }},
    {"CopiedModel",
     [](const Case& c) { return ControlsOf(c, ModelPtr(mj_copyModel(nullptr, c.model)).get()); }},
    {"ModelFile", [](const Case& c) { return ControlsOf(c, ThroughFile(c).get()); }},
    {"Pickle", [](const Case& c) { return ControlsOf(c, ThroughBuffer(c).get()); }},
    {"PickleOfAPickle",
     [](const Case& c) {
       const ModelPtr once = ThroughBuffer(c);
       return ControlsOf(c, ThroughBuffer({c.subject, c.file, once.get()}).get());
     }},
    {"CopiedData",
     [](const Case& c) {
       return Divided(c, 37, [&](mjData* data) {
         const DataPtr copy(mj_copyData(nullptr, c.model, data));
         return Step(c, c.model, copy.get(), kSteps - 37);
       });
     }},
    {"RestoredState",
     [](const Case& c) {
       return Divided(c, 83, [&](mjData* data) {
         std::vector<mjtNum> state(mj_stateSize(c.model, mjSTATE_INTEGRATION));
         mj_getState(c.model, data, state.data(), mjSTATE_INTEGRATION);
         const DataPtr other(mj_makeData(c.model));
         Step(c, c.model, other.get(), 20);
         mj_setState(c.model, other.get(), state.data(), mjSTATE_INTEGRATION);
         return Step(c, c.model, other.get(), kSteps - 83);
       });
     }},
    {"RestoredInAPickle",
     [](const Case& c) {
       const ModelPtr pickle = ThroughBuffer(c);
       return Divided(c, 45, [&](mjData* data) {
         std::vector<mjtNum> state(mj_stateSize(c.model, mjSTATE_INTEGRATION));
         mj_getState(c.model, data, state.data(), mjSTATE_INTEGRATION);
         const DataPtr other(mj_makeData(pickle.get()));
         mj_setState(pickle.get(), other.get(), state.data(), mjSTATE_INTEGRATION);
         return Step(c, pickle.get(), other.get(), kSteps - 45);
       });
     }},
    {"ResetData",
     [](const Case& c) {
       const DataPtr data(mj_makeData(c.model));
       Step(c, c.model, data.get(), 60);
       mj_resetData(c.model, data.get());
       return Step(c, c.model, data.get(), kSteps);
     }},
    {"OtherThread",
     [](const Case& c) {
       Controls controls;
       std::thread([&] { controls = ControlsOf(c, c.model); }).join();
       return controls;
     }},
    {"Batch", [](const Case& c) { return Batched(c, false); }},
    {"PersistentBatch", [](const Case& c) { return Batched(c, true); }},
    {"StartsBeforeZero", [](const Case& c) { return StartedAt(c, -0.2); }},
    {"StartsLate", [](const Case& c) { return StartedAt(c, 1000); }},
    {"UnpickledData",
     [](const Case& c) {
       return Unpickled(c, [](const mjData* data) { return data->plugin_data[0]; });
     }},
    {"UnpickledElsewhere",
     [](const Case& c) {
       return Unpickled(c, [](const mjData*) { return uintptr_t{0x5ee000123450}; });
     }},
    {"UnpickledOfNone",
     [](const Case& c) { return Unpickled(c, [](const mjData*) { return uintptr_t{0}; }); }},
    {"Forked", Forked},
    {"CopiedSpec", CopiedSpec},
    {"Attached", Attached},
    {"AttachedTwice", AttachedTwice},
};
void PrintTo(const Host& host, std::ostream* out) { *out << host.name; }

class HostRelationTest : public MujocoTest,
                         public ::testing::WithParamInterface<std::tuple<Subject, Host>> {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(mjp::RegisterPlugin());
    // Mesa compiles its shaders anew, by threads that a child of fork() does not have
    setenv("MESA_SHADER_CACHE_DIR", Shaders().c_str(), /*overwrite=*/1);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(Shaders()); }
  static std::string Shaders() {
    return ::testing::TempDir() + "shaders_" + std::to_string(getpid());
  }
  static ModelPtr Load(const std::string& file) {
    char message[2000] = "";
    ModelPtr model(mj_loadXML(file.c_str(), nullptr, message, sizeof(message)));
    EXPECT_NE(model, nullptr) << message;
    return model;
  }
  TempDir folder_;
};

TEST_P(HostRelationTest, ActsAsTheOriginalOrSaysWhyNot) {
  const auto& [subject, host] = GetParam();
#ifdef __SANITIZE_ADDRESS__  // each row takes seconds there
  const std::string kind = subject.name;
  if (kind != "PushT" && kind != "ReachActAsync" && kind != "ReachFlow")
    GTEST_SKIP() << "under a sanitizer three kinds of policy stand for all";
#endif
  const bool by_mujoco = std::string(subject.renderer) == "mujoco";
  if (const std::string why = by_mujoco ? mjp_test::RendererLacks() : ""; !why.empty())
    GTEST_SKIP() << why;
  const std::string file = WriteSubject(folder_, subject, "1");
  const ModelPtr model = Load(file);
  ASSERT_NE(model, nullptr);
  const Case c{&subject, file, model.get()};
  const Controls expected = ControlsOf(c, model.get());
  const bool random = !mjp::LoadCheckpoint(folder_ / "policy")->network->sampler().kinds.empty();
  const ModelPtr other = Load(WriteSubject(folder_, subject, "2"));
  EXPECT_EQ(ControlsOf(c, other.get()) != expected, random) << "what the seed changes";
  EXPECT_NE(std::count(expected.begin(), expected.end(), expected.front()), expected.size());

  const std::string name = host.name;
  if (name == "Forked" && (by_mujoco || SubjectBackend() == "cuda")) {
    const DataPtr data(mj_makeData(model.get()));
    Step(c, model.get(), data.get(), 50);
    const std::string said = InChild([&] {
      Step(c, model.get(), data.get(), kSteps - 50);
      std::string all;
      for (const std::string& warning : TakeWarnings()) all += warning;
      return all;
    });
    EXPECT_THAT(said, HasSubstr("fork()"));
    EXPECT_TRUE(!by_mujoco || !std::filesystem::exists(Shaders()))
        << "Mesa has threads that a child waits for";
    return;
  }
  if (name.starts_with("Attached") && std::string(subject.renderer) == "raster") {
    // draws the benchmark by the names of its joints, which are others now
    mjSpec* child = Parse(file);
    mjSpec* world = mj_makeSpec();
    mjsFrame* frame = mjs_addFrame(mjs_findBody(world, "world"), nullptr);
    ASSERT_NE(mjs_attach(frame->element, child->element, "left_", ""), nullptr);
    EXPECT_EQ(mj_compile(world, nullptr), nullptr);
    EXPECT_THAT(mjs_getError(world), HasSubstr("slide joint \"ax\""));
    mj_deleteSpec(world);
    mj_deleteSpec(child);
    TakeWarnings();
    return;
  }
  const Controls controls = host.run(c);
  if (name.starts_with("Attached") && std::string(subject.name).starts_with("PushT")) {
    // the score goes by the names of joints and bodies, too
    EXPECT_THAT(TakeWarnings(), ::testing::ElementsAre(HasSubstr("_coverage\" stays 0")));
  }
  ASSERT_EQ(controls.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(controls[i], expected[i]) << "step " << i / subject.actuators.size();
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, HostRelationTest,
                         ::testing::Combine(::testing::ValuesIn(kSubjects),
                                            ::testing::ValuesIn(kHosts)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::get<1>(info.param).name;
                         });

}  // namespace
}  // namespace mjp_test
