#include "policy/act/act_model.h"

#include "base/error.h"
#include "base/json.h"
#include "base/text_stream.h"

namespace mjp {
namespace {

int64_t SizeOf(const Tensor& tensor) {
  int64_t size = 1;
  for (const int64_t extent : tensor.shape) size *= extent;
  return size;
}

}  // namespace

void ActModel::ListTensors(const TensorSource&, const VisitShape& visit) const {
  const ActWeights outline = OutlineAct(config);
  VisitAct(outline, [&](const std::string& name, const Tensor& tensor, bool) {
    visit(name, tensor.shape, TensorRole::kNeeded);
  });
  VisitActTraining(config, [&](const std::string& name, const std::vector<int64_t>& shape) {
    visit(name, shape, TensorRole::kTrainingOnly);
  });
}

int64_t ActModel::TakeTensors(TensorSource& source) {
  weights = OutlineAct(config);
  int64_t parameters = 0;
  VisitAct(weights, [&](const std::string& name, Tensor& tensor, bool buffer) {
    if (!buffer) parameters += SizeOf(tensor);
    tensor = source.Take(name, tensor.shape);
    if (!name.ends_with(".running_var")) return;
    for (size_t i = 0; i < tensor.data.size(); ++i) {
      if (tensor.data[i] >= 0) continue;
      throw BadInput(name + "[" + std::to_string(i) +
                     "] is negative: a variance cannot be; export the checkpoint again");
    }
  });
  VisitActTraining(
      config, [&](const std::string& name, const std::vector<int64_t>&) { source.Discard(name); });
  return parameters;
}

void ActModel::VisitTensors(const VisitTensor& visit) const {
  VisitAct(weights,
           [&](const std::string& name, const Tensor& tensor, bool) { visit(name, tensor); });
}

void ActModel::AddConfig(Json& json) const { AddActPolicy(config, json); }

std::vector<std::pair<std::string, std::string>> ActModel::Describe() const {
  TextWriter transformer;
  transformer << config.encoder_layers << " encoder and " << config.decoder_layers
              << " decoder layers, " << config.width << " wide, " << config.heads << " heads, "
              << config.feedforward << " between ("
              << (config.activation == TokenActivation::kGeluErf ? "GELU" : "ReLU") << "), norms "
              << (config.pre_norm ? "before" : "after") << ", " << config.Tokens() << " tokens";
  std::vector<std::pair<std::string, std::string>> rows;
  rows.emplace_back("encoder", config.cameras.empty() ? "none"
                                                      : "ResNet-" + std::to_string(config.resnet) +
                                                            ", BatchNorm (folded)");
  rows.emplace_back("transformer", transformer.str());
  if (config.temporal_ensemble) {
    TextWriter ensemble;
    ensemble << "every control step makes a chunk; weights exp(-" << *config.temporal_ensemble
             << " i), oldest first";
    rows.emplace_back("ensemble", ensemble.str());
  }
  rows.emplace_back("sampler", "none: one pass makes a chunk");
  return rows;
}

std::unique_ptr<NetworkModel> ParseActModel(KeyReader& keys, const std::string&,
                                            PolicyConfig& policy) {
  auto model = std::make_unique<ActModel>();
  model->config = ParseActPolicy(keys, policy);
  policy = model->config;
  return model;
}

const ActModel& ActOf(const Checkpoint& checkpoint) {
  const auto* model = dynamic_cast<const ActModel*>(checkpoint.network.get());
  if (model != nullptr) return *model;
  throw Unsupported(checkpoint.directory + ": is of type " + checkpoint.config.type +
                    ", which is not ACT");
}

}  // namespace mjp
