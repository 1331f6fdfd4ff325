#ifndef POLICY_NETWORK_TYPES_H_
#define POLICY_NETWORK_TYPES_H_

#include <memory>
#include <span>
#include <string>

#include "base/json_forward.h"
#include "base/key_reader.h"
#include "policy/checkpoint/network_model.h"
#include "policy/policy.h"

// The table of policies: what is behind the "type" of a config.json. A new network is a folder with
// its NetworkModel and its engines, and a row here; nothing else asks for the type.

namespace mjp {

struct CudaNetwork;  // policy/cuda/engine.h

struct NetworkType {
  using Make = std::unique_ptr<Policy> (*)(std::shared_ptr<const Checkpoint>, const PolicyOptions&);

  const char* name;  // "type" in config.json
  // LeRobot in 2024 wrote no type: a key that only this one's config.json has; null: not of then
  const char* oldest_key;
  // Parses what is not of every policy: completes `policy` (its features are there) and returns the
  // network without weights. Throws Error that names the key, whose file is `origin`.
  std::unique_ptr<NetworkModel> (*parse)(KeyReader& keys, const std::string& origin,
                                         PolicyConfig& policy);
  Make make_cpu;
  // Null: this build has none for it, and `no_cuda` says why.
  Make make_cuda;
  const char* no_cuda;
  const CudaNetwork* cuda;  // what make_cuda needs of it; null where that is
  // How it would run on the GPU called so, for some numbers of environments: an array of objects.
  // Throws Error for an unknown GPU. Null where make_cuda is.
  Json (*plans)(const Checkpoint& checkpoint, const std::string& gpu);
};

std::span<const NetworkType> NetworkTypes();

// The row of `type`. Throws Error(kBadInput) naming all.
const NetworkType& NetworkTypeOf(const std::string& type);

// The type of a config.json, also of one that does not say. Throws Error that names the key.
const NetworkType& NetworkTypeIn(KeyReader& keys);

}  // namespace mjp

#endif  // POLICY_NETWORK_TYPES_H_
