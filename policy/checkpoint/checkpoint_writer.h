#ifndef POLICY_CHECKPOINT_CHECKPOINT_WRITER_H_
#define POLICY_CHECKPOINT_CHECKPOINT_WRITER_H_

#include <string>
#include <utility>
#include <vector>

#include "base/json_forward.h"
#include "policy/checkpoint/network.h"

namespace mjp {

enum class WeightFormat { kF32, kF16 };

// The tensors of a network in the order in which it took them.
using MadeTensors = std::vector<std::pair<std::string, Tensor>>;

// Writes `checkpoint` as a directory in LeRobot's layout (config.json, model.safetensors, processor
// files and their statistics), and look.json where its training's looks are known. LoadCheckpoint
// reads it back; with type "diffusion", LeRobot loads it too. A checkpoint that is there is
// replaced once the new one is on the disk whole, and config.json comes last: what is left after a
// crash is the old, the new, or none. Its look.json and stats.json go with it. Throws Error if a
// file cannot be written, a weight does not fit the format, BatchNorm was folded, or, before
// anything is written, as CheckReadsBack does and for a stats.json where no checkpoint is.
// `made` replaces the network's own tensors: with it a BatchNorm is no error (MadeCheckpoint).
void WriteCheckpoint(const std::string& directory, const Checkpoint& checkpoint,
                     WeightFormat format, const MadeTensors* made = nullptr);

// config.json of `checkpoint`. Throws Error for a crop that it has no number for.
Json ConfigToJson(const Checkpoint& checkpoint);

// Throws Error where its config.json would not be read, or be read as that of another network, or
// where pictures have several modes; the weights need not be there.
void CheckReadsBack(const Checkpoint& checkpoint);

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_CHECKPOINT_WRITER_H_
