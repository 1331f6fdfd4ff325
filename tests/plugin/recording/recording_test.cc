// Attribute `record`: what a policy sees and does in a host's own loop becomes a data set.

#include <mujoco/mjbatch.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "datasets/check.h"
#include "datasets/dataset.h"
#include "datasets/recording/writer.h"
#include "datasets/workplace.h"
#include "plugin/state.h"
#include "tests/plugin/recording/recording_fixture.h"
#include "tests/support/renderer.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {
namespace {

using mjp::datasets::Check;
using mjp::datasets::Dataset;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// first: a process with threads must not fork
TEST_F(RecordingTest, AKillLosesTheEpisodeInFlight) {
  const std::string xml = CartPole(Recorded());
  int said[2];
  ASSERT_EQ(pipe(said), 0);
  const pid_t child = fork();
  if (child == 0) {
    const ModelPtr model = Compile(xml);
    mjData* data = mj_makeData(model.get());
    for (;;) {
      mj_resetDataKeyframe(model.get(), data, 0);
      if (write(said[1], "k", 1) != 1) _exit(1);
      Run(model.get(), data, 30);
    }
  }
  ::close(said[1]);
  int resets = 0;
  for (char each; resets < 4 && read(said[0], &each, 1) == 1;) ++resets;
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  const mjp::datasets::Info info = Dataset(Recorded()).info();
  mjp::datasets::DatasetWriter(Recorded(), info).Finish();  // as `mjpolicy dataset --finish` does
  const std::vector<int64_t> lengths = Lengths();
  EXPECT_GE(lengths.size(), 3u);
  EXPECT_THAT(lengths, ::testing::Each(3));
}

TEST_F(RecordingTest, EpisodesOfAHostAreADataSet) {
  const ModelPtr plain = Compile(CartPole("")), model = Compile(CartPole(Recorded()));
  DataPtr expected(mj_makeData(plain.get())), data(mj_makeData(model.get()));
  for (const int steps : {60, 35}) {
    mj_resetDataKeyframe(plain.get(), expected.get(), 0);
    mj_resetDataKeyframe(model.get(), data.get(), 0);
    mj_forward(model.get(), data.get());  // as viewers do
    EXPECT_EQ(Run(model.get(), data.get(), steps), Run(plain.get(), expected.get(), steps));
  }
  data.reset();
  EXPECT_THAT(Lengths(), ElementsAre(6, 3));  // whole control steps
  Dataset dataset(Recorded());
  mj_resetDataKeyframe(plain.get(), expected.get(), 0);
  const auto actions = dataset.Read(0, *dataset.info().Find("action")).values.numbers;
  const auto states = dataset.Read(0, *dataset.info().Find("observation.state")).values.numbers;
  for (int step = 0; step < 6; ++step) {
    EXPECT_EQ(states[2 * step], static_cast<float>(expected->qpos[0]));
    EXPECT_EQ(states[2 * step + 1], static_cast<float>(expected->qpos[1]));
    Run(plain.get(), expected.get(), 10);
    EXPECT_EQ(10 * actions[step], expected->ctrl[0]) << step;
  }
  EXPECT_NE(actions[0], 0);
}

TEST_F(RecordingTest, PicturesAreThoseThatThePolicySees) {
  if (const std::string why = RendererLacks(); !why.empty()) GTEST_SKIP() << why;
  policy_.config.cameras.push_back({"observation.images.front", 3, 24, 32});
  const ModelPtr model =
      Compile(CartPole(Recorded(), Set("camera", "front") + Set("renderer", "mujoco")));
  DataPtr data(mj_makeData(model.get()));
  mj_resetDataKeyframe(model.get(), data.get(), 0);
  Run(model.get(), data.get(), 20);
  const std::vector<SeenInput> seen = policy_.Take();
  data.reset();
  EXPECT_THAT(Lengths(), ElementsAre(2));
  Dataset dataset(Recorded());
  const auto picture = dataset.ReadPicture(0, *dataset.info().Find("observation.images.front"), 0);
  ASSERT_FALSE(seen.empty());
  const std::vector<uint8_t>& frames = seen[0].frames;
  ASSERT_GE(frames.size(), picture.rgb.size());
  EXPECT_EQ(std::vector<uint8_t>(frames.end() - std::ssize(picture.rgb), frames.end()),
            picture.rgb);
}

TEST_F(RecordingTest, TheTasksEndEndsAnEpisode) {
  std::string xml = CartPole(Recorded());
  Replace(xml, R"(name="task.steps" data="200")", R"(name="task.steps" data="4")");
  Replace(xml, "> 0.55 for 1", "> 0.55 for 0.1");
  const ModelPtr model = Compile(xml);
  DataPtr data(mj_makeData(model.get()));
  for (const int steps : {70, 20}) {
    mj_resetDataKeyframe(model.get(), data.get(), 0);
    Run(model.get(), data.get(), steps);
  }
  // a success ends it sooner
  mj_resetData(model.get(), data.get());  // the pole stands
  Run(model.get(), data.get(), 30);
  data.reset();
  EXPECT_THAT(Lengths(), ElementsAre(4, 2, 2));
  Dataset dataset(Recorded());
  EXPECT_THAT(dataset.Read(2, *dataset.info().Find("next.success")).values.ints, ElementsAre(0, 1));
}

TEST_F(RecordingTest, OneOfTwoSimulationsWrites) {
  const ModelPtr model = Compile(CartPole(Recorded()));
  DataPtr first(mj_makeData(model.get())), second(mj_makeData(model.get()));
  mj_resetDataKeyframe(model.get(), first.get(), 0);
  mj_resetDataKeyframe(model.get(), second.get(), 0);
  for (int i = 0; i < 50; ++i) {
    mj_step(model.get(), first.get());
    mj_step(model.get(), second.get());
  }
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("another simulation of this process writes")));
  first.reset();
  EXPECT_THAT(Lengths(), ElementsAre(5));
  mj_resetDataKeyframe(model.get(), second.get(), 0);
  Run(model.get(), second.get(), 20);
  second.reset();
  EXPECT_THAT(Lengths(), ElementsAre(5, 2));
}

