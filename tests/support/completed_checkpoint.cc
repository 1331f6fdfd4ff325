#include "tests/support/completed_checkpoint.h"

#include <filesystem>

#include "policy/network_builder.h"
#include "policy/safetensors.h"
#include "policy/safetensors_writer.h"
#include "tests/support/formula_weights.h"
#include "tests/support/golden_cases.h"

namespace pusht_test {
namespace {

// Adds every backbone tensor that a network asks for to a file.
class BackboneAdder : public FormulaWeights {
 public:
  explicit BackboneAdder(dp::SafetensorsWriter& writer) : writer_(writer) {}

  dp::Tensor Take(const std::string& name, const std::vector<int64_t>& shape) override {
    dp::Tensor tensor = FormulaWeights::Take(name, shape);
    if (name.find(".backbone.") != std::string::npos) {
      writer_.AddFloats(name, shape, tensor.data);
    }
    return tensor;
  }

 private:
  dp::SafetensorsWriter& writer_;
};

}  // namespace

void CompleteBackbone(const std::string& from, const std::string& to) {
  std::filesystem::create_directories(to);
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    const std::filesystem::path copy = std::filesystem::path(to) / entry.path().filename();
    std::filesystem::copy_file(entry.path(), copy);
    std::filesystem::permissions(copy, std::filesystem::perms::owner_all);
  }
  const dp::SafetensorsFile file = dp::SafetensorsFile::Read(from + "/model.safetensors");
  dp::SafetensorsWriter writer;
  for (const dp::TensorEntry& tensor : file.tensors()) {
    writer.AddFloats(tensor.name, tensor.shape, file.Floats(tensor.name).data);
  }
  BackboneAdder backbone(writer);
  dp::Checkpoint network;
  network.config = GoldenConfig(GoldenCase::kLeRobotCompact);
  network.config.unet.down_dims = {8};
  dp::BuildNetwork(dp::LeRobotNames(), backbone, network);
  writer.Write(to + "/model.safetensors");
}

}  // namespace pusht_test
