// mjpolicy-train on data sets that are damaged or lie: each is a refusal that names the place, and
// no run is begun.

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/folders.h"
#include "base/json.h"
#include "tests/datasets/recorded_set.h"
#include "tests/datasets/rewrite.h"
#include "tests/support/program.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kData = "data/chunk-000/file-000.parquet", kInfo = "meta/info.json",
                  kEpisodes = "meta/episodes/chunk-000/file-000.parquet";

struct Fault {
  std::string name;
  std::function<void(const std::string& set)> damage;
  std::string said;  // what the refusal names
};

// What can lie in the place of any file.
std::vector<Fault> FaultsOf(const std::string& file) {
  using Make = std::function<void(const std::string& path)>;
  const auto length = [](double share) {
    return [=](const std::string& path) {
      const auto size = static_cast<double>(fs::file_size(path));
      fs::resize_file(path, static_cast<uintmax_t>(share * size));
    };
  };
  const auto instead = [](const Make& make) {
    return [=](const std::string& path) {
      fs::remove(path);
      make(path);
    };
  };
  const std::vector<std::pair<std::string, Make>> kinds = {
      {"is empty", length(0)},
      {"is half", length(0.5)},
      {"has 40 GiB of holes", [](const std::string& path) { fs::resize_file(path, 40ull << 30); }},
      {"is absent", instead([](const std::string&) {})},
      {"is a folder", instead([](const std::string& path) { fs::create_directory(path); })},
      {"is a FIFO", instead([](const std::string& path) { ::mkfifo(path.c_str(), 0600); })},
      {"is a link to itself", instead([](const std::string& p) { fs::create_symlink(p, p); })},
      {"is zeros", instead([](const std::string& path) {
         WriteFileAtomically(path, std::string(4096, '\0'));
       })},
      {"is a text", instead([](const std::string& path) { WriteFileAtomically(path, "hello\n"); })},
  };
  // without its table an episode is not known
  const std::string said = file == kEpisodes ? "meta/episodes" : fs::path(file).filename();
  std::vector<Fault> faults;
  for (const auto& [kind, make] : kinds) {
    faults.push_back({file + " " + kind,
                      [=, make = make](const std::string& set) { make(set + "/" + file); }, said});
  }
  return faults;
}

// The values of a column of the data file.
Fault Lie(const std::string& column, const std::function<void(parquet::Values&)>& change,
          const std::string& said) {
  return {column + " lies",
          [=](const std::string& set) {
            mjp_test::Rewrite(set + "/" + kData, [&](const std::string& leaf, auto&, auto& data) {
              if (leaf == column) change(data.values);
            });
          },
          said};
}

std::vector<Fault> Lies() {
  using parquet::Values;
  const auto number = [](size_t at, double value) {
    return [=](Values& values) { values.numbers.at(at) = value; };
  };
  const auto integer = [](size_t at, int64_t value) {
    return [=](Values& values) { values.ints.at(at) = value; };
  };
  return {
      Lie("timestamp", number(6, 0.3), "episode 1: frame 2: timestamp is 0.300000, not 0.200000 s"),
      Lie("timestamp", number(6, std::nan("")), "episode 1: frame 2: timestamp"),
      Lie(
          "frame_index", [](Values& v) { std::swap(v.ints[1], v.ints[2]); },
          "episode 0: frame 1: frame_index is 2, not 1"),
      Lie("episode_index", integer(5, 0), "episode 1: frame 1: episode_index is 0, not 1"),
      Lie("index", integer(14, 15), "episode 2: frame 5: index is 15, not 14"),
      Lie("action.list.element", number(12, std::nan("")), "\"action\" is not finite"),
      Lie("action.list.element", number(12, 1e300), "\"action\" is not finite"),
      Lie("observation.state.list.element", number(1, HUGE_VAL), "\"observation.state\""),
      Lie(
          "observation.images.top.bytes", [](Values& v) { v.texts[10] = ""; },
          "episode 2, frame 1, \"observation.images.top\""),
      Lie(
          "observation.images.top.bytes",
          [](Values& v) { v.texts[10].remove_suffix(v.texts[10].size() / 2); },
          "episode 2, frame 1"),
  };
}

// A value of info.json, by its keys.
Fault Info(const std::vector<std::string>& keys, const Json& value, const std::string& said) {
  return {"info.json: " + keys.back() + " is " + value.dump(),
          [=](const std::string& set) {
            Json info = ReadJson(set + "/" + kInfo);
            Json* at = &info;
            for (const std::string& key : keys) at = &(*at)[key];
            *at = value;
            WriteFileAtomically(set + "/" + kInfo, info.dump());
          },
          said};
}

