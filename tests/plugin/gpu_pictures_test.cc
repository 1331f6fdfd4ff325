// Pictures that never leave the GPU: the same bytes and the same decisions as by way of the host.

#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

#include "plugin/pictures/mujoco_renderer.h"
#include "plugin/pictures/picture_history.h"
#include "plugin/pictures/pose.h"
#include "plugin/pictures/shared_pictures.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/policy.h"
#include "tests/policy/dit/small_dit.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/goldens/golden_cases.h"
#include "tests/support/goldens/small_checkpoint.h"
#include "tests/support/gpu/cuda_faults.h"
#include "tests/support/gpu/device_buffer.h"
#include "tests/support/gpu/device_picture.h"
#include "tests/support/gpu/host_picture.h"
#include "tests/support/mujoco_fixture.h"

namespace mjp_test {
namespace {

using mjp::GpuPicture;
using mjp::PictureRequest;
using Bytes = std::vector<uint8_t>;
using Handles = std::vector<std::shared_ptr<const GpuPicture>>;

Bytes Downloaded(const GpuPicture& picture) {
  Bytes rgb(picture.bytes());
  picture.Download(rgb);
  return rgb;
}

// Says where they differ first, and how often.
void ExpectSame(const Bytes& gpu, const Bytes& host, const PictureRequest& request,
                const std::string& where) {
  ASSERT_EQ(gpu.size(), host.size()) << where;
  size_t differing = 0, first = gpu.size();
  for (size_t i = 0; i < gpu.size(); ++i) {
    if (gpu[i] == host[i]) continue;
    ++differing;
    first = std::min(first, i);
  }
  if (differing == 0) return;
  const size_t pixel = first / 3, row = request.width, picture = row * request.height;
  ADD_FAILURE() << where << ": " << differing << " of " << gpu.size()
                << " bytes differ; the first is channel " << first % 3 << " of pixel ("
                << pixel % row << ", " << pixel % picture / row << ") of picture "
                << pixel / picture << ": " << int{gpu[first]} << " on the GPU, " << int{host[first]}
                << " on the host";
}

class GpuPicturesTest : public MujocoTest {
 protected:
  void SetUp() override {
    DEVICE_OR_SKIP();
    static const std::string text = [] {
      std::string found;
      std::thread([&] {
        try {
          const mjp::EglContext context(0);
          found = context.description() + "; " + mjp::SharedPicturesText(context);
        } catch (const mjp::Error& error) {
          found = error.what();
        }
      }).join();
      std::printf("%s\n", found.c_str());
      return found;
    }();
    if (text.find("NVIDIA") == text.npos) GTEST_SKIP() << "no OpenGL driver of the GPU: " << text;
    ASSERT_NE(text.find("CUDA takes its pictures where they are"), text.npos) << text;
  }

