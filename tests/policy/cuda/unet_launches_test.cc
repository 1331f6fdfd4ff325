// What each form of the U-Net launches: the same launches and layers, with the same arguments and
// in the same memory, as were planned when the goldens were made. Planned without a device.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "base/sha256.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/cuda/unet/layer_unet.h"
#include "policy/cuda/unet/megakernel_launch.h"
#include "policy/cuda/unet/unet_shapes.h"
#include "tests/support/gpu/launch_text.h"
#include "tests/support/gpu/megakernel_network.h"

namespace {

using mjp::Format;

mjp::UnetPolicyConfig ConfigOf(const std::string& network) {
  mjp::UnetPolicyConfig config =
      network == "shipped" ? mjp::UnetOf(*mjp::LoadCheckpoint(std::string(MJPOLICY_SOURCE_DIR) +
                                                              "/assets/pusht_image"))
                                 .config
                           : mjp::NamedConfig(network);
  config.cameras.clear();  // the U-Net alone
  config.environment_dim = 7;
  return config;
}

mjp::Checkpoint NetworkOf(const std::string& name) {
  const auto model = std::make_shared<mjp::UnetModel>();
  model->config = ConfigOf(name);
  mjp_test::Shapes shapes;
  mjp::BuildNetwork(mjp::NamesOf(model->config), shapes, *model);
  mjp::Checkpoint checkpoint;
  checkpoint.config = model->config;
  checkpoint.network = model;
  return checkpoint;
}

const mjp::megakernel::Target kH200 = mjp::megakernel::Target::On(mjp::GpuTraits::Named("h200"));

// Plans a form of a network in one arena, weights first.
class Planner {
 public:
  explicit Planner(const mjp::Checkpoint& network)
      : network_(network), horizon_(network.config.horizon) {
    arena_.TakeBytes(1);  // or the first addresses would be null
  }
  std::string Layers(int rows, int rows_per_env) {
    mjp::LayerLoader loader(arena_, Format::kFp16);
    const mjp::DeviceUnet unet = mjp::LoadDeviceUnet(loader, network_, true);
    const mjp::LayerUnet plan(unet, Format::kFp16, horizon_, rows, rows_per_env, arena_);
    return mjp_test::LaunchText(plan.ops()).text();
  }
  std::string Megakernel(int rows, int rows_per_env) {
    const mjp::NormConvUnet unet = Load();
    mjp::ExecutionPlan plan;
    plan.launch = std::make_shared<mjp::MegakernelPlan>(
        mjp::PlanMegakernel(mjp::UnetShapes(mjp::UnetOf(network_).config), Format::kFp16, horizon_,
                            rows, rows_per_env, kH200));
    plan.rows = plan.rows_per_launch = rows;
    const mjp::MegakernelLaunch launch(unet, Format::kFp16, horizon_, plan, arena_);
    const std::string text = mjp_test::LaunchText(launch.layers().layers()).text() +
                             std::to_string(plan.launch->target.ctas) + " CTAs of " +
                             std::to_string(plan.launch->shared.bytes) + " bytes\n";
    return text + (plan.launch->supported ? "" : "unsupported\n");
  }
  size_t bytes() const { return arena_.bytes(); }

 private:
  mjp::NormConvUnet Load() {
    mjp::LayerLoader loader(arena_, Format::kFp16);
    return mjp::LoadNormConvUnet(loader, network_, true);
  }

  const mjp::Checkpoint& network_;
  int horizon_;
  mjp::DeviceArena arena_;  // measures
};

// Each form in which the U-Net runs, step by step and in windows.
const std::pair<const char*, std::function<std::string(Planner&)>> kForms[] = {
    {"layers", [](Planner& p) { return p.Layers(16, 1) + p.Layers(32, 16); }},
    {"megakernel", [](Planner& p) { return p.Megakernel(16, 1) + p.Megakernel(32, 16); }},
};

// How many lines a form's text has, the arena's bytes, and the first half of the text's hash.
struct Golden {
  const char *network, *form;
  int lines;
  size_t bytes;
  const char* hash;
};
const Golden kGoldens[] = {
#include "tests/policy/cuda/unet_launches_goldens.inc"
};

TEST(UnetLaunches, AreTheGoldenOnes) {
  const std::string folder = testing::TempDir() + "unet_launches/";
  std::filesystem::create_directories(folder);
  std::map<std::string, mjp::Checkpoint> networks;
  for (const Golden& golden : kGoldens) {
    if (!networks.contains(golden.network))
      networks.emplace(golden.network, NetworkOf(golden.network));
    for (const auto& [form, text_of] : kForms) {
      if (form != std::string(golden.form)) continue;
      Planner planner(networks.at(golden.network));
      const std::string text = text_of(planner);
      const std::string hash =
          mjp::Sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()}).substr(0, 32);
      const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
      const std::string file = folder + golden.network + "_" + golden.form;
      const bool same =
          hash == golden.hash && lines == golden.lines && planner.bytes() == golden.bytes;
      if (!same) std::ofstream(file) << text;
      EXPECT_TRUE(same) << "{\"" << golden.network << "\", \"" << golden.form << "\", " << lines
                        << ", " << planner.bytes() << ", \"" << hash
                        << "\"},  the list is in: " << file
                        << "; compare it with the one that the commit before writes";
    }
  }
}

