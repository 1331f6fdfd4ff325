#ifndef PLUGIN_MODEL_RANDOM_CHECKPOINT_COMMAND_H_
#define PLUGIN_MODEL_RANDOM_CHECKPOINT_COMMAND_H_

#include <mujoco/mujoco.h>

#include <string>

#include "plugin/model/config.h"

namespace mjp {

// The command that writes a checkpoint of random weights into `directory` which an instance with
// these attributes can run: as many cameras, observations and actions as they name in `model`, and
// the range of the controls. Empty where no such command is known: without a camera, or where the
// model lacks what the attributes name.
std::string RandomCheckpointCommand(const mjModel* model, const Config& config,
                                    const std::string& directory);

}  // namespace mjp

#endif  // PLUGIN_MODEL_RANDOM_CHECKPOINT_COMMAND_H_