TEST_F(RecordingTest, AJumpInTimeEndsAnEpisode) {
  const ModelPtr model = Compile(CartPole(Recorded()));
  DataPtr data(mj_makeData(model.get()));
  mj_resetDataKeyframe(model.get(), data.get(), 0);
  Run(model.get(), data.get(), 40);
  data->time = 0.05;  // amid a control step: the next one is the first that is whole
  Run(model.get(), data.get(), 26);
  data.reset();
  EXPECT_THAT(Lengths(), ElementsAre(4, 2));
}

TEST_F(RecordingTest, WhatActionsDoNotExplainIsLeftOut) {
  const ModelPtr model = Compile(CartPole(Recorded()));
  DataPtr data(mj_makeData(model.get()));
  for (int episode = 0; episode < 2; ++episode) {
    mj_resetDataKeyframe(model.get(), data.get(), 0);
    Run(model.get(), data.get(), 20);
    data->qpos[0] += 0.01;  // by hand
    Run(model.get(), data.get(), 20);
  }
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("else than the policy's actuators moved")));
  mj_resetDataKeyframe(model.get(), data.get(), 0);
  Run(model.get(), data.get(), 10);
  data.reset();
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("2 of 3 episodes were not recorded")));
  EXPECT_THAT(Lengths(), ElementsAre(1));
}

TEST_F(RecordingTest, EachCauseOfALossIsSaid) {
  const ModelPtr model = Compile(CartPole(Recorded()));
  DataPtr data(mj_makeData(model.get()));
  mj_resetDataKeyframe(model.get(), data.get(), 0);
  Run(model.get(), data.get(), 20);
  data->qpos[0] += 0.01;  // by hand
  Run(model.get(), data.get(), 20);
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("else than the policy's actuators moved")));
  const std::string spool = mjp::datasets::Workplace::In(Recorded()), away = folder_ / "away";
  std::filesystem::rename(spool, away);
  std::ofstream(spool) << "no folder";
  for (int episode = 0; episode < 2; ++episode) {
    mj_resetDataKeyframe(model.get(), data.get(), 0);
    Run(model.get(), data.get(), 20);
  }
  mj_resetDataKeyframe(model.get(), data.get(), 0);
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr(".spool")));
  std::filesystem::remove(spool);
  std::filesystem::rename(away, spool);
  Run(model.get(), data.get(), 20);
  data.reset();
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("3 of 4 episodes were not recorded")));
  EXPECT_THAT(Lengths(), ElementsAre(2));
}

