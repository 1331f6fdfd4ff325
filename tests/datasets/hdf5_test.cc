// robomimic's and ACT's files, written here by the format's own library.

#include <gmock/gmock.h>
#include <hdf5.h>

#include <filesystem>
#include <functional>

#include "base/error.h"
#include "datasets/convert/convert.h"
#include "tests/datasets/recorded_set.h"
#include "tests/support/temp_dir.h"

namespace mjp::datasets {
namespace {

using ::testing::HasSubstr;

// Value of element i of an array of the k-th episode.
double At(int64_t k, size_t i) {
  return static_cast<double>((k * 31 + static_cast<int64_t>(i) * 7) % 251);
}

// An array of At, compressed, under `name`.
void Put(hid_t file, const std::string& name, std::vector<hsize_t> shape, hid_t type, int64_t k) {
  size_t count = 1;
  for (const hsize_t extent : shape) count *= extent;
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = name.ends_with("dones") ? i + 1 == count : At(k, i);
  const hid_t groups = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(groups, 1);
  const hid_t stored = H5Pcreate(H5P_DATASET_CREATE);
  if (count > 0) {
    H5Pset_chunk(stored, static_cast<int>(shape.size()), shape.data());
    H5Pset_deflate(stored, 4);
  }
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t array = H5Dcreate2(file, name.c_str(), type, space, groups, stored, H5P_DEFAULT);
  EXPECT_GE(H5Dwrite(array, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Dclose(array);
  H5Sclose(space);
  H5Pclose(stored);
  H5Pclose(groups);
}

constexpr hsize_t kRows = 5;

// A row for each of `values`, which are made `type`, and zeros.
void PutValues(hid_t file, const std::string& name, hid_t type, std::vector<int64_t> values) {
  values.resize(kRows);
  const hid_t space = H5Screate_simple(1, &kRows, nullptr);
  const hid_t array =
      H5Dcreate2(file, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_GE(H5Dwrite(array, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Dclose(array);
  H5Sclose(space);
}

hid_t Create(const std::string& path) {
  return H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
}

ConvertOptions Options(const std::string& source, const std::string& destination) {
  return {.source = source,
          .destination = destination,
          .task = "lift",
          .fps = 20,
          .state = {},
          .video = false,
          .progress = {}};
}

void ExpectSound(Dataset& dataset) {
  for (const std::string& problem : Check(dataset, {}).problems) ADD_FAILURE() << problem;
}

TEST(Hdf5Test, RobomimicsEpisodesAreInTheirOrder) {
  const mjp_test::TempDir folder;
  const hid_t file = Create(folder / "low_dim.hdf5");
  for (const int64_t k : {10, 9, 2}) {  // by number, not by name
    const std::string demo = "data/demo_" + std::to_string(k) + "/";
    const auto rows = static_cast<hsize_t>(3 + k);
    Put(file, demo + "actions", {rows, 7}, H5T_IEEE_F64LE, k);
    Put(file, demo + "rewards", {rows}, H5T_IEEE_F64LE, k);
    Put(file, demo + "dones", {rows}, H5T_STD_I64LE, k);
    Put(file, demo + "obs/robot0_eef_pos", {rows, 3}, H5T_IEEE_F64LE, k);
    Put(file, demo + "obs/object", {rows, 4}, H5T_IEEE_F64LE, k + 1);
    Put(file, demo + "obs/agentview_image", {rows, 64, 80, 3}, H5T_STD_U8LE, k);
    Put(file, demo + "next_obs/object", {rows, 4}, H5T_IEEE_F64LE, k);
  }
  H5Fclose(file);
  ConvertOptions options = Options(folder / "low_dim.hdf5", folder / "set");
  options.state = {"robot0_eef_pos", "object"};
  const ConvertResult result = Convert(options);
  EXPECT_EQ(result.layout, "robomimic");
  ASSERT_EQ(result.episodes, 3);
  Dataset dataset(folder / "set");
  ExpectSound(dataset);
  EXPECT_EQ(dataset.info().features.size(), 5u + 5u);
  for (size_t episode = 0; episode < 3; ++episode) {
    const int64_t k = std::array{2, 9, 10}[episode];
    ASSERT_EQ(dataset.episodes()[episode].length, 3 + k);
    const auto action = dataset.Read(episode, *dataset.info().Find("action")).values.numbers;
    for (size_t i = 0; i < action.size(); ++i) EXPECT_EQ(action[i], At(k, i));
    const auto state = dataset.Read(episode, *dataset.info().Find("observation.state")).values;
    for (size_t i = 0; i < state.numbers.size(); ++i) {
      const size_t row = i / 7, column = i % 7;
      EXPECT_EQ(state.numbers[i],
                column < 3 ? At(k, 3 * row + column) : At(k + 1, 4 * row + column - 3));
    }
    const Picture& picture =
        dataset.ReadPicture(episode, *dataset.info().Find("observation.images.agentview_image"), 1);
    for (size_t i = 0; i < picture.rgb.size(); ++i) {
      ASSERT_EQ(picture.rgb[i], At(k, picture.rgb.size() + i));
    }
    const auto done = dataset.Read(episode, *dataset.info().Find("next.done")).values.ints;
    EXPECT_EQ(std::count(done.begin(), done.end(), 1), 1);
    EXPECT_EQ(done.back(), 1);
  }
}

TEST(Hdf5Test, ActsFilesAreAnEpisodeEach) {
  const mjp_test::TempDir folder;
  std::filesystem::create_directory(folder / "act");
  for (const int64_t k : {0, 1, 2, 10}) {
    const hid_t file = Create(folder / ("act/episode_" + std::to_string(k) + ".hdf5"));
    Put(file, "action", {6, 14}, H5T_IEEE_F32LE, k);
    Put(file, "observations/qpos", {6, 14}, H5T_IEEE_F32LE, k + 1);
    Put(file, "observations/qvel", {6, 14}, H5T_IEEE_F32LE, k + 2);
    Put(file, "observations/images/top", {6, 64, 64, 3}, H5T_STD_U8LE, k);
    H5Fclose(file);
  }
  ConvertOptions options = Options(folder / "act", folder / "set");
  options.video = true;
  EXPECT_EQ(Convert(options).layout, "ACT");
  Dataset dataset(folder / "set");
  ExpectSound(dataset);
  ASSERT_EQ(dataset.episodes().size(), 4u);
  const auto state = dataset.Read(3, *dataset.info().Find("observation.state")).values.numbers;
  for (size_t i = 0; i < state.size(); ++i) EXPECT_EQ(state[i], At(11, i));
  EXPECT_EQ(dataset.info().Find("observation.images.top")->kind, Kind::kVideo);
}

// Five rows of an enumeration of 8 bits under `name`: its values, which are the members' in turn.
void PutEnumeration(hid_t file, const std::string& name, const std::vector<int8_t>& members) {
  const hid_t type = H5Tenum_create(H5T_STD_I8LE), space = H5Screate_simple(1, &kRows, nullptr);
  std::vector<int8_t> values(kRows);
  for (size_t i = 0; i < members.size(); ++i)
    H5Tenum_insert(type, std::string(1, static_cast<char>('A' + i)).c_str(), &members[i]);
  for (size_t i = 0; i < values.size(); ++i) values[i] = members[i % members.size()];
  const hid_t array =
      H5Dcreate2(file, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_GE(H5Dwrite(array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Dclose(array);
  H5Sclose(space);
  H5Tclose(type);
}

TEST(Hdf5Test, IntegersAndTruthValuesAreKeptOrRefused) {
  const mjp_test::TempDir folder;
  const auto convert = [&](const std::string& name, const std::function<void(hid_t)>& add) {
    const hid_t file = Create(folder / (name + ".hdf5"));
    Put(file, "action", {kRows, 2}, H5T_IEEE_F32LE, 0);
    Put(file, "observations/qpos", {kRows, 2}, H5T_IEEE_F32LE, 1);
    add(file);
    H5Fclose(file);
    Convert(Options(folder / (name + ".hdf5"), folder / name));
  };
  convert("kept", [](hid_t file) {
    for (const auto& [name, type] : {std::pair("signed", H5T_STD_I8LE), {"plain", H5T_STD_U8LE}})
      PutValues(file, std::string("observations/") + name, type, {-1, 100, 0, 127, -128});
    PutEnumeration(file, "observations/truth", {1, 0});
  });
  Dataset dataset(folder / "kept");
  ExpectSound(dataset);
  const auto values = [&](const std::string& name) {
    return dataset.Read(0, *dataset.info().Find(name)).values.ints;
  };
  EXPECT_EQ(dataset.info().Find("observation.signed")->dtype, "int8");
  EXPECT_EQ(values("observation.signed"), (std::vector<int64_t>{-1, 100, 0, 127, -128}));
  EXPECT_EQ(dataset.info().Find("observation.plain")->dtype, "uint8");
  EXPECT_EQ(dataset.info().Find("observation.truth")->dtype, "bool");
  EXPECT_EQ(values("observation.truth"), (std::vector<int64_t>{1, 0, 1, 0, 1}));
  const auto said = [&](const std::string& name, const std::function<void(hid_t)>& add) {
    try {
      convert(name, add);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_THAT(said("mode",
                   [](hid_t f) {
                     PutEnumeration(f, "observations/mode", {0, 1, 2});
                   }),
              HasSubstr("observations/mode: is neither of numbers nor of truth values"));
  EXPECT_THAT(said("grip",
                   [](hid_t f) {
                     PutEnumeration(f, "observations/grip", {-1, 1});
                   }),
              HasSubstr("observations/grip: is neither of numbers nor of truth values"));
  EXPECT_THAT(
      said("stamp",
           [](hid_t f) {
             PutValues(f, "observations/stamp", H5T_STD_I64LE, {0, 0, int64_t{1} << 60});
           }),
      HasSubstr("episode 0, frame 2: \"observations/stamp\" has an integer beyond 2^53 - 1"));
}

// A robomimic file with an episode of each of `lengths`.
void PutRobomimic(const std::string& path, const std::vector<hsize_t>& lengths) {
  const hid_t file = Create(path);
  for (size_t k = 0; k < lengths.size(); ++k) {
    const std::string demo = "data/demo_" + std::to_string(k) + "/";
    Put(file, demo + "actions", {lengths[k], 2}, H5T_IEEE_F64LE, 0);
    Put(file, demo + "obs/object", {lengths[k], 3}, H5T_IEEE_F64LE, 0);
  }
  H5Fclose(file);
}

// What would be left out is refused, and before there is a data set.
TEST(Hdf5Test, NoEpisodeIsLeftOut) {
  const mjp_test::TempDir folder;
  const auto said = [&](const std::string& name) {
    try {
      Convert(Options(folder / name, folder / "set"));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadInput);
      EXPECT_FALSE(std::filesystem::exists(folder / "set"));
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  std::filesystem::create_directories(folder / "two");
  PutRobomimic(folder / "two/close_drawer_demo.hdf5", {5, 4});
  PutRobomimic(folder / "two/open_drawer_demo.hdf5", {3});
  EXPECT_THAT(said("two"), HasSubstr("two: has several robomimic files; convert each into a "
                                     "folder of its own, with its --task"));
  PutRobomimic(folder / "gap.hdf5", {5, 0, 4});
  EXPECT_THAT(said("gap.hdf5"), HasSubstr("gap.hdf5: data/demo_1/actions: has no frames; convert "
                                          "a copy without this episode"));
  std::filesystem::create_directories(folder / "act");
  for (const int64_t k : {0, 1, 2}) {
    const hid_t file = Create(folder / ("act/episode_" + std::to_string(k) + ".hdf5"));
    Put(file, "action", {k == 2 ? hsize_t{0} : kRows, 2}, H5T_IEEE_F32LE, k);
    Put(file, "observations/qpos", {k == 2 ? hsize_t{0} : kRows, 2}, H5T_IEEE_F32LE, k);
    H5Fclose(file);
  }
  EXPECT_THAT(said("act"), HasSubstr("act/episode_2.hdf5: action: has no frames"));
  const hid_t file = Create(folder / "empty.hdf5");
  H5Gclose(H5Gcreate2(file, "data", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Gclose(H5Gcreate2(file, "data/demo_0", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Gclose(H5Gcreate2(file, "data/demo_0/obs", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Fclose(file);
  EXPECT_THAT(said("empty.hdf5"), HasSubstr("empty.hdf5: data/demo_0/: has no arrays"));
  // one file alone in a folder is that file
  std::filesystem::remove(folder / "two/open_drawer_demo.hdf5");
  EXPECT_EQ(Convert(Options(folder / "two", folder / "set")).episodes, 2);
}

// also where there is no data set yet
TEST(Hdf5Test, StopsWhileIntegersAreLookedAt) {
  const mjp_test::TempDir folder;
  const hid_t file = Create(folder / "act.hdf5");
  Put(file, "action", {kRows, 2}, H5T_IEEE_F32LE, 0);
  Put(file, "observations/count", {kRows, 2}, H5T_STD_I64LE, 1);
  H5Fclose(file);
  ConvertOptions options = Options(folder / "act.hdf5", folder / "set");
  options.progress = [](int64_t, int64_t) { return false; };
  const ConvertResult stopped = Convert(options);
  EXPECT_FALSE(stopped.whole);
  EXPECT_EQ(stopped.layout, "ACT");
  EXPECT_EQ(stopped.episodes, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "set"));
  options.progress = {};
  EXPECT_EQ(Convert(options).episodes, 1);
}

TEST(Hdf5Test, WhatIsNotReadIsSaid) {
  const mjp_test::TempDir folder;
  const auto said = [&](const std::string& name) {
    try {
      Convert(Options(folder / name, folder / "set"));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  folder.Write("damaged.hdf5", "\x89HDF\r\n");
  EXPECT_THAT(said("damaged.hdf5"), HasSubstr("cannot be opened"));
  hid_t file = Create(folder / "other.hdf5");
  Put(file, "x", {3}, H5T_IEEE_F32LE, 0);
  H5Fclose(file);
  EXPECT_THAT(said("other.hdf5"), HasSubstr("neither robomimic's \"data\" nor ACT's"));
  file = Create(folder / "jpeg.hdf5");
  Put(file, "action", {6, 14}, H5T_IEEE_F32LE, 0);
  Put(file, "observations/images/top", {6, 900}, H5T_STD_U8LE, 0);
  H5Fclose(file);
  EXPECT_THAT(said("jpeg.hdf5"), HasSubstr("JPEG"));
}

}  // namespace
}  // namespace mjp::datasets