  static ModelPtr Load(const char* file) {
    char error[1000] = "";
    const std::string path = std::string(MJPOLICY_SOURCE_DIR "/models/") + file;
    ModelPtr model(mj_loadXML(path.c_str(), nullptr, error, sizeof(error)));
    if (!model) ADD_FAILURE() << error;
    return model;
  }
  static size_t SizeOf(const PictureRequest& request) {
    return request.cameras.size() * request.width * request.height * 3;
  }
  // Another pose for every number.
  static DataPtr Posed(const mjModel* model, int number) {
    DataPtr data(mj_makeData(model));
    for (int i = 0; i < model->nq; ++i) data->qpos[i] += 0.05 * ((number * 7 + i * 3) % 11);
    mj_forward(model, data.get());
    return data;
  }
  static Bytes OnHost(mjp::PictureSource& source, const mjModel* model, mjData* data,
                      const PictureRequest& request) {
    Bytes rgb(SizeOf(request));
    source.Render(model, data, rgb);
    return rgb;
  }
  static void ExpectSameOfAll(const mjModel* model, const PictureRequest& request,
                              const std::string& what) {
    const auto source = mjp::MakeMujocoPictureSource(model, request);
    Handles kept;
    std::vector<Bytes> expected;
    for (int i = 0; i < 12; ++i) {
      const DataPtr data = Posed(model, i);
      // in both orders, so that neither reads what the other left
      if (i % 2 == 0) expected.push_back(OnHost(*source, model, data.get(), request));
      kept.push_back(source->RenderOnGpu(model, data.get()));
      ASSERT_NE(kept.back(), nullptr) << what;
      EXPECT_EQ(kept.back()->device(), 0);
      if (i % 2 == 1) expected.push_back(OnHost(*source, model, data.get(), request));
    }
    for (size_t i = 0; i < kept.size(); ++i) {
      ExpectSame(Downloaded(*kept[i]), expected[i], request, what + ", pose " + std::to_string(i));
      EXPECT_NE(expected[i], Bytes(expected[i].size(), expected[i][0])) << "nothing is drawn";
    }
    EXPECT_NE(expected[0], expected[1]) << "the poses are one";
  }
};

// Three cameras that see other things, and something that moves.
constexpr char kBalls[] = R"(
  <mujoco>
    <asset><texture name="check" type="2d" builtin="checker" rgb1="1 0 0" rgb2="0 1 0.3"
                    width="64" height="64"/>
           <material name="check" texture="check" texrepeat="9 9"/></asset>
    <worldbody>
      <light pos="0 0 4"/>
      <camera name="side" pos="0 -5 0" xyaxes="1 0 0 0 0 1" fovy="60"/>
      <camera name="above" pos="0 0 5" fovy="60"/>
      <camera name="aslant" pos="3 -3 3" xyaxes="1 1 0 -1 1 1.4" fovy="60"/>
      <geom type="plane" material="check" size="3 3 0.1" pos="0 0 -1"/>
      <body><freejoint/><geom size="0.5" rgba="0.2 0.4 0.9 1"/></body>
    </worldbody>
  </mujoco>)";

TEST_F(GpuPicturesTest, AreThoseOfTheHostByteForByte) {
  const ModelPtr table = Load("pusht.xml"), balls = Compile(kBalls);
  ExpectSameOfAll(table.get(), {{"top"}, 96, 96, 0}, "512 x 512 reduced to 96 x 96");
  ExpectSameOfAll(table.get(), {{"top"}, 640, 480, 0}, "640 x 480");
  ExpectSameOfAll(balls.get(), {{"side"}, 53, 37, 0}, "53 x 37");
  ExpectSameOfAll(balls.get(), {{"side", "above", "aslant"}, 52, 37, 0}, "three of 52 x 37");
  ExpectSameOfAll(balls.get(), {{"aslant", "above"}, 640, 480, 0}, "two of 640 x 480");
}

// Several pictures that do not end with whole words of OpenGL's.
TEST_F(GpuPicturesTest, OddOnesOfSeveralCamerasGoByWayOfTheHost) {
  const ModelPtr balls = Compile(kBalls);
  const auto source = mjp::MakeMujocoPictureSource(balls.get(), {{"side", "above"}, 53, 37, 0});
  EXPECT_EQ(source->RenderOnGpu(balls.get(), Posed(balls.get(), 0).get()), nullptr);
}

// More than one slab has.
TEST_F(GpuPicturesTest, ManyAreKeptAtOnceAndTheirPlacesAreUsedAgain) {
  const ModelPtr model = Load("pusht.xml");
  const PictureRequest request = {{"top"}, 96, 96, 0};
  const auto source = mjp::MakeMujocoPictureSource(model.get(), request);
  std::set<const uint8_t*> places;
  for (int round = 0; round < 2; ++round) {
    Handles kept;
    for (int i = 0; i < 40; ++i)
      kept.push_back(source->RenderOnGpu(model.get(), Posed(model.get(), i).get()));
    for (int i = 0; i < 40; ++i) {
      places.insert(kept[i]->data());
      ExpectSame(Downloaded(*kept[i]),
                 OnHost(*source, model.get(), Posed(model.get(), i).get(), request), request,
                 "picture " + std::to_string(i));
    }
  }
  EXPECT_LE(places.size(), 48u);
}

TEST_F(GpuPicturesTest, ShowTheModelAsItLooksNow) {
  const ModelPtr model = Compile(kBalls);
  const PictureRequest request = {{"above", "side"}, 52, 37, 0};
  const auto source = mjp::MakeMujocoPictureSource(model.get(), request);
  const DataPtr data = Posed(model.get(), 0);
  const auto before = source->RenderOnGpu(model.get(), data.get());
  ASSERT_NE(before, nullptr);
  const Bytes first = Downloaded(*before);
  model->geom_rgba[4] = 0.9f;
  source->Adopt(model.get());
  const auto recoloured = source->RenderOnGpu(model.get(), data.get());
  EXPECT_NE(Downloaded(*recoloured), first);
  ExpectSame(Downloaded(*recoloured), OnHost(*source, model.get(), data.get(), request), request,
             "recoloured");
  model->tex_data[0] = 7;  // OpenGL's copies are made again
  model->vis.headlight.ambient[0] = 0.9f;
  source->Adopt(model.get());
  const auto relit = source->RenderOnGpu(model.get(), data.get());
  ASSERT_NE(relit, nullptr);
  EXPECT_NE(Downloaded(*relit), Downloaded(*recoloured));
  ExpectSame(Downloaded(*relit), OnHost(*source, model.get(), data.get(), request), request,
             "with other light");
  EXPECT_EQ(Downloaded(*before), first) << "a picture changed after it was drawn";
}

TEST_F(GpuPicturesTest, AreKeptByAHistory) {
  const ModelPtr model = Load("pusht.xml");
  const PictureRequest request = {{"top"}, 96, 96, 0};
  const auto make = [&] {
    return mjp::PictureHistory(model.get(), "mujoco", request, 2,
                               [](const mjModel*, const std::string&) {});
  };
  mjp::PictureHistory gpu = make(), host = make();
  gpu.KeepOnGpu();
  std::vector<std::vector<mjtNum>> poses(2);
  for (int i = 0; i < 2; ++i) {
    const DataPtr data = Posed(model.get(), i);
    poses[i].resize(mjp::PoseSize(model.get()));
    mjp::ReadPose(model.get(), data.get(), poses[i]);
    gpu.Draw(model.get(), data.get(), poses[i]);
    host.Draw(model.get(), data.get(), poses[i]);
  }
  const std::vector<std::span<const mjtNum>> spans(poses.begin(), poses.end());
  const auto kept = gpu.GpuPictures(model.get(), spans);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(gpu.NewestOnGpu(), kept[1]);
  const auto newest = gpu.Newest(), newest_host = host.Newest();
  ExpectSame({newest.begin(), newest.end()}, {newest_host.begin(), newest_host.end()}, request,
             "the newest");
  const auto frames = gpu.Frames(model.get(), spans), expected = host.Frames(model.get(), spans);
  EXPECT_TRUE(std::ranges::equal(frames, expected));
}

TEST_F(GpuPicturesTest, GoByWayOfTheHostWhereTestsSaySo) {
  const ModelPtr model = Load("pusht.xml");
  setenv("MJPOLICY_TEST_HOST_PICTURES", "1", 1);
  const auto source = mjp::MakeMujocoPictureSource(model.get(), {{"top"}, 96, 96, 0});
  const DataPtr data = Posed(model.get(), 0);
#ifdef MJPOLICY_TEST_SEAMS
  EXPECT_EQ(source->RenderOnGpu(model.get(), data.get()), nullptr);
#else
  EXPECT_THROW(source->RenderOnGpu(model.get(), data.get()), mjp::Error);
#endif
  unsetenv("MJPOLICY_TEST_HOST_PICTURES");
}

// Each call of CUDA fails once: no picture is wrong, and the next one is right.
TEST_F(GpuPicturesTest, FaultsOfCudaAreErrors) {
  const ModelPtr model = Load("pusht.xml");
  const PictureRequest request = {{"top"}, 96, 96, 0};
  const DataPtr data = Posed(model.get(), 3);
  const auto draw = [&](mjp::PictureSource& source) {
    const auto picture = source.RenderOnGpu(model.get(), data.get());
    return picture ? Downloaded(*picture) : OnHost(source, model.get(), data.get(), request);
  };
  auto source = mjp::MakeMujocoPictureSource(model.get(), request);
  const Bytes expected = OnHost(*source, model.get(), data.get(), request);
  for (const bool first : {true, false}) {
    const auto fresh = [&] {
      source = mjp::MakeMujocoPictureSource(model.get(), request);
      if (!first) draw(*source);
    };
    fresh();
    const std::vector<std::string> calls = CudaCallsOf([&] { EXPECT_EQ(draw(*source), expected); });
    for (size_t n = 1; n <= calls.size(); ++n) {
      const std::string at = std::to_string(n) + ", " + calls[n - 1];
      fresh();
      ArmCudaFault({cudaErrorLaunchOutOfResources, false}, static_cast<long>(n));
      try {
        EXPECT_EQ(draw(*source), expected) << "call " << at;
      } catch (const mjp::Error& error) {
        std::printf("call %s: %s\n", at.c_str(), error.what());
      }
      EXPECT_EQ(DisarmCudaFault(), calls[n - 1]);
      EXPECT_EQ(draw(*source), expected) << "after call " << at;
    }
  }
}

// A network and how it decides.
struct Form {
  const char* name;
  std::shared_ptr<const mjp::Checkpoint> (*make)();
  mjp::SamplerOptions sampler;
  friend void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }
};
const Form kForms[] = {
    {"Unet", CompactCheckpoint, {mjp::SamplerKind::kDdim, 4, 0, 0, 1}},
    {"UnetWithResNet",
     [] { return GoldenCheckpoint(GoldenCase::kLeRobotBatchNorm); },
     {mjp::SamplerKind::kDdim, 3, 0, 0, 1}},
    {"Act", [] { return ActCheckpoint(SmallActConfig()); }, {}},
    {"Dit",
     [] { return std::shared_ptr<const mjp::Checkpoint>(SmallDit(SmallDitConfig(true))); },
     {}}};

