#include "tests/support/goldens/completed_checkpoint.h"

#include <filesystem>

#include "policy/checkpoint/safetensors.h"
#include "policy/checkpoint/safetensors_writer.h"
#include "policy/unet/unet_model.h"
#include "tests/support/goldens/formula_weights.h"
#include "tests/support/goldens/golden_cases.h"

namespace mjp_test {
namespace {

// Adds every backbone tensor that a network asks for to a file.
class BackboneAdder : public FormulaWeights {
 public:
  explicit BackboneAdder(mjp::SafetensorsWriter& writer) : writer_(writer) {}

  mjp::Tensor Take(const std::string& name, const std::vector<int64_t>& shape) override {
    mjp::Tensor tensor = FormulaWeights::Take(name, shape);
    if (name.find(".backbone.") != std::string::npos) {
      writer_.AddFloats(name, shape, tensor.data);
    }
    return tensor;
  }

 private:
  mjp::SafetensorsWriter& writer_;
};

}  // namespace

void CompleteBackbone(const std::string& from, const std::string& to) {
  std::filesystem::create_directories(to);
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    const std::filesystem::path copy = std::filesystem::path(to) / entry.path().filename();
    std::filesystem::copy_file(entry.path(), copy);
    std::filesystem::permissions(copy, std::filesystem::perms::owner_all);
  }
  const mjp::SafetensorsFile file = mjp::SafetensorsFile::Read(from + "/model.safetensors");
  mjp::SafetensorsWriter writer;
  for (const mjp::TensorEntry& tensor : file.tensors()) {
    writer.AddFloats(tensor.name, tensor.shape, file.Floats(tensor.name).data);
  }
  BackboneAdder backbone(writer);
  mjp::UnetModel network;
  network.config = GoldenConfig(GoldenCase::kLeRobotCompact);
  network.config.unet.down_dims = {8};
  network.TakeTensors(backbone);
  writer.Write(to + "/model.safetensors");
}

}  // namespace mjp_test
