#ifndef POLICY_CHECKPOINT_NETWORK_MODEL_H_
#define POLICY_CHECKPOINT_NETWORK_MODEL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_forward.h"
#include "policy/checkpoint/config.h"
#include "policy/checkpoint/network.h"
#include "policy/pictures/picture_look.h"

// What only one type of policy has: the configuration and the weights of its network. The table of
// the types is policy/network_types.h.

namespace mjp {

class CheckpointFiles;  // policy/checkpoint/checkpoint_files.h

// Where weights come from: a file, a trainer, a formula.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  // Hands over tensor `name` as float32. Throws Error if it is missing or not of `shape`.
  virtual Tensor Take(const std::string& name, const std::vector<int64_t>& shape) = 0;
  // Consumes a tensor that has no effect on the network (BatchNorm's counter), if it is there.
  virtual void Discard(const std::string& name) = 0;
  // Whether some tensor's name starts with `prefix`. What makes its tensors has any.
  virtual bool HasPrefix(const std::string&) const { return true; }
  // The shape of tensor `name`; none where it is not there, or where all are made as asked for.
  virtual std::vector<int64_t> ShapeOf(const std::string&) const { return {}; }
};

enum class TensorRole {
  kNeeded,        // inference reads it
  kTrainingOnly,  // may be there, and is not read
};

// How a network's chunk comes about.
struct SamplerTraits {
  std::vector<SamplerKind> kinds;  // that it knows; none: one pass makes a chunk, without noise
  SamplerKind kind = SamplerKind::kAuto;  // what the checkpoint asks for, and in how many steps
  int steps = 0;
  int most_steps = 0;     // that may be asked for
  float temperature = 1;  // what the checkpoint asks for
  int noise_steps = 0;    // timesteps of PolicyInput::noise_by_t; 0: it adds no noise on the way
  bool parallel = false;  // whether it has time-parallel denoising
};

class NetworkModel {
 public:
  using VisitShape = std::function<void(const std::string& name, const std::vector<int64_t>& shape,
                                        TensorRole role)>;
  using VisitTensor = std::function<void(const std::string& name, const Tensor& tensor)>;

  virtual ~NetworkModel() = default;

  // Reads what the network needs of the checkpoint's other files. Comes before its tensors.
  virtual void ReadFiles(CheckpointFiles&) {}
  // Calls `visit` with every tensor that a file may have. `source` tells by the names in it which
  // of several spellings it has.
  virtual void ListTensors(const TensorSource& source, const VisitShape& visit) const = 0;
  // Takes every needed tensor, once, and discards the others. Returns the number of parameters.
  // Throws Error as `source` does, and for a value that no such network can have.
  virtual int64_t TakeTensors(TensorSource& source) = 0;
  // Calls `visit` with every tensor that was taken, under its name, in the order of TakeTensors.
  // Throws Error where one was folded into another.
  virtual void VisitTensors(const VisitTensor& visit) const = 0;
  // Adds the members of config.json that are not of every policy.
  virtual void AddConfig(Json& json) const = 0;
  // What it is made of, for people: a label and a text in each row.
  virtual std::vector<std::pair<std::string, std::string>> Describe() const = 0;

  // How the pictures of its training were drawn.
  virtual PictureLooks trained_looks() const { return {}; }

  virtual SamplerTraits sampler() const = 0;
  // Size of PolicyInput::global_cond, which replaces the encoder; 0: it cannot be replaced.
  virtual int cond_dim() const { return 0; }
  // Most tokens of the text that says what to do; 0: it reads none.
  virtual int text_tokens() const { return 0; }
};

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_NETWORK_MODEL_H_
