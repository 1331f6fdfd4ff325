// Where `mjpolicy install-plugin` puts the plugin, where it refuses, and `mjpolicy
// random-checkpoint`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

class InstallPluginTest : public ::testing::Test {
 protected:
  // Makes an empty file below the folder.
  void Touch(const std::string& path) const {
    const fs::path file = Path(path);
    fs::create_directories(file.parent_path());
    std::ofstream(file).flush();
  }
  fs::path Path(const std::string& path) const { return folder_ / path; }
  Outcome Install(const std::string& into) const {
    return RunMjpolicy("install-plugin --into " + Path(into).string());
  }

  TempDir folder_;
};

TEST_F(InstallPluginTest, PutsItBesideSimulate) {
  Touch("mujoco/bin/simulate");
  Touch("mujoco/lib/libmujoco.so.4.0.1");
  for (const char* into : {"mujoco", "mujoco/bin", "mujoco/bin/mujoco_plugin"}) {
    const Outcome outcome = Install(into);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_THAT(outcome.text,
                HasSubstr("installed " + Path("mujoco/bin/mujoco_plugin/libmjpolicy.so").string()));
    EXPECT_TRUE(fs::exists(Path("mujoco/bin/mujoco_plugin/mjpolicy.txt")));
    EXPECT_GT(fs::file_size(Path("mujoco/bin/mujoco_plugin/libmjpolicy.so")), 1000u);
    fs::remove_all(Path("mujoco/bin/mujoco_plugin"));
  }
}

TEST_F(InstallPluginTest, FindsSimulateOnThePath) {
  Touch("real/simulate");
  fs::create_directories(Path("links"));
  fs::create_symlink(Path("real/simulate"), Path("links/simulate"));
  const Outcome outcome = RunMjpolicy("install-plugin", "PATH=" + Path("links").string());
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(fs::exists(Path("real/mujoco_plugin/libmjpolicy.so")));
  EXPECT_THAT(outcome.text, HasSubstr("could not see which engine"));
  fs::remove(Path("links/simulate"));
  const Outcome none = RunMjpolicy("install-plugin", "PATH=" + Path("links").string());
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.text, HasSubstr("no simulate on PATH"));
}

TEST_F(InstallPluginTest, RefusesAFolderThatIsNotThere) {
  Touch("mujoco/bin/simulate");
  for (const char* into :
       {"mojoco", "mujoco/bim", "nowhere/mujoco_plugin", "mujoco/bin/simulate"}) {
    const Outcome outcome = Install(into);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_THAT(outcome.text,
                HasSubstr("nothing was installed: there is no folder " + Path(into).string()));
  }
  EXPECT_FALSE(fs::exists(Path("mojoco")));
  EXPECT_FALSE(fs::exists(Path("nowhere")));
}

TEST_F(InstallPluginTest, RefusesAnotherEngine) {
  Touch("old/bin/simulate");
  Touch("old/lib/libmujoco.so.3.3.0");
  const Outcome outcome = Install("old");
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("nothing was installed: the host's engine is"));
  EXPECT_FALSE(fs::exists(Path("old/bin/mujoco_plugin")));
}

TEST_F(InstallPluginTest, PythonsPackageOnlyWithItsEngine) {
  Touch("site/mujoco/__init__.py");
  Touch("site/mujoco/plugin/libsensor.so");
  for (const char* into : {"site/mujoco", "site/mujoco/plugin"}) {
    const Outcome outcome = Install(into);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_FALSE(fs::exists(Path("site/mujoco/plugin/libmjpolicy.so")));
  }
  Touch("site/mujoco/libmujoco.so.4.0.1");
  const Outcome outcome = Install("site/mujoco");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("Remove it before another version of MuJoCo"));
  EXPECT_TRUE(fs::exists(Path("site/mujoco/plugin/libmjpolicy.so")));
  EXPECT_FALSE(fs::exists(Path("site/mujoco/plugin/mjpolicy.txt"))) << "Python warns of it";
}

TEST_F(InstallPluginTest, RandomCheckpointCanBeInspected) {
  const std::string out = Path("policy").string();
  const Outcome written = RunMjpolicy(
      "random-checkpoint " + out + " --state 5 --environment 3 --action 4 --camera a --camera b");
  ASSERT_EQ(written.code, 0) << written.text;
  const Outcome shown = RunMjpolicy("inspect " + out);
  EXPECT_EQ(shown.code, 0) << shown.text;
  EXPECT_EQ(RunMjpolicy("random-checkpoint " + out + " --network none").code, 1);
}

}  // namespace
}  // namespace mjp_test
