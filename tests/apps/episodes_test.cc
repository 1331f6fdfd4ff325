// Episodes of Push-T as they have been since their hashes were stored: by the batch, the plugin,
// the original engine, under disturbances, in shards.

#include <fstream>
#include <string>

#include "base/sha256.h"
#include "kernels/cpu/isa.h"
#include "tests/support/program.h"

namespace mjp::app {
namespace {

using mjp_test::Outcome;
using mjp_test::RunMjpolicy;

struct Case {
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
      {"--episodes 4 --max-steps 40 --batch 1 --threads 1",
       "2207eb061121ec47ff03776b51482fb093030af03a412e4bf96f3a24d4d9bfb0"},
      {"--episodes 4 --max-steps 40 --batch 16 --threads 2",
       "2207eb061121ec47ff03776b51482fb093030af03a412e4bf96f3a24d4d9bfb0"},
      {"--episodes 4 --max-steps 40 --through plugin --threads 2",
       "2207eb061121ec47ff03776b51482fb093030af03a412e4bf96f3a24d4d9bfb0"},
      {"--episodes 4 --max-steps 40 --shard 1/3",
       "2a8cd023bde78e9fcc721fc974ac9e8fce3c0bbf45ffbcd848b6a629a15b1197"},
      {"--episodes 3 --max-steps 20 --latency 2 --action-steps 3",
       "02e337998d51c9f5892d33d9be8faae50fd4a00881ae721d1aa2b91283e4d88a"},
      {"--episodes 3 --max-steps 20 --latency 2 --action-steps 3 --through plugin",
       "02e337998d51c9f5892d33d9be8faae50fd4a00881ae721d1aa2b91283e4d88a"},
      {"--episodes 3 --max-steps 40 --physics chipmunk",
       "194cd26d0b631686896a7606de3f1be0ee70f1e942b8541e2e8453da1656f320"},
      {"--episodes 3 --max-steps 50 --push 20",
       "0f9efa6ae0d601c21c3db228e3bb98af9fdd79a54b7a7014b778fce8c4282dd1"},
      {"--episodes 3 --max-steps 40 --success 0.1",
       "342e8719fc2b5f43acaf22c81daee16d00da384e0b7496adcbcf7dd0871eac6b"},
      {"--episodes 3 --max-steps 40 --picture-noise 5 --brightness 0.2 --picture-shift 3 "
       "--action-noise 4",
       "a6b2a9429764ec471b380e49b8a82d6f60ce6539eb09bca8d3ff975112d607e9"},
      {"--episodes 4 --max-steps 40 --threads 2 " MJPOLICY_SOURCE_DIR "/models/pusht.xml",
       "2207eb061121ec47ff03776b51482fb093030af03a412e4bf96f3a24d4d9bfb0"},
      {"--episodes 3 --max-steps 50 --push 20 " MJPOLICY_SOURCE_DIR "/models/pusht.xml",
       "0f9efa6ae0d601c21c3db228e3bb98af9fdd79a54b7a7014b778fce8c4282dd1"},
  };
  const std::string checkpoint = std::string(MJPOLICY_SOURCE_DIR) + "/assets/pusht_image";
  for (const Case& each : cases) {
    const Outcome outcome = RunMjpolicy("evaluate --checkpoint " + checkpoint +
                                        " --sampler ddim --steps 4 --backend cpu " +
                                        "--overwrite --out " + Path("out") + " " + each.arguments);
    if (outcome.text.find("without the original engine") != std::string::npos) continue;
    ASSERT_EQ(outcome.code, 0) << each.arguments << ": " << outcome.text;
    EXPECT_EQ(Hash("out"), each.sha256) << each.arguments;
  }
}

}  // namespace
}  // namespace mjp::app
