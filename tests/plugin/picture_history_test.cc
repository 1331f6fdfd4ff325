#include "plugin/pictures/picture_history.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <vector>

#include "plugin/pictures/pose.h"
#include "tests/plugin/plugin_fixture.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

using Poses = std::vector<std::span<const mjtNum>>;
constexpr size_t kBytes = size_t{3} * ProbeSource::kSize * ProbeSource::kSize;

class PictureHistoryTest : public PluginTest {
 protected:
  void SetUp() override {
    model_ = Compile(Xml(Basic()));
    ASSERT_TRUE(model_);
    ProbeSource::offers_gpu = true;
    ProbeSource::drawn = HostPicture::downloads = 0;
  }
  void TearDown() override { ProbeSource::offers_gpu = false; }

  mjp::PictureHistory Make() const {
    mjp::PictureRequest request;
    request.cameras = {"top"};
    request.width = request.height = ProbeSource::kSize;
    return {model_.get(), "probe", request, 2, [](const mjModel*, const std::string&) {}};
  }
  // The pose whose first position is `x`; `history` draws it.
  std::vector<mjtNum> Draw(mjp::PictureHistory& history, double x) const {
    const DataPtr data(mj_makeData(model_.get()));
    data->qpos[0] = x;
    mj_forward(model_.get(), data.get());
    std::vector<mjtNum> pose(mjp::PoseSize(model_.get()));
    mjp::ReadPose(model_.get(), data.get(), pose);
    history.Draw(model_.get(), data.get(), pose);
    return pose;
  }
  static double Decode(const mjp::GpuPicture& picture) {
    std::vector<uint8_t> rgb(picture.bytes());
    picture.Download(rgb);
    return ProbeSource::Decode(rgb.data());
  }

  ModelPtr model_;
};

TEST_F(PictureHistoryTest, LeavesPicturesOnTheGpuUntilSomebodyLooks) {
  mjp::PictureHistory history = Make();
  history.KeepOnGpu();
  const std::vector<mjtNum> first = Draw(history, 1), second = Draw(history, 2);
  const Poses poses = {first, second};
  const auto kept = history.GpuPictures(model_.get(), poses);
  ASSERT_THAT(kept, SizeIs(2));
  EXPECT_EQ(history.NewestOnGpu(), kept[1]);
  EXPECT_EQ(ProbeSource::drawn, 2);
  EXPECT_EQ(HostPicture::downloads, 0);
  EXPECT_EQ(Decode(*kept[0]), 1);
  EXPECT_EQ(Decode(*kept[1]), 2);

  HostPicture::downloads = 0;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ProbeSource::Decode(history.Newest().data()), 2);
  EXPECT_EQ(HostPicture::downloads, 1);
  const auto frames = history.Frames(model_.get(), poses);
  ASSERT_THAT(frames, SizeIs(2 * kBytes));
  EXPECT_EQ(ProbeSource::Decode(&frames[0]), 1);
  EXPECT_EQ(ProbeSource::Decode(&frames[kBytes]), 2);
  EXPECT_EQ(HostPicture::downloads, 2);
  EXPECT_EQ(ProbeSource::drawn, 2);
}

TEST_F(PictureHistoryTest, APictureOutlivesItsPlaceInTheHistory) {
  mjp::PictureHistory history = Make();
  history.KeepOnGpu();
  Draw(history, 1);
  const std::shared_ptr<const mjp::GpuPicture> first = history.NewestOnGpu();
  for (int x = 2; x < 6; ++x) Draw(history, x);
  EXPECT_EQ(Decode(*first), 1);
}

TEST_F(PictureHistoryTest, KeepsThemOnTheHostWhereNobodyLeavesThemOnTheGpu) {
  for (const bool asked : {false, true}) {
    ProbeSource::offers_gpu = !asked;
    mjp::PictureHistory history = Make();
    if (asked) history.KeepOnGpu();
    const std::vector<mjtNum> first = Draw(history, 1), second = Draw(history, 2);
    const Poses poses = {first, second};
    EXPECT_THAT(history.GpuPictures(model_.get(), poses), IsEmpty());
    EXPECT_EQ(history.NewestOnGpu(), nullptr);
    const auto frames = history.Frames(model_.get(), poses);
    EXPECT_EQ(ProbeSource::Decode(&frames[0]), 1);
    EXPECT_EQ(ProbeSource::Decode(&frames[kBytes]), 2);
    EXPECT_EQ(ProbeSource::Decode(history.Newest().data()), 2);
  }
  EXPECT_EQ(HostPicture::downloads, 0);
}

