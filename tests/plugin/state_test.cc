#include "plugin/state.h"

#include <gmock/gmock.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/plugin/plugin_fixture.h"

namespace mjp_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr mjp::StateShape kShape{3, 2, 1, 4};  // history, observation, pose, chunk
constexpr int kFields = 11;                    // before the arrays
constexpr int kSize = kFields + 3 * (2 + 1) + 2 * 4;
constexpr mjtNum kGuard = -7;  // behind the state

// A state between guards that nothing may touch.
class InstanceStateTest : public ::testing::Test {
 protected:
  InstanceStateTest() : memory_(kSize + 8, kGuard), state_(kShape, memory_.data() + 4) {
    state_.Clear(5);
  }
  ~InstanceStateTest() override {
    EXPECT_THAT(std::vector<mjtNum>(memory_.begin(), memory_.begin() + 4), Each(kGuard));
    EXPECT_THAT(std::vector<mjtNum>(memory_.end() - 4, memory_.end()), Each(kGuard));
  }
  // Pushes the observation {n, n + 0.5} with the pose {-n}.
  void Push(mjtNum n) {
    const std::vector<mjtNum> observation = {n, n + 0.5}, pose = {-n};
    state_.PushObservation(observation, pose);
  }
  void ExpectHistory(const std::vector<mjtNum>& numbers) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_THAT(state_.observation(i), ElementsAre(numbers[i], numbers[i] + 0.5)) << i;
      EXPECT_THAT(state_.pose(i), ElementsAre(-numbers[i])) << i;
    }
  }

  std::vector<mjtNum> memory_;
  mjp::InstanceState state_;
};

