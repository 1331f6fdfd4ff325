// Who runs what: planned without a device, from the shapes of the networks alone.

#include "policy/cuda/execution_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/cuda/unet/megakernel_launch.h"
#include "policy/cuda/unet/row_kernel_plan.h"
#include "policy/cuda/unet/unet_shapes.h"
#include "policy/dit/dit_config.h"
#include "policy/unet/unet_model.h"

namespace {

using mjp::ExecutionPlan;
using mjp::Format;
using mjp::GpuTraits;
using mjp::UnetForm;
using testing::HasSubstr;

const GpuTraits kH200 = GpuTraits::Named("h200");
const GpuTraits kNone;  // of a device that has nothing

char Letter(const ExecutionPlan& plan) {
  if (plan.form == UnetForm::kLayers) return 'L';
  if (plan.form == UnetForm::kRowKernel) return plan.row_kernel->config.clusters > 1 ? 'C' : 'K';
  return plan.launch->target.portable ? 'P' : plan.launch->warp_specialized ? 'S' : 'M';
}

mjp::UnetPolicyConfig ConfigOf(const std::vector<int>& down_dims, int horizon = 16) {
  mjp::UnetPolicyConfig config;
  config.type = "diffusion";
  config.state_dim = config.action_dim = 2;
  config.environment_dim = 5;
  config.horizon = horizon;
  config.unet.down_dims = down_dims;
  config.unet.step_embed_dim = 16;
  return config;
}

// A U-Net as it is planned.
class Network {
 public:
  explicit Network(const std::vector<int>& down_dims, int horizon = 16)
      : config_(ConfigOf(down_dims, horizon)), unet_(mjp::UnetShapes(config_)) {}

  ExecutionPlan Plan(int environments, int window = 1, const GpuTraits& gpu = kH200) const {
    return mjp::ChooseExecution(config_, {Format::kFp16, environments, window, 100}, gpu);
  }
  bool Runs(int environments, int window = 1, const GpuTraits& gpu = kH200) const {
    return Plan(environments, window, gpu).form == UnetForm::kMegakernel;
  }
  bool WarpSpecialized(int environments, const GpuTraits& gpu = kH200) const {
    const ExecutionPlan plan = Plan(environments, 1, gpu);
    return plan.launch && plan.launch->warp_specialized;
  }
  int Launches(int rows) const { return Plan(rows).Launches(); }
  // Of what finishes windows.
  int FallbackRows(int environments, int window) const {
    return Plan(environments, window).fallback_launch->rows;
  }
  // Device memory of a plan, and of what finishes its windows.
  size_t Bytes(int environments, int window = 1) const {
    mjp::DeviceArena arena;
    const ExecutionPlan plan = Plan(environments, window);
    const mjp::MegakernelLaunch denoiser(unet_, Format::kFp16, config_.horizon, plan, arena);
    if (window > 1) denoiser.Fallback(unet_, *plan.fallback_launch);
    return arena.bytes();
  }

