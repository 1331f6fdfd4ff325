// LeRobot's processor files: what is in them is understood or refused, with its place.

#include "policy/checkpoint/normalization/processors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/damaged_checkpoint.h"

namespace mjp_test {
namespace {

using mjp::Json;
using testing::AllOf;
using testing::HasSubstr;

class ProcessorsTest : public DamagedCheckpoint {
 protected:
  // The normalising step, and the one that undoes it.
  static Json& Normaliser(Json& pre) { return pre["steps"][3]; }
  static Json& Unnormaliser(Json& post) { return post["steps"][0]; }

  // A change of a processor file, and two texts that the refusal names beside the file.
  struct Row {
    const char* file;
    std::function<void(Json&)> change;
    const char *step, *named;
  };
};

TEST_F(ProcessorsTest, FollowsStateFileWhateverItsName) {
  std::filesystem::rename(dir_ / kPreStats, dir_ / "other.safetensors");
  EditJson(kPre, [](Json& json) { json["steps"][3]["state_file"] = "other.safetensors"; });
  EXPECT_EQ(Refusal(), "");
  for (const char* outside : {"../other.safetensors", "/etc/passwd", "..", ""}) {
    EditJson(kPre, [&](Json& json) { json["steps"][3]["state_file"] = outside; });
    EXPECT_THAT(Refusal(), HasSubstr("state_file")) << outside;
  }
}

TEST_F(ProcessorsTest, RefusesToRunUnnormalised) {
  EditTensors(kPreStats, [](Tensors& tensors) { tensors.erase("observation.state.min"); });
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("observation.state.min"), HasSubstr("un-normalised")));
}

TEST_F(ProcessorsTest, RefusesAProcessorWithoutStatistics) {
  EditJson(kPost, [](Json& json) { json["steps"][0].erase("state_file"); });
  EXPECT_THAT(Refusal(), AllOf(HasSubstr(kPost), HasSubstr("un-normalised")));
}

TEST_F(ProcessorsTest, RefusesAProcessorWithoutTheNormaliser) {
  EditJson(kPre, [](Json& json) { json["steps"].erase(3); });
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("normalizer_processor"), HasSubstr("un-normalised")));
}

TEST_F(ProcessorsTest, RefusesAFeatureThatTheNormaliserDoesNotList) {
  EditJson(kPre,
           [](Json& json) { json["steps"][3]["config"]["features"].erase("observation.state"); });
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("observation.state"), HasSubstr("un-normalised")));
}

TEST_F(ProcessorsTest, RefusesUnknownProcessorSteps) {
  EditJson(kPre, [](Json& json) { json["steps"][1]["registry_name"] = "tokenizer_processor"; });
  EXPECT_THAT(Refusal(), HasSubstr("tokenizer_processor"));
}

