#include "policy/act/act_attention.h"

#include "policy/act/act_model.h"

namespace mjp {

std::vector<PictureTokens> AttendedPictures(const Checkpoint& checkpoint) {
  const auto* network = dynamic_cast<const ActModel*>(checkpoint.network.get());
  std::vector<PictureTokens> pictures;
  if (network == nullptr) return pictures;
  int first = network->config.VectorTokens();
  for (const CameraFeature& camera : network->config.cameras) {
    pictures.push_back(
        {first, ActPolicyConfig::MapSize(camera.height), ActPolicyConfig::MapSize(camera.width)});
    first += pictures.back().height * pictures.back().width;
  }
  return pictures;
}

std::string LastAttention(const Checkpoint& checkpoint) {
  return "decoder/" + std::to_string(ActOf(checkpoint).config.decoder_layers - 1) + "/attention";
}

}  // namespace mjp
