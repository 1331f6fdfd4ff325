#include "tasks/pusht/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "tasks/pusht/physics/reset.h"
#include "tests/support/shared_data.h"
#include "tests/tasks/pusht/fidelity.h"

namespace mjp::app {
namespace {

using mjp_test::Compare;
using mjp_test::EpisodeError;

ModelPtr Model(const char* file) {
  return LoadModel(std::string(MJPOLICY_SOURCE_DIR) + "/models/" + file);
}

std::vector<State> ToStates(const NpyArray& array) {
  const std::vector<double> v = array.ToDoubles();
  std::vector<State> states;
  for (size_t i = 0; i < v.size(); i += 5) {
    states.push_back({v[i], v[i + 1], v[i + 2], v[i + 3], v[i + 4]});
  }
  return states;
}

// the first `episodes` human episodes, from the starts of their seeds
Recording HumanRecording(const std::string& actions, const std::string& ends, int episodes) {
  const std::vector<double> a = ReadNpy(actions).ToDoubles();
  Recording recording;
  recording.ends = ReadNpy(ends).ToIntegers("ends");
  recording.ends.resize(episodes);
  for (int64_t i = 0; i < recording.ends.back(); ++i) {
    recording.actions.push_back({a[2 * i], a[2 * i + 1]});
  }
  for (int e = 0; e < episodes; ++e) recording.starts.push_back(BenchmarkStart(e));
  return recording;
}

TEST(ReplayTest, FollowsTheOriginalPhysicsOnHumanEpisodes) {
  SHARED_OR_SKIP(actions, "pusht/human_action.npy");
  SHARED_OR_SKIP(ends, "pusht/human_episode_ends.npy");
  SHARED_OR_SKIP(golden_file, "pusht/golden_replay.npy");
  const int episodes = 150;
  const Recording recording = HumanRecording(actions, ends, episodes);
  const std::vector<State> golden = ToStates(ReadNpy(golden_file));
  const Replay replay = ReplayInMujoco(Model("pusht.xml").get(), recording, 2);
  ASSERT_EQ(replay.states.size(), golden.size());

  std::vector<EpisodeError> errors;
  size_t row = 0;
  for (int e = 0; e < episodes; ++e) {
    EXPECT_EQ(replay.failures[e], "");
    const size_t end = recording.ends[e] + e + 1;
    errors.push_back(Compare({&replay.states[row], end - row}, {&golden[row], end - row}));
    row = end;
  }
  const auto [worst, last, agent, other_side] = mjp_test::Summarise(errors, 0.85);
  RecordProperty("median_worst_px", std::to_string(worst));
  RecordProperty("median_final_px", std::to_string(last));
  EXPECT_LE(worst, 0.55);
  EXPECT_LE(last, 0.15);
  EXPECT_LE(agent, 2e-3);
  EXPECT_LE(other_side, 1);
}

bool SameBits(const std::vector<State>& a, const std::vector<State>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(State)) == 0;
}

TEST(ReplayTest, LayoutIsOneRowMoreThanActionsWhateverTheThreads) {
  Recording recording;
  recording.ends = {3, 3, 10};  // the second episode has no action
  for (int e = 0; e < 3; ++e) recording.starts.push_back(BenchmarkStart(e));
  for (int i = 0; i < 10; ++i) recording.actions.push_back({200.0 + 10 * i, 250});
  const ModelPtr model = Model("pusht.xml");
  const Replay replay = ReplayInMujoco(model.get(), recording, 1);
  ASSERT_EQ(replay.states.size(), 13u);
  EXPECT_TRUE(SameBits(replay.states, ReplayInMujoco(model.get(), recording, 3).states));
  // each episode alone gives its rows of the whole
  const Recording last{
      {recording.starts[2]}, {recording.actions.begin() + 3, recording.actions.end()}, {7}};
  EXPECT_TRUE(SameBits({replay.states.begin() + 5, replay.states.end()},
                       ReplayInMujoco(model.get(), last, 1).states));
  EXPECT_EQ(replay.states[4].agent_x, recording.starts[1].agent_x);
  EXPECT_THAT(StatesToNpy(replay.states).shape, ::testing::ElementsAre(13, 5));
}

TEST(ReplayTest, RecordingsAreChecked) {
  const auto array = [](std::vector<double> values, std::vector<int64_t> shape) {
    return MakeNpy(values, std::move(shape));
  };
  const auto ends = [](std::vector<int64_t> values) {
    NpyArray a{NpyType::kInt64, {static_cast<int64_t>(values.size())}, {}};
    a.bytes.resize(8 * values.size());
    std::memcpy(a.bytes.data(), values.data(), a.bytes.size());
    return a;
  };
  const NpyArray starts = array({100, 100, 200, 200, 0}, {1, 5}), actions = array({1, 2}, {1, 2});
  const Recording recording = MakeRecording(starts, actions, ends({1}));
  EXPECT_EQ(recording.starts[0].block_y, 200);
  EXPECT_EQ(recording.actions[0].y, 2);
  EXPECT_THROW(MakeRecording(array({1, 2, 3, 4}, {1, 4}), actions, ends({1})), mjp::Error);
  EXPECT_THROW(MakeRecording(starts, array({1, 2}, {2}), ends({1})), mjp::Error);
  EXPECT_THROW(MakeRecording(starts, array({1, NAN}, {1, 2}), ends({1})), mjp::Error);
  EXPECT_THROW(MakeRecording(starts, actions, ends({2})), mjp::Error);
  EXPECT_THROW(MakeRecording(starts, actions, ends({0})), mjp::Error);
  EXPECT_THROW(MakeRecording(starts, actions, ends({1, 1})), mjp::Error);
  EXPECT_THROW(MakeRecording(starts, actions, ends({-1})), mjp::Error);
  EXPECT_THROW(MakeRecording(starts, actions, array({1}, {1})), mjp::Error);
}

}  // namespace
}  // namespace mjp::app
