// Evaluations on the GPU, as a user runs them.

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "policy/cuda/cuda_policy.h"
#include "tests/support/program.h"

namespace mjp::app {
namespace {

using mjp_test::Outcome;
using mjp_test::RunMjpolicy;

class GpuEvaluationTest : public mjp_test::ProgramTest {
 protected:
  void SetUp() override {
    std::string why;
    if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
    ProgramTest::SetUp();
  }
  // What an evaluation of 64 episodes on the GPU wrote.
  std::string Run(const std::string& out, const std::string& more,
                  const std::string& before = "") const {
    const Outcome outcome = RunMjpolicy(
        "evaluate --checkpoint " + checkpoint_ +
            " --sampler ddim --steps 2 --max-steps 16 --backend cuda --episodes 64 --out " +
            Path(out) + " " + more,
        before);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    return outcome.code == 0 ? Results(out) : outcome.text;
  }
  int BatchOf(const std::string& out) const {
    std::ifstream file(Path(out) + "/run.json");
    return nlohmann::json::parse(file).at("batch").get<int>();
  }
};

TEST_F(GpuEvaluationTest, AgainIsTheSameBits) {
  const std::string once = Run("a", "--batch 16 --threads 1");
  EXPECT_EQ(Run("b", "--batch 16 --threads 3"), once);
}

TEST_F(GpuEvaluationTest, MergedShardsEqualAnUnsharedEvaluation) {
  const std::string whole = Run("whole", "--batch 16");
  Run("s0", "--batch 16 --shard 0/2");
  Run("s1", "--batch 16 --shard 1/2");
  const Outcome outcome =
      RunMjpolicy("merge " + Path("s0") + " " + Path("s1") + " --out " + Path("merged"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(Results("merged"), whole);
}

TEST_F(GpuEvaluationTest, ShortMemoryHalvesTheBatch) {
  const std::string limit = "MJPOLICY_GPU_MIB=12";
  Run("short", "--batch 64", limit);
  const int batch = BatchOf("short");
  EXPECT_LT(batch, 64);
  EXPECT_EQ(Run("asked", "--batch " + std::to_string(batch)), Results("short"));
  const Outcome none = RunMjpolicy(
      "evaluate --checkpoint " + checkpoint_ + " --backend cuda --episodes 1 --out " + Path("none"),
      "MJPOLICY_GPU_MIB=0");
  EXPECT_EQ(none.code, 3) << none.text;
}

#ifdef MJPOLICY_TEST_SEAMS
// Pictures by MuJoCo's renderer that stay on the GPU, and by way of the host; the plugin, a batch.
TEST_F(GpuEvaluationTest, PicturesLeftOnTheGpuGiveTheSameEpisodes) {
  const std::string doctor = RunMjpolicy("doctor").text;
  const size_t line = std::min(doctor.find(" EGL "), doctor.size());
  const std::string way = doctor.substr(line, doctor.find('\n', line) - line);
  if (way.find("CUDA takes its pictures where they are") == way.npos) GTEST_SKIP() << way;
  ASSERT_EQ(RunMjpolicy("random-checkpoint " + Path("cart") +
                        " --state 2 --action 1 --picture 101x75 --range 4")
                .code,
            0);
  const auto run = [&](const std::string& out, const std::string& more, const std::string& before) {
    const Outcome outcome = RunMjpolicy(
        "evaluate " MJPOLICY_SOURCE_DIR "/models/cart_pole.xml --checkpoint " + Path("cart") +
            " --sampler ddim --steps 2 --backend cuda --episodes 5 "
            "--max-steps 20 --action-steps 3 --out " +
            Path(out) + " " + more,
        before);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    return mjp_test::ReadText(Path(out) + "/episodes.jsonl");
  };
  const auto states = [](const std::string& episodes) {  // without times
    std::istringstream lines(episodes);
    std::string text;
    for (std::string each; std::getline(lines, each);)
      text += each.substr(0, each.find(",\"timing\"")) + "\n";
    return text;
  };
  const std::string host = "MJPOLICY_TEST_HOST_PICTURES=1";
  for (const std::string through : {"--through batch --batch 2", "--through plugin"}) {
    const std::string name = through.substr(10, 5);
    const std::string on_gpu = states(run(name + "_gpu", through, ""));
    EXPECT_NE(on_gpu.find("hash"), on_gpu.npos) << on_gpu;
    EXPECT_EQ(states(run(name + "_host", through, host)), on_gpu) << through;
  }
}
#endif

}  // namespace
}  // namespace mjp::app
