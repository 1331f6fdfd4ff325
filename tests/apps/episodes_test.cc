// Episodes of Push-T as they have been since their hashes were stored: by the batch, the plugin,
// the original engine, under disturbances, in shards.

#include <gmock/gmock.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "base/sha256.h"
#include "kernels/cpu/isa.h"
#include "tests/support/program.h"

namespace mjp::app {
namespace {

using mjp_test::Outcome;
using mjp_test::RunMjpolicy;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kWhole[] = "--temperature 1 --action-steps 8 ";  // chunks, from all of the noise
constexpr char kNoisy[] = "--temperature 1 ";
constexpr char kAsItSays[] = "";  // as the checkpoint says

struct Case {
  const char* how;
  const char* arguments;
  const char* sha256;  // of the lines of episodes.jsonl without their timing
};

class EpisodesTest : public mjp_test::ProgramTest {
 protected:
  std::string Hash(const std::string& out) const {
    std::ifstream file(Path(out) + "/episodes.jsonl");
    std::string text;
    for (std::string line; std::getline(file, line);) {
      text += line.substr(0, line.find(",\"timing\"")) + "\n";
    }
    return mjp::Sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
};

// The same on every x86-64 processor with FMA; without it the C library's sines, which MuJoCo uses,
// differ in their last bit.
TEST_F(EpisodesTest, AreThoseOfTheStoredHashes) {
  if (mjp::ResultProcessor() != std::string("x86_64"))
    GTEST_SKIP() << "the hashes are of x86-64 processors with FMA";
  const Case cases[] = {
      {kWhole, "--episodes 4 --max-steps 40 --batch 1 --threads 1",
       "ce5592fac32a4be11d888fe6b3a1c20bc7ea5278b13ccd6b6b50fda565197fc9"},
      {kWhole, "--episodes 4 --max-steps 40 --batch 16 --threads 2",
       "ce5592fac32a4be11d888fe6b3a1c20bc7ea5278b13ccd6b6b50fda565197fc9"},
      {kWhole, "--episodes 4 --max-steps 40 --through plugin --threads 2",
       "ce5592fac32a4be11d888fe6b3a1c20bc7ea5278b13ccd6b6b50fda565197fc9"},
      {kWhole, "--episodes 4 --max-steps 40 --shard 1/3",
       "fc9b60df5a406b7334d1da4b4cee0a48479a2265ddb8b460e21318c32d3ebabd"},
      {kNoisy, "--episodes 3 --max-steps 20 --latency 2 --action-steps 3",
       "d7d559819847350c0ed3971f35a21eae101348725a9873499a19a7a8de93c7e0"},
      {kNoisy, "--episodes 3 --max-steps 20 --latency 2 --action-steps 3 --through plugin",
       "d7d559819847350c0ed3971f35a21eae101348725a9873499a19a7a8de93c7e0"},
      {kNoisy,
       "--episodes 3 --max-steps 20 --latency 4 --action-steps 1 --prefix --warm-start 1 "
       "--replan-beyond 20",
       "ce1cf5a665069e42ded2e7a6822afc7710864e00af99c3d5b9036eae92cfd64e"},
      {kNoisy,
       "--episodes 3 --max-steps 20 --latency 4 --action-steps 1 --prefix --warm-start 1 "
       "--replan-beyond 20 --through plugin",
       "ce1cf5a665069e42ded2e7a6822afc7710864e00af99c3d5b9036eae92cfd64e"},
      {kWhole, "--episodes 3 --max-steps 40 --physics chipmunk",
       "b13a51c1d707e55c9c0d5b9e6fab83a9e6918d72ea8068a0ad7fb36d63139d36"},
      {kWhole, "--episodes 3 --max-steps 50 --push 20",
       "c51b82adee4235832a34fe63d6f452ada960c76edcf3dad77b9cd84912e811d4"},
      {kWhole, "--episodes 3 --max-steps 40 --success 0.1",
       "882c3998917f3d4f8df6f90f0e6c8f202b5850c61e93b3f1d348c8a6f83f992f"},
      {kWhole,
       "--episodes 3 --max-steps 40 --picture-noise 5 --brightness 0.2 --picture-shift 3 "
       "--action-noise 4",
       "7a7ee8572ab9d92bef714bd6f365146334f37bebbbf1b11b0e728ccb9bb73ba3"},
      {kWhole, "--episodes 4 --max-steps 40 --threads 2 " MJPOLICY_SOURCE_DIR "/models/pusht.xml",
       "ce5592fac32a4be11d888fe6b3a1c20bc7ea5278b13ccd6b6b50fda565197fc9"},
      {kWhole, "--episodes 3 --max-steps 50 --push 20 " MJPOLICY_SOURCE_DIR "/models/pusht.xml",
       "c51b82adee4235832a34fe63d6f452ada960c76edcf3dad77b9cd84912e811d4"},
      {kAsItSays, "--episodes 3 --max-steps 30 --batch 2",
       "31cdc7507ffaeeaa68c724190c008751728b88e8955802d43913a4c6264c1f29"},
      {kAsItSays, "--episodes 3 --max-steps 30 --through plugin",
       "31cdc7507ffaeeaa68c724190c008751728b88e8955802d43913a4c6264c1f29"},
      {kAsItSays, "--episodes 3 --max-steps 30 --latency 2",
       "e4116475977d2a985c33af0e3f23f5a4f49db1b1a24275617d874f9f5e6f3201"},
      {kAsItSays, "--episodes 3 --max-steps 30 --latency 2 --through plugin",
       "e4116475977d2a985c33af0e3f23f5a4f49db1b1a24275617d874f9f5e6f3201"},
  };
  const std::string checkpoint = std::string(MJPOLICY_SOURCE_DIR) + "/assets/pusht_image";
  for (const Case& each : cases) {
    const Outcome outcome = RunMjpolicy(
        "evaluate --checkpoint " + checkpoint + " --sampler ddim --steps 4 --backend cpu " +
        "--overwrite --out " + Path("out") + " " + each.how + each.arguments);
    if (outcome.text.find("without the original engine") != std::string::npos) continue;
    ASSERT_EQ(outcome.code, 0) << each.arguments << ": " << outcome.text;
    EXPECT_EQ(Hash("out"), each.sha256) << each.how << each.arguments;
  }
}

// A file whose task is code is played by that code.
TEST_F(EpisodesTest, BenchTellsWhereTheirTimeGoes) {
  const std::string source = MJPOLICY_SOURCE_DIR;
  const std::string more =
      " --checkpoint " + source + "/assets/pusht_image --backend cpu --sampler ddim --steps 1";
  Outcome outcome = RunMjpolicy("bench episode " + source + "/models/pusht.xml" + more);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  for (const char* row : {"physics and judgement", "pictures", "policy", "all"})
    EXPECT_NE(outcome.text.find(std::string("episode   ") + row), std::string::npos) << row;
  // another model than the one that the code simulates
  outcome = RunMjpolicy("bench episode " + source + "/models/pusht_policy.xml" + more);
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_NE(outcome.text.find("task.code"), std::string::npos) << outcome.text;
}

// All commands draw a file as its policy's training did, or as the file says.
TEST_F(EpisodesTest, AFileIsDrawnByTheRasteriser) {
  const std::string models = MJPOLICY_SOURCE_DIR "/models/";
  Outcome outcome = RunMjpolicy("check " + models + "pusht_policy.xml --out " + Path("check"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(outcome.text.find("drawn by raster then"), std::string::npos) << outcome.text;
  // and from its starts
  double low = 0, high = 0;
  const char* row = std::strstr(outcome.text.c_str(), "state        ax");
  ASSERT_TRUE(row) << outcome.text;
  ASSERT_EQ(std::sscanf(row, "state ax m x 100 %lf %lf", &low, &high), 2) << row;
  EXPECT_TRUE(low >= 50 && high <= 450 && high - low > 200) << row;
  std::string xml = mjp_test::ReadText(models + "pusht_policy.xml");
  xml.replace(xml.find("pusht.xml"), 9, models + "pusht.xml");
  const std::string period = "<config key=\"period\"";
  xml.insert(xml.find(period), "<config key=\"renderer\" value=\"raster\"/>");
  std::ofstream(Path("raster.xml")) << xml;
  outcome = RunMjpolicy("run " + Path("raster.xml") +
                        " --checkpoint " MJPOLICY_SOURCE_DIR
                        "/assets/pusht_image --backend cpu --steps 1 --seconds 0.5");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
}

// which draws pictures of 96 x 96 alone
TEST_F(EpisodesTest, AFileWhosePicturesTheRasteriserRefusesIsCheckedToItsEnd) {
  const std::string models = MJPOLICY_SOURCE_DIR "/models/", checkpoint = Path("wide");
  std::string xml = mjp_test::ReadText(models + "pusht_policy.xml");
  xml.replace(xml.find("pusht.xml"), 9, models + "pusht.xml");
  xml.replace(xml.find("pusht_image"), 11, checkpoint);
  xml.insert(xml.find("<config key=\"period\""), "<config key=\"renderer\" value=\"raster\"/>");
  std::ofstream(Path("raster.xml")) << xml;
  const std::string check = "check " + Path("raster.xml") + " --resets 2 --out " + Path("check");
  const std::string refused = "pictures        none: renderer \"raster\"";
  Outcome outcome = RunMjpolicy(check);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr(refused), HasSubstr("give a --checkpoint"),
                                  HasSubstr("verdict         fits, with the warnings above")));

  outcome = RunMjpolicy("random-checkpoint " + checkpoint +
                        " --state 2 --action 2 --picture 128x96 --range 512");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  outcome = RunMjpolicy(check);
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr(refused),
                                  HasSubstr("does not draw the checkpoint's pictures of 128 x 96"),
                                  HasSubstr("verdict         the checkpoint does not fit")));
}

}  // namespace
}  // namespace mjp::app
