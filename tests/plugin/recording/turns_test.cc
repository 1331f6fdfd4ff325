// Attribute `record` where steps do not follow each other: a batch of several simulations, and
// episodes from states that were saved.

#include <mujoco/mjbatch.h>

#include <string>
#include <vector>

#include "plugin/state.h"
#include "tests/plugin/recording/recording_fixture.h"

namespace mjp_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The engine's batch: simulations, steps for each in one call, whether each has an instance.
struct BatchOf {
  int simulations, steps;
  bool persistent;
};

class BatchRecordingTest : public RecordingTest, public ::testing::WithParamInterface<BatchOf> {};

TEST_P(BatchRecordingTest, IsAsOneSimulationOrSaysWhyNot) {
  const auto [simulations, steps, persistent] = GetParam();
  const ModelPtr model = Compile(CartPole(Recorded()));
  mjBatchConfig config;
  mjb_defaultConfig(&config);
  config.nthread = 1;
  config.persistent = persistent;
  mjBatch* batch = mjb_makeBatch(model.get(), simulations, &config, nullptr, 0);
  ASSERT_NE(batch, nullptr);
  const DataPtr data(mj_makeData(model.get()));
  for (int i = 0; i < simulations; ++i) {
    mj_resetData(model.get(), data.get());
    mjp::SetEpisodeSeed(model.get(), data.get(), i);
    data->qpos[0] = 0.01 * i;
    mj_getState(model.get(), data.get(), mjb_state(batch) + i * mjb_nstate(batch),
                mjSTATE_INTEGRATION);
  }
  for (int step = 0; step < 60; step += steps) {
    ASSERT_EQ(mjb_step(batch, nullptr, simulations, steps, mjSTAGE_NONE), 0);
  }
  mjb_deleteBatch(batch);
  const std::vector<std::string> said = TakeWarnings();
  if (persistent) {
    EXPECT_THAT(said, ElementsAre(HasSubstr("another simulation of this process writes")));
    EXPECT_THAT(Lengths(), ElementsAre(6));
    return;
  }
  ASSERT_THAT(said, SizeIs(steps == 10 ? 3 : 2))
      << "a piece of several that cannot be played again";
  const std::string& turns = said[said.size() - 2];
  EXPECT_THAT(turns, HasSubstr("take turns"));
  EXPECT_EQ(turns.find("episodes are in it already, which may be pieces") != std::string::npos,
            steps == 10);
  EXPECT_THAT(said.back(), HasSubstr("episodes were not recorded, and none after them"));
}

INSTANTIATE_TEST_SUITE_P(Batches, BatchRecordingTest,
                         ::testing::Values(BatchOf{3, 1, false}, BatchOf{3, 10, false},
                                           BatchOf{3, 1, true}, BatchOf{3, 10, true}));

TEST_F(RecordingTest, EpisodesBeginAtSavedStatesAgainAndAgain) {
  const ModelPtr model = Compile(CartPole(Recorded()));
  DataPtr data(mj_makeData(model.get()));
  std::vector<std::vector<mjtNum>> starts(3);
  for (size_t i = 0; i < starts.size(); ++i) {
    mj_resetData(model.get(), data.get());
    data->qpos[0] = 0.01 * static_cast<double>(i + 1);
    Run(model.get(), data.get(), 20 * static_cast<int>(i + 1));
    starts[i].resize(mj_stateSize(model.get(), mjSTATE_INTEGRATION));
    mj_getState(model.get(), data.get(), starts[i].data(), mjSTATE_INTEGRATION);
  }
  for (int round = 0; round < 2; ++round) {
    for (const std::vector<mjtNum>& start : starts) {
      mj_setState(model.get(), data.get(), start.data(), mjSTATE_INTEGRATION);
      Run(model.get(), data.get(), 40);
    }
  }
  data.reset();
  EXPECT_THAT(TakeWarnings(), IsEmpty());
  EXPECT_THAT(Lengths(), SizeIs(9));
}

}  // namespace
}  // namespace mjp_test
