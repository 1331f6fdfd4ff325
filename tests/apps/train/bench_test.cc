#include <gmock/gmock.h>

#include "tests/support/program.h"

// libtorch's side of the bench, for every U-Net that has a name.

namespace mjp::app {
namespace {

using testing::HasSubstr;

class TorchBenchTest : public testing::TestWithParam<std::string> {};

TEST_P(TorchBenchTest, MeasuresBothSidesOfAPass) {
  const mjp_test::Outcome bench = mjp_test::RunMjpolicy(
      "bench pass --backend cpu --seconds 0.01 --peer torch --network " + GetParam());
  EXPECT_EQ(bench.code, 0) << bench.text;
  for (const char* row : {"this project: chunk", "torch, eager fp32: U-Net pass",
                          "torch, frozen fp32: chunk", "torch, eager fp32: encoder"})
    EXPECT_THAT(bench.text, HasSubstr(row));
}

// all but the largest, whose chunks take minutes
INSTANTIATE_TEST_SUITE_P(Networks, TorchBenchTest,
                         testing::Values("compact", "lerobot-128", "notebook"));

}  // namespace
}  // namespace mjp::app
