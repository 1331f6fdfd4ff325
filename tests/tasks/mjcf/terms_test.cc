// What `mjpolicy check` warns of, on terms that are made up.

#include "tasks/mjcf/check/terms.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace mjp::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A term in radians that reaches `seen` times as far as training did.
TermRow Row(const std::string& feature, const std::string& name, double seen) {
  return {feature, name, "rad", {{-seen, seen}}, {{-1, 1}}};
}

TEST(TermWarningsTest, OneControlWhoseRangeIsHardlyUsedIsNoOtherUnit) {
  EXPECT_THAT(TermWarnings({Row("action", "waist", 28.8), Row("action", "elbow", 3)}), IsEmpty());
}

TEST(TermWarningsTest, AllControlsOfAUnitAre) {
  EXPECT_THAT(TermWarnings({Row("action", "waist", 28.8), Row("action", "elbow", 12)}),
              ElementsAre(HasSubstr("action waist: the unit looks wrong by a factor of about 28.8"),
                          HasSubstr("action elbow")));
}

TEST(TermWarningsTest, OneControlInDegreesOrTooSmallIs) {
  EXPECT_THAT(TermWarnings({Row("action", "waist", 57.3), Row("action", "elbow", 3),
                            Row("action", "wrist", 0.1)}),
              ElementsAre(HasSubstr("action waist"), HasSubstr("action wrist")));
}

TEST(TermWarningsTest, ObservationsAreJudgedEachForItself) {
  EXPECT_THAT(TermWarnings({Row("state", "waist", 28.8), Row("state", "elbow", 1),
                            Row("state", "wrist", 2)}),
              ElementsAre(HasSubstr("state waist: the unit looks wrong"),
                          HasSubstr("state wrist: starts lie outside")));
}

}  // namespace
}  // namespace mjp::app
