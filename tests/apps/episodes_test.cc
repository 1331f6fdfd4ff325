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
using mjp_test::Pusht;

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

// Configuration means the instruction set, so the hashes are of one.
TEST_F(EpisodesTest, AreThoseOfTheStoredHashes) {
  if (mjp::ActiveIsa() == mjp::Isa::kBaseline) GTEST_SKIP() << "the hashes are of AVX2";
  const Case cases[] = {
      {"--episodes 4 --max-steps 40 --batch 1 --threads 1",
       "7eadf2efa8efad45035d7bf8bc913238a75f53f8bd381888c22b598d5702ed3b"},
      {"--episodes 4 --max-steps 40 --batch 16 --threads 2",
       "7eadf2efa8efad45035d7bf8bc913238a75f53f8bd381888c22b598d5702ed3b"},
      {"--episodes 4 --max-steps 40 --through plugin --threads 2",
       "7eadf2efa8efad45035d7bf8bc913238a75f53f8bd381888c22b598d5702ed3b"},
      {"--episodes 4 --max-steps 40 --shard 1/3",
       "4b9356e9560353d58ad530736732fb5125edeee1afd6851f164a384adf04a50c"},
      {"--episodes 3 --max-steps 20 --latency 2 --action-steps 3",
       "de152017a1858d2d1c88a6b04cd23d0ef0e30827bd9b6dfcb21f64bba6179b04"},
      {"--episodes 3 --max-steps 20 --latency 2 --action-steps 3 --through plugin",
       "de152017a1858d2d1c88a6b04cd23d0ef0e30827bd9b6dfcb21f64bba6179b04"},
      {"--episodes 3 --max-steps 40 --physics chipmunk",
       "23e0ee6e6f59f6b2dc20f40de5db1d7518bf721de40314fbbf19b241ee5ded4e"},
      {"--episodes 3 --max-steps 50 --push 20",
       "589a9f647d7212175fc320fd3c319e88979421b668a31c8347dfc3277fba0e1d"},
      {"--episodes 3 --max-steps 40 --success 0.1",
       "776620345a51c95797e0d9b05ae147c891f5d3252afe619f25772cf68f5cdd26"},
      {"--episodes 3 --max-steps 40 --picture-noise 5 --brightness 0.2 --picture-shift 3 "
       "--action-noise 4",
       "cab56901d91520b7ffbd9304828cbeacde4837c6fb93d760774d63946380f809"},
      {"--episodes 4 --max-steps 40 --threads 2 " MJPOLICY_SOURCE_DIR "/models/pusht.xml",
       "7eadf2efa8efad45035d7bf8bc913238a75f53f8bd381888c22b598d5702ed3b"},
      {"--episodes 3 --max-steps 50 --push 20 " MJPOLICY_SOURCE_DIR "/models/pusht.xml",
       "589a9f647d7212175fc320fd3c319e88979421b668a31c8347dfc3277fba0e1d"},
  };
  const std::string checkpoint = std::string(MJPOLICY_SOURCE_DIR) + "/assets/pusht_image";
  for (const Case& each : cases) {
    const Outcome outcome =
        Pusht("evaluate --checkpoint " + checkpoint + " --sampler ddim --steps 4 --backend cpu " +
                  "--overwrite --out " + Path("out") + " " + each.arguments,
              "MJPOLICY_ISA=avx2");
    if (outcome.text.find("without the original engine") != std::string::npos) continue;
    ASSERT_EQ(outcome.code, 0) << each.arguments << ": " << outcome.text;
    EXPECT_EQ(Hash("out"), each.sha256) << each.arguments;
  }
}

}  // namespace
}  // namespace mjp::app
