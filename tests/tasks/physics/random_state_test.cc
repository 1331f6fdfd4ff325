#include "tasks/physics/random_state.h"

#include <gtest/gtest.h>

// Expected numbers: NumPy 2.4.6, numpy.random.RandomState.

namespace mjp::app {
namespace {

TEST(RandomStateTest, IntegersAreNumPys) {
  RandomState random(42);
  EXPECT_EQ(random.RandInt(0, 10), 6);
  EXPECT_EQ(random.RandInt(-5, 5), -2);
  EXPECT_EQ(random.RandInt(0, 1), 0);  // one choice: nothing is drawn
  EXPECT_EQ(random.RandInt(0, int64_t{1} << 31), 1935803228);
  EXPECT_EQ(random.RandInt(0, (int64_t{1} << 32) - 1), 787846414);
  // the generator stands where NumPy's does, and the second normal comes from the cache
  EXPECT_EQ(random.Randn(), 0x1.4b9dd50245e68p-1);
  EXPECT_EQ(random.Randn(), 0x1.85e548e01aa2bp+0);
  EXPECT_EQ(random.Randn(), -0x1.df8bcdf57a640p-3);
  EXPECT_EQ(random.RandomSample(), 0x1.dbd229d645570p-5);
}

}  // namespace
}  // namespace mjp::app
