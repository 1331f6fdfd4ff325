#include "policy/unet/network_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "tests/support/goldens/formula_weights.h"
#include "tests/support/goldens/golden_cases.h"
#include "tests/support/shared_data.h"

namespace mjp_test {
namespace {

uint32_t Crc32(const std::vector<float>& data) {
  static const auto table = [] {
    std::array<uint32_t, 256> entries{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xEDB88320u : 0u);
      entries[i] = value;
    }
    return entries;
  }();
  uint32_t crc = ~0u;
  const auto* bytes = reinterpret_cast<const uint8_t*>(data.data());
  for (size_t i = 0; i < data.size() * sizeof(float); ++i) {
    crc = (crc >> 8) ^ table[(crc ^ bytes[i]) & 255];
  }
  return ~crc;
}

struct Row {
  std::vector<int64_t> shape;
  uint32_t crc = 0;
};

// the rows of the goldens' weights_*.json by tensor name
std::map<std::string, Row> ReadTable(const std::string& path) {
  std::ifstream file(path);
  std::map<std::string, Row> table;
  for (const auto& row : nlohmann::json::parse(file)) {
    table[row["name"]] = {
        row["shape"], static_cast<uint32_t>(std::stoul(std::string(row["crc32"]), nullptr, 16))};
  }
  return table;
}

// Checks every tensor that is taken against a table.
class CheckedWeights : public FormulaWeights {
 public:
  explicit CheckedWeights(std::map<std::string, Row> table) : table_(std::move(table)) {}

  mjp::Tensor Take(const std::string& name, const std::vector<int64_t>& shape) override {
    mjp::Tensor tensor = FormulaWeights::Take(name, shape);
    const auto row = table_.find(name);
    if (row == table_.end()) {
      ADD_FAILURE() << name << " is not in the table, or is taken twice";
      return tensor;
    }
    EXPECT_EQ(shape, row->second.shape) << name;
    EXPECT_EQ(Crc32(tensor.data), row->second.crc) << name;
    table_.erase(row);
    return tensor;
  }

  // names that nothing asked for
  std::vector<std::string> Rest() const {
    std::vector<std::string> names;
    for (const auto& [name, row] : table_) names.push_back(name);
    return names;
  }

 private:
  std::map<std::string, Row> table_;
};

int64_t BuildAgainst(std::map<std::string, Row> table, GoldenCase golden) {
  CheckedWeights weights(std::move(table));
  mjp::UnetModel model;
  model.config = GoldenConfig(golden);
  const int64_t parameters = model.TakeTensors(weights);
  EXPECT_THAT(weights.Rest(), testing::IsEmpty());
  return parameters;
}

TEST(NetworkBuilder, TakesExactlyTheTensorsOfLeRobotsFullPolicy) {
  SHARED_OR_SKIP(table, "goldens/weights_a_lerobot_full.json");
  EXPECT_EQ(BuildAgainst(ReadTable(table), GoldenCase::kLeRobotFull), 262709026);
}

TEST(NetworkBuilder, TakesExactlyTheTensorsOfLeRobotsCompactPolicy) {
  SHARED_OR_SKIP(table, "goldens/weights_b_lerobot_compact.json");
  EXPECT_EQ(BuildAgainst(ReadTable(table), GoldenCase::kLeRobotCompact), 28462498);
}

TEST(NetworkBuilder, TakesExactlyTheTensorsOfABatchNormPolicy) {
  SHARED_OR_SKIP(table, "goldens/weights_h_lerobot_batchnorm.json");
  EXPECT_EQ(BuildAgainst(ReadTable(table), GoldenCase::kLeRobotBatchNorm), 28462498);
}

TEST(NetworkBuilder, TakesExactlyTheTensorsOfTheNotebook) {
  SHARED_OR_SKIP(unet, "goldens/weights_c_notebook_unet.json");
  SHARED_OR_SKIP(encoder, "goldens/weights_f_notebook_encoder.json");
  std::map<std::string, Row> table = ReadTable(unet);
  table.merge(ReadTable(encoder));
  EXPECT_EQ(BuildAgainst(std::move(table), GoldenCase::kNotebook), 79947266 + 11176512);
}

// Records what is asked for; hands out no data.
class Recorder : public mjp::TensorSource {
 public:
  mjp::Tensor Take(const std::string& name, const std::vector<int64_t>& shape) override {
    EXPECT_TRUE(asked_.emplace(name, shape).second) << name;
    return {shape, {}};
  }
  void Discard(const std::string&) override {}
  const std::map<std::string, std::vector<int64_t>>& asked() const { return asked_; }

