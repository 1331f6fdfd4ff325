#include "plugin/pictures/picture_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace mjp {
namespace {

class FlatSource : public PictureSource {
 public:
  explicit FlatSource(uint8_t level) : level_(level) {}
  void Render(const mjModel*, mjData*, std::span<uint8_t> rgb) override {
    std::fill(rgb.begin(), rgb.end(), level_);
  }

 private:
  uint8_t level_;
};

void RegisterFlat(uint8_t level) {
  RegisterPictureSource("flat", [level](const mjModel*, const PictureRequest&) {
    return std::make_unique<FlatSource>(level);
  });
}

TEST(PictureSource, TheFirstRegistrationOfANameStands) {
  RegisterFlat(1);
  RegisterFlat(2);
  EXPECT_THAT(PictureSourceNames(), testing::ElementsAre("flat", "mujoco"));
  uint8_t rgb[3];
  CreatePictureSource("flat", nullptr, {})->Render(nullptr, nullptr, rgb);
  EXPECT_THAT(rgb, testing::Each(1));
}

TEST(PictureSource, AnUnknownNameIsAnErrorThatNamesTheKnownOnes) {
  RegisterFlat(1);
  try {
    CreatePictureSource("vulkan", nullptr, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "renderer \"vulkan\" is unknown; choose one of: flat, mujoco");
  }
}

TEST(PictureSource, TheScopeOfAPolicyPictureNests) {
  EXPECT_FALSE(RenderingPolicyPicture());
  {
    const PolicyPictureScope outer;
    { const PolicyPictureScope inner; }
    EXPECT_TRUE(RenderingPolicyPicture());
  }
  EXPECT_FALSE(RenderingPolicyPicture());
}

}  // namespace
}  // namespace mjp