// What is planned from shapes alone is what would be planned with the weights.
void ExpectPlanned(const mjp::NormConvUnet& unet, int horizon, const mjp::MegakernelPlan& plan,
                   const std::string& what) {
  const mjp::MegakernelPlan expected =
      mjp::PlanMegakernel(unet, Format::kFp16, horizon, plan.rows, plan.rows_per_env, plan.target);
  EXPECT_EQ(mjp_test::LaunchText(plan.Layers()).text(),
            mjp_test::LaunchText(expected.Layers()).text())
      << what;
  EXPECT_EQ(plan.supported, expected.supported) << what;
  EXPECT_EQ(plan.warp_specialized, expected.warp_specialized) << what;
  EXPECT_EQ(plan.mailbox_values, expected.mailbox_values) << what;
  EXPECT_EQ(plan.shared.bytes, expected.shared.bytes) << what;
}

TEST(UnetLaunches, ArePlannedFromShapesAsWithWeights) {
  int planned = 0;
  for (const char* network : {"shipped", "compact", "notebook", "lerobot-128", "lerobot"}) {
    const mjp::Checkpoint checkpoint = NetworkOf(network);
    const mjp::UnetPolicyConfig config = ConfigOf(network);
    const mjp::NormConvUnet shapes = mjp::UnetShapes(config);
    mjp::DeviceArena weights;
    weights.TakeBytes(1);
    mjp::LayerLoader loader(weights, Format::kFp16);
    const mjp::NormConvUnet unet = mjp::LoadNormConvUnet(loader, checkpoint, true);
    for (const int rows : {1, 2, 16, 32}) {
      for (const char* gpu : {"h200", "a100", "rtx3090", "orin", "thor"}) {
        const auto target = mjp::megakernel::Target::On(mjp::GpuTraits::Named(gpu));
        for (const int rows_per_env : {1, 16}) {
          if (rows % rows_per_env != 0) continue;
          ExpectPlanned(unet, config.horizon,
                        mjp::PlanMegakernel(shapes, Format::kFp16, config.horizon, rows,
                                            rows_per_env, target),
                        network + (" on " + std::string(gpu)));
        }
      }
    }
    for (const std::string& name : mjp::GpuTraits::Names()) {
      for (const int batch : {1, 2, 16, 32, 48, 128}) {
        for (const int window : {0, 16}) {
          const mjp::ExecutionPlan plan = mjp::ChooseExecution(
              config, {Format::kFp16, batch, window}, mjp::GpuTraits::Named(name));
          for (const auto& launch : {plan.launch, plan.last_launch, plan.fallback_launch}) {
            if (launch == nullptr) continue;
            ++planned;
            ExpectPlanned(unet, config.horizon, *launch, network + (" on " + name));
          }
        }
      }
    }
  }
  EXPECT_GT(planned, 0) << "some GPU runs the megakernel";
}

TEST(UnetLaunches, EveryFormOfFiveNetworksHasAGolden) {
  EXPECT_EQ(std::size(kGoldens), 5 * std::size(kForms));
}

// The shapes that plans are made of are those of the weights.
TEST(UnetShapesTest, AreThoseOfTheWeights) {
  const auto checkpoint = mjp::NamedNetwork("compact");
  mjp::DeviceArena measuring;
  mjp::LayerLoader loader(measuring, Format::kFp16);
  const mjp::NormConvUnet weights = mjp::LoadNormConvUnet(loader, *checkpoint, true);
  const mjp::NormConvUnet shapes = mjp::UnetShapes(mjp::UnetOf(*checkpoint).config);
  const auto expect_equal = [](const mjp::DeviceNormConv& a, const mjp::DeviceNormConv& b) {
    EXPECT_EQ(a.shape.in_c, b.shape.in_c);
    EXPECT_EQ(a.shape.out_c, b.shape.out_c);
    EXPECT_EQ(a.shape.taps, b.shape.taps);
    EXPECT_EQ(a.shape.stride, b.shape.stride);
    EXPECT_EQ(a.shape.pad, b.shape.pad);
    EXPECT_EQ(a.shape.phases, b.shape.phases);
    EXPECT_EQ(a.shape.shortcut, b.shape.shortcut);
  };
  const auto expect_blocks = [&](const mjp::NormConvBlock& a, const mjp::NormConvBlock& b) {
    expect_equal(a.conv1, b.conv1);
    expect_equal(a.conv2, b.conv2);
    EXPECT_EQ(a.norm1.groups, b.norm1.groups);
    EXPECT_EQ(a.norm2.groups, b.norm2.groups);
    EXPECT_EQ(a.film.scale_offset, b.film.scale_offset);
    EXPECT_EQ(a.film.bias_offset, b.film.bias_offset);
  };
  ASSERT_EQ(shapes.steps.size(), weights.steps.size());
  for (size_t i = 0; i < shapes.steps.size(); ++i) {
    const auto &a = shapes.steps[i].layer, &b = weights.steps[i].layer;
    ASSERT_EQ(a.index(), b.index()) << i;
    if (const auto* block = std::get_if<mjp::NormConvBlock>(&a)) {
      expect_blocks(*block, std::get<mjp::NormConvBlock>(b));
    } else {
      expect_equal(std::get<mjp::DeviceNormConv>(a), std::get<mjp::DeviceNormConv>(b));
    }
  }
  expect_equal(shapes.final_conv, weights.final_conv);
  EXPECT_EQ(shapes.final_norm.groups, weights.final_norm.groups);
  EXPECT_EQ(shapes.first.in_c, weights.first.in_c);
  EXPECT_EQ(shapes.first.out_c, weights.first.out_c);
  EXPECT_EQ(shapes.first.taps, weights.first.taps);
  EXPECT_EQ(shapes.head.out_c, weights.head.out_c);
}

}  // namespace
