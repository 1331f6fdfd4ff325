// Options of an evaluation that are given as 0, in place of what a task file says.

#include <gmock/gmock.h>

#include <sstream>
#include <string>

#include "policy/checkpoint/checkpoint_writer.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/program.h"
#include "tests/support/renderer.h"

namespace mjp::app {
namespace {

using mjp_test::Outcome;
using mjp_test::ReadText;
using mjp_test::RunMjpolicy;

class GivenOptionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
    const Outcome made = RunMjpolicy("random-checkpoint " + Path("policy") +
                                     " --state 2 --action 1 --picture 96x72 --range 4");
    ASSERT_EQ(made.code, 0) << made.text;
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }

  // Cart and pole whose policy has `attributes` beside its own.
  std::string File(const std::string& name, const std::string& attributes) const {
    std::string xml = ReadText(std::string(MJPOLICY_SOURCE_DIR) + "/models/cart_pole.xml");
    return folder_.Write(name, xml.insert(xml.find("<config key=\"camera\""), attributes));
  }

  // The episodes of an evaluation, without their timing.
  std::string Episodes(const std::string& file, const std::string& more) const {
    const Outcome outcome =
        RunMjpolicy("evaluate " + file + " --checkpoint " + Path("policy") +
                    " --sampler ddim --steps 3 --backend cpu --episodes 2 --max-steps 12 "
                    "--overwrite --out " +
                    Path("out") + " " + more);
    EXPECT_EQ(outcome.code, 0) << more << ": " << outcome.text;
    std::istringstream lines(ReadText(Path("out/episodes.jsonl")));
    std::string text;
    for (std::string line; std::getline(lines, line);)
      text += line.substr(0, line.find(",\"timing\"")) + "\n";
    return text;
  }

  // The rows that are recorded of an episode.
  std::string Recorded(const std::string& file, const std::string& more) const {
    const std::string set = Path("set_" + std::to_string(sets_++));
    const Outcome outcome =
        RunMjpolicy("record " + file + " --checkpoint " + Path("policy") +
                    " --sampler ddim --steps 3 --backend cpu --episodes 1 --max-steps 12 "
                    "--keep all --out " +
                    set + " " + more);
    EXPECT_EQ(outcome.code, 0) << more << ": " << outcome.text;
    return ReadText(set + "/data/chunk-000/file-000.parquet");
  }

  mjp_test::TempDir folder_;

 private:
  mutable int sets_ = 0;
};

std::string Attribute(const std::string& key, const std::string& value) {
  return "<config key=\"" + key + "\" value=\"" + value + "\"/>";
}

TEST_F(GivenOptionsTest, AZeroStandsInPlaceOfTheAttribute) {
  const std::string often = Attribute("action_steps", "2");
  const std::string prefix = often + Attribute("latency", "200") + Attribute("prefix", "1");
  const struct {
    std::string without, attribute, option;
  } cases[] = {{"", Attribute("latency", "200"), "--latency 0 "},
               {often, Attribute("hold_noise", "1"), "--hold-noise 0 "},
               {prefix, Attribute("warm_start", "1"), "--warm-start 0 "},
               {often, Attribute("replan_beyond", "1000"), "--replan-beyond 0 "},
               {often, Attribute("replan_beyond", "1000") + Attribute("replan_after", "6"),
                "--replan-beyond 0 "}};
  for (const auto& [without, attribute, option] : cases) {
    const std::string with = File("with.xml", without + attribute);
    const std::string wanted = Episodes(File("without.xml", without), "");
    EXPECT_NE(Episodes(with, ""), wanted) << option << ": the attribute has to matter";
    EXPECT_EQ(Episodes(with, option), wanted) << option << "in the plugin";
    EXPECT_EQ(Episodes(with, option + "--batch 1"), wanted) << option << "beside a batch";
  }
}

TEST_F(GivenOptionsTest, AZeroStandsInPlaceOfTheAttributeInRecordingsToo) {
  const std::string often = Attribute("action_steps", "2");
  const std::string with = File("with.xml", often + Attribute("hold_noise", "1"));
  const std::string wanted = Recorded(File("without.xml", often), "");
  EXPECT_NE(Recorded(with, ""), wanted) << "the attribute has to matter";
  EXPECT_EQ(Recorded(with, "--hold-noise 0"), wanted);
}

// which has no noise to hold, and refuses other values than 0
TEST_F(GivenOptionsTest, AZeroStandsInPlaceOfTheAttributeForAPolicyWithoutNoiseToo) {
  mjp::ActPolicyConfig config = mjp_test::SmallActConfig();
  config.cameras = {{"observation.image", 3, 72, 96}};
  config.state_dim = 2;
  config.environment_dim = 0;
  config.action_dim = 1;
  mjp::WriteCheckpoint(Path("act"), *mjp_test::ActCheckpoint(config), mjp::WeightFormat::kF32);
  const std::string evaluate = "evaluate " + File("with.xml", Attribute("hold_noise", "4")) +
                               " --checkpoint " + Path("act") + " --out " + Path("out") +
                               " --backend cpu --episodes 1 --max-steps 4 --overwrite ";
  for (const char* more : {"--hold-noise 0", "--hold-noise 0 --batch 1"}) {
    const Outcome outcome = RunMjpolicy(evaluate + more);
    EXPECT_EQ(outcome.code, 0) << more << ": " << outcome.text;
  }
  EXPECT_THAT(RunMjpolicy(evaluate).text, testing::HasSubstr("hold noise: a policy of type act"));
}

}  // namespace
}  // namespace mjp::app
