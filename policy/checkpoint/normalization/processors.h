#ifndef POLICY_CHECKPOINT_NORMALIZATION_PROCESSORS_H_
#define POLICY_CHECKPOINT_NORMALIZATION_PROCESSORS_H_

#include "policy/checkpoint/checkpoint_files.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/network.h"

namespace mjp {

inline constexpr char kPreprocessor[] = "policy_preprocessor.json";
inline constexpr char kPostprocessor[] = "policy_postprocessor.json";

// Statistics and modes from LeRobot's processor files and the files that these name. Their modes
// decide, but for IDENTITY where config.json has another mode: one of the two is wrong. Throws
// Error "file: step: key" for a step, key, type or feature that is not known, and for anything that
// would change a value and is not done here.
NormalizerStats ReadProcessorStats(CheckpointFiles& files, const ConfigFile& config);

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_NORMALIZATION_PROCESSORS_H_
