// A fault that ends all work of this process on the GPU, in the middle of a simulation. Alone in
// its program, since nothing runs on the GPU afterwards.

#include "kernels/cuda/primitives/gpu_traits.h"
#include "plugin/policies/cache.h"
#include "plugin/state.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "tests/plugin/plugin_fixture.h"
#include "tests/support/gpu/device_buffer.h"

namespace mjp_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

__global__ void Fault() { asm("trap;"); }

class CudaFaultTest : public PluginTest {
 protected:
  void SetUp() override {
    DEVICE_OR_SKIP();
    mjp::UnetPolicyConfig config;
    config.type = "diffusion";
    config.state_dim = config.action_dim = 2;
    config.environment_dim = 3;
    config.unet.down_dims = {16, 32};
    config.unet.step_embed_dim = 16;
    mjp::NormalizerStats stats;
    stats.state = stats.action = {mjp::Normalization::kMinMax, {-1, -1}, {1, 1}};
    stats.environment = {mjp::Normalization::kMinMax, {-4, -4, -4}, {4, 4, 4}};
    mjp::WriteCheckpoint(Folder(), *mjp::RandomCheckpoint(config, stats, 7),
                         mjp::WeightFormat::kF32);
    mjp::SetPolicyMakers({});  // the real ones
  }
};

TEST_F(CudaFaultTest, HoldsTheControlAndSaysSoOnce) {
  const std::string xml =
      Xml(Basic() + Set("environment", "site:mark") + Set("backend", "cuda") + Set("steps", "2"));
  const ModelPtr model = Compile(xml);
  ASSERT_TRUE(model);
  const DataPtr data(mj_makeData(model.get()));
  mj_step(model.get(), data.get());
  EXPECT_NE(data->ctrl[0], 0);

  Fault<<<1, 1>>>();
  EXPECT_NE(cudaDeviceSynchronize(), cudaSuccess);
  for (int i = 0; i < 200; ++i) mj_step(model.get(), data.get());
  const double held = data->ctrl[0];
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("unspecified launch failure")));
  EXPECT_TRUE(mjp::PolicyFailed(model.get(), data.get()));
  EXPECT_NE(held, 0);
  for (int i = 0; i < 50; ++i) mj_step(model.get(), data.get());
  EXPECT_EQ(data->ctrl[0], held);

  // a new instance, whose first decision is remembered, says so too, and the host goes on
  const DataPtr other(mj_makeData(model.get()));
  for (int i = 0; i < 200; ++i) mj_step(model.get(), other.get());
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("unspecified launch failure")));
  EXPECT_TRUE(mjp::PolicyFailed(model.get(), other.get()));

  // no second try of this program cures it: its exit code does not ask for one, and the text says
  // what the build holds
  try {
    mjp::Policy::Create(mjp::NamedNetwork("compact"), {.backend = mjp::Backend::kCuda});
    FAIL() << "a policy was made";
  } catch (const mjp::Error& error) {
    EXPECT_EQ(error.code(), mjp::ExitCode::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr(mjp::BuiltArchitectures()));
  }
  EXPECT_EQ(mjp::Policy::Create(mjp::NamedNetwork("compact"), {})->options().backend,
            mjp::Backend::kCpu);
}

}  // namespace
}  // namespace mjp_test
