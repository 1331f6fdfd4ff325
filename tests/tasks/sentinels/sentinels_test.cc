// What MuJoCo makes of this project's models, against what is stored for its version. Another
// version, or another build of this one, cannot change a task unnoticed.
//
// MJPOLICY_WRITE_SENTINELS=FOLDER writes the file of the present version, to be compared by eye.

#include <gmock/gmock.h>

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "kernels/cpu/isa.h"
#include "kernels/shared/philox.h"
#include "tasks/mjcf/task_file.h"
#include "tasks/mjcf/world.h"
#include "tasks/results/episode.h"
#include "tests/support/mujoco_fixture.h"
#include "tests/support/renderer.h"

namespace mjp::app {
namespace {

constexpr int kEpisodes = 3, kControls = 30;
constexpr int kWidth = 160, kHeight = 120, kTile = 20;  // pixels
constexpr double kTable = 5.12;  // Push-T's table, whose two controls have no range of their own
constexpr double kLevels = 1;    // of 255: a tile's mean, as drivers round their pixels differently

// A model of this project: how it is started, and what looks at it.
struct Watched {
  const char* file;
  bool task;     // starts as its `task.start` says
  double reach;  // how far from its start a control may go, as a part of its range
  std::vector<std::string> cameras;
};

const std::vector<Watched>& All() {
  static const std::vector<Watched> all = {{"pusht.xml", false, 1, {"top"}},
                                           {"cart_pole.xml", true, 1, {"front"}},
                                           {"aloha_transfer_cube.xml", true, 0.05, {"top"}},
                                           {"aloha_insertion.xml", true, 0.05, {"top"}},
                                           {"reach_policy.xml", false, 1, {"front"}}};
  return all;
}

std::string PathOf(const Watched& watched) {
  return std::string(MJPOLICY_SOURCE_DIR) + "/models/" + watched.file;
}

std::string Hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, value);
  return text;
}

// A model in its start, of a task file or of the model itself.
class World {
 public:
  World(const Watched& watched, uint32_t seed) {
    if (watched.task) {
      file_ = std::make_unique<TaskFile>(PathOf(watched));
      world_ = std::make_unique<TaskWorld>(*file_);
      world_->Start(seed);
    } else {
      model_ = CompileWithoutPolicy(PathOf(watched));
      data_.reset(mj_makeData(model_.get()));
    }
  }
  mjModel* model() { return world_ ? world_->model() : model_.get(); }
  mjData* data() { return world_ ? world_->data() : data_.get(); }

 private:
  std::unique_ptr<TaskFile> file_;
  std::unique_ptr<TaskWorld> world_;
  ModelPtr model_;
  mjp_test::DataPtr data_;
};

// Each control goes where chance says, within its range, for a tenth of a second at a time.
void Drive(const mjModel* model, mjData* data, double reach, uint32_t seed, StateHash& hash) {
  const std::vector<mjtNum> start(data->ctrl, data->ctrl + model->nu);
  const int substeps = static_cast<int>(std::lround(0.1 / model->opt.timestep));
  for (uint32_t t = 0; t < kControls; ++t) {
    for (int i = 0; i < model->nu; ++i) {
      const mjp::PhiloxWords bits = mjp::Philox({{static_cast<uint32_t>(i), t, seed, 0}}, 17, 0);
      const double share = bits.w[0] * 0x1p-31 - 1;
      const mjtNum* range = model->actuator_ctrlrange + 2 * static_cast<ptrdiff_t>(i);
      const mjtNum from = start[static_cast<size_t>(i)];
      data->ctrl[i] =
          model->actuator_ctrllimited[i]
              ? mju_clip(from + reach * share * (range[1] - range[0]), range[0], range[1])
              : (share + 1) / 2 * kTable;
    }
    for (int i = 0; i < substeps; ++i) mj_step(model, data);
    for (int i = 0; i < model->nq; ++i) hash.Add(data->qpos[i]);
    for (int i = 0; i < model->nv; ++i) hash.Add(data->qvel[i]);
  }
  mj_forward(model, data);
  for (int i = 0; i < model->nsensordata; ++i) hash.Add(data->sensordata[i]);
}

// What is to be drawn, before any driver draws it.
uint64_t SceneHash(const mjModel* model, mjData* data) {
  mjvScene scene;
  mjv_defaultScene(&scene);
  mjv_makeScene(model, &scene, 2000);
  mjvOption option;
  mjv_defaultOption(&option);
  mjvCamera camera;
  mjv_defaultCamera(&camera);
  mjv_updateScene(model, data, &option, nullptr, &camera, mjCAT_ALL, &scene);
  StateHash hash;
  for (int i = 0; i < scene.ngeom; ++i) {
    const mjvGeom& geom = scene.geoms[i];
    hash.Add(geom.type);
    for (const float x : geom.pos) hash.Add(x);
    for (const float x : geom.mat) hash.Add(x);
    for (const float x : geom.size) hash.Add(x);
    for (const float x : geom.rgba) hash.Add(x);
  }
  for (int i = 0; i < scene.nlight; ++i) {
    for (const float x : scene.lights[i].pos) hash.Add(x);
    for (const float x : scene.lights[i].diffuse) hash.Add(x);
  }
  mjv_freeScene(&scene);
  return hash.value();
}

