#ifndef POLICY_CHECKPOINT_RANDOM_CHECKPOINT_H_
#define POLICY_CHECKPOINT_RANDOM_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/config.h"
#include "policy/checkpoint/network.h"
#include "policy/unet/network_builder.h"

namespace mjp {

// A network of the given shape with random weights of the usual size (uniform, variance 1/fan-in;
// norms near 1): for benchmarks and examples, never for a robot. Same seed, same weights.
std::shared_ptr<const Checkpoint> RandomCheckpoint(const UnetPolicyConfig& config,
                                                   const NormalizerStats& stats, uint64_t seed);
// The same for a network of any type, which is without weights, with those of `source`. `name`
// stands for the hash of its file. `made` gets every tensor as the source made it, in order: a
// BatchNorm's are among them, which the checkpoint has folded.
std::shared_ptr<const Checkpoint> MadeCheckpoint(const PolicyConfig& config,
                                                 const NormalizerStats& stats,
                                                 std::shared_ptr<NetworkModel> network,
                                                 TensorSource& source, const std::string& name,
                                                 MadeTensors* made = nullptr);

// Such a network says so, also once it is written and loaded again: its sha256 has a prefix, its
// file this text under this key.
inline constexpr const char* kRandomPrefix = "random-";
inline constexpr const char *kWeightsKey = "weights", *kRandomWeights = "random";
inline bool HasRandomWeights(const Checkpoint& checkpoint) {
  return checkpoint.sha256.starts_with(kRandomPrefix);
}

// The source of such weights. Tensors depend on the order in which they are taken.
std::unique_ptr<TensorSource> MakeRandomSource(uint64_t seed);

// The networks that benchmarks know by name: "compact" (this project's), "lerobot" (512/1024/2048),
// "lerobot-128" (128/256/512), "notebook" (256/512/1024, global average pool).
std::vector<std::string> NamedNetworks();

// The shape of one of them for Push-T. Throws Error naming the known ones.
UnetPolicyConfig NamedConfig(const std::string& name);

// One of them for Push-T, with random weights. Throws Error naming the known ones.
std::shared_ptr<const Checkpoint> NamedNetwork(const std::string& name);

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_RANDOM_CHECKPOINT_H_
