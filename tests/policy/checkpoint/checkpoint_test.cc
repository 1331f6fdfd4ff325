#include "policy/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/safetensors.h"
#include "policy/checkpoint/safetensors_writer.h"
#include "policy/inspect.h"
#include "policy/unet/unet_model.h"
#include "tests/support/damaged_checkpoint.h"
#include "tests/support/goldens/completed_checkpoint.h"
#include "tests/support/goldens/formula_weights.h"
#include "tests/support/goldens/golden_cases.h"
#include "tests/support/shared_data.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {
namespace {

using mjp::Json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kBias[] = "diffusion.unet.final_conv.1.bias";

using CheckpointTest = DamagedCheckpoint;

TEST_F(CheckpointTest, LoadsAsWritten) {
  const auto checkpoint = mjp::LoadCheckpoint(path());
  EXPECT_EQ(checkpoint->directory, path());
  EXPECT_EQ(checkpoint->sha256.size(), 64u);
  EXPECT_EQ(checkpoint->config.environment_dim, 16);
}

// the numbers of a feature's statistics as they stand in `file`, beside what inspect tells of them
TEST_F(CheckpointTest, InspectTellsTheRangesOfTheStatistics) {
  const mjp::SafetensorsFile file = mjp::SafetensorsFile::Read(dir_ / kPostStats);
  const std::vector<float> low = file.Floats("action.min").data;
  const Json json = Json::parse(mjp::InspectCheckpoint(path(), {.json = true}));
  const Json& action = json.at("statistics").at("action");
  EXPECT_EQ(action.at("mode"), "MIN_MAX");
  EXPECT_EQ(action.at("min").get<std::vector<float>>(), low);
  EXPECT_EQ(action.at("max").get<std::vector<float>>(), file.Floats("action.max").data);
  EXPECT_EQ(json.at("config").at("input_features").at("observation.environment_state").at("shape"),
            Json({16}));
  EXPECT_EQ(json.at("sha256"), mjp::LoadCheckpoint(path())->sha256);
  const std::string table = mjp::InspectCheckpoint(path());
  EXPECT_THAT(table, AllOf(HasSubstr("observation.environment_state"), HasSubstr("MIN_MAX")));
  std::ostringstream first;
  first << "\n    min  " << low.front();
  EXPECT_THAT(table, HasSubstr(first.str()));
}

TEST_F(CheckpointTest, InspectShowsTensorsWhereAsked) {
  EXPECT_THAT(mjp::InspectCheckpoint(path()), Not(HasSubstr(kBias)));
  EXPECT_THAT(mjp::InspectCheckpoint(path(), {.tensors = true}), HasSubstr(kBias));
  EXPECT_FALSE(Json::parse(mjp::InspectCheckpoint(path(), {.json = true})).contains("tensors"));
  const Json all = Json::parse(mjp::InspectCheckpoint(path(), {.tensors = true, .json = true}));
  EXPECT_EQ(all.at("tensors").size(), all.at("tensor_count"));
  EXPECT_THAT(all.at("tensors").dump(), HasSubstr(kBias));
}

TEST_F(CheckpointTest, NamesAMissingTensorWithItsShape) {
  EditTensors(kModel, [](Tensors& tensors) { tensors.erase(kBias); });
  EXPECT_THAT(Refusal(), AllOf(HasSubstr(kModel), HasSubstr(kBias), HasSubstr("(2)"),
                               HasSubstr("download or export")));
}

TEST_F(CheckpointTest, NamesAnExtraTensor) {
  EditTensors(kModel, [](Tensors& tensors) { tensors["diffusion.head.weight"] = {{1}, {0.0f}}; });
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("diffusion.head.weight"), HasSubstr("does not have")));
}

TEST_F(CheckpointTest, NamesAMisshapenTensorWithBothShapes) {
  EditTensors(kModel, [](Tensors& tensors) { tensors[kBias] = {{2, 1}, {0.0f, 0.0f}}; });
  EXPECT_THAT(Refusal(), AllOf(HasSubstr(kBias), HasSubstr("(2, 1)"), HasSubstr("(2)")));
}

TEST_F(CheckpointTest, NamesATensorThatIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    EditTensors(kModel, [&](Tensors& tensors) { tensors[kBias].data[1] = bad; });
    EXPECT_THAT(Refusal(), AllOf(HasSubstr(kBias), HasSubstr("not finite at element 1")));
  }
}

