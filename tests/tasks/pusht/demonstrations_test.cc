#include "tasks/pusht/planner/demonstrations.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/folders.h"
#include "tests/tasks/results/failing_append.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;

// A folder that is removed at the end.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(fs::temp_directory_path() /
              ("pusht_demonstrations_" + std::to_string(::getpid()) + "_" + name)) {
    fs::remove_all(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string path() const { return path_.string(); }
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(path_)) {
      files[entry.path().filename().string()] = ReadFile(entry.path().string(), 1 << 24);
    }
    return files;
  }

 private:
  fs::path path_;
};

DemonstrateOptions SmallOptions(const Folder& folder) {
  DemonstrateOptions options;
  options.out = folder.path();
  options.rows = 90;
  options.threads = 1;
  options.stream.rows = 30;
  options.stream.planner.samples = 64;
  options.stream.planner.rounds = 2;
  return options;
}

const std::atomic<bool> kNever{false};

bool Make(const DemonstrateOptions& options) {
  std::ostringstream log;
  const std::atomic<bool> stop = false;
  return RunDemonstrate(options, log, stop);
}

TEST(DemonstrationsTest, ThreadsAndInterruptionsDoNotChangeTheBytes) {
  const Folder whole("whole"), threaded("threaded"), resumed("resumed");
  ASSERT_TRUE(Make(SmallOptions(whole)));
  DemonstrateOptions options = SmallOptions(threaded);
  options.threads = 3;
  ASSERT_TRUE(Make(options));
  EXPECT_EQ(whole.Files(), threaded.Files());

  // killed after the second stream's rows, in the midst of its line
  ASSERT_TRUE(Make(SmallOptions(resumed)));
  const std::string log = resumed.path() + "/streams.jsonl";
  const std::string text = ReadFile(log, 1 << 20);
  WriteFileAtomically(log, text.substr(0, text.find('\n') + 9));
  fs::remove(resumed.path() + "/rows-00002.npy");
  ASSERT_TRUE(Make(SmallOptions(resumed)));
  EXPECT_EQ(whole.Files(), resumed.Files());
}

TEST(DemonstrationsTest, NothingIsAppendedBehindATornLine) {
  const Folder whole("not_torn"), torn("torn");
  const auto options = [](const Folder& folder) {
    DemonstrateOptions many = SmallOptions(folder);
    many.rows = 48;
    many.stream.rows = 3;
    many.threads = 8;  // some have a stream to add when another's line is torn
    return many;
  };
  ASSERT_TRUE(Make(options(whole)));
  mjp_test::appends_left = 2;
  EXPECT_THROW(Make(options(torn)), mjp::Error);
  EXPECT_LT(mjp_test::appends_left, 0);
  EXPECT_TRUE(Make(options(torn)));
  EXPECT_EQ(torn.Files(), whole.Files());
}

TEST(DemonstrationsTest, StopsEarlyAndGoesOn) {
  const Folder folder("stopped");
  std::ostringstream log;
  const std::atomic<bool> stop = true;
  EXPECT_FALSE(RunDemonstrate(SmallOptions(folder), log, stop));
  EXPECT_TRUE(Make(SmallOptions(folder)));
  EXPECT_EQ(LoadDemonstrations(folder.path()).size(), 90u);
}

TEST(DemonstrationsTest, RowsAreStatesOfTheTaskAndTargetsWithinReach) {
  const Folder folder("rows");
  ASSERT_TRUE(Make(SmallOptions(folder)));
  const std::vector<DemonstrationRow> rows = LoadDemonstrations(folder.path());
  ASSERT_EQ(rows.size(), 90u);
  int starts = 0;
  for (const DemonstrationRow& row : rows) {
    starts += std::equal(row.previous, row.previous + 5, row.state);
    const auto columns = std::bit_cast<std::array<float, kDemonstrationColumns>>(row);
    EXPECT_TRUE(std::ranges::all_of(columns, [](float v) { return std::isfinite(v); }));
    for (const auto& target : row.targets) {
      EXPECT_TRUE(target[0] >= 0 && target[0] <= 512 && target[1] >= 0 && target[1] <= 512);
    }
    // the first target continues the agent's motion: one control step away
    const float dx = row.targets[0][0] - row.state[0], dy = row.targets[0][1] - row.state[1];
    EXPECT_LT(std::hypot(dx, dy), 150);
  }
  EXPECT_GE(starts, 3);  // one per stream at least
}

