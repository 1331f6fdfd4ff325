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
       "3caebaa6e89431c3c59b6cc7da8baaa9a51e6591000d8e6c0000fd4f551ea386"},
      {"--episodes 4 --max-steps 40 --batch 16 --threads 2",
       "3caebaa6e89431c3c59b6cc7da8baaa9a51e6591000d8e6c0000fd4f551ea386"},
      {"--episodes 4 --max-steps 40 --through plugin --threads 2",
       "3caebaa6e89431c3c59b6cc7da8baaa9a51e6591000d8e6c0000fd4f551ea386"},
      {"--episodes 4 --max-steps 40 --shard 1/3",
       "36dce568b268fa9e988e1f40cae3623efb5cb023e6fcb0be2e8b98a08a23a7f2"},
      {"--episodes 3 --max-steps 20 --latency 2 --action-steps 3",
       "2fc542998eaed2ee7e3b88bdcc442f9a4045646899a6e36d8ed746ce1e21f2d9"},
      {"--episodes 3 --max-steps 20 --latency 2 --action-steps 3 --through plugin",
       "2fc542998eaed2ee7e3b88bdcc442f9a4045646899a6e36d8ed746ce1e21f2d9"},
      {"--episodes 3 --max-steps 40 --physics chipmunk",
       "a7a833f84496e38dae3d18e2677db4f4b4128233534eafa3b9ea871a6e5b9a69"},
      {"--episodes 3 --max-steps 50 --push 20",
       "e482acec65fc222ab760b671ba2a814091817d12e426875e02c9d10205d31ba6"},
      {"--episodes 3 --max-steps 40 --success 0.1",
       "e6c21e9550b5be62a1b0dab4f76e9d9a106189d4a1c3b5de6bed3f227a6880bf"},
      {"--episodes 3 --max-steps 40 --picture-noise 5 --brightness 0.2 --picture-shift 3 "
       "--action-noise 4",
       "378f5cb2698af01ea2b4417b1e116d73f49f00e3a5d0f72784eccf7299430b33"},
      {"--episodes 4 --max-steps 40 --threads 2 " MJPOLICY_SOURCE_DIR "/models/pusht.xml",
       "3caebaa6e89431c3c59b6cc7da8baaa9a51e6591000d8e6c0000fd4f551ea386"},
      {"--episodes 3 --max-steps 50 --push 20 " MJPOLICY_SOURCE_DIR "/models/pusht.xml",
       "e482acec65fc222ab760b671ba2a814091817d12e426875e02c9d10205d31ba6"},
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

}  // namespace
}  // namespace mjp::app
