// Copies, restored states, jumps in time, reloads, several instances, models, threads and batches.

#include <mujoco/mjbatch.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "plugin/policies/cache.h"
#include "plugin/state.h"
#include "tests/plugin/plugin_fixture.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LifecycleTest : public PluginTest {
 protected:
  ModelPtr model_;
  void Load(const std::string& config = Basic(), const std::string& instances = "") {
    model_ = Compile(Xml(config, "", instances));
    ASSERT_NE(model_, nullptr);
  }
  DataPtr Make() const { return DataPtr(mj_makeData(model_.get())); }
  void Run(mjData* data, int steps) const {
    for (int i = 0; i < steps; ++i) mj_step(model_.get(), data);
  }
  std::vector<mjtNum> State(const mjData* data) const {
    std::vector<mjtNum> state(mj_stateSize(model_.get(), mjSTATE_INTEGRATION));
    mj_getState(model_.get(), data, state.data(), mjSTATE_INTEGRATION);
    return state;
  }
  void Restore(mjData* data, const std::vector<mjtNum>& state) const {
    mj_setState(model_.get(), data, state.data(), mjSTATE_INTEGRATION);
  }
  static std::vector<double> Positions(const SeenInput& seen) {
    std::vector<double> positions;
    for (size_t at = 0; at < seen.frames.size();
         at += ProbeSource::kSize * ProbeSource::kSize * 3) {
      positions.push_back(ProbeSource::Decode(&seen.frames[at]));
    }
    return positions;
  }
};

TEST_F(LifecycleTest, CopyGoesOnAsTheOriginal) {
  AddCamera();
  Load(BasicWithCamera() + Set("renderer", "probe"));
  const DataPtr original = Make();
  Run(original.get(), 75);  // an older picture is waiting for its decision
  const DataPtr fresh(mj_copyData(nullptr, model_.get(), original.get()));
  const DataPtr used = Make();
  Run(used.get(), 33);
  mj_copyData(used.get(), model_.get(), original.get());
  policy_.Take();
  Run(original.get(), 80);
  const auto expected = policy_.Take();
  ASSERT_THAT(expected, SizeIs(1));
  for (mjData* copy : {fresh.get(), used.get()}) {
    Run(copy, 80);
    const auto seen = policy_.Take();
    ASSERT_THAT(seen, SizeIs(1));
    EXPECT_EQ(seen[0].frames, expected[0].frames);
    EXPECT_EQ(seen[0].state, expected[0].state);
    EXPECT_EQ(State(copy), State(original.get()));
  }
}

TEST_F(LifecycleTest, CopyThatIsOnlyShownDecidesNothing) {
  Load();
  const DataPtr original = Make();
  Run(original.get(), 5);
  const DataPtr shown(mj_copyData(nullptr, model_.get(), original.get()));
  policy_.Take();
  for (int i = 0; i < 10; ++i) mj_forward(model_.get(), shown.get());
  EXPECT_THAT(policy_.Take(), IsEmpty());
}

// a viewer's history: back in time with the state, without a reset
TEST_F(LifecycleTest, RestoredStateGoesOnBitForBit) {
  AddCamera();
  Load(BasicWithCamera() + Set("renderer", "probe"));
  const DataPtr data = Make();
  std::vector<std::vector<mjtNum>> states;
  std::vector<std::vector<SeenInput>> seen;
  for (int i = 0; i < 300; ++i) {
    states.push_back(State(data.get()));
    mj_step(model_.get(), data.get());
    seen.push_back(policy_.Take());
  }
  for (const int back : {299, 150, 75, 79, 80, 81, 1, 0}) {
    Restore(data.get(), states[back]);
    for (int i = back; i < 300; ++i) {
      ASSERT_EQ(State(data.get()), states[i]) << "from " << back << " at " << i;
      mj_step(model_.get(), data.get());
      const auto again = policy_.Take();
      ASSERT_EQ(again.size(), seen[i].size());
      for (size_t k = 0; k < again.size(); ++k) {
        ASSERT_EQ(again[k].frames, seen[i][k].frames) << "from " << back << " at " << i;
      }
    }
  }
}

