#ifndef POLICY_CHECKPOINT_CHECKPOINT_H_
#define POLICY_CHECKPOINT_CHECKPOINT_H_

#include <memory>
#include <string>

#include "policy/checkpoint/network.h"

namespace mjp {

// Loads a checkpoint directory (config.json, model.safetensors, normalisation statistics), in
// LeRobot's layout or this project's. Every tensor is consumed exactly once; a missing, extra,
// misshapen, non-finite or un-normalised one is an Error that names the tensor, what was expected
// and the remedy; an unsupported config value is an Error that names the key.
std::shared_ptr<const Checkpoint> LoadCheckpoint(const std::string& directory);

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_CHECKPOINT_H_