TEST_F(ProcessorsTest, RefusesWhatItDoesNotUnderstandAndNamesIt) {
  const char *normaliser = "step 3 (normalizer_processor)", *rename = "step 0 (rename";
  const char *unnormaliser = "step 0 (unnormalizer_processor)", *device = "step 2 (device";
  const auto norm = [](Json& json) -> Json& { return Normaliser(json)["config"]; };
  const auto unnorm = [](Json& json) -> Json& { return Unnormaliser(json)["config"]; };
  const auto state = [&](Json& json) -> Json& {
    return norm(json)["features"]["observation.state"];
  };
  const Row rows[] = {
      {kPre, [&](Json& j) { state(j)["type"] = "STAT"; }, normaliser, "\"STAT\""},
      {kPre, [&](Json& j) { state(j)["type"] = "state"; }, normaliser, "\"state\""},
      {kPre, [&](Json& j) { state(j)["type"] = "ENV"; }, normaliser, "\"ENV\""},
      {kPre, [&](Json& j) { state(j)["shape"] = {7}; }, normaliser, "[7]"},
      {kPre, [&](Json& j) { state(j)["shape"] = 2; }, normaliser, "\"shape\" is 2"},
      {kPre, [&](Json& j) { state(j).erase("shape"); }, normaliser, "\"shape\""},
      {kPre, [&](Json& j) { state(j)["unit"] = "m"; }, normaliser, "\"unit\""},
      {kPre, [&](Json& j) { norm(j)["features"]["observation.stat"] = state(j); }, normaliser,
       "observation.stat\""},
      {kPre,
       [&](Json& j) {
         norm(j)["norm_map"] = {{"STAET", "MIN_MAX"}};
       },
       normaliser, "STAET"},
      {kPre, [&](Json& j) { norm(j)["norm_map"] = Json::object(); }, normaliser, "norm_map"},
      {kPre, [&](Json& j) { norm(j)["norm_map"].erase("STATE"); }, normaliser, "STATE"},
      {kPre, [&](Json& j) { norm(j)["norm_map"].erase("ENV"); }, normaliser, "config.json says"},
      {kPre, [&](Json& j) { norm(j)["norm_map"]["STATE"] = "IDENTITY"; }, normaliser,
       "config.json says MIN_MAX"},
      {kPre, [&](Json& j) { norm(j)["norm_map"]["STATE"] = "LOG"; }, normaliser, "LOG"},
      {kPre, [&](Json& j) { norm(j)["clip"] = 1; }, normaliser, "\"clip\""},
      {kPre, [&](Json& j) { norm(j)["normalize_observation_keys"] = {"observation.stat"}; },
       normaliser, "observation.stat\""},
      {kPre, [&](Json& j) { norm(j)["normalize_observation_keys"] = {"observation.state"}; },
       normaliser, "observation.environment_state"},
      {kPre, [&](Json& j) { Normaliser(j)["enabled"] = false; }, normaliser, "\"enabled\""},
      {kPre, [&](Json& j) { j["steps"][0]["enabled"] = false; }, rename, "\"enabled\""},
      {kPre, [&](Json& j) { j["steps"][0]["config"] = 5; }, rename, "\"config\""},
      {kPre,
       [&](Json& j) {
         j["steps"][0]["config"]["rename_map"] = {{"a", "b"}};
       },
       rename, "rename_map"},
      {kPre, [&](Json& j) { j["steps"][0]["config"]["rename_map"] = 1; }, rename, "rename_map"},
      {kPre, [&](Json& j) { j["steps"][2]["config"]["float_dtype"] = "float16"; }, device,
       "float16"},
      {kPre, [&](Json& j) { j["steps"][2]["config"]["gain"] = 2; }, device, "\"gain\""},
      {kPre, [&](Json& j) { j["steps"].push_back(j["steps"][3]); }, "step 4", "a second one"},
      {kPre, [&](Json& j) { j["version"] = 2; }, kPre, "\"version\""},
      {kPost, [&](Json& j) { unnorm(j)["features"]["action"]["type"] = "ACT"; }, unnormaliser,
       "\"ACT\""},
      {kPost,
       [&](Json& j) {
         unnorm(j)["norm_map"] = {{"ACTIN", "MIN_MAX"}};
       },
       unnormaliser, "ACTIN"},
      {kPost, [&](Json& j) { unnorm(j)["norm_map"] = Json::object(); }, unnormaliser, "ACTION"},
      {kPost, [&](Json& j) { unnorm(j)["norm_map"]["ACTION"] = "IDENTITY"; }, unnormaliser,
       "config.json says"},
      {kPost, [&](Json& j) { unnorm(j)["features"]["action"]["shape"] = {3}; }, unnormaliser,
       "[3]"},
      {kPost, [&](Json& j) { Unnormaliser(j)["enabled"] = true; }, unnormaliser, "\"enabled\""},
  };
  for (const Row& row : rows) {
    mjp::WriteCheckpoint(path(), *TinyStateCheckpoint(), mjp::WeightFormat::kF32);
    EditJson(row.file, row.change);
    EXPECT_THAT(Refusal(), AllOf(HasSubstr(row.file), HasSubstr(row.step), HasSubstr(row.named)));
  }
}

TEST_F(ProcessorsTest, IdentityIsTakenWhereBothFilesSayIt) {
  EditJson("config.json", [](Json& json) { json["normalization_mapping"]["STATE"] = "IDENTITY"; });
  EditJson(kPre, [](Json& json) { Normaliser(json)["config"]["norm_map"]["STATE"] = "IDENTITY"; });
  EXPECT_EQ(mjp::LoadCheckpoint(path())->stats.state.mode, mjp::Normalization::kIdentity);
}

TEST_F(ProcessorsTest, TheirModesWinOverOtherModes) {
  EditJson("config.json", [](Json& json) { json["normalization_mapping"]["STATE"] = "MEAN_STD"; });
  EXPECT_EQ(mjp::LoadCheckpoint(path())->stats.state.mode, mjp::Normalization::kMinMax);
}

// LeRobot's default map has no ENV: keypoints then pass as they are
TEST_F(ProcessorsTest, EnvironmentIsLeftAsItIsWhereNoFileNamesIt) {
  EditJson("config.json", [](Json& json) { json["normalization_mapping"].erase("ENV"); });
  EditJson(kPre, [](Json& json) { Normaliser(json)["config"]["norm_map"].erase("ENV"); });
  EXPECT_EQ(mjp::LoadCheckpoint(path())->stats.environment.mode, mjp::Normalization::kIdentity);
}

TEST_F(ProcessorsTest, AChoiceOfKeysIsTakenWhereConfigAgrees) {
  EditJson("config.json", [](Json& json) { json["normalization_mapping"].erase("ENV"); });
  EditJson(kPre, [](Json& json) {
    Normaliser(json)["config"]["normalize_observation_keys"] = {"observation.state"};
  });
  const auto checkpoint = mjp::LoadCheckpoint(path());
  EXPECT_EQ(checkpoint->stats.state.mode, mjp::Normalization::kMinMax);
  EXPECT_EQ(checkpoint->stats.environment.mode, mjp::Normalization::kIdentity);
}

}  // namespace
}  // namespace mjp_test