TEST_F(InstanceStateTest, ClearLeavesAValidStateBeforeTheFirstObservation) {
  EXPECT_EQ(kShape.Size(), kSize);
  EXPECT_TRUE(state_.Valid());
  EXPECT_FALSE(state_.failed());
  EXPECT_FALSE(state_.pending());
  EXPECT_EQ(state_.seed(), 5u);
  EXPECT_EQ(state_.tick(), mjp::InstanceState::kNoTick);
  EXPECT_EQ(state_.decisions(), 0u);
  EXPECT_EQ(state_.chunks(), 0);
  EXPECT_THAT(state_.chunk(), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(state_.previous_chunk(), ElementsAre(0, 0, 0, 0));
}

TEST_F(InstanceStateTest, FieldsStandInTheOrderThatStateSays) {
  Push(1);
  const uint64_t largest_look = (uint64_t{1} << 53) - 1;
  state_.set_look(largest_look);
  EXPECT_EQ(state_.look(), largest_look);
  state_.BeginChunk(17);
  const std::vector<mjtNum> fields(memory_.begin() + 4, memory_.begin() + 4 + kFields);
  EXPECT_THAT(fields, ElementsAre(20261130 + kSize, 5, 1, mjp::InstanceState::kNoTick, 1, 17, 1, 1,
                                  1, 0, static_cast<mjtNum>(largest_look)));
}

TEST_F(InstanceStateTest, OtherMemoryIsNotValid) {
  mjp::StateShape larger = kShape;
  larger.chunk = 5;
  EXPECT_FALSE(mjp::InstanceState(larger, memory_.data() + 4).Valid());
  std::vector<mjtNum> zeros(kSize);
  EXPECT_FALSE(mjp::InstanceState(kShape, zeros.data()).Valid());
}

TEST_F(InstanceStateTest, TheFirstObservationFillsAllPlacesAndLaterOnesMoveThem) {
  Push(1);
  ExpectHistory({1, 1, 1});
  Push(2);
  ExpectHistory({1, 1, 2});
  Push(3);
  Push(4);
  ExpectHistory({2, 3, 4});
  state_.Forget();
  Push(9);
  ExpectHistory({9, 9, 9});
  EXPECT_THAT(state_.chunk(), Each(0)) << "what lies behind the history";
}

TEST_F(InstanceStateTest, ABegunChunkMovesTheOneBefore) {
  Push(1);
  state_.BeginChunk(17);
  EXPECT_TRUE(state_.pending());
  EXPECT_EQ(state_.chunk_tick(), 17);
  EXPECT_EQ(state_.chunks(), 1);
  EXPECT_EQ(state_.decisions(), 1u);
  state_.FinishChunk(std::vector<float>{1, 2, 3, 4});
  EXPECT_FALSE(state_.pending());
  EXPECT_THAT(state_.chunk(), ElementsAre(1, 2, 3, 4));
  state_.BeginChunk(25);
  EXPECT_THAT(state_.chunk(), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(state_.previous_chunk(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(state_.chunks(), 2);
  state_.BeginChunk(33);
  EXPECT_EQ(state_.chunks(), 2);
  EXPECT_EQ(state_.chunks_in_a_row(), 3);
  ExpectHistory({1, 1, 1});
  state_.Forget();
  EXPECT_FALSE(state_.pending());
  EXPECT_EQ(state_.chunks(), 0);
  EXPECT_EQ(state_.decisions(), 3u);
  EXPECT_EQ(state_.seed(), 5u);
}

TEST_F(InstanceStateTest, ChunksInARowAreCountedToABoundThatFitsAnInt) {
  memory_[4 + 6] = 1 << 20;
  state_.BeginChunk(1);
  EXPECT_EQ(state_.chunks_in_a_row(), (1 << 20) + 1);
  state_.BeginChunk(2);
  EXPECT_EQ(state_.chunks_in_a_row(), (1 << 20) + 1);
}

// Two policies in one model, whose states lie one behind the other.
class PolicyStatesTest : public PluginTest {
 protected:
  PolicyStatesTest() {
    policy_.config.state_dim = policy_.config.action_dim = 1;
    const auto attributes = [](const char* joint) {
      return Set("checkpoint", Folder()) + Set("state", joint) + Set("actuators", joint);
    };
    model_ = Compile(
        Xml(attributes("ax"), "", "<instance name=\"second\">" + attributes("ay") + "</instance>"));
    data_.reset(mj_makeData(model_.get()));
  }
  // A field of an instance, as plugin/state.h numbers them.
  mjtNum& Field(int instance, int field) {
    return data_->plugin_state[model_->plugin_stateadr[instance] + field];
  }

  ModelPtr model_;
  DataPtr data_;
};

TEST_F(PolicyStatesTest, EveryPolicyOfTheModelGetsTheSeed) {
  ASSERT_THAT(mjp::PolicyInstances(model_.get()), ElementsAre(0, 1));
  ASSERT_GT(model_->plugin_stateadr[1], kFields);
  mjp::SetEpisodeSeed(model_.get(), data_.get(), 77);
  for (const int instance : {0, 1}) EXPECT_EQ(Field(instance, 1), 77) << instance;
}

// Instances of another plugin have a state, or none, that is not ours.
TEST_F(PolicyStatesTest, AnotherPluginsInstanceIsNone) {
  mjpPlugin other;
  mjp_defaultPlugin(&other);
  other.name = "mjpolicy.test.other";
  other.capabilityflags = mjPLUGIN_PASSIVE;
  other.nstate = [](const mjModel*, int) { return 0; };
  other.nsensordata = [](const mjModel*, int, int) { return 0; };
  other.init = [](const mjModel*, mjData*, int) { return 0; };
  other.compute = [](const mjModel*, mjData*, int, int) {};
  mjp_registerPlugin(&other);
  std::string xml = Xml(Set("checkpoint", Folder()) + Set("state", "ax") + Set("actuators", "ax"));
  const std::string mine = "<plugin plugin=\"mjpolicy.policy\">";
  xml.insert(xml.find(mine),
             "<plugin plugin=\"mjpolicy.test.other\"><instance name=\"o\"/></plugin>");
  xml.insert(xml.find("<geom size=\"0.1\" mass=\"1\"/>"), "<plugin instance=\"o\"/>");
  const ModelPtr model = Compile(xml);
  ASSERT_TRUE(model);
  ASSERT_EQ(model->nplugin, 2);
  EXPECT_EQ(mjp::PolicyInstances(model.get()).size(), 1u);
  const int ours = mjp::PolicyInstances(model.get())[0];
  model->plugin[ours] = 1 << 20;  // as in a model saved where more plugins were loaded
  EXPECT_TRUE(mjp::PolicyInstances(model.get()).empty());
}

TEST_F(PolicyStatesTest, DecisionsAreCountedTogether) {
  EXPECT_EQ(mjp::PolicyDecisions(model_.get(), data_.get()), 0u);
  mj_step(model_.get(), data_.get());
  EXPECT_EQ(mjp::PolicyDecisions(model_.get(), data_.get()), 2u);
  Field(1, 4) = 5;
  EXPECT_EQ(mjp::PolicyDecisions(model_.get(), data_.get()), 6u);
}

TEST_F(PolicyStatesTest, OneFailureIsAFailure) {
  mj_step(model_.get(), data_.get());
  for (const int instance : {0, 1}) {
    EXPECT_FALSE(mjp::PolicyFailed(model_.get(), data_.get()));
    Field(instance, 2) = 0;
    EXPECT_TRUE(mjp::PolicyFailed(model_.get(), data_.get())) << instance;
    Field(instance, 2) = 1;
  }
}

}  // namespace
}  // namespace mjp_test
