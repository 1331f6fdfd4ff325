// The program in its window, on a virtual screen: driven by keys and mouse, and looked at.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/support/goldens/small_checkpoint.h"
#include "tests/support/patience.h"
#include "tests/support/screen.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {
namespace {

constexpr int kWidth = 1280, kHeight = 800;
std::string ModelFile(const char* name) {
  return MJPOLICY_SOURCE_DIR "/models/" + std::string(name);
}

// mjpolicy-viewer in a folder of its own.
class WindowTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { screen_ = Screen::Start(kWidth, kHeight).release(); }
  static void TearDownTestSuite() { delete screen_; }
  void SetUp() override {
    if (!screen_) GTEST_SKIP() << "there is no Xvfb (Debian: xvfb)";
    WriteSmallCheckpoint(folder_ / "checkpoint");
  }
  void TearDown() override {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
  }

  void Start(const std::vector<std::string>& arguments, const std::string& display) {
    child_ = fork();
    if (child_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<char*> words;
    words.push_back(const_cast<char*>(MJPOLICY_VIEWER));
    for (const std::string& a : arguments) words.push_back(const_cast<char*>(a.c_str()));
    words.push_back(nullptr);
    const std::string log = folder_ / "log";
    if (display.empty()) {
      unsetenv("DISPLAY");
      unsetenv("WAYLAND_DISPLAY");
    } else {
      setenv("DISPLAY", display.c_str(), 1);
    }
    if (chdir(folder_.path().c_str()) != 0 || !freopen(log.c_str(), "w", stderr)) _exit(126);
    execv(MJPOLICY_VIEWER, words.data());
    _exit(127);
  }
  // The exit code of the program, or 128 + the signal that ended it.
  int Finish() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string Log() const {
    std::stringstream text;
    text << std::ifstream(folder_ / "log").rdbuf();
    return text.str();
  }
  // Opens the window, paused at a control step.
  void Open(const std::vector<std::string>& arguments) {
    Start(arguments, screen_->name());
    ASSERT_TRUE(screen_->Focus("mjpolicy-viewer", kPatience)) << Log();
    ASSERT_TRUE(Until([&] { return Scene().TrailPixels() > 30; })) << "no trail";
    screen_->KeepPaceWith(screen_->FrameRate(270, 40, 600, 540, 2));
    screen_->Move(kWidth / 2, 400);
    screen_->Key("space");
    screen_->Key("Right");
    Still();
  }
  std::vector<std::string> WithCheckpoint() const {
    return {"--checkpoint", folder_ / "checkpoint"};
  }

  static void Click(int x, int y) {
    screen_->Move(x, y);
    screen_->Button(1, true);
    screen_->Button(1, false);
  }
  // What a button of the row below the table writes.
  static constexpr int kComparison = 326;
  std::string Exported(int x, const char* file) {
    std::filesystem::remove(folder_ / file);
    Click(x, kComparison);
    EXPECT_TRUE(Until([&] { return std::filesystem::exists(folder_ / file); })) << file;
    std::stringstream text;
    text << std::ifstream(folder_ / file).rdbuf();
    return text.str();
  }
  // Network passes of the newest decision.
  int Passes() {
    const std::string csv = Exported(984, "decisions.csv");
    int passes = -1;
    const size_t line = csv.rfind('\n', csv.size() - 2);
    if (line != std::string::npos) std::sscanf(&csv[line], "\n%*d,%*d,%*d,%d", &passes);
    return passes;
  }
  static Shot Scene() { return screen_->Look(270, 40, 600, 540); }
  // Whether the scene comes to look like `shot`, or like anything else; on a busy machine a window
  // takes its time.
  static bool Becomes(const Shot& shot) {
    return Until([&] { return Scene() == shot; });
  }
  static bool Changes(const Shot& shot) {
    return Until([&] { return Scene() != shot; });
  }
  // The scene once it does not change any more.
  static Shot Still() {
    return Settled(
        [] {
          Sleep(0.2);
          return Scene();
        },
        4);
  }
  // The scene that a key leads to.
  static Shot After(const char* key, const Shot& before) {
    screen_->Key(key);
    EXPECT_TRUE(Changes(before)) << key << " changes nothing";
    return Still();
  }

  static inline Screen* screen_ = nullptr;
  TempDir folder_;
  pid_t child_ = -1;
};

TEST_F(WindowTest, PlaysPausesStepsBackAndRestarts) {
  ASSERT_NO_FATAL_FAILURE(Open(WithCheckpoint()));
  const Shot here = Still();
  EXPECT_GT(here.Spread(), 10);
  const Shot ahead = After("Right", here);
  screen_->Key("Left");
  EXPECT_TRUE(Becomes(here)) << "back in time is another place";
  screen_->Key("Right");
  EXPECT_TRUE(Becomes(ahead)) << "the same step again leads elsewhere";
  const Shot start = After("BackSpace", ahead);
  After("n", start);
  screen_->Key("p");
  EXPECT_TRUE(Becomes(start)) << "the seed before starts elsewhere";
  screen_->Key("space");
  EXPECT_TRUE(Changes(start)) << "it does not play";
  screen_->Key("space");
  Still();
}

TEST_F(WindowTest, KeysOfTheView) {
  ASSERT_NO_FATAL_FAILURE(Open(WithCheckpoint()));
  const Shot plain = Still();
  for (const auto& [on, off] : {std::pair("F1", "F1"), std::pair("bracketright", "bracketleft"),
                                std::pair("c", "c"), std::pair("d", "d")}) {
    const Shot other = After(on, plain);
    if (on == std::string("c")) {
      EXPECT_LT(other.TrailPixels(), plain.TrailPixels());
    }
    screen_->Key(off);
    EXPECT_TRUE(Becomes(plain)) << off << " does not undo " << on;
  }
}

TEST_F(WindowTest, TurnsTheScene) {
  ASSERT_NO_FATAL_FAILURE(Open(WithCheckpoint()));
  const Shot plain = Still();
  screen_->Move(400, 500);
  screen_->Button(1, true);
  for (int i = 1; i <= 5; ++i) screen_->Move(400 + 6 * i, 500 - 8 * i);
  screen_->Button(1, false);
  EXPECT_TRUE(Changes(plain)) << "the scene does not turn";
  screen_->Key("Escape");
  EXPECT_TRUE(Becomes(plain));
}

// The middle of what has the block's colour.
std::pair<int, int> FindBlock(const Shot& shot) {
  int64_t count = 0, x = 0, y = 0;
  for (int i = 0; i < shot.width * shot.height; ++i) {
    const uint8_t* p = &shot.rgb[3 * i];
    if (std::abs(p[0] - 143) > 8 || std::abs(p[1] - 163) > 8 || std::abs(p[2] - 184) > 8) continue;
    ++count;
    x += i % shot.width;
    y += i / shot.width;
  }
  return count == 0 ? std::pair(-1, -1) : std::pair<int, int>(x / count, y / count);
}

TEST_F(WindowTest, PushesABodyByHand) {
  ASSERT_NO_FATAL_FAILURE(Open(WithCheckpoint()));
  const auto [x, y] = FindBlock(Still());
  ASSERT_GE(x, 0) << "no block";
  const auto caption = [] { return screen_->Look(640, 4, 230, 22).Spread(); };
  screen_->Move(270 + x, 40 + y);
  for (int click = 0; click < 2; ++click) {
    screen_->Button(1, true);
    screen_->Button(1, false);
  }
  screen_->Key("space");
  const double playing = caption();
  screen_->HoldKey("Control_L", true);
  screen_->Button(3, true, Screen::kControl);
  for (int i = 1; i <= 5; ++i) screen_->Move(270 + x + 15 * i, 40 + y, Screen::kControl);
  // "running, disturbed by hand"
  EXPECT_TRUE(Until([&] { return caption() > 1.3 * playing; })) << playing << " " << caption();
  screen_->Button(3, false, Screen::kControl);
  screen_->HoldKey("Control_L", false);
}

TEST_F(WindowTest, WritesPicturesAndVideos) {
  ASSERT_NO_FATAL_FAILURE(Open(WithCheckpoint()));
  screen_->Key("p", Screen::kControl);
  EXPECT_TRUE(Until([&] { return std::filesystem::exists(folder_ / "mjpolicy-viewer.png"); }));
  const auto written = std::filesystem::last_write_time(folder_ / "mjpolicy-viewer.png");
  screen_->Key("p", Screen::kControl);
  EXPECT_TRUE(Until([&] { return std::filesystem::exists(folder_ / "mjpolicy-viewer-2.png"); }));
  EXPECT_EQ(std::filesystem::last_write_time(folder_ / "mjpolicy-viewer.png"), written);
  screen_->Key("r", Screen::kControl);
  Sleep(1);
  screen_->Key("r", Screen::kControl);
  Still();
  const auto size = [&](const char* name) {
    std::error_code none;
    const auto bytes = std::filesystem::file_size(folder_ / name, none);
    return none ? 0 : bytes;
  };
  EXPECT_TRUE(
      Until([&] { return size("mjpolicy-viewer.mp4") + size("mjpolicy-viewer.avi") > 1000; }));
}

TEST_F(WindowTest, VideosWithoutFfmpeg) {
  std::ofstream(folder_ / "video.txt") << "speed 1\nrecord\nrun 10\nstop\n";
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  Start({"--checkpoint", folder_ / "checkpoint", "--script", folder_ / "video.txt"}, "");
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(Finish(), 0) << Log();
  std::ifstream file(folder_ / "mjpolicy-viewer.avi", std::ios::binary);
  const std::string video{std::istreambuf_iterator<char>(file), {}};
  ASSERT_GT(video.size(), 52u) << Log();
  const auto number = [&](size_t at) {
    uint32_t value;
    std::memcpy(&value, &video[at], sizeof(value));
    return value;
  };
  EXPECT_EQ(video.substr(0, 4), "RIFF");
  EXPECT_EQ(number(4), video.size() - 8);
  EXPECT_GE(number(48), 1u) << "pictures";
}

TEST_F(WindowTest, SwitchesThePolicyWhileItRuns) {
  ASSERT_NO_FATAL_FAILURE(Open(WithCheckpoint()));
  const auto button = [] {
    screen_->Move(kWidth / 2, 400);  // what the mouse is on has another colour
    return screen_->Look(20, 302, 225, 20);
  };
  // an item of a list that opens below its box; a slow window gets the time to open and close it
  const auto choose = [](int y, int item) {
    const auto below = [y] { return screen_->Look(100, y + 12, 140, 50); };
    const Shot closed = below();
    Click(172, y);
    EXPECT_TRUE(Until([&] { return below() != closed; })) << "no list opens";
    Click(172, y + 28 + 20 * item);
    Sleep(1);  // the release counts where the mouse is in the frame that sees it
    screen_->Move(kWidth / 2, 400);
    EXPECT_TRUE(Until([&] { return below() == closed; })) << "the list stays";
  };
  constexpr int kBackend = 171, kFormat = 199, kSampler = 227, kSteps = 255, kApply = 311;
  const Shot applied = button();
  const auto apply = [&] {
    EXPECT_TRUE(Until([&] { return button() != applied; })) << "nothing to apply";
    Click(131, kApply);
    return Until([&] { return button() == applied; });
  };
  EXPECT_EQ(Passes(), 100);
  choose(kSampler, 1);  // DDIM
  Click(125, kSteps);
  EXPECT_TRUE(apply());
  screen_->Key("Right");
  const int passes = Passes();
  EXPECT_GT(passes, 1);
  EXPECT_LT(passes, 40);
  choose(kBackend, 0);  // auto, which is the CPU where there is no GPU
  EXPECT_TRUE(apply());
  screen_->Key("Right");
  EXPECT_EQ(Passes(), passes) << "the sampler must stay";
  const Shot before = Still();
  choose(kBackend, 1);  // the CPU, which has no such format: a sentence, and it goes on
  choose(kFormat, 3);
  Click(131, kApply);
  EXPECT_TRUE(Changes(before)) << "no message";
  screen_->Key("Right");
  EXPECT_EQ(Passes(), passes);
}

TEST_F(WindowTest, PinsGoesToADecisionAndExports) {
  ASSERT_NO_FATAL_FAILURE(Open(WithCheckpoint()));
  screen_->Key("space");
  Sleep(2.5);  // some decisions
  screen_->Key("space");
  const Shot scene = Still();
  const auto table = [] { return screen_->Look(884, 115, 390, 200); };
  const Shot plain = table();
  Click(922, kComparison);  // pin as A: one more column
  EXPECT_TRUE(Until([&] { return table() != plain; }));
  Click(922, kComparison);
  EXPECT_TRUE(Until([&] { return table() == plain; })) << "unpinned";
  Click(950, 600);  // the first bar of the history
  EXPECT_TRUE(Changes(scene)) << "the scene is not the decision's";
  EXPECT_TRUE(Until([&] { return table() != plain; }));
  screen_->Key("Escape");
  EXPECT_TRUE(Becomes(scene));
  const auto count = [](const std::string& text, const std::string& word) {
    int found = 0;
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  const int decisions = count(Exported(984, "decisions.csv"), "\n") - 1;
  EXPECT_GE(decisions, 2);
  EXPECT_EQ(count(Exported(1036, "decisions.json"), "\"passes\": 100"), decisions);
  EXPECT_EQ(count(Exported(1092, "decisions.trace.json"), "\"name\":\"pass\""), 100 * decisions);
}

TEST_F(WindowTest, TellsTheSystemHowSmallItMayBe) {
  ASSERT_NO_FATAL_FAILURE(Open(WithCheckpoint()));
  EXPECT_EQ(screen_->LeastSize(), std::pair(480, 300));
}

TEST_F(WindowTest, OpensWhatIsDropped) {
  ASSERT_NO_FATAL_FAILURE(Open(WithCheckpoint()));
  const Shot pusht = Still();
  std::ofstream(folder_ / "pendulum.xml")
      << "<mujoco><worldbody><light pos='0 0 3'/><body><joint axis='0 1 0'/>"
         "<geom size='.1' pos='.3 0 -1'/></body></worldbody></mujoco>";
  ASSERT_TRUE(screen_->Drop(folder_ / "pendulum.xml"));
  EXPECT_TRUE(Until([&] { return Scene() != pusht && Scene().TrailPixels() == 0; }));
  const Shot pendulum = Still();
  ASSERT_TRUE(screen_->Drop(folder_ / "checkpoint"));  // it has no use for it, and says so
  EXPECT_TRUE(Changes(pendulum)) << "no message";
  ASSERT_TRUE(screen_->Drop(ModelFile("pusht.xml")));
  EXPECT_TRUE(Until([&] { return FindBlock(Scene()).first >= 0; })) << "Push-T is not back";
}

TEST_F(WindowTest, WithoutADisplayItSaysSo) {
  Start(WithCheckpoint(), "");
  EXPECT_EQ(Finish(), 3);
  EXPECT_NE(Log().find("display"), std::string::npos) << Log();
}

TEST_F(WindowTest, NumbersOutOfRangeAreRefused) {
  for (const char* option : {"--scale", "--budget"}) {
    Start({option, "nan"}, "");
    EXPECT_EQ(Finish(), 1) << option;
    EXPECT_NE(Log().find("'nan' is not a number from"), std::string::npos) << Log();
  }
}

TEST_F(WindowTest, WhatCannotBeOpenedIsASentence) {
  std::ofstream(folder_ / "broken.xml") << "<mujoco><nonsense/></mujoco>";
  for (const auto& [arguments, word] :
       {std::pair(std::vector<std::string>{"--checkpoint", "nowhere"}, "nowhere"),
        std::pair(std::vector<std::string>{"--model", "none.xml"}, "none.xml"),
        std::pair(std::vector<std::string>{"--model", "broken.xml"}, "nonsense"),
        std::pair(std::vector<std::string>{"--episodes", "."}, "episodes.jsonl"),
        std::pair(std::vector<std::string>{"--script", "/tmp"}, "not a regular file")}) {
    Start(arguments, screen_->name());
    EXPECT_EQ(Finish(), 2) << word;
    EXPECT_NE(Log().find(word), std::string::npos) << Log();
  }
}

}  // namespace
}  // namespace mjp_test
