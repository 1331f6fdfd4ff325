#ifndef POLICY_UNET_NETWORK_BUILDER_H_
#define POLICY_UNET_NETWORK_BUILDER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "policy/checkpoint/config.h"
#include "policy/checkpoint/network.h"
#include "policy/unet/unet_model.h"

// From named tensors to the tree of weights and back. The shapes follow from the config alone, so
// a source is asked for every tensor by name and expected shape, exactly once.

namespace mjp {

// How a library names its tensors.
struct TensorNames {
  std::string unet = "diffusion.unet.";
  std::string encoder = "diffusion.rgb_encoder.";
  bool notebook = false;  // Diffusion Policy's inner names rather than LeRobot's
};

// Names of LeRobot and of this project's own networks.
TensorNames LeRobotNames();
// Names of Diffusion Policy's notebooks: image policies, or the bare U-Net of the state policies.
TensorNames NotebookNames(bool bare_unet);
// Names for the type of `config`.
TensorNames NamesOf(const UnetPolicyConfig& config);

// Height and width of the last feature map of an encoder of `camera`'s pictures.
struct MapSize {
  int height = 0, width = 0;
};
MapSize FeatureMapSize(const EncoderConfig& encoder, const CameraFeature& camera);

// The encoders of such pictures with the shape of every tensor and no data: one, or one per camera.
std::vector<EncoderWeights> OutlineEncoders(const EncoderConfig& encoder,
                                            const std::vector<CameraFeature>& cameras);
// Calls `visit` with every tensor of an encoder whose norms are of groups, under its name after
// `prefix`.
void VisitEncoder(const std::string& prefix, const EncoderConfig& config, EncoderWeights& encoder,
                  const std::function<void(const std::string&, Tensor&)>& visit);
void VisitEncoder(const std::string& prefix, const EncoderConfig& config,
                  const EncoderWeights& encoder,
                  const std::function<void(const std::string&, const Tensor&)>& visit);

// The U-Net of `config` with the shape of every tensor and no data.
UnetWeights OutlineUnet(const UnetPolicyConfig& config);

// Fills encoders and unet of `model` from `source`, as model.config says, and returns the number of
// parameters. BatchNorm is folded into the convolution before it.
int64_t BuildNetwork(const TensorNames& names, TensorSource& source, UnetModel& model);

// Calls `visit` with the name and shape of every tensor that BuildNetwork will take.
void ListTensors(const TensorNames& names, const UnetPolicyConfig& config,
                 const std::function<void(const std::string&, const std::vector<int64_t>&)>& visit);

// BuildNetwork for a U-Net by itself: `unet` holds every tensor's shape, and gets their data.
// Returns the number of parameters.
int64_t FillUnet(const TensorNames& names, TensorSource& source, UnetWeights& unet);

// Calls `visit` with every tensor of `unet` under its name, in the order of FillUnet.
void VisitUnet(const TensorNames& names, const UnetWeights& unet,
               const std::function<void(const std::string&, const Tensor&)>& visit);

// Calls `visit` with every tensor of `model` under its name, in the order of BuildNetwork.
// A folded BatchNorm cannot be taken apart again: Error.
void VisitTensors(const TensorNames& names, const UnetModel& model,
                  const std::function<void(const std::string&, const Tensor&)>& visit);

}  // namespace mjp

#endif  // POLICY_UNET_NETWORK_BUILDER_H_
