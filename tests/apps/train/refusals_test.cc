// What a training would ignore, mix or overwrite is refused before anything is read or written.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/train/optimisation/parameters.h"
#include "apps/train/option_kinds.h"
#include "apps/train/run_folder.h"
#include "base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string RefusalOf(std::vector<std::string> arguments) {
  CLI::App app;
  for (const char* flag : {"--dataset",
                           "--expert",
                           "--distill",
                           "--planner-samples",
                           "--planner-rounds",
                           "--speed-limit",
                           "--auxiliary-weight",
                           "--rounds",
                           "--episodes",
                           "--disturbed-episodes",
                           "--late-episodes",
                           "--original-episodes",
                           "--teacher-steps",
                           "--prefix-share",
                           "--camera",
                           "--validation",
                           "--observation-steps",
                           "--horizon",
                           "--resize",
                           "--crop",
                           "--lessons",
                           "--lesson-noise",
                           "--lesson-style",
                           "--picture-every",
                           "--picture",
                           "--objective",
                           "--dit-hidden",
                           "--dit-layers",
                           "--dit-heads",
                           "--unet-channels",
                           "--stage-channels",
                           "--stem-channels",
                           "--prediction",
                           "--action-steps",
                           "--reflect",
                           "--batch"}) {
    app.add_flag(flag);
  }
  std::string network;
  app.add_option("--network,--architecture", network);
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
  return mjp_test::ErrorOf([&] { CheckOptionKinds(app); });
}

TEST(OptionKindsTest, WhatAKindDoesNotReadIsRefusedByName) {
  for (const char* fine : {"--batch", "--reflect", "--rounds", "--unet-channels"}) {
    EXPECT_EQ(RefusalOf({fine}), "") << fine;
  }
  EXPECT_EQ(RefusalOf({"--dataset", "--horizon", "--crop", "--camera", "--batch"}), "");
  EXPECT_EQ(RefusalOf({"--expert", "--lessons", "--picture", "--rounds", "--horizon"}), "");
  EXPECT_EQ(RefusalOf({"--distill", "--rounds", "--reflect", "--batch"}), "");
  EXPECT_THAT(RefusalOf({"--dataset", "--reflect"}),
              HasSubstr("--reflect: is not read with --dataset"));
  EXPECT_THAT(RefusalOf({"--expert", "--camera"}), HasSubstr("--camera: is not read"));
  EXPECT_THAT(RefusalOf({"--expert", "--resize"}), HasSubstr("--resize: is not read"));
  EXPECT_THAT(RefusalOf({"--distill", "--unet-channels"}), HasSubstr("with --distill"));
  EXPECT_THAT(RefusalOf({"--distill", "--late-episodes"}), HasSubstr("with --distill"));
  EXPECT_THAT(RefusalOf({"--dataset", "--prefix-share"}), HasSubstr("with --dataset"));
  EXPECT_THAT(RefusalOf({"--horizon"}), HasSubstr("with --dataset or --expert alone"));
  EXPECT_THAT(RefusalOf({"--lesson-noise"}), HasSubstr("with --expert alone"));
}

TEST(OptionKindsTest, WhatANetworkDoesNotReadIsRefusedByName) {
  EXPECT_EQ(RefusalOf({"--network", "dit", "--objective", "--dit-heads", "--prediction"}), "");
  EXPECT_EQ(RefusalOf({"--architecture", "lerobot", "--prediction"}), "");
  EXPECT_THAT(RefusalOf({"--dit-hidden"}), HasSubstr("--dit-hidden: is read with --network dit"));
  EXPECT_THAT(RefusalOf({"--network", "compact", "--objective"}),
              HasSubstr("--objective: is read"));
  EXPECT_THAT(RefusalOf({"--network", "dit", "--distill"}), HasSubstr("--network: is not read"));
}

TEST(RunFolderTest, HoldsARunOrNothing) {
  const mjp_test::TempDir folder;
  const std::string out = folder / "run";
  for (const char* sign : {"meta/info.json", "config.json", "run.json", "checkpoint/config.json"}) {
    fs::create_directories((fs::path(out) / sign).parent_path());
    folder.Write(std::string("run/") + sign, "{}");
    EXPECT_THAT(mjp_test::ErrorOf([&] { OpenRunFolder(out); }), HasSubstr("that no run here made"))
        << sign;
    EXPECT_FALSE(fs::exists(out + "/.lock"));
    folder.Write("run/log.jsonl", "");  // a run may have been killed before it saved its state
    EXPECT_EQ(mjp_test::ErrorOf([&] { OpenRunFolder(out); }), "") << sign;
    fs::remove_all(out);
  }
  folder.Write("file", "");
  EXPECT_THAT(mjp_test::ErrorOf([&] { OpenRunFolder(folder / "file"); }),
              HasSubstr("cannot create"));
}

TEST(RunFolderTest, IsOfOneProcess) {
  const mjp_test::TempDir folder;
  const std::string out = folder / "run";
  {
    const FileDescriptor lock = OpenRunFolder(out);
    EXPECT_THAT(mjp_test::ErrorOf([&] { OpenRunFolder(out); }),
                HasSubstr("another training is writing"));
  }
  folder.Write("run/state.safetensors", "");
  folder.Write("run/state.safetensors.tmp17", "torn");
  EXPECT_EQ(mjp_test::ErrorOf([&] { OpenRunFolder(out); }), "");
  EXPECT_FALSE(fs::exists(out + "/state.safetensors.tmp17"));
  EXPECT_TRUE(fs::exists(out + "/state.safetensors"));
}

TEST(InitialWeightsTest, ANetworkLargerThanTheMemoryIsRefusedBeforeItIsDrawn) {
  const std::unique_ptr<TensorSource> source = MakeInitialWeights(1);
  EXPECT_EQ(mjp_test::ErrorOf([&] { source->Take("small.weight", {8, 8}); }), "");
  EXPECT_THAT(mjp_test::ErrorOf([&] {
                source->Take("large.weight", {int64_t{1} << 30, 1 << 20});
              }),
              HasSubstr("this machine does not have; take fewer --unet-channels"));
}

}  // namespace
}  // namespace mjp::app