TEST_F(LifecycleTest, RestoredStateGoesOnWithTheNoiseItHeld) {
  policy_.act = [](const SeenInput& seen) {
    return std::vector<float>(32, 1 + static_cast<float>(seen.noise));
  };
  Load(Basic() + Set("action_steps", "1") + Set("hold_noise", "5"));
  const DataPtr data = Make();
  std::vector<std::vector<mjtNum>> states;
  for (int i = 0; i < 300; ++i) {
    states.push_back(State(data.get()));
    mj_step(model_.get(), data.get());
  }
  // ten steps to a decision, so fifty to a noise: its first decision, in its middle, its last one
  for (const int back : {0, 50, 51, 75, 99, 120, 149}) {
    policy_.Take();
    const DataPtr other = Make();
    Restore(other.get(), states[back]);
    for (int i = back; i < 300; ++i) {
      ASSERT_EQ(State(other.get()), states[i]) << "from " << back << " at " << i;
      mj_step(model_.get(), other.get());
    }
    EXPECT_EQ(policy_.Take().front().noise, static_cast<uint32_t>(back + 9) / 10 / 5);
  }
}

TEST_F(LifecycleTest, JumpInTimeStartsANewHistory) {
  AddCamera();
  Load(BasicWithCamera() + Set("renderer", "probe"));
  const DataPtr data = Make();
  Run(data.get(), 45);
  policy_.Take();
  data->time = 100;
  data->qpos[0] = 7;
  Run(data.get(), 1);
  auto seen = policy_.Take();
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_THAT(Positions(seen[0]), ElementsAre(7, 7));
  EXPECT_EQ(seen[0].key.decision, 1u);
  data->time = 3;  // back, without a reset
  data->qpos[0] = -2;
  Run(data.get(), 1);
  seen = policy_.Take();
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_THAT(Positions(seen[0]), ElementsAre(-2, -2));
  Run(data.get(), 79);
  EXPECT_THAT(policy_.Take(), IsEmpty());
  Run(data.get(), 1);
  EXPECT_THAT(policy_.Take(), SizeIs(1));
}

TEST_F(LifecycleTest, StateOfZerosIsAFreshEpisode) {
  Load();
  const DataPtr data = Make();
  Run(data.get(), 30);
  policy_.Take();
  std::fill_n(data->plugin_state, model_->npluginstate, 0);
  Run(data.get(), 1);
  const auto seen = policy_.Take();
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_EQ(seen[0].key.decision, 0u);
}

TEST_F(LifecycleTest, ResetClearsWhatTheMemoryHeld) {
  Load();
  const DataPtr data = Make();
  Run(data.get(), 200);
  mj_resetData(model_.get(), data.get());
  const DataPtr fresh = Make();
  EXPECT_EQ(State(data.get()), State(fresh.get()));
}

TEST_F(LifecycleTest, NotAFiniteTimeFailsCleanly) {
  Load();
  const DataPtr data = Make();
  data->time = std::nan("");
  mj_forward(model_.get(), data.get());
  mj_forward(model_.get(), data.get());
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("not a finite number")));
}

TEST_F(LifecycleTest, InstancesOfOneModelKeepApart) {
  policy_.config.state_dim = 1;
  policy_.config.action_dim = 1;
  const std::string second = "<instance name=\"second\">" + Set("checkpoint", Folder()) +
                             Set("state", "hinge") + Set("actuators", "hinge") +
                             Set("period", "0.05") + Set("seed", "2") + "</instance>";
  Load(Set("checkpoint", Folder()) + Set("state", "ax") + Set("actuators", "ax") + Set("seed", "1"),
       second);
  ASSERT_THAT(mjp::PolicyInstances(model_.get()), ElementsAre(0, 1));
  const DataPtr data = Make();
  Run(data.get(), 41);
  std::vector<uint64_t> seeds;
  for (const SeenInput& seen : policy_.Take()) seeds.push_back(seen.key.seed);
  EXPECT_THAT(seeds, ElementsAre(1, 2, 2));
  EXPECT_EQ(data->ctrl[1], 0) << "no instance drives ay";
  EXPECT_EQ(policy_.loads, 1) << "one checkpoint, read once";
}

