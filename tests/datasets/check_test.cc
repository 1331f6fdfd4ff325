// Each lie that LeRobot lets pass is found, and the episode is named.

#include "datasets/check.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "base/folders.h"
#include "datasets/parquet/reader.h"
#include "tests/datasets/recorded_set.h"
#include "tests/datasets/rewrite.h"
#include "tests/support/shared_data.h"
#include "tests/support/temp_dir.h"

namespace mjp::datasets {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(CheckTest, LeRobotsOwnDataSetsAreSound) {
  for (const std::string set : {"image", "video"}) {
    SHARED_OR_SKIP(folder, "datasets/" + set);
    Dataset dataset(folder);
    const CheckResult result = Check(dataset, {});
    EXPECT_THAT(result.problems, IsEmpty());
    EXPECT_THAT(result.notes, IsEmpty());
    EXPECT_TRUE(result.whole);
  }
}

// Three episodes of 4, 5 and 6 frames, 15 in all, to be damaged.
class DamageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    DatasetWriter writer(folder_ / "set", mjp_test::RecordedInfo("image"));
    for (int64_t episode = 0; episode < 3; ++episode) mjp_test::RecordEpisode(writer, episode);
    writer.Finish();
  }

  std::string Path(const std::string& name) const { return folder_ / ("set/" + name); }

  // All that is found, a line each; or why the data set cannot be opened.
  std::string Found() const {
    std::string text;
    try {
      Dataset dataset(folder_ / "set");
      for (const std::string& problem : Check(dataset, {}).problems) text += problem + "\n";
    } catch (const Error& error) {
      text = error.what();
    }
    return text;
  }

  // Writes the data file anew with other values.
  void Rewrite(const std::function<void(const std::string&, parquet::Values&)>& change) const {
    mjp_test::Rewrite(Path("data/chunk-000/file-000.parquet"),
                      [&](const std::string& leaf, parquet::Field&, parquet::LeafValues& data) {
                        change(leaf, data.values);
                      });
  }

  // Replaces text in info.json.
  void ChangeInfo(const std::string& from, const std::string& to) const {
    std::string text = app::ReadFile(Path("meta/info.json"), 1 << 20);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    app::WriteFileAtomically(Path("meta/info.json"), text.replace(at, from.size(), to));
  }

  mjp_test::TempDir folder_;
};

TEST_F(DamageTest, ValuesThatLieAreFoundWithTheirEpisode) {
  Rewrite([](const std::string&, parquet::Values&) {});
  EXPECT_EQ(Found(), "");
  struct Row {
    const char* column;
    std::function<void(parquet::Values&)> change;
    const char* said;
  };
  const Row rows[] = {
      {"timestamp", [](parquet::Values& v) { v.numbers[6] += 0.004; },
       "episode 1: frame 2: timestamp is 0.204000, not 0.200000 s"},
      {"index", [](parquet::Values& v) { v.ints[14] = 15; },
       "episode 2: frame 5: index is 15, not 14"},
      {"frame_index", [](parquet::Values& v) { v.ints[4] = 4; }, "episode 1: frame 0: frame_index"},
      {"episode_index", [](parquet::Values& v) { v.ints[0] = 1; },
       "episode 0: frame 0: episode_index"},
      {"task_index", [](parquet::Values& v) { v.ints[3] = 2; },
       "episode 0: frame 3: task_index is 2"},
      {"task_index", [](parquet::Values& v) { v.ints[3] = 1; },
       "which meta/episodes does not list"},
      {"action.list.element", [](parquet::Values& v) { v.numbers[12] = std::nan(""); },
       "episode 1: frame 0: \"action\" is not finite"},
      {"action.list.element", [](parquet::Values& v) { v.numbers[13] = 7; },
       "episode 1: \"action\": max of element 1 is"},
      {"observation.images.top.bytes", [](parquet::Values& v) { v.texts[10] = "\x89PNG"; },
       "episode 2, frame 1, \"observation.images.top\""},
  };
  const std::string path = Path("data/chunk-000/file-000.parquet"), kept = folder_ / "kept";
  fs::copy_file(path, kept);
  for (const Row& row : rows) {
    Rewrite([&](const std::string& name, parquet::Values& values) {
      if (name == row.column) row.change(values);
    });
    EXPECT_THAT(Found(), HasSubstr(row.said));
    fs::copy_file(kept, path, fs::copy_options::overwrite_existing);
  }
  EXPECT_EQ(Found(), "");
}

