#include <cstddef>
#include <cstdint>

#include "kernels/error.h"
#include "policy/config_parser.h"
#include "policy/network_builder.h"

namespace {

// Accepts every shape without data: the network's outline must stay small whatever config.json
// says.
class NoWeights : public dp::TensorSource {
 public:
  dp::Tensor Take(const std::string&, const std::vector<int64_t>& shape) override {
    return {shape, {}};
  }
  void Discard(const std::string&) override {}
};

}  // namespace

// Any text either is a usable config.json or throws dp::Error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    dp::Checkpoint checkpoint;
    checkpoint.config =
        dp::ParseConfig(dp::ParseJson({reinterpret_cast<const char*>(data), size}, "fuzz"), "fuzz")
            .policy;
    NoWeights weights;
    if (checkpoint.config.encoder.group_norm) {
      dp::BuildNetwork(dp::NamesOf(checkpoint.config), weights, checkpoint);
    }
  } catch (const dp::Error&) {
  }
  return 0;
}
