#include "viewer/diagnostics/attention.h"

#include <gtest/gtest.h>

#include "policy/act/act_model.h"
#include "tests/support/act_reference.h"
#include "tests/support/check_close.h"
#include "tests/support/goldens/act_cases.h"
#include "viewer/panels/attention_map.h"

// Where actions look, as the viewer finds it, against the definition in double precision.

namespace mjp::app {
namespace {

// Decisions of a policy with two cameras, which differ in what was seen.
class AttentionTest : public testing::Test {
 protected:
  std::shared_ptr<DecisionRecord> Decision(int index) const {
    const mjp::PolicyConfig& config = checkpoint_->config;
    auto record = std::make_shared<DecisionRecord>();
    record->decision = record->step = index;
    for (const mjp::CameraFeature& camera : config.cameras)
      for (int i = 0; i < camera.height * camera.width * 3; ++i)
        record->frames.push_back(static_cast<uint8_t>((i * 13 + i / 97 * (29 + index)) % 256));
    record->state = {0.3f, -0.2f, 0.1f * static_cast<float>(index)};
    record->environment = {0.9f, -0.4f};
    return record;
  }
  mjp_test::Matrix Expected(const DecisionRecord& record) const {
    mjp_test::ActReference reference(mjp::ActOf(*checkpoint_), checkpoint_->stats);
    return reference.Run(record.frames, record.state, record.environment)
        .at(mjp::LastAttention(*checkpoint_));
  }
  PolicyInfo Info() const {
    PolicyInfo info;
    info.horizon = checkpoint_->config.horizon;
    info.attended = mjp::AttendedPictures(*checkpoint_);
    info.network = checkpoint_;
    return info;
  }

  static mjp::ActPolicyConfig Config() {
    mjp::ActPolicyConfig config = mjp_test::SmallActConfig();
    for (mjp::CameraFeature& camera : config.cameras) camera.height = 33, camera.width = 40;
    return config;
  }
  std::shared_ptr<const mjp::Checkpoint> checkpoint_ = mjp_test::ActCheckpoint(Config());
};

TEST_F(AttentionTest, IsThatOfTheDefinition) {
  AttentionFinder finder;
  EXPECT_EQ(finder.Found(), nullptr);
  for (int i = 0; i < 2; ++i) {
    const auto record = Decision(i);
    finder.Ask(record, checkpoint_);
    finder.Wait();
    const auto found = finder.Found();
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->error, "");
    EXPECT_EQ(found->decision, record);
    EXPECT_TRUE(mjp_test::CheckClose(found->weights, Expected(*record), 5e-5));
  }
}

TEST_F(AttentionTest, ADecisionIsFoundOnce) {
  AttentionFinder finder;
  finder.Ask(Decision(1), checkpoint_);
  finder.Wait();
  const auto found = finder.Found();
  auto timed = Decision(1);  // as it is once its physics was timed
  timed->times.passes = 1;
  finder.Ask(timed, checkpoint_);
  finder.Wait();
  EXPECT_EQ(finder.Found(), found);
  auto elsewhere = Decision(1);
  elsewhere->state[0] = -1;
  finder.Ask(elsewhere, checkpoint_);
  finder.Wait();
  EXPECT_NE(finder.Found(), found);
}

TEST_F(AttentionTest, SaysWhyThereIsNone) {
  AttentionFinder finder;
  auto record = Decision(0);
  record->state.pop_back();
  finder.Ask(record, checkpoint_);
  finder.Wait();
  ASSERT_NE(finder.Found(), nullptr);
  EXPECT_TRUE(finder.Found()->weights.empty());
  EXPECT_NE(finder.Found()->error.find("state"), std::string::npos) << finder.Found()->error;
}

TEST_F(AttentionTest, AViewIsOneActionOrTheirMean) {
  AttentionFinder finder;
  const auto record = Decision(0);
  finder.Ask(record, checkpoint_);
  finder.Wait();
  const mjp_test::Matrix expected = Expected(*record);
  const PolicyInfo info = Info();
  const size_t tokens = expected.size() / info.horizon;
  const AttentionView all = ViewOf(*finder.Found(), info, -1);
  mjp_test::Matrix mean(tokens, 0.0);
  for (int k = 0; k < info.horizon; ++k) {
    const mjp_test::Matrix row(expected.begin() + k * tokens, expected.begin() + (k + 1) * tokens);
    for (size_t i = 0; i < tokens; ++i) mean[i] += row[i] / info.horizon;
    const AttentionView view = ViewOf(*finder.Found(), info, k);
    EXPECT_TRUE(mjp_test::CheckClose(view.weights, row, 5e-5)) << k;
    EXPECT_NE(view.weights, all.weights) << k;
    EXPECT_LT(view.low, view.high);
    EXPECT_GT(view.pictures, 0);
    EXPECT_LT(view.pictures, 1) << "latent, state and environment have a part";
  }
  EXPECT_TRUE(mjp_test::CheckClose(all.weights, mean, 5e-5));
  PolicyInfo another = info;
  ++another.horizon;
  EXPECT_TRUE(ViewOf(*finder.Found(), another, 0).weights.empty()) << "another policy's";
  EXPECT_TRUE(ViewOf(*finder.Found(), PolicyInfo(), 0).weights.empty());
}

}  // namespace
}  // namespace mjp::app
