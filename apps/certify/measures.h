#ifndef APPS_CERTIFY_MEASURES_H_
#define APPS_CERTIFY_MEASURES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "apps/certify/certificate.h"

// The parts of a certificate that are measured.

namespace mjp::app {

using SharedCheckpoint = std::shared_ptr<const mjp::Checkpoint>;

// Version, engine and compiler of this build.
Json EngineOf();
// The policy that decides for one robot, from Push-T's scenes.
std::unique_ptr<mjp::Policy> PolicyOfOne(const SharedCheckpoint& checkpoint,
                                         const mjp::PolicyOptions& options);
// Processor, GPU and driver, C library.
Json MachineOf(const mjp::Policy& policy);
// SHA-256 of each of 32 chunks, from Push-T's first starts, that do not depend on the physics.
Json DecisionsOf(const SharedCheckpoint& checkpoint, const mjp::PolicyOptions& options);
// What the policies of a model say of actions that are held fixed.
struct HeldActions {
  bool prefix = false;  // which is done step by step, without a window
  int warm_start = 0;   // the largest
  bool Allows(int steps) const { return warm_start == 0 || warm_start < steps; }
};
// Whether a chain of this kind can hold actions; kAuto, which stands where there is none: no.
bool HoldsActions(mjp::SamplerKind kind);
// None of a task file, whose own are among the options.
HeldActions HeldActionsOf(const std::string& model);
// Sets what the options do not say to what the model says, where that is a task file: those
// episodes are run, one at a time. Of any other model, that its prefix is held step by step; throws
// Error where its warm start leaves no steps.
void TakeTask(const mjp::Checkpoint& checkpoint, CertifyOptions& options);
// Hash, score and outcome of each episode: of the model's task, else of Push-T.
Json EpisodesOf(const SharedCheckpoint& checkpoint, const CertifyOptions& options);
// The network's passes against double precision: largest, p99 and median difference.
Json ErrorsOf(const SharedCheckpoint& checkpoint, const mjp::PolicyOptions& options);
// Milliseconds of `timed` decisions of one robot, and of a fixed work of the same length beside
// each. `policy`: of one.
Json LatencyOf(const mjp::Checkpoint& checkpoint, mjp::Policy& policy, int timed);
// What the policy was asked and had to refuse, with what it said. `policy`: of one.
Json RefusalsOf(const mjp::Checkpoint& checkpoint, mjp::Policy& policy);
// Ten seconds of a model with the plugin and this policy, run as `policy` says: hash of each state,
// number of warnings; where it fails before, why.
Json ModelOf(const std::string& path, const std::string& checkpoint,
             const mjp::PolicyOptions& policy);
// 16 digits.
std::string HexOf(uint64_t hash);

}  // namespace mjp::app

#endif  // APPS_CERTIFY_MEASURES_H_
