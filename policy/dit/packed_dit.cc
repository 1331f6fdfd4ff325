#include "policy/dit/packed_dit.h"

#include "policy/cpu/shared_networks.h"

namespace mjp::cpu {
namespace {

std::shared_ptr<PackedDit> Pack(const Checkpoint& checkpoint) {
  const DitModel& model = DitOf(checkpoint);
  auto networks = std::make_shared<PackedDit>();
  for (const ClipVisionWeights& vision : model.weights.vision) {
    networks->vision.push_back(PackVision(vision));
  }
  if (model.config.encoder) {
    networks->encoder = PackEncoder(*model.config.encoder, model.weights.encoders.front());
  } else {
    networks->text = PackText(model.weights.text);
    networks->text_projection = PackLinear(model.weights.text_projection);
  }
  networks->trunk = PackTrunk(model.config, model.weights);
  return networks;
}

}  // namespace

std::shared_ptr<const PackedDit> PackedDitOf(const std::shared_ptr<const Checkpoint>& checkpoint) {
  return SharedNetworks<PackedDit>(checkpoint, Pack);
}

}  // namespace mjp::cpu
