// Each call of CUDA that a simulation's decisions make fails once, on a runtime that needs no GPU
// (fake_cuda.h): the host goes on with the last control, one warning says what failed, and the next
// simulation acts again.

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "plugin/policies/cache.h"
#include "plugin/state.h"
#include "tests/plugin/plugin_fixture.h"
#include "tests/support/goldens/small_checkpoint.h"
#include "tests/support/gpu/cuda_faults.h"
#include "tests/support/gpu/fake_cuda.h"

namespace mjp_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// draws black pictures of any size
class BlankSource : public mjp::PictureSource {
 public:
  void Render(const mjModel*, mjData*, std::span<uint8_t> rgb) override {
    std::ranges::fill(rgb, 0);
  }
};

class CudaHostFaultsTest : public PluginTest {
 protected:
  void SetUp() override {
    mjp::RegisterPictureSource("blank", [](const mjModel*, const mjp::PictureRequest&) {
      return std::make_unique<BlankSource>();
    });
    WriteSmallCheckpoint(Folder() + "/small");
    ForgetPolicies();
  }
  // So that the next model loads its policy, and no decision is remembered.
  static void ForgetPolicies() {
    mjp::PolicyMakers makers;
    makers.remembered_decisions = 0;
    mjp::SetPolicyMakers(makers);
  }
  static std::string Attributes(const std::string& async) {
    return Set("checkpoint", Folder() + "/small") + Set("state", "ax ay") +
           Set("actuators", "ax ay") + Set("camera", "top") + Set("renderer", "blank") +
           Set("sampler", "ddim") + Set("steps", "3") + Set("backend", "cuda") +
           Set("self_check", "0") + Set("state_scale", "100") + Set("action_scale", "100") +
           Set("async", async) + Set("latency", async == "1" ? "100" : "0");
  }
  static void Steps(const mjModel* model, mjData* data, int steps) {
    for (int i = 0; i < steps; ++i) mj_step(model, data);
  }
};

constexpr int kBefore = 15;  // steps until the first action is executed, also after the latency

TEST_F(CudaHostFaultsTest, TheHostGoesOnAndANewSimulationActs) {
  for (const char* async : {"0", "1"}) {
    const ModelPtr model = Compile(Xml(Attributes(async)));
    ASSERT_TRUE(model);
    const DataPtr first(mj_makeData(model.get()));
    Steps(model.get(), first.get(), kBefore);
    const std::vector<std::string> calls =
        CudaCallsOf([&] { Steps(model.get(), first.get(), 200); });
    ASSERT_FALSE(calls.empty());
    for (size_t n = 1; n <= std::min<size_t>(calls.size(), 40); ++n) {
      const DataPtr data(mj_makeData(model.get()));
      Steps(model.get(), data.get(), kBefore);
      EXPECT_NE(data->ctrl[0], 0);
      ArmCudaFault({cudaErrorLaunchFailure, true}, static_cast<long>(n));
      Steps(model.get(), data.get(), 200);
      const double held = data->ctrl[0];
      const std::string failed = DisarmCudaFault();
      EXPECT_FALSE(failed.empty());
      EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("unspecified launch failure"))) << failed;
      EXPECT_TRUE(mjp::PolicyFailed(model.get(), data.get())) << failed;
      Steps(model.get(), data.get(), 50);
      EXPECT_EQ(data->ctrl[0], held) << failed;
      EXPECT_NE(held, 0);

      const DataPtr other(mj_makeData(model.get()));
      Steps(model.get(), other.get(), 200);
      EXPECT_THAT(TakeWarnings(), IsEmpty()) << failed;
      EXPECT_FALSE(mjp::PolicyFailed(model.get(), other.get())) << failed;
      if (HasFailure()) return;
    }
  }
  EXPECT_EQ(FakeCudaMisuse(), "");
}

TEST_F(CudaHostFaultsTest, AModelWhosePolicyDoesNotLoadSaysWhy) {
  std::string xml = Xml(Attributes("0"));
  const std::vector<std::string> calls = CudaCallsOf([&] {
    const ModelPtr model = Compile(xml);
    ASSERT_TRUE(model);
    mj_deleteData(mj_makeData(model.get()));
  });
  ASSERT_GT(calls.size(), 20u);
  for (size_t n = 1; n <= calls.size(); n += 1 + n / 8) {
    ForgetPolicies();
    ArmCudaFault({cudaErrorLaunchTimeout, true}, static_cast<long>(n));
    std::string error;
    const ModelPtr model = Compile(xml, &error);
    const bool loaded = model != nullptr && DataPtr(mj_makeData(model.get())) != nullptr;
    const std::string failed = DisarmCudaFault();
    for (const std::string& warning : TakeWarnings()) error += warning;
    EXPECT_TRUE(loaded || error.find("timed out") != error.npos) << failed << ": " << error;
    EXPECT_TRUE(loaded || error.find("again") != error.npos) << failed << ": " << error;
    ForgetPolicies();
    EXPECT_NE(Compile(xml), nullptr) << failed;
  }
}

}  // namespace
}  // namespace mjp_test
