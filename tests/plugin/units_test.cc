// Wrong units: what a forgotten scale looks like is said once, and what is right says nothing.

#include <string>

#include "tests/plugin/plugin_fixture.h"

namespace mjp_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kMinMax = mjp::Normalization::kMinMax;

class UnitsTest : public PluginTest {
 protected:
  UnitsTest() {
    policy_.act = [](const SeenInput&) { return std::vector<float>(32, 0.5f); };
  }
  static void Run(const mjModel* model, int steps) {
    const DataPtr data(mj_makeData(model));
    for (int i = 0; i < steps; ++i) mj_step(model, data.get());
  }
};

TEST_F(UnitsTest, RightOnesSayNothing) {
  policy_.stats.state = policy_.stats.action = {kMinMax, {-1, -1}, {1, 1}};
  Run(Compile(Xml(Basic())).get(), 400);
  policy_.stats.state = policy_.stats.action = {mjp::Normalization::kMeanStd, {0, 0}, {1, 1}};
  policy_.Install();
  Run(Compile(Xml(Basic())).get(), 400);
  EXPECT_THAT(TakeWarnings(), IsEmpty());
}

TEST_F(UnitsTest, ObservationsFarOutsideTheStatisticsAreSaidOnce) {
  policy_.stats.state = {kMinMax, {0, 0}, {1, 1}};
  const ModelPtr model = Compile(Xml(Basic()));
  for (const double position : {10.9, 11.1, 5000.0}) {
    const DataPtr data(mj_makeData(model.get()));
    data->qpos[1] = position;
    mj_step(model.get(), data.get());
    if (position < 11) {
      EXPECT_THAT(TakeWarnings(), IsEmpty());
    }
  }
  EXPECT_THAT(TakeWarnings(),
              ElementsAre(AllOf(HasSubstr("\"policy\""), HasSubstr("\"ay\" as 11.1"),
                                HasSubstr("0 to 1"), HasSubstr("state_scale"))));
  // a model that is loaded again may have been mended, or not
  const ModelPtr again = Compile(Xml(Basic()));
  const DataPtr data(mj_makeData(again.get()));
  data->qpos[0] = -11;
  mj_step(again.get(), data.get());
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("\"ax\" as -11")));
}

// pixels of training in a world of metres: nothing lies outside, and yet nothing fits
TEST_F(UnitsTest, StatisticsThatTheModelCannotReachAreSaidOnce) {
  policy_.stats.state = {kMinMax, {13, 13}, {498, 498}};
  policy_.stats.action = {kMinMax, {12, 25}, {511, 511}};
  const ModelPtr model = Compile(Xml(Basic()));
  Run(model.get(), 5);
  Run(model.get(), 5);
  EXPECT_THAT(TakeWarnings(),
              ElementsAre(AllOf(HasSubstr("\"ax\" from 13 to 498"), HasSubstr("state_scale")),
                          HasSubstr("action_scale")));
  Run(Compile(Xml(Basic() + Set("state_scale", "100") + Set("action_scale", "100"))).get(), 5);
  EXPECT_THAT(TakeWarnings(), IsEmpty());
}

TEST_F(UnitsTest, DegreesForRadiansAreSaid) {
  policy_.config.state_dim = 1;
  policy_.stats.state = {kMinMax, {-180}, {180}};
  const std::string attributes =
      Set("checkpoint", Folder()) + Set("state", "hinge") + Set("actuators", "ax ay");
  Run(Compile(Xml(attributes)).get(), 5);
  EXPECT_THAT(TakeWarnings(), ElementsAre(HasSubstr("-180 to 180 radians")));
  Run(Compile(Xml(attributes + Set("state_scale", "57.29578"))).get(), 5);
  EXPECT_THAT(TakeWarnings(), IsEmpty());
}

TEST_F(UnitsTest, ControlsThatAreCutForASecondAreSaidOnce) {
  std::string xml = Xml(Basic());
  const std::string servo = "<position name=\"ay\"";
  xml.insert(xml.find(servo) + servo.size(), " ctrlrange=\"-1 1\"");
  for (const float wanted : {0.9f, 1.01f, 163.0f, -5.0f}) {
    policy_.act = [=](const SeenInput&) { return std::vector<float>(32, wanted); };
    const ModelPtr model = Compile(xml);
    Run(model.get(), 99);
    EXPECT_THAT(TakeWarnings(), IsEmpty()) << "not a second yet";
    Run(model.get(), 300);
    if (std::abs(wanted) < 1.1) {
      EXPECT_THAT(TakeWarnings(), IsEmpty()) << wanted;
    } else {
      EXPECT_THAT(TakeWarnings(),
                  ElementsAre(AllOf(HasSubstr("control \"ay\""), HasSubstr("ctrlrange -1 to 1"),
                                    HasSubstr("action_scale"))));
    }
  }
}

TEST_F(UnitsTest, ControlsThatTheClipCutsForASecondAreSaidOnce) {
  for (const float wanted : {0.9f, 1.0f, -1.01f, 163.0f}) {
    policy_.act = [=](const SeenInput&) { return std::vector<float>(32, wanted); };
    policy_.Install();
    const ModelPtr model =
        Compile(Xml(Basic() + Set("action_clip", "-1 1") + Set("action_scale", "10")));
    Run(model.get(), 99);
    EXPECT_THAT(TakeWarnings(), IsEmpty()) << "not a second yet";
    Run(model.get(), 300);
    if (std::abs(wanted) < 1.1) {
      EXPECT_THAT(TakeWarnings(), IsEmpty()) << wanted;
    } else {
      EXPECT_THAT(TakeWarnings(),
                  ElementsAre(AllOf(HasSubstr("control \"ax\" at 16.3"),
                                    HasSubstr("action_clip -1 to 1 (the policy's unit)"))));
    }
  }
}

}  // namespace
}  // namespace mjp_test