TEST_F(LifecycleTest, ModelsKeepApart) {
  Load();
  const ModelPtr other = Compile(Xml(Basic() + Set("seed", "6")));
  const DataPtr a = Make(), b(mj_makeData(other.get()));
  for (int i = 0; i < 100; ++i) {
    mj_step(model_.get(), a.get());
    mj_step(other.get(), b.get());
  }
  const DataPtr alone = Make();
  Run(alone.get(), 100);
  EXPECT_EQ(State(a.get()), State(alone.get()));
  EXPECT_NE(a->ctrl[0], b->ctrl[0]);
}

TEST_F(LifecycleTest, ReloadsDoNotGrow) {
  AddCamera();
  for (int i = 0; i < 100; ++i) {
    const ModelPtr model = Compile(Xml(BasicWithCamera() + Set("renderer", "probe")));
    const DataPtr data(mj_makeData(model.get()));
    mj_step(model.get(), data.get());
  }
  EXPECT_EQ(policy_.loads, 1);
  EXPECT_EQ(policy_.made, 1);
  EXPECT_EQ(mjp::CachedPolicies(), 1);
}

TEST_F(LifecycleTest, CacheKeepsFewUnusedPolicies) {
  for (int steps = 1; steps <= 20; ++steps) {
    Compile(Xml(Basic() + Set("sampler", "ddim") + Set("steps", std::to_string(steps))));
  }
  EXPECT_LE(mjp::CachedPolicies(), 5);
  EXPECT_EQ(policy_.loads, 1);
}

TEST_F(LifecycleTest, ChangedCheckpointIsReadAgain) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("plugin_cache_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto write = [&](const std::string& text) {
    std::ofstream(folder / "config.json") << text;
  };
  const std::string config =
      Set("checkpoint", folder.string()) + Set("state", "ax ay") + Set("actuators", "ax ay");
  write("one");
  Compile(Xml(config));
  Compile(Xml(config));
  EXPECT_EQ(policy_.loads, 1);
  write("another");
  Compile(Xml(config));
  EXPECT_EQ(policy_.loads, 2);
  EXPECT_EQ(mjp::CachedPolicies(), 1);

  // a real instance whose checkpoint has become another one must not end the host
  const ModelPtr model = Compile(Xml(config));
  write("the third");
  policy_.config.horizon = 32;
  const DataPtr data(mj_makeData(model.get()));
  ASSERT_NE(data, nullptr);
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("compile it from its XML again")));
  data->ctrl[0] = 5;
  mj_step(model.get(), data.get());
  EXPECT_EQ(data->ctrl[0], 5);
  EXPECT_TRUE(mjp::PolicyFailed(model.get(), data.get()));
  std::filesystem::remove_all(folder);
  const DataPtr later(mj_makeData(model.get()));
  ASSERT_NE(later, nullptr);
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("there is no checkpoint directory")));
}

// as a training that goes on writes it
TEST_F(LifecycleTest, OverwrittenCheckpointActsInNewSimulationsAndIsNamedOnce) {
  const TempDir folder;
  policy_.act = [](const SeenInput& seen) {
    return std::vector<float>(size_t{2} * 16, seen.sha256 == "a" ? 0.25f : 0.5f);
  };
  const auto write = [&](const std::string& sha256) {
    std::ofstream(folder / "model.safetensors") << sha256;
    policy_.sha256 = sha256;
  };
  const auto control = [](const mjModel* model, mjData* data) {
    for (int i = 0; i < 200; ++i) mj_step(model, data);
    return data->ctrl[0];
  };
  write("a");
  const ModelPtr model = Compile(
      Xml(Set("checkpoint", folder.path()) + Set("state", "ax ay") + Set("actuators", "ax ay")));
  const DataPtr before(mj_makeData(model.get()));
  EXPECT_EQ(control(model.get(), before.get()), 0.25);
  write("another");
  const DataPtr after(mj_makeData(model.get()));
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr(folder.path() + " has changed on the disk")));
  const DataPtr second(mj_makeData(model.get()));
  EXPECT_EQ(control(model.get(), after.get()), 0.5);
  EXPECT_EQ(control(model.get(), second.get()), 0.5);
  EXPECT_EQ(control(model.get(), before.get()), 0.25);
  std::ofstream(folder / "model.safetensors") << "the same, written again";
  EXPECT_NE(DataPtr(mj_makeData(model.get())), nullptr);
}