TEST_F(PictureHistoryTest, PicturesAreTheSameByPoseAndLook) {
  mjp::PictureHistory history = Make(), other = Make();
  history.KeepOnGpu();
  other.KeepOnGpu();
  const auto newest = [&](mjp::PictureHistory& of, double x) {
    Draw(of, x);
    return of.NewestOnGpu();
  };
  const auto picture = newest(history, 1), again = newest(other, 1);
  EXPECT_NE(picture, again);
  EXPECT_TRUE(mjp::SamePicture(*picture, *again));
  EXPECT_FALSE(mjp::SamePicture(*picture, *newest(other, 2)));
  model_->geom_rgba[0] = 0.25f;
  EXPECT_FALSE(mjp::SamePicture(*picture, *newest(other, 1)));
  // of which nothing is known
  const HostPicture unknown({1, 2, 3}), like({1, 2, 3});
  EXPECT_TRUE(mjp::SamePicture(unknown, unknown));
  EXPECT_FALSE(mjp::SamePicture(unknown, like));
}

TEST_F(PictureHistoryTest, DrawsAnEarlierPoseAgainWithoutAPolicy) {
  const std::string checkpoint = TempDir().path();  // gone once the model is compiled
  std::filesystem::create_directory(checkpoint);
  model_ = Compile(
      Xml(Set("checkpoint", checkpoint) + Set("state", "ax ay") + Set("actuators", "ax ay")));
  mjp::PictureHistory history = Make();
  const std::vector<mjtNum> pose = Draw(history, 1);
  history.Forget();
  std::filesystem::remove_all(checkpoint);
  const Poses poses = {pose};
  EXPECT_EQ(ProbeSource::Decode(history.Frames(model_.get(), poses).data()), 1);
}

// pictures that are in the memory of the policy's GPU stay there, and decisions on them are found
TEST_F(PictureHistoryTest, APolicyOnTheGpuTakesThemThere) {
  AddCamera();
  policy_.remembered = 8;
  policy_.Install();
  const std::string attributes = BasicWithCamera() + Set("renderer", "probe");
  for (const bool gpu : {true, false}) {
    HostPicture::downloads = 0;
    model_ = Compile(Xml(attributes + Set("backend", gpu ? "cuda" : "cpu")));
    const DataPtr data(mj_makeData(model_.get()));
    std::vector<double> positions;
    const auto play = [&](mjData* of) {
      for (int i = 0; i < 85; ++i) {
        if (i % 10 == 0) positions.push_back(of->qpos[0]);
        mj_step(model_.get(), of);
      }
    };
    play(data.get());
    const auto seen = policy_.Take();
    ASSERT_THAT(seen, SizeIs(2));
    EXPECT_EQ(seen[1].frames.empty(), gpu);
    ASSERT_THAT(seen[1].gpu_pictures, SizeIs(gpu ? 2 : 0));
    for (int k = 0; gpu && k < 2; ++k)
      EXPECT_EQ(ProbeSource::Decode(seen[1].gpu_pictures[k].data()), positions[7 + k]);
    EXPECT_EQ(HostPicture::downloads, gpu ? 4 : 0);  // by the fake policy alone

    const DataPtr copy(mj_makeData(model_.get()));
    play(copy.get());
    EXPECT_THAT(policy_.Take(), IsEmpty()) << "a decision was made twice";
    model_->geom_rgba[0] = 0.25f;
    const DataPtr recoloured(mj_makeData(model_.get()));
    play(recoloured.get());
    EXPECT_THAT(policy_.Take(), SizeIs(gpu ? 2 : 0)) << "the probe's bytes have no colour";
  }
}

}  // namespace
}  // namespace mjp_test
