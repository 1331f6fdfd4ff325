#include <gtest/gtest.h>

#include "tests/policy/dit/dit_goldens.h"
#include "tests/policy/dit/small_dit.h"
#include "tests/support/check_close.h"
#include "tests/support/program.h"

// multi_task_dit through the program.

namespace {

using mjp_test::CheckClose;
using mjp_test::DitGolden;
using mjp_test::Outcome;
using mjp_test::RunMjpolicy;
using mjp_test::TempDir;

TEST(InferTest, WritesTheGoldensValuesUnderTheirNames) {
  SHARED_OR_SKIP(policy, "goldens_act_dit/p_dit_tiny");
  const TempDir dir;
  const auto infer = [&](const std::string& name, const std::string& options) {
    const Outcome outcome =
        RunMjpolicy("infer --backend cpu --checkpoint " + policy + " --input " +
                    DitGolden("dit_tiny.safetensors") + " --out " + (dir / name) + options);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    return mjp::SafetensorsFile::Read(dir / name);
  };
  const mjp::SafetensorsFile by_ids = infer("ids", "");
  const mjp::SafetensorsFile golden = mjp_test::DitTensors("dit_tiny_euler10");
  for (const char* name : {"out/t", "out/pass_out", "out/x_steps", "out/sample", "out/action_full",
                           "out/action_chunk"}) {
    const std::string stored = golden.Find(std::string(name) + ".f64") != nullptr
                                   ? std::string(name) + ".f64"
                                   : std::string(name);
    EXPECT_EQ(by_ids.Find(name)->shape, golden.Find(stored)->shape) << name;
    EXPECT_TRUE(
        CheckClose(by_ids.Floats(name).data, golden.Floats(stored).data, mjp_test::kActionLimit))
        << name;
  }
  EXPECT_TRUE(CheckClose(by_ids.Floats("out/cond").data,
                         mjp_test::DitTensors("dit_tiny").Floats("out/cond.f64").data,
                         mjp_test::kClipLimit));
  const std::string task = mjp_test::DitCase("dit_tiny")["task"];
  EXPECT_EQ(infer("text", " --instruction '" + task + "'").Floats("out/action_full").data,
            by_ids.Floats("out/action_full").data);
  EXPECT_NE(infer("other", " --instruction 'stop'").Floats("out/action_full").data,
            by_ids.Floats("out/action_full").data);
}

TEST(EvaluateTest, ObeysTheInstruction) {
  mjp::DitConfig config = mjp_test::SmallDitConfig(true);
  config.cameras = {{"observation.image", 3, 96, 96}};
  config.state_dim = 2;
  const TempDir dir;
  const std::string policy = mjp_test::WriteSmallDit(dir, "policy", config);
  const auto evaluate = [&](const std::string& out, const std::string& options) {
    return RunMjpolicy(
        "evaluate --backend cpu --steps 2 --episodes 1 --max-steps 6 --threads 1 "
        "--checkpoint " +
        policy + " --out " + (dir / out) + options);
  };
  const Outcome silent = evaluate("silent", "");
  EXPECT_EQ(silent.code, 2) << silent.text;
  EXPECT_NE(silent.text.find("say it with --instruction"), std::string::npos) << silent.text;
  const Outcome told = evaluate("told", " --instruction 'ab c'");
  EXPECT_EQ(told.code, 0) << told.text;
  EXPECT_EQ(mjp::ReadJson(dir / "told/run.json")["instruction"], "ab c");
  const Outcome inspected = RunMjpolicy("inspect " + policy);
  EXPECT_EQ(inspected.code, 0) << inspected.text;
  EXPECT_NE(inspected.text.find("clip-small, 2 layers of 24, 2 heads"), std::string::npos)
      << inspected.text;
}

}  // namespace