// A column of texts where numbers belong, or of numbers where texts do.
TEST_F(DamageTest, ColumnsOfAnotherTypeAreNamed) {
  for (const std::string file : {"meta/tasks.parquet", "meta/episodes/chunk-000/file-000.parquet",
                                 "data/chunk-000/file-000.parquet"}) {
    const std::string path = Path(file), kept = folder_ / "kept";
    fs::copy_file(path, kept, fs::copy_options::overwrite_existing);
    const parquet::Reader reader(kept);
    const auto rows = static_cast<size_t>(reader.metadata().rows);
    for (const parquet::Leaf& changed : reader.metadata().leaves) {
      if (changed.rest == "path" || changed.rest == "bytes") continue;
      SCOPED_TRACE(file + ": " + changed.Name());
      mjp_test::Rewrite(
          path, [&](const std::string& leaf, parquet::Field& field, parquet::LeafValues& data) {
            if (leaf != changed.Name()) return;
            const size_t count = field.lists > 0 ? data.offsets.back() : rows;
            const bool texts = changed.type == parquet::Type::kBytes;
            field.type = texts ? parquet::Type::kInt64 : parquet::Type::kBytes;
            field.text = !texts;
            data.values = {};
            if (texts) data.values.ints.assign(count, 0);
            if (!texts) data.values.texts.assign(count, "1");
          });
      const bool read = !changed.column.starts_with("meta/episodes/");
      EXPECT_THAT(Found(), HasSubstr(read ? "\"" + changed.column + "\"" : ""));
      fs::copy_file(kept, path, fs::copy_options::overwrite_existing);
    }
  }
  EXPECT_EQ(Found(), "");
}

TEST_F(DamageTest, FilesThatAreMissingOrCutAreNamed) {
  const std::string path = Path("data/chunk-000/file-000.parquet");
  fs::resize_file(path, fs::file_size(path) - 9);
  EXPECT_THAT(Found(), HasSubstr("file-000.parquet: does not end as a Parquet file"));
  fs::remove(path);
  EXPECT_THAT(Found(), HasSubstr("file-000.parquet: cannot open"));
  fs::remove(Path("meta/stats.json"));
  EXPECT_THAT(Found(), HasSubstr("stats.json: is missing"));
  fs::remove(Path("meta/tasks.parquet"));
  EXPECT_THAT(Found(), HasSubstr("tasks.parquet: cannot open"));
}

// The reader knows rows alone. Each episode's row group is its own.
TEST_F(DamageTest, APageThatIsDamagedIsNamedWithItsEpisode) {
  const std::string path = Path("data/chunk-000/file-000.parquet");
  const parquet::Reader reader(path);
  const auto at = static_cast<size_t>(reader.Find("action") - reader.metadata().leaves.data());
  const parquet::ColumnChunk& chunk = reader.metadata().groups.at(1).columns[at];
  std::string bytes = app::ReadFile(path, 1 << 20);
  bytes[chunk.offset + chunk.size - 1] ^= 1;
  app::WriteFileAtomically(path, bytes);
  EXPECT_THAT(Found(), AllOf(HasSubstr("episode 1: \"action\": "), HasSubstr("checksum"),
                             Not(HasSubstr("episode 2: \"action\""))));
}