// Needs no OpenGL.
class GpuPictureDecisionsTest : public ::testing::TestWithParam<Form> {
 protected:
  static constexpr int kCount = 2;

  void SetUp() override {
    DEVICE_OR_SKIP();
    checkpoint_ = GetParam().make();
    const mjp::PolicyConfig& config = checkpoint_->config;
    for (const mjp::CameraFeature& camera : config.cameras)
      bytes_ += size_t{3} * camera.height * camera.width;
    const size_t steps = size_t{kCount} * config.n_obs_steps;
    for (size_t i = 0; i < steps * bytes_; ++i)
      frames_.push_back(static_cast<uint8_t>(i * 7 + i / 288 * 3));
    state_.assign(steps * config.state_dim, 0.25f);
    environment_.assign(steps * config.environment_dim, 0.5f);
    keys_ = {{11, 0}, {12, 3}};
    tokens_.assign(kCount, {0, 1});
    input_.count = kCount;
    input_.state = state_;
    input_.environment = environment_;
    input_.keys = keys_;
    if (checkpoint_->network->text_tokens() > 1) input_.instruction_ids = tokens_;
    mjp::PolicyOptions options;
    options.backend = mjp::Backend::kCuda;
    options.sampler = GetParam().sampler;
    options.batch = 3;
    options.self_check = false;
    policy_ = mjp::Policy::Create(checkpoint_, options);
  }
  Handles Uploaded() const {
    Handles pictures;
    for (size_t at = 0; at < frames_.size(); at += bytes_)
      pictures.push_back(DevicePicture::Make(&frames_[at], bytes_));
    return pictures;
  }
  std::vector<float> DecideOnFrames() {
    mjp::PolicyInput input = input_;
    input.frames = frames_;
    policy_->Infer(input, output_);
    return output_.actions;
  }