TEST_F(LifecycleTest, RecompiledModelGoesOn) {
  char message[1000];
  mjSpec* spec = mj_parseXMLString(Xml(Basic()).c_str(), nullptr, message, sizeof(message));
  ASSERT_NE(spec, nullptr) << message;
  model_.reset(mj_compile(spec, nullptr));
  DataPtr data = Make(), untouched = Make();
  Run(data.get(), 30);
  Run(untouched.get(), 200);
  ASSERT_EQ(mj_recompile(spec, nullptr, model_.get(), data.get()), 0);
  Run(data.get(), 170);
  EXPECT_EQ(State(data.get()), State(untouched.get()));

  // one more joint: a larger state, which starts afresh
  mjsBody* body = mjs_addBody(mjs_findBody(spec, "world"), nullptr);
  mjs_addFreeJoint(body);
  mjsGeom* geom = mjs_addGeom(body, nullptr);
  geom->size[0] = 0.1;
  ASSERT_EQ(mj_recompile(spec, nullptr, model_.get(), data.get()), 0) << mjs_getError(spec);
  Run(data.get(), 200);
  EXPECT_FALSE(mjp::PolicyFailed(model_.get(), data.get()));
  mj_deleteSpec(spec);
}

TEST_F(LifecycleTest, ThreadsShareThePolicy) {
  AddCamera();
  Load(BasicWithCamera() + Set("renderer", "probe"));
  const DataPtr alone = Make();
  Run(alone.get(), 500);
  constexpr int kThreads = 8;
  std::vector<DataPtr> data(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, &data] {
      data[t] = Make();  // instances are made concurrently too
      Run(data[t].get(), 500);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const DataPtr& each : data) EXPECT_EQ(State(each.get()), State(alone.get()));
  EXPECT_EQ(policy_.loads, 1);
}

// The engine's batches: by default an instance serves many simulations in any order, so all that
// tells them apart is plugin_state.
class BatchTest : public LifecycleTest, public ::testing::WithParamInterface<bool> {};

TEST_P(BatchTest, EverySimulationIsAsAlone) {
  AddCamera();
  Load(BasicWithCamera() + Set("renderer", "probe"));
  constexpr int kSimulations = 5, kCalls = 50, kStepsPerCall = 5;
  mjBatchConfig config;
  mjb_defaultConfig(&config);
  config.nthread = 2;
  config.persistent = GetParam();
  mjBatch* batch = mjb_makeBatch(model_.get(), kSimulations, &config, nullptr, 0);
  ASSERT_NE(batch, nullptr);

  const DataPtr data = Make();
  std::vector<std::vector<mjtNum>> alone;
  for (int i = 0; i < kSimulations; ++i) {
    mj_resetData(model_.get(), data.get());
    data->qpos[0] = 0.1 * i;
    mjp::SetEpisodeSeed(model_.get(), data.get(), i);
    std::ranges::copy(State(data.get()), mjb_state(batch) + i * mjb_nstate(batch));
    Run(data.get(), kCalls * kStepsPerCall);
    alone.push_back(State(data.get()));
  }
  for (int call = 0; call < kCalls; ++call) {
    ASSERT_EQ(mjb_step(batch, nullptr, kSimulations, kStepsPerCall, mjSTAGE_NONE), 0);
  }
  for (int i = 0; i < kSimulations; ++i) {
    const mjtNum* row = mjb_state(batch) + i * mjb_nstate(batch);
    EXPECT_EQ(std::vector<mjtNum>(row, row + mjb_nstate(batch)), alone[i]) << "simulation " << i;
  }
  mjb_deleteBatch(batch);
}

INSTANTIATE_TEST_SUITE_P(Batches, BatchTest, ::testing::Bool());

}  // namespace
}  // namespace mjp_test
