// Decisions that are made on a thread of their own, and decisions that are not made twice.

#include <chrono>
#include <future>
#include <vector>

#include "tests/plugin/plugin_fixture.h"

namespace mjp_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A picture of the red of the model's first geom.
class RedSource : public mjp::PictureSource {
 public:
  void Render(const mjModel* model, mjData*, std::span<uint8_t> rgb) override {
    std::ranges::fill(rgb, 0);
    const double red = model->geom_rgba[0];
    std::memcpy(rgb.data(), &red, sizeof(red));
  }
};

class AsyncTest : public PluginTest {
 protected:
  AsyncTest() {
    mjp::RegisterPictureSource("red", [](const mjModel*, const mjp::PictureRequest&) {
      return std::make_unique<RedSource>();
    });
    policy_.remembered = 8;
    policy_.Install();
    AddCamera();
  }
  static std::string Attributes(const std::string& latency, bool async) {
    return BasicWithCamera() + Set("renderer", "probe") + Set("latency", latency) +
           Set("async", async ? "1" : "0");
  }
  // Everything physical after each of `steps` steps.
  static std::vector<std::vector<mjtNum>> Run(const mjModel* model, mjData* data, int steps) {
    std::vector<std::vector<mjtNum>> states;
    for (int i = 0; i < steps; ++i) {
      mj_step(model, data);
      states.emplace_back(mj_stateSize(model, mjSTATE_PHYSICS | mjSTATE_CTRL));
      mj_getState(model, data, states.back().data(), mjSTATE_PHYSICS | mjSTATE_CTRL);
    }
    return states;
  }
  std::vector<std::vector<mjtNum>> RunFresh(const std::string& attributes, int steps) {
    policy_.Install();  // forgets
    const ModelPtr model = Compile(Xml(attributes));
    const DataPtr data(mj_makeData(model.get()));
    return Run(model.get(), data.get(), steps);
  }
};

TEST_F(AsyncTest, HasTheBitsOfTheSynchronousRun) {
  for (const char* latency : {"0", "10", "150", "345", "700", "800"}) {
    const auto expected = RunFresh(Attributes(latency, false), 400);
    EXPECT_EQ(RunFresh(Attributes(latency, true), 400), expected) << latency << " ms";
    EXPECT_NE(expected.front(), expected.back());
  }
}

// as a host does that varies colours: a decision is of what its observation saw
TEST_F(AsyncTest, RecolouringMeanwhileChangesNoBit) {
  policy_.act = [this](const SeenInput& seen) {
    const double red = ProbeSource::Decode(seen.frames.data());
    return std::vector<float>(policy_.config.horizon * 2, static_cast<float>(red));
  };
  const auto run = [&](bool async) {
    policy_.Install();
    const ModelPtr model = Compile(Xml(BasicWithCamera() + Set("renderer", "red") +
                                       Set("latency", "150") + Set("async", async ? "1" : "0")));
    const DataPtr data(mj_makeData(model.get()));
    std::vector<mjtNum> controls;
    for (int i = 0; i < 300; ++i) {
      model->geom_rgba[0] = 0.001f * i;
      mj_step(model.get(), data.get());
      controls.push_back(data->ctrl[0]);
    }
    EXPECT_THAT(policy_.Take(), SizeIs(4));
    return controls;
  };
  const std::vector<mjtNum> expected = run(false);
  EXPECT_NE(expected.back(), 0);
  EXPECT_EQ(run(true), expected);
}

// observations at every tick, between a decision and its effect too
TEST_F(AsyncTest, HistoryLongerThanAChunkIsTheSame) {
  policy_.config.n_obs_steps = 6;
  const std::string steps = Set("action_steps", "3");
  for (const char* latency : {"50", "250", "300"}) {
    EXPECT_EQ(RunFresh(Attributes(latency, true) + steps, 300),
              RunFresh(Attributes(latency, false) + steps, 300));
  }
}