  std::shared_ptr<const mjp::Checkpoint> checkpoint_;
  std::unique_ptr<mjp::Policy> policy_;
  size_t bytes_ = 0;  // of a picture, all cameras
  Bytes frames_;
  std::vector<float> state_, environment_;
  std::vector<mjp::NoiseKey> keys_;
  std::vector<std::vector<int>> tokens_;
  mjp::PolicyInput input_;
  mjp::PolicyOutput output_;
};

TEST_P(GpuPictureDecisionsTest, AreThoseOnFramesBitForBit) {
  const std::vector<float> expected = DecideOnFrames();
  for (int again = 0; again < 2; ++again) {
    const Handles pictures = Uploaded();
    mjp::PolicyInput input = input_;
    input.gpu_pictures = pictures;
    policy_->Infer(input, output_);
    EXPECT_EQ(output_.actions, expected);
    const auto invert_first = [&] {
      for (size_t i = 0; i < bytes_; ++i) frames_[i] ^= 0xff;
    };
    invert_first();
    EXPECT_NE(DecideOnFrames(), expected) << "pictures do not matter to this policy";
    invert_first();
  }
}

TEST_P(GpuPictureDecisionsTest, APictureLivesUntilTheDecisionEnds) {
  const std::vector<float> expected = DecideOnFrames();
  std::vector<std::weak_ptr<const GpuPicture>> held;
  {
    const Handles pictures = Uploaded();
    held.assign(pictures.begin(), pictures.end());
    mjp::PolicyInput input = input_;
    input.gpu_pictures = pictures;
    policy_->Launch(input, output_);
  }
  for (const auto& picture : held) EXPECT_FALSE(picture.expired());
  policy_->Wait();
  EXPECT_EQ(output_.actions, expected);
  for (const auto& picture : held) EXPECT_TRUE(picture.expired());
}

TEST_P(GpuPictureDecisionsTest, PicturesOfAnotherGpuAreRefused) {
  const Handles pictures(frames_.size() / bytes_,
                         std::make_shared<HostPicture>(Bytes(bytes_), /*device=*/1));
  mjp::PolicyInput input = input_;
  input.gpu_pictures = pictures;
  try {
    policy_->Infer(input, output_);
    FAIL();
  } catch (const mjp::Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("in the memory of GPU 1"));
  }
  DecideOnFrames();
}

INSTANTIATE_TEST_SUITE_P(Networks, GpuPictureDecisionsTest, ::testing::ValuesIn(kForms),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mjp_test