TEST_F(RecordingTest, LimitsThatSinglePrecisionLacksAreRecorded) {
  std::string xml = CartPole(Recorded());
  Replace(xml, R"(value="-1 1")", R"(value="-0.1 0.1")");
  const ModelPtr model = Compile(xml);
  DataPtr data(mj_makeData(model.get()));
  mj_resetDataKeyframe(model.get(), data.get(), 0);
  Run(model.get(), data.get(), 80);
  data.reset();
  EXPECT_THAT(Lengths(), ElementsAre(8));
}

TEST_F(RecordingTest, AModelThatIsNoTaskWarnsAndRuns) {
  policy_.config.action_dim = 2;
  const ModelPtr model = Compile(Xml(Basic() + Set("record", Recorded())));
  DataPtr data(mj_makeData(model.get()));
  for (int episode = 0; episode < 2; ++episode) {
    mj_resetData(model.get(), data.get());
    Run(model.get(), data.get(), 30);
    EXPECT_NE(data->ctrl[0], 0);
  }
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("task.steps")));
}

TEST_F(RecordingTest, AChildOfForkLeavesItToTheParent) {
  const ModelPtr model = Compile(CartPole(Recorded()));
  DataPtr data(mj_makeData(model.get()));
  mj_resetDataKeyframe(model.get(), data.get(), 0);
  Run(model.get(), data.get(), 25);
  const pid_t child = fork();
  if (child == 0) {
    Run(model.get(), data.get(), 25);
    const std::vector<std::string> said = TakeWarnings();
    data.reset();
    _exit(said.size() == 1 && said[0].find("before fork()") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  Run(model.get(), data.get(), 15);
  data.reset();
  EXPECT_THAT(Lengths(), ElementsAre(4));
}

// Finite differences of the state with mj_forward before, also of sensors, as a controller takes
// them beside the policy: at the start, within a control step and as one begins.
TEST_F(RecordingTest, FiniteDifferencesChangeNothing) {
  const ModelPtr model = Compile(CartPole(Recorded()));
  DataPtr data(mj_makeData(model.get()));
  const int n = 2 * model->nv + model->na;
  std::vector<mjtNum> a(n * n), b(n * model->nu), c(model->nsensordata * n);
  mj_resetDataKeyframe(model.get(), data.get(), 0);
  for (const int steps : {0, 13, 17, 9, 21}) {
    Run(model.get(), data.get(), steps);
    mj_forward(model.get(), data.get());
    mjd_transitionFD(model.get(), data.get(), 1e-6, 0, a.data(), b.data(), nullptr, nullptr);
    mjd_transitionFD(model.get(), data.get(), 1e-6, 1, a.data(), b.data(), c.data(), nullptr);
  }
  data.reset();
  EXPECT_THAT(Lengths(), ElementsAre(6));
}

// Steps that are taken back, each from another place.
TEST_F(RecordingTest, AnEpisodeBeginsWithTheLastOfItsTries) {
  const ModelPtr model = Compile(CartPole(Recorded()));
  DataPtr data(mj_makeData(model.get()));
  mj_resetDataKeyframe(model.get(), data.get(), 0);
  for (const double place : {0.1, 0.2, 0.0}) {
    data->time = 0;
    data->qpos[0] = place;
    Run(model.get(), data.get(), 1);
  }
  Run(model.get(), data.get(), 29);
  data.reset();
  EXPECT_THAT(Lengths(), ElementsAre(3));
  Dataset dataset(Recorded());
  EXPECT_EQ(dataset.Read(0, *dataset.info().Find("observation.state")).values.numbers[0], 0);
}

TEST_F(RecordingTest, AnotherCauseIsSaidOfALaterSimulation) {
  const ModelPtr model = Compile(CartPole(Recorded()));
  DataPtr first(mj_makeData(model.get())), second(mj_makeData(model.get()));
  const auto run = [&](mjData* each) {
    mj_resetDataKeyframe(model.get(), each, 0);
    Run(model.get(), each, 20);
  };
  for (mjData* each : {first.get(), second.get()}) run(each);
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("another simulation")));
  first.reset();
  second.reset();
  std::filesystem::remove_all(Recorded());
  std::ofstream(Recorded()) << "no folder";
  for (int later = 0; later < 2; ++later) run(DataPtr(mj_makeData(model.get())).get());
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("recording into " + Recorded())));
  std::filesystem::remove(Recorded());
  first.reset(mj_makeData(model.get()));
  second.reset(mj_makeData(model.get()));
  for (mjData* each : {first.get(), second.get()}) run(each);
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("another simulation")));
}

}  // namespace
}  // namespace mjp_test
