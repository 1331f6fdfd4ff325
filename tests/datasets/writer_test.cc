// Data sets that this project writes: read back, checked, added to, refused; and by pyarrow.

#include "datasets/recording/writer.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/folders.h"
#include "base/json.h"
#include "datasets/workplace.h"
#include "tests/datasets/recorded_set.h"
#include "tests/support/files_below.h"
#include "tests/support/temp_dir.h"

namespace mjp::datasets {
namespace {

namespace fs = std::filesystem;
using mjp_test::ExpectRecorded;
using mjp_test::RecordedFrame;
using mjp_test::RecordedInfo;
using mjp_test::RecordEpisode;
using ::testing::HasSubstr;

void Record(const std::string& folder, const std::string& pictures, int64_t first, int64_t last) {
  DatasetWriter writer(folder, RecordedInfo(pictures));
  for (int64_t episode = first; episode < last; ++episode) RecordEpisode(writer, episode);
  writer.Finish();
  EXPECT_EQ(writer.saved(), last);
}

std::string WhatIsSaid(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(WriterTest, ReadsBackWhatItWrote) {
  const mjp_test::TempDir folder;
  Record(folder / "set", "image", 0, 4);
  ExpectRecorded(folder / "set", 4);
  Dataset dataset(folder / "set");
  EXPECT_THAT(Check(dataset, {}).notes, testing::IsEmpty());
  EXPECT_TRUE(dataset.tasks().found_by_lerobot);
  EXPECT_EQ(dataset.tasks().texts, (std::vector<std::string>{"push the T", "reach"}));
  EXPECT_EQ(dataset.info().robot_type, "test");
}

TEST(WriterTest, GoesOnWithADataSet) {
  const mjp_test::TempDir folder;
  Record(folder / "parts", "image", 0, 2);
  Record(folder / "parts", "image", 2, 3);
  Record(folder / "parts", "image", 3, 5);
  Record(folder / "whole", "image", 0, 5);
  ExpectRecorded(folder / "parts", 5);
  const auto text = [&](const std::string& name) {
    std::ifstream file(folder / name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  for (const std::string name : {"/meta/info.json", "/meta/stats.json", "/meta/tasks.parquet"}) {
    EXPECT_EQ(text("parts" + name), text("whole" + name)) << name;
  }
}

TEST(WriterTest, WhatElseInfoJsonSaysStays) {
  const mjp_test::TempDir folder;
  Record(folder / "set", "image", 0, 2);
  const std::string path = folder / "set/meta/info.json";
  Json info = ReadJson(path);
  info["splits"] = {{"train", "0:1"}, {"held_out", "1:2"}};
  info["data_files_size_in_mb"] = 7;
  info["licence"] = "mine";
  info["features"]["action"]["unit"] = "m";
  app::WriteFileAtomically(path, info.dump());
  Record(folder / "set", "image", 2, 3);
  info["total_episodes"] = 3;
  info["total_frames"] = 15;
  EXPECT_EQ(ReadJson(path), info);
  ExpectRecorded(folder / "set", 3);
  // a split that is of all episodes stays so
  info["splits"]["train"] = "0:3";
  app::WriteFileAtomically(path, info.dump());
  Record(folder / "set", "image", 3, 5);
  EXPECT_EQ(ReadJson(path)["splits"], (Json{{"train", "0:5"}, {"held_out", "1:2"}}));
}

TEST(WriterTest, SplitsThatAreNoneAreAllEpisodes) {
  for (const Json& splits : {Json("train"), Json::array({"train"}), Json()}) {
    SCOPED_TRACE(splits.dump());
    const mjp_test::TempDir folder;
    Record(folder / "set", "image", 0, 1);
    const std::string path = folder / "set/meta/info.json";
    Json info = ReadJson(path);
    info["splits"] = splits;
    app::WriteFileAtomically(path, info.dump());
    Record(folder / "set", "image", 1, 2);
    EXPECT_EQ(ReadJson(path)["splits"], (Json{{"train", "0:2"}}));
  }
}

TEST(WriterTest, DroppedEpisodesLeaveNothing) {
  const mjp_test::TempDir folder;
  {
    DatasetWriter writer(folder / "set", RecordedInfo("image"));
    RecordEpisode(writer, 0);
    writer.AddFrame(RecordedFrame(7, 0));
    EXPECT_EQ(writer.frames(), 1);
    writer.DropEpisode();
    writer.EndEpisode();
    RecordEpisode(writer, 1);
    writer.AddFrame(RecordedFrame(8, 0));
    writer.Finish();
    EXPECT_EQ(writer.saved(), 2);
  }
  ExpectRecorded(folder / "set", 2);
}

TEST(WriterTest, WrongFramesAreRefusedAndLeaveTheEpisodeAsItWas) {
  const mjp_test::TempDir folder;
  DatasetWriter writer(folder / "set", RecordedInfo("image"));
  const Frame good = RecordedFrame(0, 0);
  const auto said = [&](const std::function<void(Frame&)>& change) {
    Frame frame = good;
    change(frame);
    return WhatIsSaid([&] { writer.AddFrame(frame); });
  };
  EXPECT_THAT(said([](Frame& f) { f.numbers.erase("action"); }), HasSubstr("no \"action\""));
  EXPECT_THAT(said([](Frame& f) { f.numbers["action"][1] = std::nan(""); }),
              HasSubstr("not finite"));
  EXPECT_THAT(said([](Frame& f) { f.numbers["next.reward"][0] = -1e39; }),
              HasSubstr("\"next.reward\" has the value -1e+39, which is beyond float32"));
  EXPECT_THAT(said([](Frame& f) { f.numbers["action"].pop_back(); }), HasSubstr("2 values"));
  EXPECT_THAT(said([](Frame& f) { f.numbers["grid"][0] = 0.5; }), HasSubstr("no whole number"));
  EXPECT_THAT(said([](Frame& f) { f.numbers["grid"][0] = std::ldexp(1, 53); }),
              HasSubstr("int64 is taken from -9007199254740991 to 9007199254740991"));
  EXPECT_THAT(said([](Frame& f) { f.numbers["next.done"][0] = 2; }),
              HasSubstr("bool is taken from 0 to 1"));
  EXPECT_THAT(said([](Frame& f) { f.task = ""; }), HasSubstr("no task"));
  EXPECT_THAT(said([](Frame& f) { f.pictures.begin()->second.width = 95; }), HasSubstr("64 x 95"));
  for (int64_t frame = 0; frame < 4; ++frame) writer.AddFrame(RecordedFrame(0, frame));
  writer.EndEpisode();
  writer.Finish();
  ExpectRecorded(folder / "set", 1);
}

// left by a build that took it for finite
TEST(WriterTest, ASpooledNumberBeyondFloat32IsRefused) {
  const mjp_test::TempDir folder;
  Record(folder / "set", "image", 0, 1);
  Info info = RecordedInfo("image");
  info.features[0] = MakeFeature("observation.state", "float64", {2}, {"x", "y"});
  SpoolWriter left(folder / "set/.spool/episode-1", info);
  Frame frame = RecordedFrame(1, 0);
  frame.numbers["observation.state"][1] = 1e39;
  left.Add(frame);
  left.Close();
  EXPECT_THAT(WhatIsSaid([&] { DatasetWriter(folder / "set", RecordedInfo("image")).Finish(); }),
              HasSubstr("frame 0: \"observation.state\" is not finite, or beyond float32"));
  ExpectRecorded(folder / "set", 1);
}

TEST(WriterTest, ASpooledEpisodeHasTheFramesThatItSaysOrIsRefused) {
  const struct {
    int64_t bytes;  // more than there were
    const char* said;
  } rows[] = {{8, "frames.bin: has more bytes than its frames"},
              {-8, "frames.bin: has fewer bytes than its frames"},
              {0, "nothing"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.said);
    const mjp_test::TempDir folder;
    Record(folder / "set", "image", 0, 1);
    const std::string spool = folder / "set/.spool/episode-1", frames = spool + "/frames.bin";
    const Info info = RecordedInfo("image");
    SpoolWriter left(spool, info);
    for (int64_t frame = 0; frame < mjp_test::RecordedLength(1); ++frame) {
      left.Add(RecordedFrame(1, frame));
    }
    left.Close();
    fs::resize_file(frames, static_cast<uintmax_t>(fs::file_size(frames) + row.bytes));
    EXPECT_THAT(WhatIsSaid([&] { DatasetWriter(folder / "set", info).Finish(); }),
                HasSubstr(row.said));
    ExpectRecorded(folder / "set", row.bytes == 0 ? 2 : 1);
  }
}

// no file may become larger than that
TEST(WriterTest, AnEpisodeWhoseFramesWereTornTakesNoFurtherOnes) {
  const mjp_test::TempDir folder;
  DatasetWriter writer(folder / "set", RecordedInfo("image"));
  const auto add = [&] { writer.AddFrame(RecordedFrame(0, 0)); };
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 100000;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  std::string said = "nothing";
  for (int frame = 0; frame < 100 && said == "nothing"; ++frame) said = WhatIsSaid(add);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(said, HasSubstr("cannot write"));
  EXPECT_THAT(WhatIsSaid(add), HasSubstr("record it again"));
  EXPECT_THAT(WhatIsSaid([&] { writer.EndEpisode(); }), HasSubstr("record it again"));
  EXPECT_EQ(writer.frames(), 0);
  RecordEpisode(writer, 0);
  writer.Finish();
  ExpectRecorded(folder / "set", 1);
}

TEST(WriterTest, AnotherDataSetIsNotTouched) {
  const mjp_test::TempDir folder;
  Record(folder / "set", "image", 0, 1);
  Info rate = RecordedInfo("image"), looked = rate;
  rate.fps = 20;
  looked.features.back().look = {{"renderer", "raster"}};
  DatasetWriter(folder / "drawn", looked).Finish();
  EXPECT_EQ(ReadInfo(folder / "drawn/meta/info.json").Find("observation.images.top")->look,
            looked.features.back().look);
  fs::create_directory(folder / "mine");
  folder.Write("mine/thesis.tex", "x");
  // episodes that a killed recorder left in the spool, and rows that no episode has
  fs::copy(folder / "set", folder / "waiting", fs::copy_options::recursive);
  fs::create_directories(folder / "waiting/.spool/episode-1");
  folder.Write("waiting/.spool/episode-1/episode.json", "{}");
  folder.Write("waiting/data/chunk-000/file-001.parquet", "rows");
  const CheckDataset no = [](Dataset&) { throw BadInput("not by me"); };
  const struct {
    const char* folder;
    Info wanted;
    CheckDataset check;
    const char* said;
  } rows[] = {
      {"set", rate, {}, "10 frames per second, not 20"},
      {"set", RecordedInfo("video"), {}, "observation.images.top"},
      {"drawn", RecordedInfo("image"), {}, "another look of \"observation.images.top\""},
      {"mine", looked, {}, "neither empty nor a data set"},
      {"set", RecordedInfo("image"), no, "not by me"},
      {"waiting", RecordedInfo("image"), no, "not by me"},
  };
  for (const auto& row : rows) {
    const auto before = mjp_test::FilesBelow(folder / row.folder);
    EXPECT_THAT(WhatIsSaid([&] { DatasetWriter(folder / row.folder, row.wanted, row.check); }),
                HasSubstr(row.said));
    EXPECT_EQ(mjp_test::FilesBelow(folder / row.folder), before) << row.said;
  }
  Record(folder / "looked", "image", 0, 0);
  DatasetWriter(folder / "looked", looked).Finish();  // whose look is not known
}

TEST(WriterTest, HasOneWriterAtATime) {
  const mjp_test::TempDir folder;
  const auto begin = [&] { DatasetWriter(folder / "set", RecordedInfo("image")); };
  {
    DatasetWriter writer(folder / "set", RecordedInfo("image"));
    EXPECT_THAT(WhatIsSaid(begin), HasSubstr("another process"));
    RecordEpisode(writer, 0);  // the lock is still there
    EXPECT_THAT(WhatIsSaid(begin), HasSubstr("another process"));
    writer.Finish();
  }
  EXPECT_FALSE(fs::exists(folder / "set/.spool"));
  // writers that begin while others end: never two at once
  std::atomic<int> writing = 0, begun = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        try {
          const Workplace place(folder / "set");
          EXPECT_EQ(++writing, 1);
          ++begun;
          --writing;
        } catch (const Error&) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(begun, 0);
  ExpectRecorded(folder / "set", 1);
}

TEST(WriterTest, PyarrowReadsTheSame) {
  const char* python = std::getenv("MJPOLICY_PYTHON");
  const std::string program = python ? python : "python3";
  if (std::system((program + " -c 'import pyarrow' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "no pyarrow: set MJPOLICY_PYTHON to the name of a Python that has it";
  }
  const mjp_test::TempDir folder;
  Record(folder / "set", "image", 0, 3);
  const std::string script = folder.Write("check.py", R"(
import math, struct, sys
import pyarrow.parquet as pq
root = sys.argv[1]
f32 = lambda v: struct.unpack("f", struct.pack("f", v))[0]
d = pq.read_table(root + "/data/chunk-000/file-000.parquet", page_checksum_verification=True).to_pydict()
rows = [(e, f) for e in range(3) for f in range(4 + e % 3)]
at = [100.0 * e + f for e, f in rows]
assert d["index"] == list(range(len(rows))), d["index"]
assert d["episode_index"] == [e for e, f in rows] and d["frame_index"] == [f for e, f in rows]
assert d["timestamp"] == [f32(f / 10) for e, f in rows], d["timestamp"]
assert d["task_index"] == [e % 2 for e, f in rows]
assert d["observation.state"] == [[f32(math.sin(a)), f32(0.1 * a)] for a in at]
assert d["action"] == [[a / 3, -a, 1e-9 * a] for a in at]
assert d["grid"] == [[[a, a + 1], [a + 2, -a]] for a in at], d["grid"][:2]
assert d["note"] == ["note %d" % f for e, f in rows]
assert d["next.done"] == [f == 3 + e % 3 for e, f in rows]
assert all(p["bytes"][:4] == b"\x89PNG" for p in d["observation.images.top"])
assert [p["path"] for p in d["observation.images.top"]] == ["frame-%06d.png" % f for e, f in rows]
tasks = pq.read_table(root + "/meta/tasks.parquet")
assert tasks.schema.pandas_metadata["index_columns"] == ["task"], tasks.schema
assert tasks.to_pydict() == {"task_index": [0, 1], "task": ["push the T", "reach"]}
e = pq.read_table(root + "/meta/episodes/chunk-000/file-000.parquet").to_pydict()
assert e["length"] == [4, 5, 6] and e["dataset_from_index"] == [0, 4, 9], e
assert e["tasks"] == [["push the T"], ["reach"], ["push the T"]], e["tasks"]
assert e["stats/action/count"] == [[4], [5], [6]]
assert e["stats/action/max"][1] == [104 / 3, -100, 104e-9], e["stats/action/max"]
assert len(e["stats/observation.images.top/mean"][0]) == 3
assert len(e["stats/observation.images.top/mean"][0][0][0]) == 1
)");
  EXPECT_EQ(std::system((program + " " + script + " " + folder.path() + "/set").c_str()), 0);
}

}  // namespace
}  // namespace mjp::datasets
