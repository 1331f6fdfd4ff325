#include "plugin/policy_instance.h"

#include <cmath>
#include <deque>
#include <tuple>
#include <vector>

#include "tests/plugin/plugin_fixture.h"

namespace mjp_test {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class DiffusionPolicyTest : public PluginTest {
 protected:
  ModelPtr model_;
  DataPtr data_;
  void Load(const std::string& config, const std::string& options = "") {
    model_ = Compile(Xml(config, options));
    ASSERT_NE(model_, nullptr);
    data_.reset(mj_makeData(model_.get()));
    ASSERT_NE(data_, nullptr);
  }
};

// One robot driven by a plain queue: what the plugin must do, said in another way.
struct Reference {
  const FakePolicyLog& policy;
  int action_steps;
  uint64_t seed = 0;
  std::deque<std::pair<float, float>> history = {};
  std::deque<std::pair<float, float>> queue = {};
  uint32_t decisions = 0;

  std::pair<double, double> Act(double x, double y) {
    const size_t steps = policy.config.n_obs_steps;
    do {
      history.emplace_back(static_cast<float>(x), static_cast<float>(y));
    } while (history.size() < steps);
    while (history.size() > steps) history.pop_front();
    if (queue.empty()) {
      SeenInput input;
      input.key = {seed, decisions++};
      for (const auto& [a, b] : history) input.state.insert(input.state.end(), {a, b});
      const std::vector<float> actions = policy.act(input);
      for (int i = 0; i < action_steps; ++i) {
        const int at = 2 * (static_cast<int>(steps) - 1 + i);
        queue.emplace_back(actions[at], actions[at + 1]);
      }
    }
    const auto action = queue.front();
    queue.pop_front();
    return action;
  }
};

struct Protocol {
  const char* integrator;
  const char* period;
  int ticks_per_period;  // physics steps
  int n_obs_steps, action_steps;
};

class ProtocolTest : public DiffusionPolicyTest, public ::testing::WithParamInterface<Protocol> {};

// every control of 400 physics steps equals the queue's, under every integrator
TEST_P(ProtocolTest, DrivesAsAPlainQueue) {
  const Protocol& p = GetParam();
  policy_.config.n_obs_steps = p.n_obs_steps;
  Load(Basic() + Set("period", p.period) + Set("action_steps", std::to_string(p.action_steps)) +
           Set("seed", "5"),
       "integrator=\"" + std::string(p.integrator) + "\"");
  Reference reference{policy_, p.action_steps, 5};
  std::pair<double, double> expected;
  for (int step = 0; step < 400; ++step) {
    if (step % p.ticks_per_period == 0) expected = reference.Act(data_->qpos[0], data_->qpos[1]);
    mj_step(model_.get(), data_.get());
    ASSERT_EQ(data_->ctrl[0], expected.first) << "step " << step;
    ASSERT_EQ(data_->ctrl[1], expected.second) << "step " << step;
  }
  EXPECT_THAT(policy_.Take(), SizeIs(reference.decisions));
}

INSTANTIATE_TEST_SUITE_P(
    Protocols, ProtocolTest,
    ::testing::Values(Protocol{"Euler", "0.1", 10, 2, 8}, Protocol{"RK4", "0.1", 10, 2, 8},
                      Protocol{"implicit", "0.1", 10, 2, 8},
                      Protocol{"implicitfast", "0.1", 10, 2, 8},
                      Protocol{"discrete", "0.1", 10, 2, 8}, Protocol{"Euler", "0.01", 1, 2, 8},
                      Protocol{"Euler", "0.02", 2, 1, 1}, Protocol{"Euler", "0.1", 10, 4, 3},
                      Protocol{"RK4", "0.03", 3, 6, 2}),
    [](const auto& info) {
      const Protocol& p = info.param;
      return std::string(p.integrator) + std::to_string(p.ticks_per_period) + "_" +
             std::to_string(p.n_obs_steps) + "_" + std::to_string(p.action_steps);
    });

// what each control executes, from the definition: the mean of what all chunks said of its tick
TEST_F(DiffusionPolicyTest, EnsemblesTheChunksOfAllTicks) {
  constexpr double kCoefficient = 0.2;
  constexpr int kTicks = 20, kStepsPerTick = 10;
  policy_.config.n_obs_steps = policy_.config.n_action_steps = 1;
  policy_.config.horizon = 6;
  policy_.config.temporal_ensemble = kCoefficient;
  Load(Basic() + Set("seed", "5"));
  DataPtr copy(mj_makeData(model_.get()));
  std::vector<std::vector<float>> chunks;
  for (int tick = 0; tick < kTicks; ++tick) {
    for (int step = 0; step < kStepsPerTick; ++step) mj_step(model_.get(), data_.get());
    for (const SeenInput& seen : policy_.Take()) chunks.push_back(policy_.act(seen));
    ASSERT_THAT(chunks, SizeIs(tick + 1));
    for (int c = 0; c < 2; ++c) {
      double sum = 0, weights = 0, weight = 1;
      for (int made = std::max(0, tick - 5); made <= tick; ++made) {
        sum += weight * chunks[made][2 * (tick - made) + c];
        weights += weight;
        weight *= std::exp(-kCoefficient);
      }
      ASSERT_NEAR(data_->ctrl[c], sum / weights, 2e-6 * std::abs(sum / weights)) << tick;
    }
    if (tick == 7) mj_copyData(copy.get(), model_.get(), data_.get());
  }
  // a simulation that was put aside goes on with the same bits
  for (int step = 0; step < (kTicks - 8) * kStepsPerTick; ++step) mj_step(model_.get(), copy.get());
  EXPECT_EQ(copy->ctrl[0], data_->ctrl[0]);
  EXPECT_EQ(copy->qpos[1], data_->qpos[1]);
}

// what each control executes, from the definition, and in a simulation that is put aside
TEST_F(DiffusionPolicyTest, FollowsAChunkUntilANewOneDeparts) {
  constexpr int kTicks = 30, kStepsPerTick = 10, kDeparts = 13;
  policy_.act = [this](const SeenInput& input) {
    std::vector<float> chunk(size_t{2} * policy_.config.horizon);
    const auto decision = static_cast<float>(input.key.decision);
    std::ranges::fill(chunk, decision / 100 + (decision < kDeparts ? 0 : 5));
    return chunk;
  };
  Load(Basic() + Set("action_steps", "1") + Set("replan_beyond", "1"));
  DataPtr copy(mj_makeData(model_.get()));
  std::vector<double> controls;
  for (int tick = 0; tick < kTicks; ++tick) {
    for (int step = 0; step < kStepsPerTick; ++step) mj_step(model_.get(), data_.get());
    // 8 ticks each, but for the chunk that is dropped
    const int made = tick < kDeparts ? tick / 8 * 8 : kDeparts + (tick - kDeparts) / 8 * 8;
    ASSERT_FLOAT_EQ(data_->ctrl[0], made / 100.0f + (made < kDeparts ? 0 : 5)) << tick;
    controls.push_back(data_->ctrl[0]);
    if (tick == 10) mj_copyData(copy.get(), model_.get(), data_.get());
  }
  for (int tick = 11; tick < kTicks; ++tick) {
    for (int step = 0; step < kStepsPerTick; ++step) mj_step(model_.get(), copy.get());
    EXPECT_EQ(copy->ctrl[0], controls[tick]) << tick;
  }
}

TEST_F(DiffusionPolicyTest, AnEnsembleNeedsAChunkForEachTick) {
  policy_.config.n_obs_steps = policy_.config.n_action_steps = 1;
  policy_.config.temporal_ensemble = 0.01;
  std::string error;
  EXPECT_EQ(Compile(Xml(Basic() + Set("action_steps", "4")), &error), nullptr);
  EXPECT_THAT(error,
              ::testing::HasSubstr("attribute action_steps is 4: this checkpoint ensembles"));
}

TEST_F(DiffusionPolicyTest, ActsWithinTheFirstStep) {
  Load(Basic() + Set("seed", "3"));
  EXPECT_THAT(policy_.Take(), IsEmpty()) << "loading must not run the policy";
  mj_step(model_.get(), data_.get());
  EXPECT_NE(data_->ctrl[0], 0);
  EXPECT_EQ(data_->actuator_force[0], 10 * data_->ctrl[0]) << "the control must act in its step";
}

TEST_F(DiffusionPolicyTest, RepeatedForwardDecidesOnce) {
  Load(Basic());
  for (int i = 0; i < 100; ++i) mj_forward(model_.get(), data_.get());
  EXPECT_THAT(policy_.Take(), SizeIs(1));
  const double ctrl = data_->ctrl[0];
  data_->ctrl[0] = -99;  // a slider of the host
  mj_forward(model_.get(), data_.get());
  EXPECT_EQ(data_->ctrl[0], ctrl);
  mj_step1(model_.get(), data_.get());
  mj_step2(model_.get(), data_.get());
  EXPECT_THAT(policy_.Take(), IsEmpty());
}

TEST_F(DiffusionPolicyTest, NoiseIsHeldAsLongAsAChunkLasts) {
  struct Case {
    const char *action_steps, *hold_noise;  // empty: not given
    uint32_t held;                          // decisions
  };
  for (const Case& c : std::initializer_list<Case>{{"", "", 1},
                                                   {"1", "", 8},
                                                   {"3", "", 2},
                                                   {"4", "0", 2},
                                                   {"12", "", 1},
                                                   {"1", "1", 1},
                                                   {"2", "5", 5}}) {
    std::string config = Basic();
    if (*c.action_steps) config += Set("action_steps", c.action_steps);
    if (*c.hold_noise) config += Set("hold_noise", c.hold_noise);
    Load(config);
    policy_.Take();
    for (int i = 0; i < 2000; ++i) mj_step(model_.get(), data_.get());
    const auto seen = policy_.Take();
    ASSERT_GT(seen.size(), 2 * c.held);
    for (const SeenInput& input : seen) {
      EXPECT_EQ(input.noise, input.key.decision / c.held) << config;
    }
  }
}

TEST_F(DiffusionPolicyTest, RoundedTimesDoNotShiftTicks) {
  Load(Basic() + Set("period", "0.1") + Set("action_steps", "1"));
  for (int step = 0; step < 100000; ++step) mj_step(model_.get(), data_.get());
  EXPECT_THAT(policy_.Take(), SizeIs(10000));
}

TEST_F(DiffusionPolicyTest, ResetStartsTheEpisodeAgain) {
  Load(Basic() + Set("seed", "4"));
  const auto run = [&] {
    for (int i = 0; i < 177; ++i) mj_step(model_.get(), data_.get());
    return data_->qpos[0];
  };
  const double first = run();
  const size_t decisions = policy_.Take().size();
  mj_resetData(model_.get(), data_.get());
  EXPECT_EQ(run(), first);
  EXPECT_THAT(policy_.Take(), SizeIs(decisions));
}

TEST_F(DiffusionPolicyTest, HostGivesEachEpisodeItsSeed) {
  Load(Basic() + Set("seed", "4"));
  mj_resetData(model_.get(), data_.get());
  mjp::SetEpisodeSeed(model_.get(), data_.get(), 123456789012345);
  for (int i = 0; i < 85; ++i) mj_step(model_.get(), data_.get());
  const auto seen = policy_.Take();
  ASSERT_THAT(seen, SizeIs(2));
  EXPECT_EQ(seen[0].key.seed, 123456789012345u);
  EXPECT_EQ(seen[1].key.decision, 1u);
  EXPECT_EQ(mjp::PolicyDecisions(model_.get(), data_.get()), 2u);
  mj_resetData(model_.get(), data_.get());
  mj_step(model_.get(), data_.get());
  EXPECT_EQ(policy_.Take()[0].key.seed, 4u);
}

TEST_F(DiffusionPolicyTest, FailureHoldsTheControlAndSaysSoOnce) {
  Load(Basic());
  mj_step(model_.get(), data_.get());
  const double held = data_->ctrl[0];
  const auto act = std::exchange(policy_.act, [](const SeenInput&) -> std::vector<float> {
    throw mjp::BadInput("the picture is not finite");
  });
  for (int i = 0; i < 200; ++i) mj_step(model_.get(), data_.get());
  EXPECT_THAT(TakeWarnings(), ::testing::ElementsAre(::testing::HasSubstr("is not finite")));
  EXPECT_TRUE(mjp::PolicyFailed(model_.get(), data_.get()));
  EXPECT_NE(data_->ctrl[0], 0);
  data_->ctrl[0] = held + 1;  // the host may take over
  mj_step(model_.get(), data_.get());
  EXPECT_EQ(data_->ctrl[0], held + 1);

  policy_.act = act;
  mj_resetData(model_.get(), data_.get());
  mj_step(model_.get(), data_.get());
  EXPECT_FALSE(mjp::PolicyFailed(model_.get(), data_.get()));
  EXPECT_EQ(data_->ctrl[0], held);
}

TEST_F(DiffusionPolicyTest, DisabledSensorsPutThePolicyToSleep) {
  Load(Basic());
  model_->opt.disableflags |= mjDSBL_SENSOR;
  for (int i = 0; i < 55; ++i) mj_step(model_.get(), data_.get());
  EXPECT_THAT(policy_.Take(), IsEmpty());
  EXPECT_THAT(TakeWarnings(), ::testing::ElementsAre(::testing::HasSubstr("sensors are disabled")));
  EXPECT_EQ(data_->ctrl[0], 0);
  model_->opt.disableflags &= ~mjDSBL_SENSOR;
  mj_step(model_.get(), data_.get());
  EXPECT_THAT(policy_.Take(), SizeIs(1));
}

TEST_F(DiffusionPolicyTest, LatencyDelaysAChunkInSimulationTime) {
  Load(Basic() + Set("latency", "150") + Set("action_steps", "4"));
  data_->ctrl[0] = 77;
  std::vector<double> controls;
  for (int i = 0; i < 100; ++i) {
    mj_step(model_.get(), data_.get());
    controls.push_back(data_->ctrl[0]);
  }
  const auto seen = policy_.Take();
  ASSERT_THAT(seen, SizeIs(3));
  const auto first = policy_.act(seen[0]), second = policy_.act(seen[1]);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(controls[i], 77) << i;  // nothing to execute yet
  for (int i = 15; i < 55; ++i) EXPECT_EQ(controls[i], first[2 * (1 + i / 10)]) << i;
  for (int i = 55; i < 80; ++i) EXPECT_EQ(controls[i], second[2 * (1 + (i - 40) / 10)]) << i;
}

TEST_F(DiffusionPolicyTest, OtherUsersOfTheModelDoNotDisturbIt) {
  Load(Basic());
  for (int i = 0; i < 5; ++i) mj_step(model_.get(), data_.get());
  policy_.Take();
  const int nv = static_cast<int>(model_->nv), nu = static_cast<int>(model_->nu);
  std::vector<mjtNum> a(4 * nv * nv), b(2 * nv * nu);
  const double ctrl = data_->ctrl[0], time = data_->time;
  mjd_transitionFD(model_.get(), data_.get(), 1e-6, 1, a.data(), b.data(), nullptr, nullptr);
  mj_inverse(model_.get(), data_.get());
  EXPECT_THAT(policy_.Take(), IsEmpty());
  EXPECT_EQ(data_->time, time);
  EXPECT_EQ(data_->ctrl[0], ctrl);
  for (const mjtNum each : a) EXPECT_TRUE(std::isfinite(each));
  EXPECT_NE(b[nv * nu], 0) << "the control must still move the robot";
}

TEST_F(DiffusionPolicyTest, DrawsOnlyWhatIsObserved) {
  AddCamera();
  Load(BasicWithCamera() + Set("renderer", "probe"));
  ProbeSource::drawn = 0;
  std::vector<double> positions;
  for (int i = 0; i < 240; ++i) {
    if (i % 10 == 0) positions.push_back(data_->qpos[0]);
    mj_step(model_.get(), data_.get());
  }
  const auto seen = policy_.Take();
  ASSERT_THAT(seen, SizeIs(3));
  EXPECT_EQ(ProbeSource::drawn, 6);  // ticks 0 | 7 8 | 15 16 | 23
  const size_t bytes = ProbeSource::kSize * ProbeSource::kSize * 3;
  for (int k = 0; k < 3; ++k) {
    ASSERT_THAT(seen[k].frames, SizeIs(2 * bytes));
    EXPECT_EQ(ProbeSource::Decode(&seen[k].frames[0]), positions[std::max(0, 8 * k - 1)]);
    EXPECT_EQ(ProbeSource::Decode(&seen[k].frames[bytes]), positions[8 * k]);
  }
}

TEST_F(DiffusionPolicyTest, PicturesUnlikeThoseOfItsTrainingAreSaidOnce) {
  using ::testing::AllOf;
  using ::testing::ElementsAre;
  using ::testing::HasSubstr;
  AddCamera();
  const auto load = [&] {
    policy_.Install();  // no checkpoint that was read before
    Load(BasicWithCamera() + Set("renderer", "probe"));
  };
  load();  // nothing is known of its training
  policy_.looks["observation.image"] = ProbeSource::look;
  load();
  EXPECT_THAT(TakeWarnings(), IsEmpty());
  policy_.looks["observation.image"] = {"mujoco", 96, 96};
  load();
  const DataPtr second(mj_makeData(model_.get()));
  mj_step(model_.get(), data_.get());
  mj_step(model_.get(), second.get());
  EXPECT_THAT(TakeWarnings(),
              ElementsAre(AllOf(HasSubstr("instance \"policy\" sees other pictures than"),
                                HasSubstr("observation.image, drawn by mujoco then, by raster now"),
                                HasSubstr("choose the renderer"))));
  std::string error;  // the cause, and nothing around it
  EXPECT_EQ(
      Compile(Xml(BasicWithCamera() + Set("renderer", "probe") + Set("period", "0.0001")), &error),
      nullptr);
  EXPECT_THAT(error, AllOf(HasSubstr("attribute period"), ::testing::Not(HasSubstr("pictures"))));
  EXPECT_THAT(TakeWarnings(), IsEmpty());
}

// a policy on the GPU draws flat scenes itself, where the renderer has them
TEST_F(DiffusionPolicyTest, GivesScenesToTheGpu) {
  AddCamera();
  const std::string attributes = BasicWithCamera() + Set("renderer", "probe");
  for (const bool offers : {true, false}) {
    ProbeSource::offers_scenes = offers;
    for (const char* backend : {"cuda", "cpu"}) {
      ProbeSource::drawn = 0;
      Load(attributes + Set("backend", backend));
      std::vector<double> positions;
      for (int i = 0; i < 85; ++i) {
        if (i % 10 == 0) positions.push_back(data_->qpos[0]);
        mj_step(model_.get(), data_.get());
      }
      const auto seen = policy_.Take();
      ASSERT_THAT(seen, SizeIs(2));
      if (offers && backend == std::string("cuda")) {
        EXPECT_THAT(seen[1].frames, IsEmpty());
        ASSERT_THAT(seen[1].scenes, SizeIs(2 * sizeof(mjtNum)));
        mjtNum drawn[2];
        std::memcpy(drawn, seen[1].scenes.data(), sizeof(drawn));
        EXPECT_EQ(drawn[0], positions[7]);
        EXPECT_EQ(drawn[1], positions[8]);
        EXPECT_EQ(ProbeSource::drawn, 0);
      } else {
        EXPECT_THAT(seen[1].scenes, IsEmpty());
        EXPECT_EQ(ProbeSource::drawn, 3);
      }
    }
  }
  ProbeSource::offers_scenes = false;
}

}  // namespace
}  // namespace mjp_test
