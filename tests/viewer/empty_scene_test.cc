#include "viewer/drawing/empty_scene.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tasks/physics/model.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

using testing::HasSubstr;

// What MuJoCo's own scene of a model has to draw.
int DrawnGeoms(const mjModel* model, bool hidden_groups) {
  const DataPtr data = MakeData(model);
  mj_forward(model, data.get());
  mjvScene scene;
  mjv_defaultScene(&scene);
  mjv_makeScene(model, &scene, 1000);
  mjvOption option;
  mjv_defaultOption(&option);
  for (int group = 3; group < mjNGROUP; ++group) option.geomgroup[group] = hidden_groups;
  mjvCamera camera;
  mjv_defaultFreeCamera(model, &camera);
  mjv_updateScene(model, data.get(), &option, nullptr, &camera, mjCAT_ALL, &scene);
  int drawn = 0;
  for (int i = 0; i < scene.ngeom; ++i) {
    drawn += scene.geoms[i].category != mjCAT_DECOR || scene.geoms[i].objtype == mjOBJ_SITE ||
             scene.geoms[i].objtype == mjOBJ_TENDON;
  }
  mjv_freeScene(&scene);
  return drawn;
}

class EmptySceneTest : public testing::Test {
 protected:
  ModelPtr Load(const std::string& body, const std::string& rest = "") const {
    return LoadModel(folder_.Write(
        "model.xml", "<mujoco><worldbody>" + body + "</worldbody>" + rest + "</mujoco>"));
  }
  mjp_test::TempDir folder_;
};

TEST_F(EmptySceneTest, SaysSoExactlyWhereMujocoDrawsNothing) {
  for (const char* body :
       {"", "<geom size='.1'/>", "<geom size='.1' group='2'/>", "<geom size='.1' group='3'/>",
        "<geom size='.1' rgba='1 0 0 0'/>", "<geom size='.1' group='3'/><site size='.1'/>",
        "<geom size='.1' group='3'/><site size='.1' group='4'/>",
        "<geom size='.1' group='4' rgba='1 0 0 0'/>"}) {
    const ModelPtr model = Load(body);
    for (const bool hidden : {false, true}) {
      EXPECT_EQ(WhyEmpty(*model, hidden).empty(), DrawnGeoms(model.get(), hidden) > 0)
          << body << (hidden ? ", hidden groups shown" : "");
    }
  }
}

TEST_F(EmptySceneTest, ATendonCountsWhereItIsDrawn) {
  const std::string body =
      "<site name='a' rgba='0 0 0 0'/><site name='b' pos='0 0 1' rgba='0 0 0 0'/><body>"
      "<joint name='j'/><geom size='.1' group='3'/></body>";
  for (const char* tendon : {"<fixed><joint joint='j' coef='1'/></fixed>",
                             "<spatial><site site='a'/><site site='b'/></spatial>",
                             "<spatial group='4'><site site='a'/><site site='b'/></spatial>"}) {
    const ModelPtr model = Load(body, "<tendon>" + std::string(tendon) + "</tendon>");
    EXPECT_EQ(WhyEmpty(*model, false).empty(), DrawnGeoms(model.get(), false) > 0) << tendon;
  }
}

TEST_F(EmptySceneTest, OfTheProjectsModelsOnlyTheOneWithoutVisualsIsEmpty) {
  EXPECT_EQ(WhyEmpty(*LoadModel(ModelPath("pusht.xml")), false), "");
  const ModelPtr bare = LoadModel(ModelPath("pusht_physics.xml"));
  const std::string why = WhyEmpty(*bare, false);
  EXPECT_THAT(why, HasSubstr("discardvisual"));
  EXPECT_THAT(why, HasSubstr("Press G"));
  EXPECT_EQ(WhyEmpty(*bare, true), "");
  EXPECT_EQ(DrawnGeoms(bare.get(), false), 0);
}

}  // namespace
}  // namespace mjp::app
