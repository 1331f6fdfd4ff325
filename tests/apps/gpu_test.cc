// Evaluations on the GPU, as a user runs them.

#include <fstream>
#include <nlohmann/json.hpp>

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

}  // namespace
}  // namespace mjp::app
