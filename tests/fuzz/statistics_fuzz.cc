#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "policy/checkpoint/network_model.h"
#include "policy/checkpoint/normalization/processors.h"
#include "policy/checkpoint/normalization/statistics.h"
#include "policy/checkpoint/safetensors_writer.h"

namespace {

// A folder in memory, gone with the process, with statistics that fit the configuration below, for
// the processor files to name.
class Folder {
 public:
  Folder() {
    if (::mkdtemp(path_.data()) == nullptr) ::abort();
    for (const auto& [feature, size] : std::map<std::string, int64_t>{
             {"observation.image", 3}, {"observation.state", 2}, {"action", 2}}) {
      Add(feature, size);
    }
    writer_.Write(path_ + "/s");
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }

 private:
  void Add(const std::string& feature, int64_t size) {
    const std::vector<float> low(size, 0), high(size, 1);
    for (const char* stat : {"min", "mean", "q01"})
      writer_.AddFloats(feature + "." + stat, {size}, low);
    for (const char* stat : {"max", "std", "q99"})
      writer_.AddFloats(feature + "." + stat, {size}, high);
  }

  std::string path_ = "/dev/shm/statistics_fuzz_XXXXXX";
  mjp::SafetensorsWriter writer_;
};

// A network that reads text, and so may have a tokenizer among its steps.
class TextNetwork : public mjp::NetworkModel {
 public:
  void ListTensors(const mjp::TensorSource&, const VisitShape&) const override {}
  int64_t TakeTensors(mjp::TensorSource&) override { return 0; }
  void VisitTensors(const VisitTensor&) const override {}
  void AddConfig(mjp::Json&) const override {}
  std::vector<std::pair<std::string, std::string>> Describe() const override { return {}; }
  mjp::SamplerTraits sampler() const override { return {}; }
  int text_tokens() const override { return 77; }
};

mjp::ConfigFile Config() {
  mjp::ConfigFile config;
  config.network = std::make_shared<TextNetwork>();
  config.policy.cameras = {{"observation.image", 3, 96, 96}};
  config.policy.state_dim = config.policy.action_dim = 2;
  config.modes = {{"observation.image", mjp::Normalization::kMeanStd},
                  {"observation.state", mjp::Normalization::kMinMax},
                  {"action", mjp::Normalization::kQuantiles}};
  return config;
}

}  // namespace

// The two processor files and a stats.json, a NUL between them: each is refused, or gives
// statistics for every feature.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder owner;
  const std::string& folder = owner.path();
  static const mjp::ConfigFile config = Config();
  std::string rest(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"policy_preprocessor.json", "policy_postprocessor.json", "stats.json"}) {
    const size_t end = rest.find('\0');
    std::ofstream(folder + "/" + name) << rest.substr(0, end);
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  mjp::CheckpointFiles files(folder);
  try {
    if (mjp::ReadProcessorStats(files, config).cameras.size() != 1) ::abort();
  } catch (const mjp::Error&) {
  }
  try {
    if (mjp::ReadStatsJson(files, config).action.first.size() != 2) {
      ::abort();
    }
  } catch (const mjp::Error&) {
  }
  return 0;
}