 private:
  std::map<std::string, std::vector<int64_t>> asked_;
};

std::map<std::string, std::vector<int64_t>> NamesAndShapes(const mjp::UnetPolicyConfig& config) {
  Recorder recorder;
  mjp::UnetModel model;
  model.config = config;
  mjp::BuildNetwork(mjp::NamesOf(config), recorder, model);
  return recorder.asked();
}

TEST(NetworkBuilder, AsksForThePublishedLayouts) {
  SHARED_OR_SKIP(path, "checkpoints/tensor_names_and_shapes.json");
  std::ifstream file(path);
  const nlohmann::json published = nlohmann::json::parse(file);
  const auto expect = [&](const char* layout, const mjp::UnetPolicyConfig& config) {
    const std::map<std::string, std::vector<int64_t>> expected = published.at(layout);
    EXPECT_EQ(NamesAndShapes(config), expected) << layout;
  };
  expect("lerobot_image", GoldenConfig(GoldenCase::kLeRobotFull));
  expect("colab_image", GoldenConfig(GoldenCase::kNotebook));
  mjp::UnetPolicyConfig keypoints;
  keypoints.type = "diffusion";
  keypoints.state_dim = keypoints.action_dim = 2;
  keypoints.environment_dim = 16;
  expect("lerobot_keypoints", keypoints);
  mjp::UnetPolicyConfig state = GoldenConfig(GoldenCase::kNotebook);
  state.cameras.clear();
  state.encoder = {};
  state.state_dim = 5;
  expect("colab_state", state);
}

TEST(NetworkBuilder, FoldsBatchNorm) {
  const auto checkpoint = GoldenCheckpoint(GoldenCase::kLeRobotBatchNorm);
  const mjp::UnetModel& model = mjp::UnetOf(*checkpoint);
  ASSERT_EQ(model.encoders.size(), 1u);
  const mjp::EncoderWeights& encoder = model.encoders[0];
  EXPECT_EQ(encoder.stem_norm.groups, 0);
  const std::string name = "diffusion.rgb_encoder.0.backbone.";
  const auto at = [&](const std::string& rest, std::vector<int64_t> shape, size_t i) {
    return static_cast<double>(FormulaTensor(name + rest, shape).data[i]);
  };
  const size_t c = 5, i = 17, row = 3 * 7 * 7;
  const double scale = at("1.weight", {64}, c) / std::sqrt(at("1.running_var", {64}, c) + 1e-5);
  EXPECT_NEAR(encoder.stem.weight.data[c * row + i],
              at("0.weight", {64, 3, 7, 7}, c * row + i) * scale, 1e-7);
  EXPECT_NEAR(encoder.stem.bias.data[c],
              at("1.bias", {64}, c) - at("1.running_mean", {64}, c) * scale, 1e-7);
  EXPECT_THROW(model.VisitTensors([](const auto&, const auto&) {}), mjp::Error);
}

TEST(NetworkBuilder, VisitsWhatItBuilt) {
  const auto checkpoint = CompactCheckpoint();
  std::set<std::string> seen;
  int64_t parameters = 0;
  checkpoint->network->VisitTensors([&](const std::string& name, const mjp::Tensor& tensor) {
    EXPECT_TRUE(seen.insert(name).second) << name;
    const mjp::Tensor expected = FormulaTensor(name, tensor.shape);
    EXPECT_EQ(tensor.data, expected.data) << name;
    parameters += static_cast<int64_t>(tensor.data.size());
  });
  EXPECT_EQ(parameters, checkpoint->parameter_count);
  EXPECT_TRUE(seen.contains("diffusion.rgb_encoder.backbone.6.1.bn2.weight"));
  EXPECT_TRUE(seen.contains("diffusion.rgb_encoder.out.bias"));
}

// 240 x 320 pixels make a map of 8 rows of 10 cells.
TEST(NetworkBuilder, MadeWeightsHaveTheGridOfTheirMap) {
  const auto network = std::make_shared<mjp::UnetModel>();
  mjp::UnetPolicyConfig& config = network->config = mjp::NamedConfig("lerobot");
  config.cameras[0].height = 240;
  config.cameras[0].width = 320;
  config.encoder.crop_height = config.encoder.crop_width = 0;
  config.unet.down_dims = {8, 16};
  const auto formula = mjp::MakeFormulaSource("");
  for (const auto& made : {mjp::MadeCheckpoint(config, {}, network, *formula, "formula"),
                           mjp::RandomCheckpoint(config, {}, 3)}) {
    const mjp::Tensor& grid = mjp::UnetOf(*made).encoders.at(0).pos_grid;
    EXPECT_THAT(grid.shape, testing::ElementsAre(80, 2));
    ASSERT_EQ(grid.data.size(), 160u);
    for (size_t cell = 0; cell < 80; ++cell) {
      EXPECT_NEAR(grid.data[2 * cell], -1 + 2 * (cell % 10) / 9.0, 1e-6) << cell;
      EXPECT_NEAR(grid.data[2 * cell + 1], -1 + 2 * (cell / 10) / 7.0, 1e-6) << cell;
    }
  }
}

TEST(NetworkBuilder, CompactFeatureMapIsSixBySix) {
  const mjp::UnetPolicyConfig config = mjp::UnetOf(*CompactCheckpoint()).config;
  const mjp::MapSize size = mjp::FeatureMapSize(config.encoder, config.cameras[0]);
  EXPECT_EQ(size.height, 6);
  EXPECT_EQ(size.width, 6);
}

}  // namespace
}  // namespace mjp_test