TEST_F(CheckpointTest, KeepsTheHashOfEveryFileItRead) {
  const auto checkpoint = mjp::LoadCheckpoint(path());
  std::vector<std::string> names;
  for (const auto& [name, hash] : checkpoint->files) {
    names.push_back(name);
    EXPECT_EQ(hash, mjp::Sha256(mjp::ReadFile(dir_ / name, 1 << 20))) << name;
  }
  EXPECT_THAT(names,
              testing::ElementsAre("config.json", kModel, kPost, kPostStats, kPre, kPreStats));
  EXPECT_EQ(checkpoint->sha256, checkpoint->files.at(kModel));
}

// Names the tensors of a checkpoint and gives one more `gib` GiB that the disk does not have.
void WriteSparse(const std::string& file, const std::string& extra, uint64_t gib) {
  const uint64_t bytes = gib << 30;
  const mjp::SafetensorsFile old = mjp::SafetensorsFile::Read(file);
  Json header = Json::object();
  uint64_t end = 0;
  for (const mjp::TensorEntry& entry : old.tensors()) {
    header[entry.name] = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
    end = entry.end;
  }
  header[extra] = {{"dtype", "U8"}, {"shape", {bytes}}, {"data_offsets", {end, end + bytes}}};
  const std::string text = header.dump();
  const uint64_t size = text.size();
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&size), 8);
  out << text;
  out.close();
  std::filesystem::resize_file(file, 8 + size + end + bytes);
}

TEST_F(CheckpointTest, RefusesAHugeFileByItsHeaderAlone) {
  const auto begin = std::chrono::steady_clock::now();
  // a header that has nothing of it, a foreign tensor, a statistic of that size, all sparse
  dir_.Write(kModel, std::string("\2\0\0\0\0\0\0\0{}", 10));
  std::filesystem::resize_file(dir_ / kModel, uint64_t{6} << 30);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr(kModel), HasSubstr("it has something behind them")));
  for (const char* name :
       {"foreign", "normalize_inputs.buffer_action.min", "x.num_batches_tracked"}) {
    mjp::WriteCheckpoint(path(), *TinyStateCheckpoint(), mjp::WeightFormat::kF32);
    WriteSparse(dir_ / kModel, name, 6);
    EXPECT_THAT(Refusal(), AllOf(HasSubstr(name), HasSubstr("does not have")));
  }
  mjp::WriteCheckpoint(path(), *TinyStateCheckpoint(), mjp::WeightFormat::kF32);
  WriteSparse(dir_ / kPreStats, "foreign", 6);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr(kPreStats), HasSubstr("more than the")));
  // reading 6 GiB takes seconds, 5 times; the headers take milliseconds
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 1 << 20) << "KiB resident";
}

TEST_F(CheckpointTest, RefusesTwoSetsOfStatistics) {
  EditTensors(kModel, [](Tensors& t) { t["normalize_inputs.buffer_action.min"] = {{2}, {1, 2}}; });
  EXPECT_THAT(Refusal(), HasSubstr("so do the processor files"));
  for (const char* name : {kPre, kPost, kPreStats, kPostStats}) {
    std::filesystem::remove(dir_ / name);
  }
  dir_.Write("stats.json", "{}");
  EXPECT_THAT(Refusal(), HasSubstr(std::string(kModel) + ": holds statistics, and so does stats"));
}

TEST_F(CheckpointTest, RefusesStatsJsonBesideProcessorFiles) {
  dir_.Write("stats.json", "{}");
  EXPECT_THAT(Refusal(), HasSubstr(std::string(kPre) + ": holds statistics, and so does stats"));
  std::filesystem::remove(dir_ / kPre);
  EXPECT_THAT(Refusal(), HasSubstr(std::string(kPost) + ": holds statistics, and so does stats"));
}

TEST_F(CheckpointTest, StatisticsInConfigMustNameStateAndAction) {
  for (const char* name : {kPre, kPost, kPreStats, kPostStats}) {
    std::filesystem::remove(dir_ / name);
  }
  dir_.Write("stats.json", "{}");
  EditJson("config.json", [](Json& json) { json["normalization_mapping"].erase("STATE"); });
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("observation.state"), HasSubstr("un-normalised")));
  EditJson("config.json", [](Json& json) { json["normalization_mapping"]["STAET"] = "MIN_MAX"; });
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("normalization_mapping"), HasSubstr("\"STAET\"")));
}

