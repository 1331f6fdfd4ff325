// What the image U-Net launches on a GPU: the same launches, with the same arguments and in the
// same memory, as were planned when the goldens were made. Planned without a device.

#include <gtest/gtest.h>

#include <fstream>

#include "base/sha256.h"
#include "image_diffusion/cuda/unet2d.h"
#include "tests/support/gpu/launch_text.h"

namespace {

// Levels of the network, then lines and first half of the hash of what is launched for three rows.
struct Golden {
  std::vector<int> down_dims;
  bool film_scale;
  int lines;
  const char* hash;
};

TEST(Unet2dLaunches, AreTheGoldenOnes) {
  for (const Golden& golden : {Golden{{16, 32, 48}, true, 70, "3f0b234e687eef704f223c7664651248"},
                               {{24, 16}, false, 50, "fbe44032daeb2fe1193e8e4c9cf61637"}}) {
    mjp::ImageConfig config;
    config.size = 16;
    config.unet.down_dims = golden.down_dims;
    config.unet.film_scale = golden.film_scale;
    config.unet.step_embed_dim = 16;
    const auto model = mjp::RandomImageModel(config, 1);
    mjp::DeviceArena arena;
    arena.TakeBytes(1);  // or the first address would be null
    const mjp::CudaUnet2d unet(*model, mjp::MakeStepTable(model->unet, {0, 10}), mjp::Format::kFp16,
                               3, arena);
    const std::string text =
        mjp_test::LaunchText(unet.ops()).text() + std::to_string(arena.bytes()) + " bytes\n";
    const std::string hash =
        mjp::Sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()}).substr(0, 32);
    const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    EXPECT_EQ(lines, golden.lines);
    EXPECT_EQ(hash, golden.hash) << text;
  }
}

}  // namespace