// with the policy held up, the simulation goes on up to the latency, and there it waits
TEST_F(AsyncTest, SimulationGoesOnAndThenWaits) {
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  const auto act = policy_.act;
  policy_.act = [=](const SeenInput& seen) {
    open.wait();
    return act(seen);
  };
  const ModelPtr model = Compile(Xml(Attributes("200", true)));
  const DataPtr data(mj_makeData(model.get()));
  for (int i = 0; i < 20; ++i) mj_step(model.get(), data.get());  // time 0 to 0.19
  EXPECT_EQ(data->ctrl[0], 0) << "nothing to execute yet";
  auto late = std::async(std::launch::async, [&] { mj_step(model.get(), data.get()); });
  EXPECT_EQ(late.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  gate.set_value();
  late.get();
  EXPECT_NE(data->ctrl[0], 0);
  EXPECT_THAT(policy_.Take(), SizeIs(1));
}

// the decision under way is no part of a state: where it is missing it is made again
TEST_F(AsyncTest, StateRestoredMeanwhileGoesOnBitForBit) {
  const ModelPtr model = Compile(Xml(Attributes("300", true)));
  const DataPtr data(mj_makeData(model.get()));
  Run(model.get(), data.get(), 90);  // decided at 80, acts at 110
  std::vector<mjtNum> state(mj_stateSize(model.get(), mjSTATE_INTEGRATION));
  mj_getState(model.get(), data.get(), state.data(), mjSTATE_INTEGRATION);
  const DataPtr copy(mj_copyData(nullptr, model.get(), data.get()));
  const auto expected = Run(model.get(), data.get(), 120);
  EXPECT_EQ(Run(model.get(), copy.get(), 120), expected);
  policy_.Take();
  mj_setState(model.get(), data.get(), state.data(), mjSTATE_INTEGRATION);
  EXPECT_EQ(Run(model.get(), data.get(), 120), expected);

  // and in a process that remembers nothing
  policy_.Install();
  const ModelPtr again = Compile(Xml(Attributes("300", true)));
  const DataPtr fresh(mj_makeData(again.get()));
  mj_setState(again.get(), fresh.get(), state.data(), mjSTATE_INTEGRATION);
  EXPECT_EQ(Run(again.get(), fresh.get(), 120), expected);
}

TEST_F(AsyncTest, FailureIsSaidWhenItsResultIsDue) {
  policy_.act = [](const SeenInput&) -> std::vector<float> { throw mjp::BadInput("no such luck"); };
  const ModelPtr model = Compile(Xml(Attributes("100", true)));
  const DataPtr data(mj_makeData(model.get()));
  for (int i = 0; i < 10; ++i) mj_step(model.get(), data.get());
  EXPECT_THAT(TakeWarnings(), ::testing::IsEmpty());
  for (int i = 0; i < 10; ++i) mj_step(model.get(), data.get());
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("no such luck")));
}

TEST_F(AsyncTest, ResetAndDeleteAreSafeWhileADecisionIsUnderWay) {
  const ModelPtr model = Compile(Xml(Attributes("500", true)));
  for (int i = 0; i < 50; ++i) {
    const DataPtr data(mj_makeData(model.get()));
    mj_step(model.get(), data.get());
    mj_resetData(model.get(), data.get());
    mj_step(model.get(), data.get());
  }
}

// a passive viewer calls mj_forward on its copy, before or after the original steps on
TEST_F(AsyncTest, ViewersCopyMakesNoDecisionTwice) {
  const ModelPtr model = Compile(Xml(Attributes("0", false)));
  const DataPtr data(mj_makeData(model.get()));
  const DataPtr shown(mj_makeData(model.get()));
  for (int i = 0; i < 200; ++i) {
    mj_step(model.get(), data.get());
    mj_copyData(shown.get(), model.get(), data.get());
    mj_forward(model.get(), shown.get());
    mj_forward(model.get(), shown.get());
  }
  EXPECT_THAT(policy_.Take(), SizeIs(3));
}

// as ever: what is remembered is keyed by all that a decision depends on
TEST_F(AsyncTest, OtherSeedsAndObservationsAreOtherDecisions) {
  const ModelPtr model = Compile(Xml(Attributes("0", false)));
  const DataPtr data(mj_makeData(model.get()));
  for (int i = 0; i < 3; ++i) {
    mj_resetData(model.get(), data.get());
    data->qpos[0] = 0.1 * i;
    mj_step(model.get(), data.get());
  }
  EXPECT_THAT(policy_.Take(), SizeIs(3));
  mj_resetData(model.get(), data.get());
  mj_step(model.get(), data.get());
  EXPECT_THAT(policy_.Take(), SizeIs(0));
}

}  // namespace
}  // namespace mjp_test