 private:
  mjp::UnetPolicyConfig config_;
  mjp::NormConvUnet unet_;
};

// The kernel specialises its warps at the notebook's size, and not at LeRobot's.
const Network& Notebook() {
  static const Network network({256, 512, 1024});
  return network;
}
const Network& LeRobot() {
  static const Network network({512, 1024, 2048});
  return network;
}

// Up to where a launch per layer takes no longer (`mjpolicy bench pass`).
TEST(MegakernelLaunches, ShareMoreRowsThanOneTakes) {
  const std::pair<int, int> specialized[] = {{2, 1},  {16, 1}, {32, 1}, {33, 2},
                                             {64, 2}, {96, 3}, {127, 4}};
  for (const auto& [rows, launches] : specialized) {
    EXPECT_TRUE(Notebook().Runs(rows)) << rows;
    EXPECT_EQ(Notebook().Launches(rows), launches) << rows;
  }
  const std::pair<int, int> unspecialized[] = {{1, 1}, {16, 1}, {17, 2}, {33, 3}, {127, 8}};
  for (const auto& [rows, launches] : unspecialized) {
    EXPECT_TRUE(LeRobot().Runs(rows)) << rows;
    EXPECT_EQ(LeRobot().Launches(rows), launches) << rows;
  }
  EXPECT_FALSE(Notebook().Runs(128)) << "512 positions of 1024 channels";
  EXPECT_FALSE(LeRobot().Runs(128));
}

// And abandoned ones are taken to their ends in another.
TEST(MegakernelLaunches, WindowsAreOfOne) {
  EXPECT_TRUE(Notebook().Runs(2, 16));
  EXPECT_FALSE(Notebook().Runs(3, 16)) << "48 rows";
  EXPECT_TRUE(LeRobot().Runs(1, 16));
  EXPECT_FALSE(LeRobot().Runs(17, 2)) << "34 rows";
  EXPECT_EQ(Notebook().FallbackRows(2, 16), 2);
  EXPECT_EQ(Notebook().FallbackRows(16, 2), 16);
  EXPECT_EQ(LeRobot().FallbackRows(1, 16), 1);
}

// Windows by a launch per layer do not overtake those.
TEST(MegakernelLaunches, SpecializeWarpsUpToTheNotebooksSize) {
  for (const int environments : {2, 5, 32, 33}) {
    EXPECT_TRUE(Notebook().WarpSpecialized(environments)) << environments;
    EXPECT_FALSE(LeRobot().WarpSpecialized(environments)) << environments;
    EXPECT_TRUE(Network({128, 256, 512}).WarpSpecialized(environments)) << environments;
  }
  EXPECT_FALSE(Notebook().WarpSpecialized(128)) << "a launch per layer";
  EXPECT_FALSE(Notebook().WarpSpecialized(1, kNone)) << "a device without clusters";
}

TEST(MegakernelLaunches, ShareTheWeights) {
  const auto bytes = [](int environments, int window = 1) {
    return static_cast<double>(Notebook().Bytes(environments, window));
  };
  EXPECT_LT(bytes(96), 1.1 * bytes(32)) << "three alike share all";
  EXPECT_LT(bytes(33), 1.3 * bytes(32)) << "a smaller one has buffers of its own";
  EXPECT_LT(bytes(1, 16), 1.3 * bytes(16)) << "and so has the fallback of windows";
}

TEST(MegakernelLaunches, NeedADeviceThatRunsAllBlocksAtOnce) {
  EXPECT_FALSE(Notebook().Runs(33, 1, kNone));
  GpuTraits without_code = kH200;
  without_code.code_wgmma = false;
  for (const GpuTraits& gpu : {without_code, GpuTraits::Named("h100-pcie")})  // 114 of 128 SMs
    EXPECT_EQ(Letter(Notebook().Plan(33, 1, gpu)), 'P');
}

// The portable form runs where it was faster than launches: fp16, 28 multiprocessors, 99 KiB.
TEST(MegakernelLaunches, ThePortableFormTakesOtherGpus) {
  const GpuTraits a100 = GpuTraits::Named("a100");
  const Network& notebook = Notebook();
  const ExecutionPlan plan = notebook.Plan(33, 1, a100);
  ASSERT_EQ(Letter(plan), 'P');
  EXPECT_EQ(plan.launch->target.ctas, 108);
  EXPECT_EQ(plan.Launches(), 3);
  EXPECT_EQ(notebook.Plan(1, 1, mjp::OverriddenTraits(a100, "sms=200")).launch->target.ctas, 128);
  for (const char* change : {"sms=27", "shared=98", "cooperative=0"})
    EXPECT_FALSE(notebook.Runs(1, 1, mjp::OverriddenTraits(a100, change))) << change;
  for (const char* gpu : {"rtx4090", "rtx3090", "rtx3060", "l4"})
    EXPECT_TRUE(notebook.Runs(2, 1, GpuTraits::Named(gpu))) << gpu;
  for (const char* gpu : {"thor", "orin", "orin-nano"})
    EXPECT_FALSE(notebook.Runs(2, 1, GpuTraits::Named(gpu))) << gpu;
  EXPECT_EQ(mjp::ChooseExecution(mjp::NamedConfig("notebook"), {Format::kBf16, 1}, a100).form,
            UnetForm::kLayers);
}

// ---- the golden table ----

constexpr int kRows[] = {1, 2, 16, 32, 48, 128};

// One letter for each of kRows, step by step in fp16: L launch per layer, K row kernel, C the same
// across clusters, M megakernel, S the same, warp-specialised, P the same, portable; then the rows
// that one launch takes of each of kRows; then the default window of 100 steps for one environment.
struct Golden {
  const char *gpu, *network, *forms, *rows_per_launch;
  int window;
};

std::string Forms(const mjp::UnetPolicyConfig& config, const GpuTraits& gpu) {
  std::string forms;
  for (const int rows : kRows)
    forms += Letter(mjp::ChooseExecution(config, {Format::kFp16, rows}, gpu));
  return forms;
}

std::string RowsPerLaunch(const mjp::UnetPolicyConfig& config, const GpuTraits& gpu) {
  std::string rows_per_launch;
  for (const int rows : kRows) {
    const ExecutionPlan plan = mjp::ChooseExecution(config, {Format::kFp16, rows}, gpu);
    rows_per_launch += (rows_per_launch.empty() ? "" : " ") + std::to_string(plan.rows_per_launch);
  }
  return rows_per_launch;
}

mjp::UnetPolicyConfig GoldenConfig(const std::string& network) {
  if (network != "shipped") return mjp::NamedConfig(network);
  const std::string shipped = std::string(MJPOLICY_SOURCE_DIR) + "/assets/pusht_image";
  return mjp::UnetOf(*mjp::LoadCheckpoint(shipped)).config;
}

const Golden kGoldens[] = {
#include "tests/policy/cuda/execution_plan_goldens.inc"
};

TEST(ExecutionPlanTest, IsTheGoldenOneForEveryNetworkAndGpu) {
  for (const Golden& golden : kGoldens) {
    const mjp::UnetPolicyConfig config = GoldenConfig(golden.network);
    const GpuTraits gpu = GpuTraits::Named(golden.gpu);
    const std::string forms = Forms(config, gpu);
    const int window =
        mjp::ChooseExecution(config, {Format::kFp16, 1, mjp::kAutoWindow}, gpu).window;
    EXPECT_EQ(forms, golden.forms) << golden.network << " on " << golden.gpu;
    EXPECT_EQ(RowsPerLaunch(config, gpu), golden.rows_per_launch)
        << golden.network << " on " << golden.gpu;
    EXPECT_EQ(window, golden.window) << golden.network << " on " << golden.gpu;
  }
  EXPECT_EQ(std::size(kGoldens), (mjp::NamedNetworks().size() + 1) * GpuTraits::Names().size());
}

TEST(ExecutionPlanTest, CodeForLessThanTheDeviceRunsWhatNeedsNoMore) {
  const GpuTraits old_code = mjp::OverriddenTraits(kH200, "code=80 wgmma=0");
  for (const std::string& network : mjp::NamedNetworks())
    EXPECT_EQ(Forms(mjp::NamedConfig(network), old_code),
              network == "compact" ? "KKKKKK" : "PPPPPL")
        << network;
}

TEST(ExecutionPlanTest, TheRowKernelTakesNoMoreRowsThanPay) {
  const auto plan = [](int rows) {
    return mjp::ChooseExecution(GoldenConfig("shipped"), {Format::kFp16, rows}, kH200);
  };
  EXPECT_EQ(plan(528).form, UnetForm::kRowKernel);
  EXPECT_EQ(plan(529).form, UnetForm::kLayers);
  for (const auto& [rows, ctas] : {std::pair{1, 4}, {28, 4}, {29, 2}, {57, 2}, {58, 1}})
    EXPECT_EQ(plan(rows).row_kernel->config.ctas, ctas) << rows;
  const auto wide = [](int rows) {
    return mjp::ChooseExecution(mjp::NamedConfig("compact"), {Format::kFp16, rows}, kH200);
  };
  for (const auto& [rows, ctas] : {std::pair{14, 8}, {15, 4}, {28, 4}, {57, 2}, {132, 1}})
    EXPECT_EQ(wide(rows).row_kernel->config.ctas, ctas) << rows;
}

TEST(ExecutionPlanTest, NoFormNeedsWhatTheDeviceLacks) {
  for (const char* change : {"shared=99", "shared=163", "clusters=1", "sms=8", "sms=20", "sms=48",
                             "cooperative=0", "wgmma=0"}) {
    const GpuTraits gpu = mjp::OverriddenTraits(kH200, change);
    for (const std::string& network : mjp::NamedNetworks()) {
      for (const int rows : kRows) {
        const ExecutionPlan plan =
            mjp::ChooseExecution(mjp::NamedConfig(network), {Format::kFp16, rows}, gpu);
        const std::string what = network + ", " + std::to_string(rows) + " rows, " + change;
        if (plan.form == UnetForm::kLayers) continue;
        if (plan.form == UnetForm::kRowKernel) {
          EXPECT_LE(plan.row_kernel->config.ctas, gpu.ClusterBlocks()) << what;
          EXPECT_TRUE(gpu.cooperative || plan.row_kernel->config.clusters == 1) << what;
          EXPECT_LE(plan.row_kernel->plan.shared().end, gpu.shared_bytes) << what;
          continue;
        }
        const bool portable = plan.launch->target.portable;
        EXPECT_GE(gpu.ClusterBlocks(), portable ? 1 : 8) << what;
        EXPECT_GE(gpu.shared_bytes, (portable ? 99 : 227) * 1024) << what;
        EXPECT_TRUE(gpu.cooperative) << what;
        EXPECT_TRUE(gpu.Wgmma() || portable) << what;
        EXPECT_LE(plan.launch->target.ctas, gpu.multiprocessors) << what;
        EXPECT_LE(plan.launch->shared.bytes, static_cast<size_t>(gpu.shared_bytes)) << what;
      }
    }
  }
}

TEST(ExecutionPlanTest, OtherFormatsRunALaunchPerLayer) {
  const mjp::UnetPolicyConfig config = mjp::NamedConfig("notebook");
  for (const Format format : {Format::kTf32, Format::kFp32})
    EXPECT_EQ(mjp::ChooseExecution(config, {format, 1}, kH200).form, UnetForm::kLayers);
  EXPECT_EQ(Letter(mjp::ChooseExecution(config, {Format::kBf16, 2}, kH200)), 'S');
}

TEST(ExecutionPlanTest, SaysWhy) {
  const mjp::ExecutionProblem row = {Format::kFp16, 1};
  const auto why = [&](const char* network, const char* gpu) {
    return mjp::ChooseExecution(GoldenConfig(network), row, GpuTraits::Named(gpu)).why;
  };
  EXPECT_THAT(why("shipped", "h200"), HasSubstr("each row"));
  EXPECT_THAT(why("notebook", "h200"), HasSubstr("a single row"));
  EXPECT_THAT(why("notebook", "thor"), HasSubstr("has been measured"));
  EXPECT_THAT(why("notebook", "a100"), HasSubstr("lacks what Hopper's form"));
  mjp::UnetPolicyConfig arms = mjp::NamedConfig("compact");
  arms.horizon = 32, arms.action_dim = 33;
  EXPECT_THAT(mjp::ChooseExecution(arms, row, kH200).why, HasSubstr("up to 1024"));
  const ExecutionPlan plan =
      mjp::ChooseExecution(GoldenConfig("lerobot"), {Format::kFp16, 1, mjp::kAutoWindow}, kH200);
  EXPECT_THAT(plan.Text(), HasSubstr("16 rows a pass in one launch; window of 16 steps"));
}

TEST(ExecutionPlanTest, NamesEachForm) {
  const auto text = [](const char* network, const char* gpu, int batch, int window = 0) {
    return mjp::ChooseExecution(GoldenConfig(network), {Format::kFp16, batch, window},
                                GpuTraits::Named(gpu))
        .Text();
  };
  EXPECT_EQ(text("notebook", "thor", 1), "launch per layer; 1 row a pass");
  EXPECT_EQ(text("notebook", "h200", 1), "row kernel across clusters; 1 row a pass");
  EXPECT_EQ(text("shipped", "h200", 1, 16), "row kernel; 16 rows a pass; window of 16 steps");
  EXPECT_EQ(text("notebook", "a100", 17), "megakernel, portable; 17 rows a pass in 2 launches");
  EXPECT_EQ(text("lerobot", "h200", 1, 16),
            "megakernel; 16 rows a pass in one launch; window of 16 steps");
  EXPECT_EQ(text("notebook", "h200", 64),
            "megakernel, warp-specialised; 64 rows a pass in 2 launches");
}

// Who places the plan plans nothing again.
TEST(ExecutionPlanTest, HasWhatItsLaunchesWerePlannedAs) {
  for (const std::string& network : mjp::NamedNetworks()) {
    const mjp::UnetPolicyConfig config = mjp::NamedConfig(network);
    for (const std::string& name : GpuTraits::Names()) {
      for (const auto& [batch, window] : {std::pair{1, 0}, {1, 16}, {2, 8}, {33, 0}, {96, 0}}) {
        const ExecutionPlan plan =
            mjp::ChooseExecution(config, {Format::kFp16, batch, window}, GpuTraits::Named(name));
        SCOPED_TRACE(network + " on " + name + ", " + plan.Text());
        const bool megakernel = plan.form == UnetForm::kMegakernel;
        const int remainder = plan.rows % plan.rows_per_launch;
        EXPECT_EQ(plan.row_kernel != nullptr, plan.form == UnetForm::kRowKernel);
        ASSERT_EQ(plan.launch != nullptr, megakernel);
        ASSERT_EQ(plan.fallback_launch != nullptr, megakernel && window > 1);
        ASSERT_EQ(plan.last_launch != nullptr, megakernel && remainder > 0);
        if (!megakernel) continue;
        EXPECT_EQ(plan.launch->rows, plan.rows_per_launch);
        EXPECT_EQ(plan.launch->rows_per_env, std::max(1, window));
        EXPECT_EQ(plan.last_launch ? plan.last_launch->rows : 0, remainder);
        EXPECT_EQ(plan.fallback_launch ? plan.fallback_launch->rows : batch, batch);
      }
    }
  }
}

// Windows of steps, and what finishes the abandoned ones, are asked for apart.
TEST(ExecutionPlanTest, ATransformersSequencesRunAtOnceOrALaunchPerLayer) {
  mjp::DitConfig config;
  config.hidden = 512, config.heads = 8, config.layers = 2;  // 8 blocks for each sequence
  config.horizon = 16, config.action_dim = 2;
  const auto plan = [&](int batch, int window, const char* gpu) {
    return mjp::ChooseDitExecution(config, {Format::kFp16, batch, window}, GpuTraits::Named(gpu));
  };
  EXPECT_EQ(plan(14, 0, "h100").Text(), "sequence kernel, step by step");
  EXPECT_EQ(plan(15, 0, "h100").Text(), "a launch for each layer, step by step");
  EXPECT_EQ(plan(1, 14, "h100").Text(), "sequence kernel, windows of 14 steps");
  const mjp::DitExecutionPlan windows = plan(2, 16, "h100");
  EXPECT_EQ(windows.Text(), "a launch for each layer, windows of 16 steps");
  EXPECT_EQ(windows.fallback, mjp::DitForm::kSequenceKernel);
  EXPECT_EQ(plan(17, 16, "h100").fallback, mjp::DitForm::kLaunches);
  EXPECT_EQ(plan(1, 0, "h100").Text(), "sequence kernel across clusters, step by step");
  EXPECT_EQ(plan(2, 0, "h100").Text(), "sequence kernel, step by step");  // 16 clusters may not fit
  config.hidden = 256;
  EXPECT_EQ(plan(1, 0, "h100").Text(), "sequence kernel, step by step");
  EXPECT_THAT(plan(1, 0, "a100").why, HasSubstr("clusters of eight blocks"));
}

TEST(ExecutionPlanTest, ASinglePassIsNotTheMegakernels) {
  const auto form = [](const char* network, int rows) {
    return Letter(mjp::ChooseLaunches(GoldenConfig(network), Format::kFp16, rows, kH200));
  };
  EXPECT_EQ(form("shipped", 1), 'K');
  EXPECT_EQ(form("notebook", 1), 'C');
  EXPECT_EQ(form("notebook", 2), 'L');
  EXPECT_EQ(form("notebook", 128), 'L');
}

// With few steps, many environments, or chunks that no sweep takes, a window does not pay.
TEST(ExecutionPlanTest, WindowsAreForWhatTheyPayFor) {
  const auto window = [](const mjp::UnetPolicyConfig& config, int batch, int steps) {
    return mjp::ChooseExecution(config, {Format::kFp16, batch, mjp::kAutoWindow, steps}, kH200)
        .window;
  };
  const mjp::UnetPolicyConfig compact = mjp::NamedConfig("compact");
  EXPECT_EQ(window(compact, 1, 19), 0);
  EXPECT_EQ(window(compact, 32, 20), 16);
  EXPECT_EQ(window(compact, 33, 20), 0);
  mjp::UnetPolicyConfig large = compact;
  large.horizon = 1024;
  large.action_dim = 32;
  EXPECT_EQ(window(large, 1, 100), 0) << "a sweep keeps its states in shared memory";
  const mjp::UnetPolicyConfig notebook = mjp::NamedConfig("notebook");
  EXPECT_EQ(window(notebook, 32, 100), 0) << "the sequential chain by warps of two kinds is faster";
}

TEST(ExecutionPlanTest, FirstConvolutionsOfManyTermsRunALaunchPerLayer) {
  mjp::UnetPolicyConfig config = mjp::NamedConfig("notebook");
  for (const auto& [action_dim, horizon] : {std::pair{2, 16}, {512, 16}, {100, 16}, {16, 1024}}) {
    config.action_dim = action_dim;
    config.horizon = horizon;
    const ExecutionPlan plan = mjp::ChooseExecution(config, {Format::kFp16, 1}, kH200);
    EXPECT_EQ(plan.form == UnetForm::kLayers, action_dim != 2) << action_dim << ", " << plan.Text();
  }
  config = mjp::NamedConfig("notebook");
  config.action_dim = 16;
  config.unet.kernel_size = 7;
  EXPECT_EQ(mjp::ChooseExecution(config, {Format::kFp16, 1}, kH200).form, UnetForm::kLayers);
}

}  // namespace