TEST_F(CheckpointTest, AcceptsCompiledNames) {
  EditTensors(kModel, [](Tensors& tensors) {
    Tensors renamed;
    for (auto& [name, tensor] : tensors) {
      renamed["diffusion.unet._orig_mod." + name.substr(15)] = std::move(tensor);
    }
    tensors = std::move(renamed);
  });
  EXPECT_EQ(Refusal(), "");
}

TEST_F(CheckpointTest, RefusesAnIntegerTensor) {
  const mjp::SafetensorsFile file = mjp::SafetensorsFile::Read(dir_ / kModel);
  mjp::SafetensorsWriter writer;
  for (const mjp::TensorEntry& entry : file.tensors()) {
    if (entry.name != kBias) {
      writer.AddFloats(entry.name, entry.shape, file.Floats(entry.name).data);
    }
  }
  writer.AddIntegers(kBias, {2}, std::vector<int64_t>{1, 2});
  writer.Write(dir_ / kModel);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr(kBias), HasSubstr("I64"), HasSubstr("not supported")));
}

TEST_F(CheckpointTest, RefusesStatisticsWithoutARange) {
  EditTensors(kPostStats, [](Tensors& t) { t["action.max"].data = t["action.min"].data; });
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("\"action\""), HasSubstr("must be positive")));
}

TEST_F(CheckpointTest, RefusesStatisticsThatAreNotFinite) {
  EditTensors(kPreStats, [](Tensors& t) {
    t["observation.state.max"].data[0] = std::numeric_limits<float>::infinity();
  });
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("observation.state.max"), HasSubstr("not finite")));
}

TEST_F(CheckpointTest, RefusesStatisticsOfAnotherSize) {
  EditTensors(kPreStats, [](Tensors& t) { t["observation.state.max"] = {{3}, {1, 2, 3}}; });
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("observation.state.max"), HasSubstr("expected 2")));
}

TEST_F(CheckpointTest, ReadsStatsJsonWhereThereAreNoProcessors) {
  for (const char* name : {kPre, kPost, kPreStats, kPostStats}) {
    std::filesystem::remove(dir_ / name);
  }
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("no statistics"), HasSubstr("stats.json")));
  Json stats = {{"observation.state", {{"min", {1, 2}}, {"max", {11, 22.5}}}},
                {"action", {{"min", {12, 25}}, {"max", {511, 511}}}}};
  dir_.Write("stats.json", stats.dump());
  EXPECT_THAT(Refusal(), HasSubstr("observation.environment_state.min"));
  stats["observation.environment_state"] = {{"min", Json::array()}, {"max", Json::array()}};
  for (int i = 0; i < 16; ++i) {
    stats["observation.environment_state"]["min"].push_back(0);
    stats["observation.environment_state"]["max"].push_back({i + 1});
  }
  dir_.Write("stats.json", stats.dump());
  const auto checkpoint = mjp::LoadCheckpoint(path());
  EXPECT_EQ(checkpoint->stats.state.second, (std::vector<float>{11, 22.5f}));
  EXPECT_EQ(checkpoint->stats.environment.second[15], 16.0f);
}

TEST_F(CheckpointTest, RefusesPicklesWithTheRecipe) {
  EXPECT_THAT(RefusalOf(dir_.Write("latest.ckpt", "PK")), HasSubstr("docs/CHECKPOINTS.md"));
  std::filesystem::remove(dir_ / kModel);
  for (const char* name : {"model.pth", "model.pt", "latest.ckpt"}) {
    std::filesystem::remove(dir_ / "latest.ckpt");
    const std::string pickle = dir_.Write(name, "PK");
    EXPECT_THAT(Refusal(), AllOf(HasSubstr(pickle), HasSubstr("pickle")));
    std::filesystem::remove(pickle);
  }
}

