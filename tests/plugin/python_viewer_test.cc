// MuJoCo's viewer for Python as a host, on a virtual screen. Takes the Python that
// MJPOLICY_TEST_PYTHON names, which has the package mujoco 4.0.1, or makes one in the build tree
// where pip can.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "policy/checkpoint/checkpoint_writer.h"
#include "tests/support/goldens/golden_cases.h"
#include "tests/support/patience.h"
#include "tests/support/screen.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {
namespace {

// Runs a command; its output, and whether it ended well.
std::pair<std::string, bool> Shell(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return {"no shell", false};
  std::string output;
  std::array<char, 4096> buffer;
  while (size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), n);
  return {output, pclose(pipe) == 0};
}

// A Python with the package in a folder, which is made where it is missing; or "".
std::string PythonIn(const std::string& folder) {
  std::string python = folder + "/bin/python";
  const std::string works = python + " -c 'import mujoco.viewer, numpy'";
  if (Shell(works).second) return python;
  const std::string make = "timeout 150 sh -c 'python3 -m venv " + folder + " && " + folder +
                           "/bin/pip install -q mujoco-core==4.0.1 glfw numpy'";
  return Shell(make).second && Shell(works).second ? python : "";
}

// A Python with the package, or "". Tests beside each other make it one after the other.
std::string Python() {
  if (const char* given = std::getenv("MJPOLICY_TEST_PYTHON")) return given;
  const std::string folder = MJPOLICY_BINARY_DIR "/python_viewer";
  const int lock = open((folder + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  EXPECT_EQ(flock(lock, LOCK_EX), 0) << folder << ".lock";
  std::string python = PythonIn(folder);
  close(lock);
  return python;
}

class PythonViewerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    python_ = Python();
    // What is freed goes back to the system: kept by the heap, it varies by 100 MB between reloads.
    setenv("MALLOC_ARENA_MAX", "2", 1);
    setenv("MALLOC_MMAP_THRESHOLD_", "65536", 1);
  }
  void SetUp() override {
    if (python_.empty()) {
      GTEST_SKIP()
          << "no Python with mujoco 4.0.1: set MJPOLICY_TEST_PYTHON, or let pip reach PyPI";
    }
    screen_ = Screen::Start(1024, 768);
    if (!screen_) GTEST_SKIP() << "there is no Xvfb (Debian: xvfb)";
    mjp::WriteCheckpoint(folder_ / "pusht_image", *CompactCheckpoint(), mjp::WeightFormat::kF16);
  }
  void TearDown() override {
    if (host_ <= 0) return;
    kill(host_, SIGKILL);
    waitpid(host_, nullptr, 0);
  }
  // Loads the running model again, fifty times. Returns the least KiB that the host holds when it
  // is paused in between: at times it still has the model before, and each frame that it draws
  // takes some and gives it back.
  long Reload() {
    long least = std::numeric_limits<long>::max();
    for (int round = 0; round < 5; ++round) {
      screen_->HoldKey("Control_L", true);
      for (int i = 0; i < 10; ++i) screen_->Key("l", Screen::kControl);
      screen_->HoldKey("Control_L", false);
      EXPECT_TRUE(Until([&] { return Scene().TrailPixels() > 30; })) << "no trail after reloads";
      screen_->Key("space");
      Settled([&] { return least = std::min(least, Memory()); }, 10);
      screen_->Key("space");
    }
    return least;
  }
  static std::string Model(const std::string& name) {
    return MJPOLICY_SOURCE_DIR "/models/" + name;
  }

  // Opens a model in the viewer that `python -m mujoco.viewer` shows.
  void Open(const std::string& file) {
    host_ = fork();
    if (host_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::string program =
        "import mujoco, mujoco.viewer\nmujoco.mj_loadPluginLibrary('" PLUGIN_LIBRARY
        "')\nmujoco.viewer.launch_from_path('" +
        file + "')";
    setenv("DISPLAY", screen_->name().c_str(), 1);
    setenv("MJPOLICY_ASSETS", folder_.path().c_str(), 1);
    if (chdir(folder_.path().c_str()) != 0 || !freopen("log", "w", stderr)) _exit(126);
    execl(python_.c_str(), python_.c_str(), "-c", program.c_str(), nullptr);
    _exit(127);
  }
  std::string Log() const {
    std::string text;
    for (const char* name : {"log", "MUJOCO_LOG.TXT"}) {
      std::ifstream file(folder_ / name);
      text.append(std::istreambuf_iterator<char>(file), {});
    }
    return text;
  }
  // KiB of memory that the host holds.
  long Memory() const {
    std::ifstream status("/proc/" + std::to_string(host_) + "/status");
    for (std::string word; status >> word;) {
      long value = 0;
      if (word == "VmRSS:" && status >> value) return value;
    }
    return 0;
  }
  Shot Scene() const { return screen_->Look(285, 40, 450, 640); }
  // The scene once it stands.
  Shot Still() const {
    return Settled([this] { return Scene(); }, 4);
  }

  static inline std::string python_;
  std::unique_ptr<Screen> screen_;
  TempDir folder_;
  pid_t host_ = -1;
};

TEST_F(PythonViewerTest, PlaysPausesResetsAndGoesBack) {
  const auto [output, good] =
      Shell("MJPOLICY_ASSETS=" + folder_.path() + " " + python_ +
            " " MJPOLICY_SOURCE_DIR "/tests/plugin/python_viewer.py " PLUGIN_LIBRARY " " +
            Model("pusht_policy.xml"));
  EXPECT_TRUE(good) << output;
  std::printf("%s", output.c_str());
}

TEST_F(PythonViewerTest, IsDrivenByKeysAndDrops) {
  Open(Model("pusht_policy.xml"));
  ASSERT_TRUE(screen_->Focus("MuJoCo", kPatience)) << Log();
  screen_->Move(500, 700);
  ASSERT_TRUE(Until([&] { return Scene().TrailPixels() > 30; })) << "no trail\n" << Log();
  EXPECT_GT(Scene().Spread(), 10);
  const double rate = screen_->FrameRate(380, 200, 300, 300, 3);
  std::printf("%.1f frames/s while the policy runs on the CPU\n", rate);
  screen_->KeepPaceWith(rate);
  screen_->Key("space");
  const Shot paused = Still();
  // back in its history, whose entries may be as little as one step of the physics apart
  EXPECT_TRUE(Until([&] {
    screen_->Key("Left");
    return Scene() != paused;
  })) << "nothing to be seen of the past";
  screen_->Key("Right");
  Still();
  screen_->Key("BackSpace");
  screen_->Key("space");
  EXPECT_TRUE(Until([&] { return Scene().TrailPixels() > 30; })) << "no trail after the reset";
  const long settled = Reload();
  // on a busy machine the model before may be held each time; what leaks is there for good
  constexpr long kMost = 20000;
  long grown = Reload() - settled;
  for (int again = 0; again < 2 && grown >= kMost; ++again) grown = Reload() - settled;
  EXPECT_LT(grown, kMost) << "KiB more after 50 reloads";
  std::printf("%ld KiB more after 50 reloads\n", grown);
  ASSERT_TRUE(screen_->Drop(Model("pusht.xml")));  // a second model, without a policy
  EXPECT_TRUE(Until([&] { return Scene().TrailPixels() == 0; })) << "the first one stays";
  ASSERT_TRUE(screen_->Drop(Model("pusht_policy.xml")));
  EXPECT_TRUE(Until([&] { return Scene().TrailPixels() > 30; })) << "no trail the second time";
  screen_->HoldKey("Control_L", true);
  screen_->Key("q", Screen::kControl);
  int status = -1;
  EXPECT_TRUE(Until([&] { return waitpid(host_, &status, WNOHANG) == host_; })) << "it hangs";
  if (status != -1) host_ = -1;
  EXPECT_EQ(status, 0) << Log();
  EXPECT_EQ(Log().find("OpenGL"), std::string::npos) << Log();
}

}  // namespace
}  // namespace mjp_test
