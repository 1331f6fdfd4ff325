// Hosts that fork(): a child has the memory of its parent and none of its threads. It acts as the
// original, or says in one sentence why it cannot; it never waits for a thread that is not there.

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "plugin/policies/cache.h"
#include "plugin/state.h"
#include "tests/plugin/plugin_fixture.h"
#include "tests/support/child.h"
#include "tests/support/goldens/small_checkpoint.h"
#include "tests/support/renderer.h"

namespace mjp_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ForkTest : public PluginTest {
 protected:
  // The controls after each of `steps` steps, as bytes.
  static std::string Run(const mjModel* model, mjData* data, int steps) {
    std::string controls;
    for (int i = 0; i < steps; ++i) {
      mj_step(model, data);
      controls.append(reinterpret_cast<const char*>(data->ctrl), sizeof(mjtNum) * model->nu);
    }
    return controls;
  }
  // What the warnings of this process said, once the simulation has gone on in it.
  static std::string Said(const mjModel* model, mjData* data, int steps) {
    Run(model, data, steps);
    const mjtNum held = data->ctrl[0];
    Run(model, data, steps);
    std::string said;
    for (const std::string& warning : TakeWarnings()) said += warning + "\n";
    return said + (data->ctrl[0] == held ? "held" : "moved");
  }
  // So that a decision is still under way when the next line of a test comes.
  void DecideSlowly() {
    policy_.act = [act = policy_.act](const SeenInput& seen) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return act(seen);
    };
  }
  // Attributes of a real policy with `threads`, which sees nothing and is small.
  static std::string RealPolicy(const std::string& threads, const std::string& backend = "cpu") {
    mjp::SetPolicyMakers({});
    WriteSmallCheckpoint(Folder() + "/small");
    return Set("checkpoint", Folder() + "/small") + Set("state", "ax ay") +
           Set("actuators", "ax ay") + Set("camera", "top") + Set("renderer", "blank") +
           Set("sampler", "ddim") + Set("steps", "3") + Set("backend", backend) +
           Set("threads", threads) + Set("state_scale", "100") + Set("action_scale", "100");
  }
};

// draws black pictures of any size
class BlankSource : public mjp::PictureSource {
 public:
  void Render(const mjModel*, mjData*, std::span<uint8_t> rgb) override {
    std::ranges::fill(rgb, 0);
  }
};
const bool registered = [] {
  mjp::RegisterPictureSource("blank", [](const mjModel*, const mjp::PictureRequest&) {
    return std::make_unique<BlankSource>();
  });
  return true;
}();

// the child goes on with the parent's simulation, then with one of its own
TEST_F(ForkTest, ChildActsAsTheOriginal) {
  policy_.remembered = 8;
  policy_.Install();
  AddCamera();
  DecideSlowly();
  for (const char* async : {"0", "1"}) {
    const ModelPtr model = Compile(Xml(BasicWithCamera() + Set("renderer", "probe") +
                                       Set("latency", "300") + Set("async", async)));
    const DataPtr data(mj_makeData(model.get()));
    Run(model.get(), data.get(), 90);  // async: a decision is under way
    const std::string again = InChild([&] {
      std::string controls = Run(model.get(), data.get(), 200);
      const DataPtr own(mj_makeData(model.get()));
      controls += Run(model.get(), own.get(), 200);
      mj_deleteData(mj_copyData(nullptr, model.get(), data.get()));
      return controls;
    });
    std::string expected = Run(model.get(), data.get(), 200);
    const DataPtr own(mj_makeData(model.get()));
    expected += Run(model.get(), own.get(), 200);
    EXPECT_TRUE(again == expected) << "async " << async << ": " << again.substr(0, 100);
  }
}

// what was begun before the fork is left to the parent
TEST_F(ForkTest, ChildEndsWhileADecisionIsUnderWay) {
  policy_.remembered = 8;
  policy_.Install();
  DecideSlowly();
  const ModelPtr model = Compile(Xml(Basic() + Set("latency", "500") + Set("async", "1")));
  for (int i = 0; i < 10; ++i) {
    DataPtr data(mj_makeData(model.get()));
    mj_step(model.get(), data.get());
    EXPECT_EQ(InChild([&] {
                data.reset();
                return std::string("ended");
              }),
              "ended");
  }
}

