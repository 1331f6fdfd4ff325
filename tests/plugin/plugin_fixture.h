#ifndef TESTS_PLUGIN_PLUGIN_FIXTURE_H_
#define TESTS_PLUGIN_PLUGIN_FIXTURE_H_

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "plugin/pictures/picture_source.h"
#include "plugin/register.h"
#include "tests/support/fake_policy.h"
#include "tests/support/gpu/host_picture.h"
#include "tests/support/mujoco_fixture.h"

namespace mjp_test {

// A picture that is the first position of the model, as bytes. Counts what was drawn.
class ProbeSource : public mjp::PictureSource {
 public:
  static constexpr int kSize = 4;  // pixels, both ways
  static inline std::atomic<int> drawn = 0;

  explicit ProbeSource(const mjp::PictureRequest& request) {
    if (request.width != kSize) throw mjp::BadInput("the probe draws 4x4 only");
  }
  void Render(const mjModel*, mjData* data, std::span<uint8_t> rgb) override {
    ++drawn;
    std::ranges::fill(rgb, 0);
    std::memcpy(rgb.data(), data->qpos, sizeof(mjtNum));
  }
  // Where `offers_scenes`, the same picture as a scene.
  static inline bool offers_scenes = false;
  bool ReadScene(const mjData* data, std::span<std::byte> scene) const override {
    if (!offers_scenes) return false;
    std::memcpy(scene.data(), data->qpos, sizeof(mjtNum));
    return true;
  }
  // Where `offers_gpu`, the same picture where a GPU would have it.
  static inline bool offers_gpu = false;
  std::shared_ptr<mjp::GpuPicture> RenderOnGpu(const mjModel* model, mjData* data) override {
    if (!offers_gpu) return nullptr;
    std::vector<uint8_t> rgb(size_t{3} * kSize * kSize);
    Render(model, data, rgb);
    return std::make_shared<HostPicture>(rgb);
  }
  static inline mjp::PictureLook look = {"raster", kSize, kSize};
  std::vector<mjp::PictureLook> Looks() const override { return {look}; }
  static double Decode(const uint8_t* picture) {
    double position;
    std::memcpy(&position, picture, sizeof(position));
    return position;
  }
};

// Draws a scene, the position's bytes, as ProbeSource does.
class ProbeDrawer : public mjp::SceneDrawer {
 public:
  size_t scene_bytes() const override { return sizeof(mjtNum); }
  int width() const override { return ProbeSource::kSize; }
  int height() const override { return ProbeSource::kSize; }
  void DrawOnCpu(std::span<const std::byte> scenes, std::span<uint8_t> rgb) const override {
    std::ranges::fill(rgb, 0);
    for (size_t i = 0; i < scenes.size() / sizeof(mjtNum); ++i) {
      std::memcpy(rgb.data() + i * picture_bytes(), scenes.data() + i * sizeof(mjtNum),
                  sizeof(mjtNum));
    }
  }
  std::unique_ptr<mjp::GpuSceneDrawer> MakeGpuDrawer() const override { return nullptr; }
};

// Models with the plugin in them and a fake policy behind it.
class PluginTest : public MujocoTest {
 protected:
  static void SetUpTestSuite() {
    static const bool registered = [] {
      static const ProbeDrawer drawer;
      mjp::RegisterPictureSource(
          "probe",
          [](const mjModel*, const mjp::PictureRequest& request) {
            return std::make_unique<ProbeSource>(request);
          },
          &drawer);
      return mjp::RegisterPlugin();
    }();
    ASSERT_TRUE(registered);
    std::filesystem::create_directories(Folder());
  }
  PluginTest() { policy_.Install(); }

  // A 3-axis robot with a mocap body; `config` are <config> elements of the plugin's instance.
  static std::string Xml(const std::string& config, const std::string& options = "",
                         const std::string& instances = "") {
    return R"(<mujoco><option timestep="0.01" )" + options + R"(/>
      <extension><plugin plugin="mjpolicy.policy"><instance name="policy">)" +
           config + "</instance>" + instances + R"(</plugin></extension>
      <worldbody>
        <camera name="top" pos="0 0 3"/>
        <body name="stand" mocap="true"><site name="mark" pos="1 2 3"/></body>
        <body name="robot">
          <joint name="ax" type="slide" axis="1 0 0" damping="1"/>
          <joint name="ay" type="slide" axis="0 1 0" damping="1"/>
          <geom size="0.1" mass="1"/>
          <body name="arm" pos="0 0 1"><joint name="hinge" axis="0 1 0"/>
            <joint name="both" type="slide"/><site name="both"/>
            <geom size="0.1" mass="1"/></body>
        </body>
        <body name="ball"><freejoint name="free"/><geom size="0.1" pos="3 0 0"/></body>
      </worldbody>
      <actuator>
        <position name="ax" joint="ax" kp="10"/>
        <position name="ay" joint="ay" kp="10"/>
        <motor name="hinge" joint="hinge"/>
      </actuator>
      <sensor>
        <framepos name="mark" objtype="site" objname="mark"/>
        <jointvel name="speed" joint="ax"/>
      </sensor></mujoco>)";
  }
  static std::string Set(const std::string& key, const std::string& value) {
    return "<config key=\"" + key + "\" value=\"" + value + "\"/>";
  }
  // An empty directory: the fake policies need no files.
  static std::string Folder() {
    return ::testing::TempDir() + "plugin_test_" + std::to_string(getpid());
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(Folder()); }

  // Attributes that fit the fake policy: two joints in, two actuators out.
  static std::string Basic() {
    return Set("checkpoint", Folder()) + Set("state", "ax ay") + Set("actuators", "ax ay");
  }
  static std::string BasicWithCamera() { return Basic() + Set("camera", "top"); }

  void AddCamera() {
    policy_.config.cameras.push_back(
        {"observation.image", 3, ProbeSource::kSize, ProbeSource::kSize});
  }

  FakePolicyLog policy_;
};

}  // namespace mjp_test

#endif  // TESTS_PLUGIN_PLUGIN_FIXTURE_H_
