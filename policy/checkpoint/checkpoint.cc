#include "policy/checkpoint/checkpoint.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/float_environment.h"
#include "policy/checkpoint/checkpoint_files.h"
#include "policy/checkpoint/checkpoint_source.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/network_model.h"
#include "policy/checkpoint/normalization/processors.h"
#include "policy/checkpoint/normalization/statistics.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/checkpoint/safetensors.h"

namespace mjp {
namespace {

namespace fs = std::filesystem;

constexpr char kConfig[] = "config.json", kModel[] = "model.safetensors";

bool IsPickle(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".ckpt" || extension == ".pth" || extension == ".pt";
}

Error PickleError(const fs::path& path) {
  return BadInput(path.string() +
                  ": is a Python pickle, which can run any code and is never read here; convert it "
                  "once where it was made: docs/CHECKPOINTS.md, \"From a pickle\"");
}

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// For what looks like a name on the Hub ("lerobot/diffusion_pusht"): the line that fetches it.
std::string HubHint(const std::string& directory) {
  const size_t slash = directory.find('/');
  const bool name = slash != std::string::npos && slash > 0 && slash + 1 < directory.size() &&
                    directory.find('/', slash + 1) == std::string::npos && directory[0] != '.';
  if (!name) return "";
  return "; if it is one of the Hugging Face Hub: hf download " + directory + " --local-dir " +
         directory.substr(slash + 1);
}

// Finds the usual mistakes before a file is opened.
void CheckDirectory(const std::string& directory) {
  const fs::path path(directory);
  std::error_code error;
  if (!Exists(path))
    throw BadInput(directory + ": there is no such checkpoint directory" + HubHint(directory));
  if (IsPickle(path)) throw PickleError(path);
  if (!fs::is_directory(path, error)) {
    throw BadInput(directory +
                   ": is a file; give the directory that holds config.json and "
                   "model.safetensors");
  }
  if (Exists(path / "config.json") && Exists(path / "model.safetensors")) return;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (IsPickle(entry.path())) throw PickleError(entry.path());
  }
  for (const char* inner : {"pretrained_model_ema", "pretrained_model"}) {
    if (Exists(path / inner / "config.json")) {
      throw BadInput(directory + ": is a training folder; give " + (path / inner).string());
    }
  }
  throw BadInput(directory + ": lacks " +
                 (Exists(path / "config.json") ? "model.safetensors" : "config.json") +
                 "; a checkpoint directory has config.json, model.safetensors and statistics");
}

// LeRobot until 0.3 kept the statistics beside the weights, twice for the action; only the ones of
// the outputs are used.
NormalizerStats TakeStatsInModel(const ConfigFile& config, CheckpointSource& source,
                                 const std::string& origin) {
  const auto lookup = [&](const std::string& feature, const std::string& stat) {
    std::string buffer = feature;
    for (char& c : buffer) c = c == '.' ? '_' : c;
    const bool action = feature == kActionFeature;
    if (action) source.Discard("normalize_targets.buffer_" + buffer + "." + stat);
    return source.TakeIfThere(
        (action ? "unnormalize_outputs.buffer_" : "normalize_inputs.buffer_") + buffer + "." +
        stat);
  };
  return CollectStats(config.policy, config.modes, lookup, origin);
}

NormalizerStats LoadStats(CheckpointFiles& files, const ConfigFile& config,
                          CheckpointSource& source, const std::string& model) {
  const bool inside =
      source.HasPrefix("normalize_inputs.") || source.HasPrefix("unnormalize_outputs.");
  const bool processors = files.Has(kPreprocessor) || files.Has(kPostprocessor);
  const bool json = files.Has(kStatsFile);
  if (inside + processors + json > 1) {
    const char* processor = files.Has(kPreprocessor) ? kPreprocessor : kPostprocessor;
    throw BadInput((inside ? model : files.PathOf(processor)) + ": holds statistics, and so " +
                   (inside && processors ? "do the processor files" : "does stats.json") +
                   " beside it; remove those which are not to be used");
  }
  if (inside) return TakeStatsInModel(config, source, model);
  if (processors) return ReadProcessorStats(files, config);
  if (json) return ReadStatsJson(files, config);
  throw BadInput(files.directory() +
                 ": has no statistics (policy_preprocessor.json, stats.json, or inside "
                 "model.safetensors): the policy would run un-normalised; add a stats.json with "
                 "the statistics of the training data: docs/CHECKPOINTS.md, \"stats.json\"");
}

}  // namespace

std::shared_ptr<const Checkpoint> LoadCheckpoint(const std::string& directory) {
  const DefaultFloatEnvironment arithmetic;
  CheckDirectory(directory);
  CheckpointFiles files(directory);
  const ConfigFile config = ParseConfig(files.ReadJson(kConfig), files.PathOf(kConfig));
  config.network->ReadFiles(files);
  const SafetensorsFile file =
      files.ReadTensors(kModel, SafetensorsFile::kMaxFile, [&](const SafetensorsFile& header) {
        CheckpointSource::CheckHeader(header, *config.network);
      });
  CheckpointSource source(file);

  auto checkpoint = std::make_shared<Checkpoint>();
  checkpoint->config = config.policy;
  checkpoint->directory = directory;
  checkpoint->stats = LoadStats(files, config, source, file.origin());
  checkpoint->parameter_count = config.network->TakeTensors(source);
  checkpoint->network = config.network;
  source.CheckAllTaken();
  const auto weights = file.metadata().find(kWeightsKey);
  const bool random = weights != file.metadata().end() && weights->second == kRandomWeights;
  checkpoint->files = files.hashes();
  checkpoint->sha256 = (random ? kRandomPrefix : "") + checkpoint->files.at(kModel);
  return checkpoint;
}

}  // namespace mjp