TEST_F(CheckpointTest, ExplainsWrongPaths) {
  EXPECT_THAT(RefusalOf(dir_ / "absent"), HasSubstr("no such checkpoint directory"));
  EXPECT_THAT(RefusalOf(dir_ / kModel), HasSubstr("give the directory"));
  std::filesystem::create_directories(dir_ / "run/pretrained_model");
  EXPECT_THAT(RefusalOf(dir_ / "run"), HasSubstr("lacks config.json"));
  std::filesystem::copy(dir_ / "config.json", dir_ / "run/pretrained_model/config.json");
  EXPECT_THAT(RefusalOf(dir_ / "run"), HasSubstr("give " + (dir_ / "run/pretrained_model")));
  std::filesystem::copy(dir_ / "run/pretrained_model", dir_ / "run/pretrained_model_ema");
  EXPECT_THAT(RefusalOf(dir_ / "run"), HasSubstr("give " + (dir_ / "run/pretrained_model_ema")));
  std::filesystem::remove(dir_ / kModel);
  EXPECT_THAT(Refusal(), HasSubstr("lacks model.safetensors"));
}

TEST_F(CheckpointTest, RefusesEveryTruncatedFile) {
  for (const char* name : {"config.json", kModel, kPre, kPost, kPreStats, kPostStats}) {
    const auto size = std::filesystem::file_size(dir_ / name);
    const TempDir backup;
    std::filesystem::copy(dir_ / name, backup / name);
    for (const auto cut : {uintmax_t{0}, uintmax_t{5}, size / 2, size - 2}) {
      std::filesystem::resize_file(dir_ / name, cut);
      EXPECT_THAT(Refusal(), HasSubstr(name)) << name << " cut to " << cut;
      std::filesystem::copy(backup / name, dir_ / name,
                            std::filesystem::copy_options::overwrite_existing);
    }
  }
  EXPECT_EQ(Refusal(), "");
}

// the goldens' directories, written by LeRobot 0.6 and 0.3

TEST(GoldenDirectories, OldAndNewStatePoliciesHoldTheSame) {
  SHARED_OR_SKIP(fresh, "goldens/g_new_state");
  SHARED_OR_SKIP(old, "goldens/g_old_state");
  const auto a = mjp::LoadCheckpoint(fresh), b = mjp::LoadCheckpoint(old);
  const mjp::UnetModel &first = mjp::UnetOf(*a), &second = mjp::UnetOf(*b);
  EXPECT_EQ(first.unet.mid1.film.weight.data, second.unet.mid1.film.weight.data);
  EXPECT_EQ(a->stats.environment.first, b->stats.environment.first);
  EXPECT_EQ(a->stats.action.second, b->stats.action.second);
  EXPECT_EQ(mjp::ConfigToJson(*a), mjp::ConfigToJson(*b));
  EXPECT_FLOAT_EQ(first.config.scheduler.clip_range, 1.2f);
  EXPECT_EQ(a->config.n_action_steps, 7);
  const std::string name = "diffusion.unet.mid_modules.0.cond_encoder.1.weight";
  EXPECT_EQ(first.unet.mid1.film.weight.data, FormulaTensor(name, {64, 52}).data);
}

TEST(GoldenDirectories, IncompleteImagePoliciesAreRefused) {
  SHARED_OR_SKIP(fresh, "goldens/g_new_image");
  SHARED_OR_SKIP(old, "goldens/g_old_image");
  for (const std::string& directory : {fresh, old}) {
    try {
      mjp::LoadCheckpoint(directory);
      ADD_FAILURE() << directory;
    } catch (const mjp::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("\"diffusion.rgb_encoder.backbone.0.weight\""));
    }
  }
}

TEST(GoldenDirectories, CompletedImagePoliciesLoad) {
  SHARED_OR_SKIP(fresh, "goldens/g_new_image");
  SHARED_OR_SKIP(old, "goldens/g_old_image");
  const TempDir dir;
  CompleteBackbone(fresh, dir / "new");
  CompleteBackbone(old, dir / "old");
  const auto a = mjp::LoadCheckpoint(dir / "new"), b = mjp::LoadCheckpoint(dir / "old");
  const mjp::UnetModel &first = mjp::UnetOf(*a), &second = mjp::UnetOf(*b);
  EXPECT_EQ(first.encoders[0].out.weight.data, second.encoders[0].out.weight.data);
  EXPECT_EQ(a->stats.cameras[0].first, b->stats.cameras[0].first);
  EXPECT_EQ(a->stats.cameras[0].mode, mjp::Normalization::kMeanStd);
  EXPECT_EQ(first.config.encoder.crop_height, 84);
  EXPECT_EQ(first.config.scheduler.kind, mjp::SamplerKind::kDdim);
  EXPECT_EQ(first.config.scheduler.inference_steps, 10);
  EXPECT_EQ(first.config.unet.groups, 4);
}

}  // namespace
}  // namespace mjp_test
