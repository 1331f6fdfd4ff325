#ifndef TESTS_SUPPORT_GOLDENS_GOLDEN_CASES_H_
#define TESTS_SUPPORT_GOLDENS_GOLDEN_CASES_H_

#include <memory>

#include "policy/checkpoint/config.h"
#include "policy/checkpoint/network.h"

namespace mjp_test {

// The networks of the goldens, with formula weights and their statistics; need no file.
enum class GoldenCase {
  kLeRobotFull,       // a: ResNet-18, U-Net 512/1024/2048 (1 GB of weights)
  kLeRobotCompact,    // b and d (compact): the same with U-Net 128/256/512
  kNotebook,          // c, d (notebook) and f: average pool, U-Net 256/512/1024
  kLeRobotBatchNorm,  // h: folded BatchNorm, one encoder per camera, no crop, horizon 64
};

mjp::UnetPolicyConfig GoldenConfig(GoldenCase golden);
mjp::NormalizerStats GoldenStats(GoldenCase golden);
std::shared_ptr<const mjp::Checkpoint> GoldenCheckpoint(GoldenCase golden);

// This project's own network with its default sizes (6.87 M parameters) and formula weights.
std::shared_ptr<const mjp::Checkpoint> CompactCheckpoint();

// A state policy small enough for any test: U-Net 8/16/32, kernel 5, embedding 16, 7 actions,
// environment state of 16.
std::shared_ptr<const mjp::Checkpoint> TinyStateCheckpoint();

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GOLDENS_GOLDEN_CASES_H_
