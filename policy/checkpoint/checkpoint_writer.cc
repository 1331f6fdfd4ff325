#include "policy/checkpoint/checkpoint_writer.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "policy/checkpoint/checkpoint_files.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/half.h"
#include "policy/checkpoint/network_model.h"
#include "policy/checkpoint/normalization/processors.h"
#include "policy/checkpoint/normalization/statistics.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/checkpoint/safetensors_writer.h"

namespace mjp {
namespace {

constexpr char kConfig[] = "config.json", kModel[] = "model.safetensors";
constexpr char kPreStats[] = "policy_preprocessor_step_3_normalizer_processor.safetensors";
constexpr char kPostStats[] = "policy_postprocessor_step_0_unnormalizer_processor.safetensors";

void WriteJson(const std::string& path, const Json& json) {
  const std::string text = json.dump(2) + "\n";
  WriteFileAtomically(path, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

void WriteWeights(const std::string& path, const Checkpoint& checkpoint, WeightFormat format,
                  const MadeTensors* made) {
  SafetensorsWriter writer;
  const auto add = [&](const std::string& name, const Tensor& tensor) {
    // a grid of thirds and sevenths is no learned value: keep it exact
    if (format == WeightFormat::kF32 || name.ends_with("pos_grid")) {
      writer.AddFloats(name, tensor.shape, tensor.data);
      return;
    }
    for (const float value : tensor.data) {
      if (!std::isfinite(HalfToFloat(FloatToHalf(value)))) {
        throw BadInput("tensor \"" + name + "\" holds " + std::to_string(value) +
                       ", which F16 cannot; write F32");
      }
    }
    writer.AddHalves(name, tensor.shape, tensor.data);
  };
  if (made == nullptr) {
    checkpoint.network->VisitTensors(add);
  } else {
    for (const auto& [name, tensor] : *made) add(name, tensor);
  }
  if (HasRandomWeights(checkpoint)) writer.SetMetadata(kWeightsKey, kRandomWeights);
  writer.Write(path);
}

void AddStats(const std::string& feature, const FeatureStats& stats, bool picture,
              SafetensorsWriter& writer) {
  if (stats.mode == Normalization::kIdentity) return;
  const auto names = StatNames(stats.mode);
  std::vector<int64_t> shape = {static_cast<int64_t>(stats.first.size())};
  if (picture) shape.insert(shape.end(), {1, 1});
  writer.AddFloats(feature + "." + names.first, shape, stats.first);
  writer.AddFloats(feature + "." + names.second, shape, stats.second);
}

// Both processors carry the whole set, as LeRobot's do.
void WriteStats(const std::string& path, const Checkpoint& checkpoint) {
  SafetensorsWriter writer;
  for (size_t i = 0; i < checkpoint.config.cameras.size(); ++i) {
    AddStats(checkpoint.config.cameras[i].name, checkpoint.stats.cameras[i], true, writer);
  }
  AddStats(kStateFeature, checkpoint.stats.state, false, writer);
  AddStats(kEnvironmentFeature, checkpoint.stats.environment, false, writer);
  AddStats(kActionFeature, checkpoint.stats.action, false, writer);
  writer.Write(path);
}

Json NormalizerStep(const char* name, const Json& features, const Json& mapping,
                    const char* state_file) {
  return {{"registry_name", name},
          {"config", {{"eps", 1e-8}, {"features", features}, {"norm_map", mapping}}},
          {"state_file", state_file}};
}

void WriteProcessors(const std::string& directory, const Json& config) {
  const Json device = {{"registry_name", "device_processor"},
                       {"config", {{"device", "cpu"}, {"float_dtype", nullptr}}}};
  const Json rename = {{"registry_name", "rename_observations_processor"},
                       {"config", {{"rename_map", Json::object()}}}};
  const Json batch = {{"registry_name", "to_batch_processor"}, {"config", Json::object()}};
  const Json& mapping = config["normalization_mapping"];
  Json features = config["input_features"];
  features.update(config["output_features"]);
  WriteJson(
      directory + "/" + kPreprocessor,
      {{"name", "policy_preprocessor"},
       {"steps",
        Json::array({rename, batch, device,
                     NormalizerStep("normalizer_processor", features, mapping, kPreStats)})}});
  WriteJson(directory + "/" + kPostprocessor,
            {{"name", "policy_postprocessor"},
             {"steps", Json::array({NormalizerStep("unnormalizer_processor",
                                                   config["output_features"], mapping, kPostStats),
                                    device})}});
}

// A checkpoint's stats.json goes with it. Another one is somebody's, and would be read as one.
void CheckStatsFile(const std::string& directory) {
  const CheckpointFiles there(directory);
  if (!there.Has(kStatsFile) || there.Has(kModel)) return;
  throw BadInput(there.PathOf(kStatsFile) +
                 ": is not of a checkpoint, and would stand beside the statistics of the one to be "
                 "written; move it away, or give another directory");
}

}  // namespace

void WriteCheckpoint(const std::string& directory, const Checkpoint& checkpoint,
                     WeightFormat format, const MadeTensors* made) {
  namespace fs = std::filesystem;
  CheckReadsBack(checkpoint);
  CheckStatsFile(directory);
  const fs::path target(directory), fresh = target / (".unfinished" + std::to_string(getpid()));
  std::error_code error;
  fs::create_directories(fresh, error);
  if (error) throw BadInput(directory + ": cannot create: " + error.message());
  try {
    const Json config = ConfigToJson(checkpoint);
    WriteWeights(fresh / kModel, checkpoint, format, made);
    WriteStats(fresh / kPreStats, checkpoint);
    WriteStats(fresh / kPostStats, checkpoint);
    WriteProcessors(fresh, config);
    const PictureLooks looks = checkpoint.network->trained_looks();
    if (!looks.empty()) WriteJson(fresh / kLookFile, LooksToJson(looks));
    WriteJson(fresh / kConfig, config);
    // without its config.json a directory is no checkpoint: never one of old and new files. The
    // others would be taken for the new one's.
    for (const char* name : {kConfig, kLookFile, kStatsFile}) {
      if (!fs::remove(target / name, error) && error) {
        throw BadInput(directory + ": cannot replace " + name + ": " + error.message());
      }
    }
    if (!looks.empty()) RenameDurably(fresh / kLookFile, target / kLookFile);
    for (const char* name :
         {kModel, kPreStats, kPostStats, kPreprocessor, kPostprocessor, kConfig}) {
      RenameDurably(fresh / name, target / name);
    }
  } catch (...) {
    fs::remove_all(fresh, error);
    throw;
  }
  fs::remove_all(fresh, error);
}

}  // namespace mjp
