#include <gtest/gtest.h>

#include "tests/policy/dit/dit_checks.h"

// The goldens with hundreds of megabytes of weights.

namespace {

using namespace mjp_test;

TEST(DitDefaultTest, TowersAndPasses) {
  SHARED_OR_SKIP(goldens, "goldens_act_dit/README.md");
  const auto checkpoint = DitCheckpoint("dit_default");
  CheckVision(*checkpoint, "dit_default", 1);
  CheckText(*checkpoint, "dit_default", 1);
  CheckPasses(*checkpoint, "dit_default");
}

TEST(DitDefaultTest, Chains) {
  SHARED_OR_SKIP(goldens, "goldens_act_dit/README.md");
  CheckDitChain("dit_default_ddpm100", false);
  CheckDitChain("dit_default_euler100", false);
}

// Both towers of CLIP B/16, all twelve layers.
TEST(ClipTest, BasePatch16) {
  SHARED_OR_SKIP(goldens, "goldens_act_dit/README.md");
  const mjp::Json description = DitCase("clip_b16");
  const mjp::SafetensorsFile file = DitTensors("clip_b16");
  mjp::DitConfig config;
  config.cameras = {{"image", 3, 224, 224}};
  config.state_dim = config.action_dim = 1;
  config.layers = 1, config.hidden = 8, config.heads = 1;
  mjp::DitWeights weights = mjp::OutlineDit(config);
  DitFormula formula;
  mjp::TakeDit({}, config, formula, weights);

  mjp::cpu::ThreadPool pool(2);
  const mjp::FeatureStats stats{mjp::Normalization::kMeanStd, description["mean"],
                                description["std"]};
  mjp::cpu::PictureInput pictures(config.cameras[0], stats, {}, 1, 0, pool);
  const std::vector<uint8_t> image = file.Bytes("in/image");
  pictures.Prepare(image.data(), static_cast<int64_t>(image.size()), 1);
  const mjp::cpu::PackedVision vision = mjp::cpu::PackVision(weights.vision[0]);
  mjp::cpu::VisionTower tower(vision, config.clip, 1, pool);
  std::vector<float> cls(768);
  Taps taps;
  tower.Encode(pictures.view(), 1, cls.data(), taps.tap());
  for (int i = 0; i < 12; ++i) {
    const std::string layer = "vision/layer" + std::to_string(i);
    std::vector<float> row = taps.values.at(layer);
    row.resize(768);
    EXPECT_TRUE(CheckClose(row, file.Floats("out/" + layer + "/row0.f64").data, 2 * kClipLimit));
  }
  EXPECT_TRUE(CheckClose(cls, file.Floats("out/vision/cls.f64").data, 2 * kClipLimit));

  const mjp::cpu::PackedText text = mjp::cpu::PackText(weights.text);
  std::vector<float> pooled(512);
  mjp::cpu::EncodeText(text, config.clip, TextIds(file), pooled.data(), pool);
  EXPECT_TRUE(CheckClose(pooled, file.Floats("out/text/pooled.f64").data, 2 * kClipLimit));
}

}  // namespace
