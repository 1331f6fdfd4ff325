#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "base/json.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/network_model.h"
#include "policy/pictures/picture_look.h"

namespace {

// Accepts every shape without data: the network's outline must stay small whatever config.json
// says.
class NoWeights : public mjp::TensorSource {
 public:
  mjp::Tensor Take(const std::string&, const std::vector<int64_t>& shape) override {
    return {shape, {}};
  }
  void Discard(const std::string&) override {}
};

}  // namespace

// Any text either is a usable config.json, or a usable look, or throws mjp::Error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mjp::Json json;
  try {
    json = mjp::ParseJson({reinterpret_cast<const char*>(data), size}, "fuzz");
    const mjp::ConfigFile file = mjp::ParseConfig(json, "fuzz");
    file.network->ListTensors(NoWeights(), [](const auto&, const auto&, mjp::TensorRole) {});
  } catch (const mjp::Error&) {
  }
  try {
    mjp::LookText(mjp::ParseLook(json, "fuzz"));
  } catch (const mjp::Error&) {
  }
  return 0;
}