TEST(DemonstrationsTest, ARowTeachesWhatIsExecutedFirstAndThenThePlan) {
  Plan plan;
  plan.start = {100, 0};
  for (int i = 0; i < kKnots; ++i) plan.knots[i] = {100.0f + 8.0f * static_cast<float>(i + 1), 0};
  const std::vector<Point> ahead = {{1, 2}, {3, 4}, {5, 6}};
  const DemonstrationRow row = MakeRow({}, {}, {}, plan, ahead), whole = MakeRow({}, {}, {}, plan);
  for (int i = 0; i < kDemonstratedTargets; ++i) {
    EXPECT_EQ(whole.targets[i][0], plan.Target(i).x) << i;
    EXPECT_EQ(row.targets[i][0], i < 3 ? ahead[i].x : plan.Target(i - 3).x) << i;
    EXPECT_EQ(row.targets[i][1], i < 3 ? ahead[i].y : plan.Target(i - 3).y) << i;
  }
}

TEST(DemonstrationsTest, RefusesAFolderOfOtherDemonstrations) {
  const Folder folder("other");
  ASSERT_TRUE(Make(SmallOptions(folder)));
  DemonstrateOptions options = SmallOptions(folder);
  options.stream.seed = 5;
  EXPECT_THROW(Make(options), mjp::Error);
}

TEST(DemonstrationsTest, AppendedStreamsAreReadOnce) {
  const Folder folder("appended");
  fs::create_directories(folder.path());
  std::set<int64_t> seen;
  EXPECT_TRUE(LoadNewDemonstrations(folder.path(), seen).empty());
  for (int index = 0; index < 2; ++index) {
    Stream stream;
    stream.rows.resize(3);
    for (DemonstrationRow& row : stream.rows) row.state[0] = static_cast<float>(index);
    stream.statistics.rows = 3;
    AppendStream(folder.path(), index, stream);
    const std::vector<DemonstrationRow> rows = LoadNewDemonstrations(folder.path(), seen);
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[2].state[0], static_cast<float>(index));
  }
  EXPECT_EQ(LoadDemonstrations(folder.path()).size(), 6u);
  ASSERT_TRUE(LoadStream(folder.path(), 1));
  EXPECT_EQ(LoadStream(folder.path(), 1)->at(2).state[0], 1.0f);
  EXPECT_FALSE(LoadStream(folder.path(), 2));
}

TEST(DemonstrationsTest, DamagedRowsAreNamedAndMadeAgain) {
  const Folder folder("damaged");
  ASSERT_TRUE(Make(SmallOptions(folder)));
  const auto whole = folder.Files();
  const std::string rows = folder.path() + "/rows-00001.npy";
  const std::string good = whole.at("rows-00001.npy");
  std::string flipped = good;
  flipped[good.size() / 2] ^= 1;
  for (const std::string& damaged : {std::string(), good.substr(0, good.size() - 4), flipped}) {
    WriteFileAtomically(rows, damaged);
    EXPECT_THROW(LoadDemonstrations(folder.path()), mjp::Error) << damaged.size();
    std::ostringstream log;
    EXPECT_TRUE(RunDemonstrate(SmallOptions(folder), log, kNever));
    EXPECT_NE(log.str().find("rows-00001.npy"), std::string::npos) << log.str();
    EXPECT_NE(log.str().find("it is made again"), std::string::npos) << log.str();
    EXPECT_EQ(folder.Files(), whole) << damaged.size();
  }
}

TEST(DemonstrationsTest, RowsOfAnEarlierBuildAreKnownByTheirSize) {
  const Folder folder("earlier");
  ASSERT_TRUE(Make(SmallOptions(folder)));
  const std::string log = folder.path() + "/streams.jsonl";
  std::string text = ReadFile(log, 1 << 20);
  for (size_t at; (at = text.find(", \"sha256\"")) != std::string::npos;) {
    text.erase(at, text.find('}', at) - at);
  }
  WriteFileAtomically(log, text);
  EXPECT_EQ(LoadDemonstrations(folder.path()).size(), 90u);
  std::string more = text;
  more.replace(more.find("\"solved\": ") + 10, 1, "99");
  WriteFileAtomically(log, more);
  EXPECT_THROW(LoadDemonstrations(folder.path()), mjp::Error) << "more solved than made: " << more;
  WriteFileAtomically(log, text);
  fs::resize_file(folder.path() + "/rows-00000.npy", 1000);
  EXPECT_THROW(LoadDemonstrations(folder.path()), mjp::Error);
  EXPECT_TRUE(Make(SmallOptions(folder)));
  EXPECT_EQ(LoadDemonstrations(folder.path()).size(), 90u);
}

TEST(DemonstrationsTest, NamesWhatIsMissing) {
  const Folder folder("missing");
  EXPECT_THROW(LoadDemonstrations(folder.path()), mjp::Error);
  ASSERT_TRUE(Make(SmallOptions(folder)));
  fs::remove(folder.path() + "/rows-00001.npy");
  try {
    LoadDemonstrations(folder.path());
    FAIL() << "the missing file was not noticed";
  } catch (const mjp::Error& error) {
    EXPECT_NE(std::string(error.what()).find("rows-00001.npy"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace mjp::app
