#include "policy/checkpoint/checkpoint_source.h"

#include <cmath>

#include "base/error.h"

namespace mjp {
namespace {

constexpr char kCompiled[] = "_orig_mod.";
constexpr uint64_t kMostStatistics = 8192;  // elements of one feature

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

}  // namespace

CheckpointSource::CheckpointSource(const SafetensorsFile& file) : file_(file) {
  for (const TensorEntry& tensor : file.tensors()) {
    std::string name = tensor.name;
    const size_t at = name.find(kCompiled);
    if (at != std::string::npos) name.erase(at, sizeof(kCompiled) - 1);
    if (!rest_.emplace(name, tensor.name).second) {
      throw BadInput(file.origin() + ": has tensor \"" + name + "\" twice, compiled and not");
    }
  }
}

const TensorEntry& CheckpointSource::Entry(const std::string& name,
                                           const std::vector<int64_t>& shape) const {
  const auto found = rest_.find(name);
  if (found == rest_.end()) {
    throw BadInput(file_.origin() + ": lacks tensor \"" + name + "\" of shape " + ShapeText(shape) +
                   ", which config.json asks for; the two are not of one policy, or the file is "
                   "not complete: download or export the checkpoint again");
  }
  const TensorEntry& entry = *file_.Find(found->second);
  if (entry.shape != shape) {
    const bool grid = name.ends_with("pos_grid");
    throw BadInput(file_.origin() + ": tensor \"" + name + "\" has shape " +
                   ShapeText(entry.shape) + ", config.json asks for " + ShapeText(shape) +
                   (grid ? "; correct the picture size, crop or resize in config.json"
                         : "; the two are not of one policy: download or export both again"));
  }
  return entry;
}

void CheckpointSource::CheckHeader(const SafetensorsFile& header, const NetworkModel& network) {
  const CheckpointSource names(header);
  CheckpointSource source(header);
  network.ListTensors(
      names, [&](const std::string& name, const std::vector<int64_t>& shape, TensorRole role) {
        if (role == TensorRole::kTrainingOnly && !source.Has(name)) return;
        source.Entry(name, shape);
        source.rest_.erase(name);
      });
  std::erase_if(source.rest_, [&](const auto& entry) {
    const bool beside = entry.first.ends_with(".num_batches_tracked") ||
                        entry.first.starts_with("normalize_") ||
                        entry.first.starts_with("unnormalize_");
    return beside && header.Find(entry.second)->ElementCount() <= kMostStatistics;
  });
  source.CheckAllTaken();
}

Tensor CheckpointSource::Take(const std::string& name, const std::vector<int64_t>& shape) {
  const TensorEntry& entry = Entry(name, shape);
  Tensor tensor = file_.Floats(entry.name);
  for (size_t i = 0; i < tensor.data.size(); ++i) {
    if (!std::isfinite(tensor.data[i])) {
      throw BadInput(file_.origin() + ": tensor \"" + name + "\" is not finite at element " +
                     std::to_string(i) +
                     ": the training diverged or the file is damaged; use an "
                     "earlier checkpoint");
    }
  }
  rest_.erase(name);
  return tensor;
}

void CheckpointSource::Discard(const std::string& name) { rest_.erase(name); }

bool CheckpointSource::HasPrefix(const std::string& prefix) const {
  const auto found = rest_.lower_bound(prefix);
  return found != rest_.end() && found->first.starts_with(prefix);
}

std::vector<int64_t> CheckpointSource::ShapeOf(const std::string& name) const {
  const auto found = rest_.find(name);
  return found == rest_.end() ? std::vector<int64_t>() : file_.Find(found->second)->shape;
}

std::vector<float> CheckpointSource::TakeIfThere(const std::string& name) {
  const auto found = rest_.find(name);
  if (found == rest_.end()) return {};
  std::vector<float> values = file_.Floats(found->second).data;
  rest_.erase(found);
  return values;
}

void CheckpointSource::CheckAllTaken() const {
  if (rest_.empty()) return;
  throw BadInput(file_.origin() + ": has tensor \"" + rest_.begin()->first + "\"" +
                 (rest_.size() > 1 ? " and " + std::to_string(rest_.size() - 1) + " more" : "") +
                 " that the network of config.json does not have; the two are not of one policy: "
                 "download or export both again");
}

}  // namespace mjp