// Mean red, green and blue of each tile, in levels.
std::vector<double> Tiles(const std::vector<uint8_t>& pixels) {
  constexpr int kAcross = kWidth / kTile;
  std::vector<double> tiles(static_cast<size_t>(3) * kAcross * (kHeight / kTile));
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t x = i / 3 % kWidth / kTile, y = i / 3 / kWidth / kTile;
    tiles[3 * (y * kAcross + x) + i % 3] += pixels[i] / double{kTile * kTile};
  }
  return tiles;
}

mjp::Json Measure(const Watched& watched, uint32_t episodes, const mjModel* changed = nullptr) {
  mjp::Json states = mjp::Json::array();
  uint64_t scene = 0;
  for (uint32_t seed = 0; seed < episodes; ++seed) {
    World world(watched, seed);
    if (changed) world.model()->opt = changed->opt;
    StateHash hash;
    Drive(world.model(), world.data(), watched.reach, seed, hash);
    states.push_back(Hex(hash.value()));
    scene = SceneHash(world.model(), world.data());
  }
  return {{"states", states}, {"scene", Hex(scene)}};
}

std::string Stored() {
  return std::string(MJPOLICY_SOURCE_DIR) + "/tests/tasks/sentinels/mujoco_" + mj_versionString() +
         ".json";
}

class SentinelsTest : public mjp_test::MujocoTest {
 protected:
  // What is stored for this version; a failure that says what to do where there is nothing.
  static mjp::Json Expected() {
    if (!std::filesystem::exists(Stored())) {
      ADD_FAILURE() << "MuJoCo " << mj_versionString() << " has no sentinels. Write them with "
                    << "MJPOLICY_WRITE_SENTINELS=FOLDER, say in docs/NUMERICS.md which tasks "
                    << "changed, and store them as " << Stored();
      return {};
    }
    return mjp::ReadJson(Stored());
  }
};

TEST_F(SentinelsTest, StatesAndScenesAreThoseOfThisVersion) {
  const char* folder = std::getenv("MJPOLICY_WRITE_SENTINELS");
  if (folder == nullptr && std::string(mjp::ResultProcessor()) != "x86_64") {
    GTEST_SKIP() << "stored for x86_64 with FMA; this is " << mjp::ResultProcessor();
  }
  mjp::Json now;
  for (const Watched& watched : All()) now[watched.file] = Measure(watched, kEpisodes);
  if (folder != nullptr) {
    std::ofstream(std::string(folder) + "/states.json") << now.dump(1) << "\n";
    GTEST_SKIP() << "written, not compared";
  }
  const mjp::Json expected = Expected();
  ASSERT_FALSE(expected.empty());
  for (const Watched& watched : All()) {
    EXPECT_EQ(now[watched.file]["states"], expected.at(watched.file).at("states"))
        << "MuJoCo " << mj_versionString() << " moves " << watched.file << " otherwise";
    EXPECT_EQ(now[watched.file]["scene"], expected.at(watched.file).at("scene"))
        << "MuJoCo " << mj_versionString() << " makes another scene of " << watched.file;
  }
}

TEST_F(SentinelsTest, SeeTheLastDigitOfGravity) {
  for (const Watched& watched : All()) {
    World world(watched, 0);
    mjModel* model = world.model();
    mjtNum& gravity = model->opt.gravity[2];
    if (gravity == 0) continue;  // Push-T's table is seen from above
    gravity = std::nextafter(gravity, 0);
    EXPECT_NE(Measure(watched, 1, model)["states"], Measure(watched, 1)["states"]) << watched.file;
  }
}

TEST_F(SentinelsTest, PicturesAreThoseOfThisVersion) {
  if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
  const char* folder = std::getenv("MJPOLICY_WRITE_SENTINELS");
  const mjp::Json expected = folder == nullptr ? Expected() : mjp::Json();
  mjp::Json now;
  for (const Watched& watched : All()) {
    World world(watched, 0);
    mj_forward(world.model(), world.data());
    const auto source = mjp::MakeMujocoPictureSource(
        world.model(), {.cameras = watched.cameras, .width = kWidth, .height = kHeight});
    std::vector<uint8_t> pixels(size_t{3} * kWidth * kHeight);
    source->Render(world.model(), world.data(), pixels);
    const std::vector<double> tiles = Tiles(pixels);
    for (const double level : tiles) now[watched.file].push_back(std::round(level * 10) / 10);
    if (folder != nullptr) continue;
    const auto stored = expected.at(watched.file).at("tiles").get<std::vector<double>>();
    EXPECT_THAT(tiles, testing::Pointwise(testing::DoubleNear(kLevels), stored))
        << "MuJoCo " << mj_versionString() << " draws " << watched.file << " otherwise";
  }
  if (folder == nullptr) return;
  std::ofstream(std::string(folder) + "/tiles.json") << now.dump() << "\n";
  GTEST_SKIP() << "written, not compared";
}

}  // namespace
}  // namespace mjp::app
