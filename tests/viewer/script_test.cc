// The program without a display: what it writes, and what its pictures show.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tasks/recording/video_container.h"
#include "tests/support/goldens/small_checkpoint.h"
#include "tests/support/program.h"
#include "tests/support/renderer.h"
#include "tests/support/temp_dir.h"
#include "viewer/layout.h"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace mjp_test {
namespace {

namespace fs = std::filesystem;
using mjp::app::Area;
using testing::HasSubstr;

std::string ModelFile(const char* name) {
  return MJPOLICY_SOURCE_DIR "/models/" + std::string(name);
}

std::string Content(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A PNG as RGB; empty where it cannot be read.
struct Shown {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;

  explicit Shown(const std::string& file) {
    int channels = 0;
    stbi_uc* pixels = stbi_load(file.c_str(), &width, &height, &channels, 3);
    if (pixels) rgb.assign(pixels, pixels + size_t{3} * width * height);
    stbi_image_free(pixels);
  }
  // Share of an area's pixels of which this is true.
  template <typename Predicate>
  double Share(const Area& area, Predicate is) const {
    int64_t count = 0, all = 0;
    for (int y = static_cast<int>(area.y); y < static_cast<int>(area.y + area.height); ++y) {
      for (int x = static_cast<int>(area.x); x < static_cast<int>(area.x + area.width); ++x) {
        ++all;
        count += is(&rgb[3 * (static_cast<size_t>(y) * width + x)]);
      }
    }
    return static_cast<double>(count) / static_cast<double>(all);
  }
};

bool IsText(const uint8_t* p) { return p[0] > 130 && p[1] > 130 && p[2] > 130; }

class ScriptTest : public testing::Test {
 protected:
  void SetUp() override {
    WriteSmallCheckpoint(folder_ / "checkpoint");
    if (const std::string why = RendererLacks(); !why.empty()) GTEST_SKIP() << why;
    const Outcome outcome = Script("", PolicyArguments());
    ASSERT_EQ(outcome.code, 0) << outcome.text;
  }
  std::string PolicyArguments() const {
    return "--sampler ddim --steps 2 --checkpoint " + folder_.path() + "/checkpoint";
  }
  // Runs lines in the folder.
  Outcome Script(const std::string& lines, const std::string& arguments) const {
    folder_.Write("script.txt", "speed 0\n" + lines);
    return mjp_test::Run("cd " + folder_.path() +
                         " && " MJPOLICY_VIEWER " --backend cpu --script script.txt " + arguments);
  }
  TempDir folder_;
};

TEST(ViewerCommandLineTest, IsThatOfTheProject) {
  const Outcome version = mjp_test::Run(MJPOLICY_VIEWER " --version");
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(version.text.starts_with("mjpolicy-viewer 0.")) << version.text;
  const Outcome misspelt = mjp_test::Run(MJPOLICY_VIEWER " --epsiodes x");
  EXPECT_EQ(misspelt.code, 1);
  EXPECT_NE(misspelt.text.find("did you mean --episodes?"), std::string::npos) << misspelt.text;
  const Outcome help = mjp_test::Run(MJPOLICY_VIEWER " --help");
  EXPECT_NE(help.text.find("--budget MS"), std::string::npos) << help.text;
}

TEST_F(ScriptTest, ASecondRecordingKeepsTheFirst) {
  const std::string both = "record\nrun 4\nstop\nexport csv\nexport json\nexport trace\n";
  ASSERT_EQ(Script(both, PolicyArguments()).code, 0);
  const std::string suffix = fs::exists(folder_ / "mjpolicy-viewer.mp4") ? ".mp4" : ".avi";
  const std::pair<std::string, std::string> kNames[] = {{"mjpolicy-viewer", suffix},
                                                        {"decisions", ".csv"},
                                                        {"decisions", ".json"},
                                                        {"decisions", ".trace.json"}};
  std::vector<std::string> first;
  for (const auto& [stem, end] : kNames) {
    ASSERT_TRUE(fs::exists(folder_ / (stem + end))) << stem << end;
    first.push_back(Content(folder_ / (stem + end)));
  }
  ASSERT_EQ(Script("seed 7\n" + both, PolicyArguments()).code, 0);
  for (size_t i = 0; i < first.size(); ++i) {
    const auto& [stem, end] = kNames[i];
    EXPECT_EQ(Content(folder_ / (stem + end)), first[i]) << stem << end << " is another";
    ASSERT_TRUE(fs::exists(folder_ / (stem + "-2" + end))) << stem << end;
    EXPECT_NE(Content(folder_ / (stem + "-2" + end)), first[i]);
  }
  EXPECT_EQ(mjp::app::VideoFault(folder_ / ("mjpolicy-viewer" + suffix)), "");
  EXPECT_EQ(mjp::app::VideoFault(folder_ / ("mjpolicy-viewer-2" + suffix)), "");
}

TEST_F(ScriptTest, AVideoThatNobodyEndsIsWholeToo) {
  ASSERT_EQ(Script("record\nrun 4\n", PolicyArguments()).code, 0);
  const std::string suffix = fs::exists(folder_ / "mjpolicy-viewer.mp4") ? ".mp4" : ".avi";
  EXPECT_EQ(mjp::app::VideoFault(folder_ / ("mjpolicy-viewer" + suffix)), "");
}

// on a disk that is full sooner or later: an error, and no file that is not whole
TEST_F(ScriptTest, WhatItWritesIsWholeOrAnError) {
  folder_.Write("script.txt",
                "speed 0\nrecord\nrun 4\nstop\nexport csv\nexport json\nexport trace\npng a.png\n");
  int failed = 0;
  for (const int kilobytes : {1, 4, 32, 128, 1024}) {
    SCOPED_TRACE(kilobytes);
    const std::string out = folder_ / std::to_string(kilobytes);
    fs::create_directory(out);
    const Outcome outcome =
        mjp_test::Run("cd " + out + " && bash -c 'ulimit -f " + std::to_string(kilobytes) +
                      "; exec " MJPOLICY_VIEWER " --backend cpu --script ../script.txt " +
                      PolicyArguments() + "'");
    EXPECT_THAT(outcome.code, testing::AnyOf(0, 2)) << outcome.text;
    failed += outcome.code != 0;
    size_t files = 0;
    for (const auto& entry : fs::directory_iterator(out)) {
      const std::string file = entry.path(), end = entry.path().extension(), text = Content(file);
      ++files;
      if (end == ".mp4" || end == ".avi") {
        EXPECT_EQ(mjp::app::VideoFault(file), "") << file;
      } else if (end == ".png") {
        EXPECT_EQ(Shown(file).width, 1280) << file;
      } else if (end == ".json") {
        EXPECT_TRUE(nlohmann::json::accept(text)) << file;
      } else {
        EXPECT_TRUE(text.ends_with("\n")) << file;
      }
    }
    EXPECT_TRUE(outcome.code != 0 || files == 5) << files;
  }
  EXPECT_GT(failed, 1);
}

TEST_F(ScriptTest, EverySizeShowsSceneAndPanels) {
  for (const auto& [width, height] :
       {std::pair(480, 300), std::pair(640, 480), std::pair(800, 600), std::pair(1280, 800),
        std::pair(1600, 300), std::pair(500, 1000)}) {
    const std::string size = std::to_string(width) + " x " + std::to_string(height);
    const Outcome outcome =
        Script("run 4\npng window.png\n", PolicyArguments() + " --width " + std::to_string(width) +
                                              " --height " + std::to_string(height));
    ASSERT_EQ(outcome.code, 0) << outcome.text;
    const Shown shown(folder_ / "window.png");
    ASSERT_EQ(shown.width, width);
    ASSERT_EQ(shown.height, height);
    const auto layout =
        mjp::app::MakeLayout(static_cast<float>(width), static_cast<float>(height), 1);
    const auto table = [](const uint8_t* p) { return p[0] == 255 && p[1] == 255 && p[2] == 255; };
    EXPECT_GT(shown.Share(layout.scene, table), 0.2) << size << ": no table in the scene";
    for (const mjp::app::Dock& dock : layout.docks) {
      const double text = shown.Share(dock.area, IsText);
      EXPECT_GT(text, 0.003) << size << ": nothing in the dock at " << dock.area.x;
      EXPECT_LT(text, 0.6) << size << ": the scene in the dock at " << dock.area.x;
    }
    EXPECT_GT(shown.Share(layout.captions, IsText), 0.003) << size;
  }
}

// Of an area, the share of pixels that are other ones in another picture.
double Changed(const Shown& a, const Shown& b, const Area& area) {
  return a.Share(area, [&](const uint8_t* p) {
    return std::memcmp(p, b.rgb.data() + (p - a.rgb.data()), 3) != 0;
  });
}

TEST_F(ScriptTest, AnotherActionsAttentionLooksOther) {
  folder_.Write("act.json", R"({"type": "act", "n_obs_steps": 1, "chunk_size": 6,
    "n_action_steps": 1, "temporal_ensemble_coeff": 0.01, "dim_model": 32, "n_heads": 2,
    "dim_feedforward": 32, "n_encoder_layers": 1, "n_decoder_layers": 2, "latent_dim": 4,
    "use_vae": false, "vision_backbone": "resnet18", "feedforward_activation": "relu",
    "pre_norm": false, "replace_final_stride_with_dilation": false,
    "input_features": {"observation.image": {"type": "VISUAL", "shape": [3, 96, 96]},
                       "observation.state": {"type": "STATE", "shape": [2]}},
    "output_features": {"action": {"type": "ACTION", "shape": [2]}},
    "normalization_mapping": {"VISUAL": "MEAN_STD", "STATE": "MIN_MAX", "ACTION": "MIN_MAX"}})");
  const Outcome made = mjp_test::Run("cd " + folder_.path() +
                                     " && " MJPOLICY_BINARY_DIR
                                     "/bin/mjpolicy random-checkpoint act --config act.json "
                                     "--range 512");
  ASSERT_EQ(made.code, 0) << made.text;
  const Outcome outcome = Script(
      "run 2\npng none.png\nshow attention\npng all.png\nquery 0\npng first.png\n"
      "query 5\npng last.png\nshow pictures\npng large.png\nhide attention\nhide pictures\n"
      "png again.png\n",
      "--checkpoint act");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const Shown none(folder_ / "none.png"), all(folder_ / "all.png"), first(folder_ / "first.png"),
      last(folder_ / "last.png"), large(folder_ / "large.png"), again(folder_ / "again.png");
  const Area picture = {14, 396, 108, 108}, scene = mjp::app::MakeLayout(1280, 800, 1).scene;
  EXPECT_GT(Changed(none, all, picture), 0.9);
  EXPECT_GT(Changed(first, last, picture), 0.3);
  EXPECT_GT(Changed(first, all, picture), 0.3);
  EXPECT_GT(Changed(last, large, scene), 0.5);
  EXPECT_EQ(Changed(last, large, picture), 0);
  EXPECT_EQ(Changed(none, again, picture), 0);
}

TEST_F(ScriptTest, WhatIsSmallerThanTheSmallestIsRefused) {
  for (const char* size : {"--width 479", "--height 299", "--width 600 --scale 2"}) {
    const Outcome outcome = Script("", size);
    EXPECT_EQ(outcome.code, 1) << size;
    EXPECT_THAT(outcome.text, testing::ContainsRegex("480|300|960")) << size;
  }
}

TEST_F(ScriptTest, AModelWithoutVisualsSaysSo) {
  const std::string bare = PolicyArguments() + " --model " + ModelFile("pusht_physics.xml");
  const Outcome outcome =
      Script("run 4\nhide chunk\npng bare.png\nshow hidden\npng hidden.png\n", bare);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const Shown said(folder_ / "bare.png"), hidden(folder_ / "hidden.png");
  const Area scene = mjp::app::MakeLayout(1280, 800, 1).scene;
  const auto warning = [](const uint8_t* p) { return p[0] > 200 && p[1] > 140 && p[2] < 130; };
  const Area head = {scene.x, scene.y, scene.width, 60};
  EXPECT_GT(said.Share(head, warning), 0.01) << "no sentence";
  EXPECT_LT(hidden.Share(head, warning), 0.001) << "the sentence stays";
  const auto body = [](const uint8_t* p) { return p[0] > 90 && std::abs(p[0] - p[2]) < 12; };
  EXPECT_GT(hidden.Share(scene, body), said.Share(scene, body) + 0.02) << "nothing to see";
}

TEST_F(ScriptTest, TheCommandThatIsOfferedMakesTheCheckpoint) {
  const std::string reach = "--model " + ModelFile("reach_policy.xml");
  const std::string lines = "run 4\npng reach.png\n";
  const Outcome refused = Script(lines, reach);
  EXPECT_EQ(refused.code, 2);
  const std::string command = "mjpolicy random-checkpoint reach_random --environment 3 --range 1.5";
  ASSERT_THAT(refused.text, HasSubstr(command + "\n")) << refused.text;
  EXPECT_EQ(refused.text.find("there is no"), refused.text.rfind("there is no")) << "said twice";
  const Outcome made = mjp_test::Run("cd " + folder_.path() +
                                     " && PATH=" MJPOLICY_BINARY_DIR "/bin:$PATH " + command);
  ASSERT_EQ(made.code, 0) << made.text;
  const Outcome opened = Script(lines, reach);
  ASSERT_EQ(opened.code, 0) << opened.text;
  // and its light leaves the floor its colour
  const auto burnt = [](const uint8_t* p) { return p[0] >= 250 && p[1] >= 250 && p[2] >= 250; };
  const Shown shown(folder_ / "reach.png");
  EXPECT_LT(shown.Share(mjp::app::MakeLayout(1280, 800, 1).scene, burnt), 0.001);
}

}  // namespace
}  // namespace mjp_test