// threads of the CPU's policy, while threads of the parent decide and load
TEST_F(ForkTest, ChildOfABusyParentActsAsTheOriginal) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "fork() leaves the locks of AddressSanitizer's allocator as the parent's threads "
                  "hold them";
#endif
  const std::string attributes = RealPolicy("2");
  const ModelPtr model = Compile(Xml(attributes));
  const DataPtr expected_data(mj_makeData(model.get()));
  const std::string expected = Run(model.get(), expected_data.get(), 100);
  std::atomic<bool> stop = false;
  std::vector<std::thread> busy;
  for (int i = 0; i < 2; ++i) {
    busy.emplace_back([&, i] {
      for (int round = 0; !stop; ++round) {
        const DataPtr data(mj_makeData(model.get()));
        data->qpos[0] = 0.01 * round + i;
        Run(model.get(), data.get(), 20);
      }
    });
  }
  const DataPtr data(mj_makeData(model.get()));
  for (int i = 0; i < 25; ++i) {
    const std::string again = InChild([&] {
      Run(model.get(), data.get(), 10);
      const DataPtr own(mj_makeData(model.get()));
      return Run(model.get(), own.get(), 100);
    });
    EXPECT_TRUE(again == expected) << i << ": " << again.substr(0, 100);
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
}

TEST_F(ForkTest, ChildSaysThatMujocosRendererIsLost) {
  if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
  AddCamera();
  const ModelPtr model = Compile(Xml(BasicWithCamera() + Set("renderer", "mujoco")));
  DataPtr data(mj_makeData(model.get()));
  Run(model.get(), data.get(), 5);
  const std::string said = InChild([&] {
    std::string text = Said(model.get(), data.get(), 200);
    data.reset();  // what OpenGL has of it is the parent's
    const DataPtr own(mj_makeData(model.get()));
    return text + (own ? " made" : " not made") + (TakeWarnings().size() == 1 ? " once" : "");
  });
  EXPECT_THAT(said, HasSubstr("after fork()"));
  EXPECT_THAT(said, HasSubstr("spawn"));
  EXPECT_THAT(said, HasSubstr("held made once"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  policy_.Take();
  Run(model.get(), data.get(), 200);
  EXPECT_THAT(policy_.Take(), ::testing::Not(::testing::IsEmpty())) << "the parent goes on";
}

TEST_F(ForkTest, ChildSaysThatTheGpuIsLost) {
  const ModelPtr model = Compile(Xml(Basic() + Set("backend", "cuda")));  // as the fake has it
  const DataPtr data(mj_makeData(model.get()));
  Run(model.get(), data.get(), 5);
  const std::string said = InChild([&] { return Said(model.get(), data.get(), 200); });
  EXPECT_THAT(said, HasSubstr("CUDA does not survive fork()"));
  EXPECT_THAT(said, HasSubstr("spawn"));
  EXPECT_THAT(said, HasSubstr("held"));
}

TEST_F(ForkTest, ChildOfAParentOnTheGpuSaysSo) {
#ifndef MJPOLICY_HAVE_CUDA
  GTEST_SKIP() << "built without CUDA";
#endif
  const std::string attributes = RealPolicy("1", "cuda");
  std::string error;
  const ModelPtr model = Compile(Xml(attributes), &error);
  TakeWarnings();
  // no other reason of the machine is one to go without this test
  if (error.find("no NVIDIA") != std::string::npos) GTEST_SKIP() << error;
  ASSERT_NE(model, nullptr) << error;
  const DataPtr data(mj_makeData(model.get()));
  Run(model.get(), data.get(), 5);
  const std::string said = InChild([&] {
    std::string text = Said(model.get(), data.get(), 200);
    const DataPtr own(mj_makeData(model.get()));
    TakeWarnings();
    return text + (own ? " made" : " not made");
  });
  EXPECT_THAT(said, HasSubstr("CUDA does not survive fork()"));
  EXPECT_THAT(said, HasSubstr("held made"));
  EXPECT_TRUE(TakeWarnings().empty());
  const mjtNum before = data->ctrl[0];
  Run(model.get(), data.get(), 200);
  EXPECT_NE(data->ctrl[0], before) << "the parent goes on";
  EXPECT_FALSE(mjp::PolicyFailed(model.get(), data.get()));
}

}  // namespace
}  // namespace mjp_test
