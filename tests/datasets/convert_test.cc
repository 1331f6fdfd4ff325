// Conversion from other layouts, against what was put into them.

#include "datasets/convert/convert.h"

#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/folders.h"
#include "base/npy.h"
#include "datasets/format/info.h"
#include "datasets/parquet/writer.h"
#include "datasets/pictures/png.h"
#include "tests/datasets/recorded_set.h"
#include "tests/support/files_below.h"
#include "tests/support/shared_data.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zarr_files.h"

namespace mjp::datasets {
namespace {

namespace fs = std::filesystem;
using mjp_test::RecordedFrame;
using mjp_test::RecordedLength;
using ::testing::HasSubstr;

std::string Text(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string WhatIsSaid(const ConvertOptions& options) {
  try {
    Convert(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

void ExpectSound(Dataset& dataset) {
  const CheckResult result = Check(dataset, {});
  for (const std::string& problem : result.problems) ADD_FAILURE() << problem;
  for (const std::string& note : result.notes) ADD_FAILURE() << note;
}

TEST(ConvertTest, ThePublishedPushTEpisodesAreTheirNumbers) {
  SHARED_OR_SKIP(source, "pusht/pusht_cchi_v7_replay.zarr");
  const mjp_test::TempDir folder;
  ConvertOptions options{.source = source,
                         .destination = folder / "set",
                         .task = "push the T",
                         .fps = 10,
                         .state = {},
                         .video = false,
                         .progress = {}};
  // interrupted, and gone on with
  options.progress = [](int64_t done, int64_t) { return done < 20; };
  EXPECT_FALSE(Convert(options).whole);
  options.progress = {};
  const ConvertResult result = Convert(options);
  EXPECT_TRUE(result.whole);
  EXPECT_EQ(result.layout, "zarr");
  EXPECT_EQ(result.episodes, 206);

  Dataset dataset(folder / "set");
  ExpectSound(dataset);
  const auto npy = [&](const std::string& name) {
    return app::ReadNpy(fs::path(source).parent_path() / ("human_" + name + ".npy"));
  };
  const std::vector<int64_t> ends = npy("episode_ends").ToIntegers("ends");
  const std::vector<double> state = npy("state").ToDoubles(), action = npy("action").ToDoubles();
  for (size_t episode = 0; episode < ends.size(); ++episode) {
    const int64_t from = dataset.episodes()[episode].from;
    ASSERT_EQ(dataset.episodes()[episode].to, ends[episode]);
    for (const auto& [name, all, size] :
         {std::tuple("observation.state", &state, 5), {"action", &action, 2}}) {
      const parquet::Column got = dataset.Read(episode, *dataset.info().Find(name));
      const std::vector<double> want(all->begin() + from * size,
                                     all->begin() + ends[episode] * size);
      ASSERT_EQ(got.values.numbers, want) << name << " of episode " << episode;
    }
  }
}

TEST(ConvertTest, WhatTheSourceDoesNotSayMustBeGiven) {
  SHARED_OR_SKIP(source, "pusht/pusht_cchi_v7_replay.zarr");
  const mjp_test::TempDir folder;
  ConvertOptions options{.source = source,
                         .destination = folder / "set",
                         .task = "",
                         .fps = 10,
                         .state = {},
                         .video = false,
                         .progress = {}};
  EXPECT_THAT(WhatIsSaid(options), HasSubstr("give --task and --fps"));
  options.task = "push";
  options.state = {"colour"};
  EXPECT_THAT(WhatIsSaid(options), HasSubstr("its arrays: action"));
  options.source = folder.path();
  EXPECT_THAT(WhatIsSaid(options), HasSubstr("no data set that is known"));
  EXPECT_FALSE(fs::exists(folder / "set"));
}

// A data set of version 2.1 with two episodes: a state, a video and images.
class Version2 {
 public:
  explicit Version2(const mjp_test::TempDir& folder) : root_(folder / "v2") {
    for (const char* part : {"/meta", "/data/chunk-000", "/videos/chunk-000/top"}) {
      fs::create_directories(root_ + part);
    }
    Json features = {{"observation.state", Entry("float32", {2})},
                     {"top", Entry("video", {64, 96, 3})},
                     {"front", Entry("image", {64, 96, 3})}};
    for (const Feature& feature : DefaultFeatures())
      features[feature.name] = Entry(feature.dtype, {1});
    const Json info = {
        {"codebase_version", "v2.1"},
        {"fps", 10},
        {"features", features},
        {"total_episodes", 2},
        {"total_frames", 9},
        {"total_tasks", 2},
        {"chunks_size", 1000},
        {"total_chunks", 1},
        {"splits", {{"train", "0:1"}, {"test", "1:2"}}},
        {"licence", "mine"},
        {"data_path", "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"},
        {"video_path",
         "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"}};
    Write("/meta/info.json", info.dump());
    Write("/meta/tasks.jsonl",
          "{\"task_index\": 0, \"task\": \"reach\"}\n"
          "{\"task_index\": 1, \"task\": \"push the T\"}\n");
    Write("/meta/episodes.jsonl",
          "{\"episode_index\": 0, \"tasks\": [\"push the T\"], \"length\": 4}\n"
          "{\"episode_index\": 1, \"tasks\": [\"reach\"], \"length\": 5}\n");
    for (int64_t episode = 0; episode < 2; ++episode) {
      AddEpisode(episode, 10);
      AddVideo(episode);
    }
  }

  const std::string& root() const { return root_; }
  std::string Video(int64_t episode) const {
    return root_ + "/videos/chunk-000/top/episode_00000" + std::to_string(episode) + ".mp4";
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ + name) << text;
  }
  // Numbers and images, which are of one shade.
  void AddEpisode(int64_t episode, uint8_t shade) const;

 private:
  static Json Entry(const std::string& dtype, std::vector<int64_t> shape) {
    return {{"dtype", dtype}, {"shape", shape}, {"names", nullptr}};
  }

  void AddVideo(int64_t episode) const {
    const auto video = CreateVideo(Video(episode), 64, 96, 10);
    for (int64_t frame = 0; frame < RecordedLength(episode); ++frame) {
      video->Add(RecordedFrame(episode, frame).pictures.at("observation.images.top"));
    }
    video->Finish();
  }

  std::string root_;
};

void Version2::AddEpisode(int64_t episode, uint8_t shade) const {
  using parquet::Type;
  std::array<parquet::LeafValues, 8> leaves;
  const std::vector<uint8_t> png = EncodePng({64, 96, std::vector<uint8_t>(64 * 96 * 3, shade)});
  leaves[0].offsets = {0};
  for (int64_t frame = 0; frame < RecordedLength(episode); ++frame) {
    const Frame recorded = RecordedFrame(episode, frame);
    for (const double value : recorded.numbers.at("observation.state")) {
      leaves[0].values.numbers.push_back(value);
    }
    leaves[0].offsets.push_back(leaves[0].values.numbers.size());
    leaves[1].values.numbers.push_back(static_cast<double>(frame) / 10);
    leaves[2].values.ints.push_back(frame);
    leaves[3].values.ints.push_back(episode);
    leaves[4].values.ints.push_back(4 * episode + frame);
    leaves[5].values.ints.push_back(1 - episode);
    leaves[6].values.texts.emplace_back(reinterpret_cast<const char*>(png.data()), png.size());
    leaves[7].values.texts.emplace_back("frame.png");
  }
  parquet::Writer writer({{.name = "observation.state", .type = Type::kFloat, .lists = 1},
                          {.name = "timestamp", .type = Type::kFloat},
                          {.name = "frame_index"},
                          {.name = "episode_index"},
                          {.name = "index"},
                          {.name = "task_index"},
                          {.name = "front", .picture = true}},
                         {});
  std::vector<uint8_t> bytes = parquet::Writer::Begin();
  for (const auto& part : {writer.AddRowGroup(RecordedLength(episode), leaves), writer.Footer()}) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  WriteFileAtomically(
      root_ + "/data/chunk-000/episode_00000" + std::to_string(episode) + ".parquet", bytes);
}

TEST(ConvertTest, Version2KeepsNumbersTasksAndVideoFiles) {
  const mjp_test::TempDir folder;
  const Version2 source(folder);
  const ConvertOptions options{.source = source.root(),
                               .destination = folder / "v3",
                               .task = "",
                               .fps = 0,
                               .state = {},
                               .video = false,
                               .progress = {}};
  EXPECT_EQ(Convert(options).layout, "LeRobot v2.1");
  Dataset dataset(folder / "v3");
  ExpectSound(dataset);
  ASSERT_EQ(dataset.info().frames, 9);
  const Json info = ReadJson(folder / "v3/meta/info.json");
  EXPECT_EQ(info["splits"], (Json{{"train", "0:1"}, {"test", "1:2"}}));
  EXPECT_EQ(info["licence"], "mine");
  EXPECT_FALSE(info.contains("total_chunks"));
  EXPECT_EQ(dataset.tasks().texts, (std::vector<std::string>{"push the T", "reach"}));
  for (size_t episode = 0; episode < 2; ++episode) {
    const Episode& of = dataset.episodes()[episode];
    EXPECT_EQ(Text(dataset.VideoPath(of, *dataset.info().Find("top"))),
              Text(source.Video(static_cast<int64_t>(episode))));
    const auto values = dataset.Read(episode, *dataset.info().Find("observation.state")).values;
    for (size_t i = 0; i < values.numbers.size(); ++i) {
      const Frame want = RecordedFrame(static_cast<int64_t>(episode), static_cast<int64_t>(i / 2));
      EXPECT_EQ(values.numbers[i], static_cast<float>(want.numbers.at("observation.state")[i % 2]));
    }
  }
}

// with the same numbers and other words or pictures, or corrected since
TEST(ConvertTest, Version2GoesOnWithTheSameSourceAlone) {
  const mjp_test::TempDir folder;
  const Version2 source(folder);
  ConvertOptions options{.source = source.root(),
                         .destination = folder / "v3",
                         .task = "",
                         .fps = 0,
                         .state = {},
                         .video = false,
                         .progress = [](int64_t, int64_t) { return false; }};
  ASSERT_EQ(Convert(options).episodes, 1);
  options.progress = {};
  const auto before = mjp_test::FilesBelow(folder / "v3");
  const std::string tasks = Text(source.root() + "/meta/tasks.jsonl");
  source.Write("/meta/tasks.jsonl",
               "{\"task_index\": 0, \"task\": \"reach\"}\n"
               "{\"task_index\": 1, \"task\": \"push the L\"}\n");
  EXPECT_THAT(WhatIsSaid(options), HasSubstr("episode 0: its task is not that of"));
  source.Write("/meta/tasks.jsonl", tasks);
  const std::string video = Text(source.Video(0));
  std::string other = video;
  other.back() ^= 1;
  app::WriteFileAtomically(source.Video(0), other);
  EXPECT_THAT(WhatIsSaid(options), HasSubstr("episode 0: \"top\" is not that of"));
  app::WriteFileAtomically(source.Video(0), video);
  source.AddEpisode(0, 200);
  EXPECT_THAT(WhatIsSaid(options), HasSubstr("episode 0: \"front\" is not that of"));
  source.AddEpisode(0, 10);
  EXPECT_EQ(mjp_test::FilesBelow(folder / "v3"), before);
  EXPECT_EQ(WhatIsSaid(options), "nothing");
  EXPECT_EQ(ReadInfo(folder / "v3/meta/info.json").episodes, 2);
}

// also where the one that is there is of a build that made one split of all episodes
TEST(ConvertTest, Version2GoesOnWithTheSplitsOfTheSource) {
  const mjp_test::TempDir folder;
  const Version2 source(folder);
  for (const char* of : {"source", "all episodes"}) {
    SCOPED_TRACE(of);
    const std::string set = folder / of, path = set + "/meta/info.json";
    ConvertOptions options{.source = source.root(),
                           .destination = set,
                           .task = "",
                           .fps = 0,
                           .state = {},
                           .video = false,
                           .progress = [](int64_t, int64_t) { return false; }};
    ASSERT_EQ(Convert(options).episodes, 1);
    Json info = ReadJson(path);
    if (of == std::string("all episodes")) {
      info["splits"] = {{"train", "0:1"}};
      info.erase("licence");
    }
    app::WriteFileAtomically(path, info.dump());
    options.progress = {};
    ASSERT_EQ(Convert(options).episodes, 2);
    info = ReadJson(path);
    EXPECT_EQ(info["splits"], (Json{{"train", "0:1"}, {"test", "1:2"}}));
    EXPECT_EQ(info["licence"], "mine");
    EXPECT_EQ(info["total_episodes"], 2);
  }
}

TEST(ConvertTest, StopsWhileItComparesToo) {
  const mjp_test::TempDir folder;
  const Version2 source(folder);
  mjp_test::WriteZarr(folder, "zarr");
  for (const std::string layout : {"v2", "zarr"}) {
    SCOPED_TRACE(layout);
    const bool zarr = layout == "zarr";
    std::vector<int64_t> seen;
    ConvertOptions options{.source = zarr ? folder / "zarr" : source.root(),
                           .destination = folder / ("set_of_" + layout),
                           .task = zarr ? "t" : "",
                           .fps = zarr ? 10 : 0,
                           .state = {},
                           .video = false,
                           .progress = {}};
    const int64_t whole = Convert(options).episodes;
    const auto before = mjp_test::FilesBelow(options.destination);
    options.progress = [&](int64_t done, int64_t total) {
      EXPECT_EQ(total, whole);
      seen.push_back(done);
      return done < 1;
    };
    const ConvertResult stopped = Convert(options);
    EXPECT_FALSE(stopped.whole);
    EXPECT_EQ(stopped.episodes, whole);
    EXPECT_EQ(stopped.layout, zarr ? "zarr" : "LeRobot v2.1");
    // of a video, each part that was compared is a step too
    EXPECT_EQ(seen, zarr ? std::vector<int64_t>({1}) : std::vector<int64_t>({0, 1}));
    EXPECT_EQ(mjp_test::FilesBelow(options.destination), before);
  }
}

TEST(ConvertTest, Version2IsHeldAgainstItself) {
  const mjp_test::TempDir folder;
  const Version2 source(folder);
  ConvertOptions options{.source = source.root(),
                         .destination = folder / "v3",
                         .task = "x",
                         .fps = 0,
                         .state = {},
                         .video = false,
                         .progress = {}};
  EXPECT_THAT(WhatIsSaid(options), HasSubstr("leave out --task"));
  options.task = "";
  fs::copy_file(source.Video(0), source.Video(1), fs::copy_options::overwrite_existing);
  EXPECT_THAT(WhatIsSaid(options), HasSubstr("episode 1 has 4 frames, its numbers 5"));
  source.Write("/meta/tasks.jsonl", "{\"task_index\": 0, \"task\": \"reach\"}\n");
  options.destination = folder / "v3b";
  EXPECT_THAT(WhatIsSaid(options), HasSubstr("task_index 1"));
}

}  // namespace
}  // namespace mjp::datasets