std::vector<Fault> InfoFaults() {
  const std::vector<std::string> action = {"features", "action", "shape"},
                                 top = {"features", "observation.images.top", "shape"};
  return {
      Info({"codebase_version"}, "v2.1", "mjpolicy convert"),
      Info({"fps"}, 0, "fps"),
      Info({"fps"}, 20, "timestamp is 0.100000, not 0.050000 s"),
      Info({"total_episodes"}, 1000000000, "1000000000 episodes"),
      Info({"total_episodes"}, 2, "frames"),
      Info({"total_frames"}, 1000000000000, "frames"),
      Info({"features"}, Json::object(), "timestamp"),
      Info({"data_path"}, "../{chunk_index}", "leaves the data set"),
      Info(action, {2}, "stats/action/min"),
      Info(action, {-1}, "\"action\""),
      Info(action, {1000000000}, "\"action\""),
      Info({"features", "action", "dtype"}, "string", "\"action\""),
      Info({"features", "action", "dtype"}, "float99", "\"action\""),
      Info(top, {96, 64, 3}, "96 x 64"),
      Info(top, {100000, 100000, 3}, "too many"),
      Info({"features", "observation.images.top", "dtype"}, "video",
           "videos/observation.images.top"),
  };
}

class DatasetFaultsTest : public ::testing::Test {
 protected:
  mjp_test::Outcome Train(const std::string& more = "--steps 2") const {
    return mjp_test::Run("timeout 60 " MJPOLICY_TRAIN_PROGRAM " --dataset " + set_ + " --out " +
                         run_ +
                         " --device cpu --threads 2 --log-every 1 --batch 2 --draws 1 "
                         "--horizon 8 --unet-channels 16 32 --stage-channels 16 16 "
                         "--stem-channels 8 --validation 0 " +
                         more);
  }
  void WriteSet() const {
    fs::remove_all(set_);
    fs::remove_all(run_);
    datasets::DatasetWriter writer(set_, mjp_test::RecordedInfo("image"));
    for (int64_t episode = 0; episode < 3; ++episode) mjp_test::RecordEpisode(writer, episode);
    writer.Finish();
  }
  void ExpectRefusals(const std::vector<Fault>& faults) const {
    for (const Fault& fault : faults) {
      SCOPED_TRACE(fault.name);
      WriteSet();
      fault.damage(set_);
      const mjp_test::Outcome outcome = Train();
      EXPECT_EQ(outcome.code, 2) << outcome.text;
      for (const std::string& text : {std::string("mjpolicy-train: error: "), set_, fault.said})
        EXPECT_THAT(outcome.text, HasSubstr(text));
      EXPECT_FALSE(fs::exists(run_ + "/data.json")) << "a run was begun";
    }
  }

  const mjp_test::TempDir dir_;
  const std::string set_ = dir_ / "set", run_ = dir_ / "run";
};

TEST_F(DatasetFaultsTest, WhatIsWholeIsTrainedOn) {
  WriteSet();
  const mjp_test::Outcome outcome = Train();
  EXPECT_EQ(outcome.code, 0) << outcome.text;
}

TEST_F(DatasetFaultsTest, FilesAreRefusedByName) {
  for (const std::string& file : {kData, kInfo, kEpisodes, std::string("meta/tasks.parquet")})
    ExpectRefusals(FaultsOf(file));
}

TEST_F(DatasetFaultsTest, FramesThatLieAreRefusedByPlace) { ExpectRefusals(Lies()); }

TEST_F(DatasetFaultsTest, InfoThatLiesIsRefusedByKey) { ExpectRefusals(InfoFaults()); }

TEST_F(DatasetFaultsTest, ARunGoesOnWithTheSameFramesAlone) {
  WriteSet();
  ASSERT_EQ(Train().code, 0);
  const auto refused = [&](const std::string& said) {
    const mjp_test::Outcome outcome = Train("--steps 4");
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_THAT(outcome.text,
                ::testing::AllOf(HasSubstr("begun with other data"), HasSubstr(said)));
  };
  fs::copy(set_, set_ + ".kept", fs::copy_options::recursive);
  const auto change = [&](const std::string& column, const auto& edit) {
    fs::remove_all(set_);
    fs::copy(set_ + ".kept", set_, fs::copy_options::recursive);
    mjp_test::Rewrite(set_ + "/" + kData, [&](const std::string& leaf, auto&, auto& data) {
      if (leaf == column) edit(data.values);
    });
  };
  // whose statistics, in another file, are as they were
  change("action.list.element",
         [](auto& values) { std::swap(values.numbers[0], values.numbers[3]); });
  refused("content");
  change("observation.images.top.bytes",
         [](auto& values) { std::swap(values.texts[0], values.texts[1]); });
  refused("content");
  change("", [](auto&) {});
  EXPECT_EQ(Train("--steps 4").code, 0);
}

}  // namespace
}  // namespace mjp::app
