#include "apps/train/optimisation/ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

void Sleep(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST(RanksTest, AnAgreedEndOfTheOthersLetsRankZeroSave) {
  const mjp_test::TempDir dir;
  const auto train = [&] {
    const Ranks ranks(2);
    ranks.EndOthers();
    Sleep(500);
    dir.Write("saved", "");
    std::_Exit(130);
  };
  EXPECT_EXIT(train(), ::testing::ExitedWithCode(130), "^$");
  EXPECT_TRUE(std::filesystem::exists(dir / "saved"));
}

TEST(RanksTest, ARankThatFailsEndsRankZero) {
  const auto train = [] {
    const Ranks ranks(2);
    if (ranks.rank() == 1) std::_Exit(2);
    Sleep(60000);
  };
  EXPECT_EXIT(train(), ::testing::ExitedWithCode(75), "a rank ended");
}

}  // namespace
}  // namespace mjp::app
