#include "tests/support/goldens/completed_checkpoint.h"

#include <filesystem>

#include "base/json.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/safetensors.h"
#include "policy/checkpoint/safetensors_writer.h"
#include "tests/support/goldens/formula_weights.h"

namespace mjp_test {
namespace {

// What the file has already, and nobody looks at here.
mjp::Tensor Zeros(const std::vector<int64_t>& shape) {
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  return {shape, std::vector<float>(static_cast<size_t>(size))};
}

// Adds every backbone tensor that a network asks for to a file.
class BackboneAdder : public FormulaWeights {
 public:
  explicit BackboneAdder(mjp::SafetensorsWriter& writer) : writer_(writer) {}

  mjp::Tensor Take(const std::string& name, const std::vector<int64_t>& shape) override {
    if (name.find(".backbone.") == std::string::npos) return Zeros(shape);
    mjp::Tensor tensor = FormulaWeights::Take(name, shape);
    writer_.AddFloats(name, shape, tensor.data);
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
  const std::string config = from + "/config.json";
  mjp::ParseConfig(mjp::ReadJson(config), config).network->TakeTensors(backbone);
  writer.Write(to + "/model.safetensors");
}

}  // namespace mjp_test
