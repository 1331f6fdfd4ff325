#ifndef TESTS_APPS_TRAIN_RECIPE_FIXTURE_H_
#define TESTS_APPS_TRAIN_RECIPE_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>

#include "apps/train/recipe.h"
#include "base/folders.h"
#include "tasks/pusht/planner/demonstrations.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {

// A training of seconds on the CPU: a tiny network, data that is finished, a length in steps.
class RecipeTest : public ::testing::Test {
 protected:
  static constexpr size_t kLimit = 64 << 20;  // of a file that is read, in bytes

  void SetUp() override {
    DemonstrateOptions demonstrate;
    demonstrate.out = folder_ / "data";
    demonstrate.rows = demonstrate.stream.rows = 32;
    demonstrate.stream.planner = SmallPlanner();
    std::ostringstream log;
    RunDemonstrate(demonstrate, log, never_);
  }

  static PlannerOptions SmallPlanner() {
    PlannerOptions planner;
    planner.samples = 64;
    planner.rounds = 2;
    return planner;
  }

  TrainOptions Options(const std::string& name) const {
    TrainOptions options;
    options.out = folder_ / name;
    options.device = "cpu";
    options.architecture.unet_channels = {32, 64};
    options.architecture.stage_channels = {32, 32};
    options.architecture.stem_channels = 16;
    options.data.folders = {folder_ / "data"};
    options.data.planner = SmallPlanner();
    options.step.batch = options.step.draws = 2;
    options.steps = 4;
    options.log_every = 2;
    return options;
  }

  // The same, shorter, with rounds of the student's episodes.
  TrainOptions OptionsOfRounds(const std::string& name, int count, int episodes,
                               int disturbed) const {
    TrainOptions options = Options(name);
    options.rounds.count = count;
    options.rounds.episodes = episodes;
    options.rounds.disturbed_episodes = disturbed;
    options.steps = 3;
    return options;
  }

  bool Train(const TrainOptions& options, const std::atomic<bool>& stop) const {
    std::ostringstream progress;
    return Train(options, stop, progress);
  }
  bool Train(const TrainOptions& options, const std::atomic<bool>& stop,
             std::ostream& progress) const {
    Ranks ranks(1);
    return mjp::app::Train(options, ranks, progress, stop);
  }

  // Trains until the first line of progress that begins with `text`.
  bool TrainUntil(const TrainOptions& options, const std::string& text) const {
    class Watch : public std::stringbuf {
     public:
      Watch(std::string text, std::atomic<bool>& stop) : text_(std::move(text)), stop_(stop) {}
      int sync() override {
        if (str().find(text_) != std::string::npos) stop_ = true;
        return 0;
      }

     private:
      std::string text_;
      std::atomic<bool>& stop_;
    };
    std::atomic<bool> stop = false;
    Watch watch(text, stop);
    std::ostream progress(&watch);
    Ranks ranks(1);
    return mjp::app::Train(options, ranks, progress, stop);
  }

  std::string Weights(const std::string& name) const {
    return ReadFile(folder_ / (name + "/checkpoint/model.safetensors"), kLimit);
  }

  mjp_test::TempDir folder_;
  const std::atomic<bool> never_ = false;
};

}  // namespace mjp::app

#endif  // TESTS_APPS_TRAIN_RECIPE_FIXTURE_H_
