#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

#include "kernels/error.h"
#include "policy/safetensors_writer.h"
#include "policy/statistics.h"

namespace {

// A folder in memory with statistics that fit the configuration below, for the processor files to
// name.
std::string MakeFolder() {
  std::string folder = "/dev/shm/statistics_fuzz_XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) ::abort();
  dp::SafetensorsWriter writer;
  const std::vector<float> low = {0, 0, 0}, high = {1, 1, 1};
  const auto add = [&](const std::string& feature, int64_t size) {
    for (const char* stat : {"min", "mean", "q01"}) {
      writer.AddFloats(feature + "." + stat, {size}, std::span(low).first(size));
    }
    for (const char* stat : {"max", "std", "q99"}) {
      writer.AddFloats(feature + "." + stat, {size}, std::span(high).first(size));
    }
  };
  add("observation.image", 3);
  add("observation.state", 2);
  add("action", 2);
  writer.Write(folder + "/s");
  return folder;
}

dp::PolicyConfig Config() {
  dp::PolicyConfig config;
  config.cameras = {{"observation.image", 3, 96, 96}};
  config.state_dim = config.action_dim = 2;
  return config;
}

}  // namespace

// The two processor files and a stats.json, a NUL between them: each is refused, or gives
// statistics for every feature.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string folder = MakeFolder();
  static const dp::PolicyConfig config = Config();
  std::string rest(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"policy_preprocessor.json", "policy_postprocessor.json", "stats.json"}) {
    const size_t end = rest.find('\0');
    std::ofstream(folder + "/" + name) << rest.substr(0, end);
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  try {
    if (dp::ReadProcessorStats(folder, config).cameras.size() != 1) ::abort();
  } catch (const dp::Error&) {
  }
  try {
    const dp::FeatureModes modes = {{"observation.image", dp::Normalization::kMeanStd},
                                    {"observation.state", dp::Normalization::kMinMax},
                                    {"action", dp::Normalization::kQuantiles}};
    if (dp::ReadStatsJson(folder + "/stats.json", config, modes).action.first.size() != 2) {
      ::abort();
    }
  } catch (const dp::Error&) {
  }
  return 0;
}
