// What engines launch and the memory that they take, on a CUDA runtime that needs no GPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/sampler/hold_prefix.cuh"
#include "kernels/cuda/sampler/picture_resize.cuh"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/cuda/arena.h"
#include "policy/cuda/encoder_layers.h"
#include "policy/policy.h"
#include "policy/scheduler.h"
#include "policy/unet/unet_model.h"
#include "tests/policy/dit/compact_dit.h"
#include "tests/policy/dit/small_dit.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/gpu/fake_cuda.h"
#include "tests/support/gpu/observations.h"

namespace mjp_test {
namespace {

using mjp::Checkpoint;
using testing::HasSubstr;

mjp::PolicyOptions OnTheGpu(int batch) {
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCuda;
  options.batch = batch;
  options.self_check = false;  // no kernel runs
  return options;
}

// Tells `told` of the arguments of each launch of a kernel that takes `Args` first.
template <typename Args>
class Launches {
 public:
  Launches(std::string type, std::function<void(const Args&)> told) {
    TheFakeGpu().launched = [=](const std::string& kernel, void** arguments) {
      if (kernel.find(type) != kernel.npos) told(*static_cast<const Args*>(arguments[0]));
    };
  }
  ~Launches() { TheFakeGpu().launched = nullptr; }
};

// A U-Net that sees what CompactDitConfig does.
std::shared_ptr<const Checkpoint> CompactUnet(int cameras, bool separate) {
  const mjp::DitConfig dit = CompactDitConfig(mjp::DitObjective::kDiffusion, cameras);
  mjp::UnetPolicyConfig config{dit, {}, *dit.encoder, {}, {}};
  config.type = "diffusion_compact";
  config.unet.down_dims = {16, 32};
  config.encoder.separate_per_camera = separate;
  return mjp::RandomCheckpoint(config, CompactDitStats(dit), 1);
}

std::shared_ptr<const Checkpoint> DitOfTwoCameras(bool separate, bool resized) {
  mjp::DitConfig config = SmallDitConfig(true);
  config.cameras.push_back({"observation.images.wrist", 3, 20, 24});
  config.separate_encoders = separate;
  if (!resized) config.resize_height = config.resize_width = 0;
  const auto checkpoint = SmallDit(config);
  checkpoint->stats.cameras.push_back(
      {mjp::Normalization::kMeanStd, {0.1f, 0.2f, 0.7f}, {0.3f, 0.15f, 0.2f}});
  return checkpoint;
}

bool Normalises(const float* table, const mjp::FeatureStats& stats) {
  for (int c = 0; c < 3; ++c)
    for (const int byte : {0, 100, 255})
      if (table[c * 256 + byte] != mjp::Normalize(stats, c, static_cast<float>(byte) / 255.0f))
        return false;
  return true;
}

TEST(EngineTest, EachCamerasStatisticsNormaliseItsPictures) {
  constexpr int kBatch = 2;
  const std::pair<const char*, std::shared_ptr<const Checkpoint>> all[] = {
      {"U-Net, one encoder", CompactUnet(2, false)},
      {"U-Net, an encoder for each", CompactUnet(2, true)},
      {"U-Net, one camera", CompactUnet(1, false)},
      {"compact DiT", CompactDit(CompactDitConfig(mjp::DitObjective::kDiffusion, 2))},
      {"DiT, one tower", DitOfTwoCameras(false, false)},
      {"DiT, one tower, resized", DitOfTwoCameras(false, true)},
      {"DiT, a tower for each, resized", DitOfTwoCameras(true, true)},
      {"ACT", ActCheckpoint(SmallActConfig())}};
  for (const auto& [name, checkpoint] : all) {
    SCOPED_TRACE(name);
    std::vector<mjp::PrepareArgs> launches;
    const auto note = [&](const mjp::PrepareArgs& a) { launches.push_back(a); };
    const Launches<mjp::PrepareArgs> prepare("Prepare", note);  // resized or not, they come first
    const auto policy = mjp::Policy::Create(checkpoint, OnTheGpu(kBatch));
    const Observations observations(*checkpoint, kBatch);
    mjp::PolicyOutput output;
    policy->Infer(observations.input, output);

    const auto& cameras = checkpoint->stats.cameras;
    const size_t count = cameras.size();
    ASSERT_EQ(count, checkpoint->config.cameras.size());
    EXPECT_TRUE(count == 1 || cameras[0].first != cameras[1].first);
    std::set<int> read;
    for (const mjp::PrepareArgs& a : launches) {
      for (int f = 0; f < a.frames; ++f) {
        const int input = a.Input(f);
        read.insert(input);
        EXPECT_TRUE(Normalises(a.TableOf(input), cameras[input % count])) << "picture " << input;
      }
    }
    EXPECT_EQ(read.size(), count * kBatch * checkpoint->config.n_obs_steps);
  }
}

// Where the convolutions of an encoder of two pictures write, in an arena that measures.
struct Writes {
  std::map<uintptr_t, uintptr_t> ends;  // of what is written from an address on
  std::set<uintptr_t> begins;           // of all that is read or written, and the arena's end
};
Writes WritesOf(const mjp::EncoderConfig& config, const mjp::EncoderWeights& weights) {
  constexpr mjp::Format kFormat = mjp::Format::kFp32;
  const auto address = [](const void* at) { return reinterpret_cast<uintptr_t>(at); };
  mjp::DeviceArena of_weights, arena;
  of_weights.TakeBytes(1), arena.TakeBytes(1);  // or the first addresses would be null
  mjp::LayerLoader loader(of_weights, kFormat);
  const auto encoder = mjp::LoadDeviceEncoder(loader, config, weights, 96, 96);
  const mjp::EncoderLayers layers(encoder, config, kFormat, 2, 96, 96, arena);
  Writes writes;
  writes.begins = {address(layers.input()), address(layers.features()), arena.bytes()};
  for (const mjp::Op& op : layers.ops()) {
    const auto* conv = std::get_if<mjp::ConvArgs>(&op);
    if (conv == nullptr) continue;
    const uintptr_t y = address(conv->y);
    writes.begins.insert({address(conv->x), y});
    writes.ends[y] =
        std::max(writes.ends[y], y + sizeof(float) * conv->shape.Positions() * conv->shape.out_c);
  }
  return writes;
}

TEST(EngineTest, APoolWiderThanTheMapsFitsItsBuffer) {
  mjp::UnetPolicyConfig config = mjp::NamedConfig("compact");
  mjp::EncoderConfig& encoder = config.encoder;
  encoder.stem_channels = 16, encoder.stem_stride = 4;
  encoder.stage_channels = {64}, encoder.stage_strides = {4};
  encoder.blocks_per_stage = 1;
  config.unet.down_dims = {16, 32};
  for (const int pool : {8, 512}) {
    encoder.pool_channels = pool;
    mjp::NormalizerStats stats;
    stats.cameras = {{mjp::Normalization::kMeanStd, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}}};
    const auto checkpoint = mjp::RandomCheckpoint(config, stats, 0);
    const Writes writes = WritesOf(encoder, mjp::UnetOf(*checkpoint).encoders[0]);
    ASSERT_GT(writes.ends.size(), 2);
    for (const auto& [begin, end] : writes.ends)
      EXPECT_LE(end, *writes.begins.upper_bound(begin)) << "a pool of " << pool;
  }
}

// The next policy needs the memory that the one before left to whoever wants the same again.
TEST(EngineTest, WhatNoPolicyUsesMakesRoomForTheSelfCheck) {
  const auto checkpoint = mjp::LoadCheckpoint(MJPOLICY_SOURCE_DIR "/assets/pusht_image");
  const auto make = [&](bool self_check) -> std::string {
    mjp::PolicyOptions options = OnTheGpu(64);
    options.self_check = self_check;
    options.sampler = {mjp::SamplerKind::kDdim, 10};
    try {
      mjp::Policy::Create(checkpoint, options);
    } catch (const mjp::Error& error) {
      return error.what();
    }
    return "made";
  };
  TheFakeGpu().memory = size_t{110} << 20;  // one of the two
  auto other = mjp::Policy::Create(checkpoint, OnTheGpu(48));
  EXPECT_THAT(make(true), HasSubstr("the GPU has no room"));
  other.reset();
  // no kernel runs, so the self-check that had room finds what is wrong
  EXPECT_THAT(make(true), HasSubstr("the self-check at load failed"));
  other = mjp::Policy::Create(checkpoint, OnTheGpu(48));
  EXPECT_THAT(make(false), HasSubstr("the GPU has no room"));
  other.reset();
  EXPECT_EQ(make(false), "made");
  TheFakeGpu().memory = SIZE_MAX;
}

// The self-check has two steps, of which a warm start leaves one.
TEST(EngineTest, TheSelfCheckOfAWarmStartTakesOneOfItsSteps) {
  const auto checkpoint = mjp::LoadCheckpoint(MJPOLICY_SOURCE_DIR "/assets/pusht_image");
  mjp::PolicyOptions options = OnTheGpu(1);
  options.self_check = true;
  options.sampler = {mjp::SamplerKind::kDdim, 10};
  options.sampler.prefix = true;
  options.sampler.warm_start = 2;
  std::vector<mjp::HoldPrefixArgs> plans;
  const Launches<mjp::HoldPrefixArgs> launches("HoldPrefix", [&](const mjp::HoldPrefixArgs& a) {
    if (a.whole) plans.push_back(a);
  });
  EXPECT_THROW(mjp::Policy::Create(checkpoint, options), mjp::Error);  // no kernel runs
  const auto last =
      mjp::MakeSchedule(mjp::UnetOf(*checkpoint).config.scheduler, mjp::SamplerKind::kDdim, 2)[1];
  ASSERT_FALSE(plans.empty());
  for (const mjp::HoldPrefixArgs& plan : plans) {
    EXPECT_EQ(plan.sqrt_a, last.sqrt_a);
    EXPECT_EQ(plan.sqrt_1ma, last.sqrt_1ma);
  }
}

}  // namespace
}  // namespace mjp_test