TEST_F(DamageTest, TotalsThatLieAreErrors) {
  ChangeInfo("\"total_episodes\": 3", "\"total_episodes\": 4");
  EXPECT_THAT(Found(), HasSubstr("counts 4 episodes, meta/episodes has 3"));
  ChangeInfo("\"total_episodes\": 4", "\"total_episodes\": 3");
  ChangeInfo("\"total_frames\": 15", "\"total_frames\": 16");
  EXPECT_THAT(Found(), HasSubstr("counts 16 frames"));
  ChangeInfo("\"total_frames\": 16", "\"total_frames\": 15");
  ChangeInfo("\"fps\": 10", "\"fps\": 20");
  EXPECT_THAT(Found(), HasSubstr("episode 0: frame 1: timestamp is 0.100000, not 0.050000 s"));
  ChangeInfo("\"fps\": 20", "\"fps\": 29.97");
  EXPECT_THAT(Found(), HasSubstr("\"fps\" is 29.97, which is not whole"));
  ChangeInfo("\"fps\": 29.97", "\"fps\": 10.0");
  EXPECT_EQ(Found(), "");
  ChangeInfo("\"float64\"", "\"int64\"");
  EXPECT_THAT(Found(), HasSubstr("\"action\" has another type; info.json says int64"));
  ChangeInfo("data/chunk-", "../chunk-");
  EXPECT_THAT(Found(), HasSubstr("leaves the data set"));
  ChangeInfo("../chunk-", "data/chunk-");
  ChangeInfo("\"shape\": [\n                2\n", "\"shape\": [\n                3\n");
  EXPECT_THAT(Found(), HasSubstr("has not the 3 "));
}

TEST_F(DamageTest, AColumnThatIsNotListedIsFound) {
  const std::string path = Path("meta/info.json");
  Json info = ReadJson(path);
  info["features"].erase("note");
  info["features"].erase("grid");
  app::WriteFileAtomically(path, info.dump());
  EXPECT_THAT(Found(), AllOf(HasSubstr("has the column \"note\", which info.json does not list"),
                             HasSubstr("has the column \"grid\"")));
}

TEST_F(DamageTest, IndicesAreIntegersAndTimesAreNot) {
  const std::string path = Path("meta/info.json"), text = app::ReadFile(path, 1 << 20);
  const struct {
    const char *name, *dtype, *said;
    parquet::Type type;
  } rows[] = {
      {"task_index", "float64", "has no \"task_index\" of one integer", parquet::Type::kDouble},
      {"timestamp", "int64", "has no \"timestamp\" of one float32", parquet::Type::kInt64}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    Json info = ParseJson(text, path);
    info["features"][row.name]["dtype"] = row.dtype;
    app::WriteFileAtomically(path, info.dump());
    mjp_test::Rewrite(
        Path("data/chunk-000/file-000.parquet"),
        [&](const std::string& leaf, parquet::Field& field, parquet::LeafValues& data) {
          if (leaf != row.name) return;
          field.type = row.type;
          const parquet::Values old = std::exchange(data.values, {});
          data.values.numbers.assign(old.ints.begin(), old.ints.end());
          data.values.ints.assign(old.numbers.begin(), old.numbers.end());
        });
    EXPECT_THAT(Found(), HasSubstr(row.said));
  }
}

TEST_F(DamageTest, NumbersThatTheirTypeDoesNotHoldAreFound) {
  const std::string path = Path("meta/info.json");
  Json info = ReadJson(path);
  info["features"]["grid"]["dtype"] = "uint8";  // frame 1 has 1, 2, 3, -1
  app::WriteFileAtomically(path, info.dump());
  EXPECT_THAT(Found(), AllOf(HasSubstr("episode 0: frame 1: \"grid\" is -1, which is no uint8"),
                             HasSubstr("episode 2: frame 0: \"grid\" is -200")));
}

