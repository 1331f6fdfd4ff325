#ifndef POLICY_INSPECT_H_
#define POLICY_INSPECT_H_

#include <string>

// What a checkpoint is, for people and for programs.

namespace mjp {

struct InspectOptions {
  bool tensors = false;  // name, type and shape of each one too, not their number alone
  bool json = false;     // an object instead of a table
  std::string gpu = "";  // how it runs on this GPU too (GpuTraits::Named); empty: not asked
};

// The checkpoint in `directory`: its features with their normalisation and the ranges of it (in raw
// units), its networks and its sampler. Throws Error as LoadCheckpoint does.
std::string InspectCheckpoint(const std::string& directory, const InspectOptions& options = {});

}  // namespace mjp

#endif  // POLICY_INSPECT_H_