// LeRobot counts rows over all files, in the order of their names.
TEST_F(DamageTest, RowsOfNoEpisodeAreProblemsWhereEpisodesFollow) {
  {
    DatasetWriter writer(folder_ / "set", mjp_test::RecordedInfo("image"));
    mjp_test::RecordEpisode(writer, 3);
    writer.Finish();
  }
  const std::string first = Path("data/chunk-000/file-000.parquet"),
                    last = Path("data/chunk-000/file-001.parquet");
  const auto check = [&] {
    Dataset dataset(folder_ / "set");
    return Check(dataset, {});
  };
  EXPECT_THAT(check().problems, IsEmpty());
  EXPECT_THAT(check().notes, IsEmpty());
  const auto expect_note = [&](const std::string& note) {
    EXPECT_THAT(check().problems, IsEmpty());
    EXPECT_THAT(check().notes, ElementsAre(HasSubstr(note)));
  };
  const auto expect_problem = [&](const std::string& problem) {
    EXPECT_THAT(check().problems,
                ElementsAre(AllOf(HasSubstr(problem), HasSubstr("the beginning of " + last))));
    EXPECT_THAT(check().notes, IsEmpty());
  };
  const std::string kept = folder_ / "kept";
  fs::copy_file(last, kept);
  mjp_test::RepeatLastRow(last);
  expect_note(last + ": has 1 rows behind its last episode");
  fs::copy_file(kept, last, fs::copy_options::overwrite_existing);

  fs::copy_file(last, Path("data/chunk-000/file-002.parquet"));
  expect_note("file-002.parquet: has 4 rows of no episode");
  fs::remove(Path("data/chunk-000/file-002.parquet"));

  fs::copy_file(last, Path("data/chunk-000/file-000_copy.parquet"));
  expect_problem("file-000_copy.parquet: has 4 rows of no episode");
  fs::remove(Path("data/chunk-000/file-000_copy.parquet"));

  mjp_test::RepeatLastRow(first);
  expect_problem(first + ": has 1 rows behind its last episode");
}

TEST_F(DamageTest, ATableOfTasksThatLeRobotDoesNotUnderstandIsFound) {
  std::string text = app::ReadFile(Path("meta/tasks.parquet"), 1 << 20);
  const size_t at = text.find("pandas\x18");
  ASSERT_NE(at, std::string::npos);
  text[at] = 'P';
  app::WriteFileAtomically(Path("meta/tasks.parquet"), text);
  EXPECT_THAT(Found(), HasSubstr("the number of the task instead of its text"));
}

// it would be waited for
TEST_F(DamageTest, AVideoThatIsAPipeIsRefused) {
  DatasetWriter writer(folder_ / "videos", mjp_test::RecordedInfo("video"));
  mjp_test::RecordEpisode(writer, 0);
  writer.Finish();
  const std::string video = folder_ / "videos/videos/observation.images.top/chunk-000/file-000.mp4";
  fs::remove(video);
  ASSERT_EQ(::mkfifo(video.c_str(), 0600), 0);
  Dataset dataset(folder_ / "videos");
  EXPECT_THAT(Check(dataset, {}).problems,
              ::testing::Contains(HasSubstr("file-000.mp4: is no file")));
}

TEST_F(DamageTest, AVideoThatIsTooShortIsNamedWithItsEpisode) {
  DatasetWriter writer(folder_ / "videos", mjp_test::RecordedInfo("video"));
  for (int64_t episode = 0; episode < 2; ++episode) mjp_test::RecordEpisode(writer, episode);
  writer.Finish();
  const std::string videos = folder_ / "videos/videos/observation.images.top/chunk-000/file-00";
  fs::copy_file(videos + "0.mp4", videos + "1.mp4", fs::copy_options::overwrite_existing);
  Dataset dataset(folder_ / "videos");
  EXPECT_THAT(Check(dataset, {}).problems,
              ElementsAre(HasSubstr("file-001.mp4: episode 1: has 4 frames, fewer than the 5"),
                          HasSubstr("episode 1, frame 4, \"observation.images.top\"")));
}

}  // namespace
}  // namespace mjp::datasets
