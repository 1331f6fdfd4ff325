#include "apps/train/optimisation/parameters.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/program/memory.h"
#include "base/sha256.h"
#include "policy/checkpoint/network_model.h"

namespace mjp::app {
namespace {

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

int64_t Count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

mjp::Tensor FromTorch(const at::Tensor& values, const std::vector<int64_t>& shape) {
  const at::Tensor dense = values.to(at::kCPU, at::kFloat).contiguous();
  const float* data = dense.data_ptr<float>();
  return {shape, {data, data + dense.numel()}};
}

// Of a parameter in training: value, gradient, two moments, average, and the copy it is drawn in.
constexpr double kBytesOfParameter = 6 * sizeof(float);

class InitialWeights : public mjp::TensorSource {
 public:
  explicit InitialWeights(uint64_t seed) : generator_(at::detail::createCPUGenerator(seed)) {}

  mjp::Tensor Take(const std::string& name, const std::vector<int64_t>& shape) override {
    taken_ += Count(shape);
    CheckMemory();
    if (EndsWith(name, ".pos_grid")) return Grid(shape);
    // a transformer's blocks begin as the identity (adaLN-Zero, W. Peebles, S. Xie 2023)
    if (name.find("adaLN_modulation") != std::string::npos)
      return FromTorch(at::zeros(shape), shape);
    if (shape.size() == 1 && EndsWith(name, ".weight")) {
      fan_in_ = 0;
      return FromTorch(at::ones(shape), shape);
    }
    if (shape.size() == 1) return FromTorch(fan_in_ > 0 ? Uniform(shape) : at::zeros(shape), shape);
    fan_in_ = Count(shape) / shape[0];
    if (name.find(".backbone.") == std::string::npos) return FromTorch(Uniform(shape), shape);
    const double fan_out = static_cast<double>(Count(shape)) / shape[1];
    return FromTorch(at::randn(shape, generator_) * std::sqrt(2 / fan_out), shape);
  }
  void Discard(const std::string&) override {}

 private:
  // Before the next tensor is drawn: a system that has no memory left kills without a word.
  void CheckMemory() const {
    constexpr double kGiB = 1 << 30;
    const double needed = static_cast<double>(taken_) * kBytesOfParameter;
    if (needed <= mjp::PhysicalMemory()) return;
    throw mjp::EnvironmentError(
        "the network has more than " + std::to_string(taken_ / 1000000) +
        " million parameters; their training needs more than " +
        std::to_string(static_cast<int64_t>(needed / kGiB)) +
        " GiB, which this machine does not have; take fewer --unet-channels or --stage-channels");
  }

  at::Tensor Uniform(const std::vector<int64_t>& shape) {
    return (at::rand(shape, generator_) * 2 - 1) / std::sqrt(static_cast<double>(fan_in_));
  }

  // (cells, 2): x fastest, both from -1 to 1
  static mjp::Tensor Grid(const std::vector<int64_t>& shape) {
    const int64_t side = std::llround(std::sqrt(static_cast<double>(shape[0])));
    const at::Tensor line = at::linspace(-1, 1, side);
    return FromTorch(at::stack({line.repeat({side}), line.repeat_interleave(side)}, 1), shape);
  }

  at::Generator generator_;
  int64_t fan_in_ = 0;  // of the matrix asked for last; 0 after a norm
  int64_t taken_ = 0;   // numbers asked for
};

// The tensors of `policy` and of its auxiliary head.
NamedTensors InitialTensors(const Architecture& policy, int auxiliary_outputs, uint64_t seed) {
  InitialWeights source(seed);
  const std::shared_ptr<mjp::NetworkModel> initial = policy.NewModel();
  initial->TakeTensors(source);
  NamedTensors tensors;
  initial->VisitTensors([&](const std::string& name, const mjp::Tensor& tensor) {
    tensors.push_back({name, tensor});
  });
  const std::vector<int64_t> head = {auxiliary_outputs, policy.config.encoder.feature_dim};
  tensors.push_back({"auxiliary.weight", source.Take("auxiliary.weight", head)});
  tensors.push_back({"auxiliary.bias", source.Take("auxiliary.bias", {auxiliary_outputs})});
  return tensors;
}

}  // namespace

std::unique_ptr<mjp::TensorSource> MakeInitialWeights(uint64_t seed) {
  return std::make_unique<InitialWeights>(seed);
}

Parameters::Parameters(const Architecture& policy, int auxiliary_outputs, uint64_t seed,
                       const at::Device& device, at::ScalarType working_type)
    : Parameters(InitialTensors(policy, auxiliary_outputs, seed), device, working_type) {}

Parameters::Parameters(NamedTensors tensors, const at::Device& device, at::ScalarType working_type,
                       at::MemoryFormat layout)
    : device_(device), layout_(layout) {
  std::stable_partition(tensors.begin(), tensors.end(),
                        [](const auto& entry) { return entry.second.shape.size() > 1; });

  int64_t total = 0;
  for (const auto& [name, tensor] : tensors) {
    if (EndsWith(name, ".pos_grid")) {
      constants_[name] = at::tensor(tensor.data).view(tensor.shape).to(device);
      continue;
    }
    const int64_t count = Count(tensor.shape);
    slots_.push_back({name, tensor.shape, total, count});
    total += count;
    if (tensor.shape.size() > 1) matrix_elements_ = total;
  }
  at::Tensor flat = at::empty({total}, at::kFloat);
  auto slot = slots_.begin();
  for (const auto& [name, tensor] : tensors) {
    if (EndsWith(name, ".pos_grid")) continue;
    const at::Tensor view = View(flat, *slot++);
    view.copy_(at::tensor(tensor.data).view(view.sizes()));
  }
  master_ = flat.to(device);
  working_ = master_.to(working_type, /*non_blocking=*/false, /*copy=*/true);
  gradient_ = at::zeros_like(working_);
  MakeLeaves();
}

const at::Tensor& Parameters::operator[](const std::string& name) const {
  const auto leaf = leaves_.find(name);
  if (leaf != leaves_.end()) return leaf->second;
  const auto constant = constants_.find(name);
  if (constant != constants_.end()) return constant->second;
  throw mjp::BadInput("the network asks for a parameter " + name + ", which its config lacks");
}

std::string Parameters::layout() const {
  std::string text;
  for (const Slot& slot : slots_) {
    text += slot.name;
    for (const int64_t extent : slot.shape) text += " " + std::to_string(extent);
    text += "\n";
  }
  return mjp::Sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

void Parameters::UpdateWorkingCopy() {
  c10::NoGradGuard no_grad;
  working_.copy_(master_);
}

std::unique_ptr<mjp::TensorSource> Parameters::Source(const at::Tensor& flat) const {
  class FlatSource : public mjp::TensorSource {
   public:
    FlatSource(const Parameters& parameters, at::Tensor values)
        : parameters_(parameters), values_(std::move(values)) {}
    mjp::Tensor Take(const std::string& name, const std::vector<int64_t>& shape) override {
      for (const Slot& slot : parameters_.slots_) {
        if (slot.name == name) return FromTorch(parameters_.View(values_, slot), shape);
      }
      return FromTorch(parameters_[name], shape);
    }
    void Discard(const std::string&) override {}

   private:
    const Parameters& parameters_;
    at::Tensor values_;
  };
  return std::make_unique<FlatSource>(*this, flat.to(at::kCPU));
}

mjp::Checkpoint Parameters::Export(const Architecture& policy, const at::Tensor& flat) const {
  const std::shared_ptr<mjp::NetworkModel> network = policy.NewModel();
  mjp::Checkpoint checkpoint;
  checkpoint.config = policy.policy();
  checkpoint.stats = policy.stats;
  checkpoint.parameter_count = network->TakeTensors(*Source(flat));
  checkpoint.network = network;
  return checkpoint;
}

at::Tensor Parameters::View(const at::Tensor& flat, const Slot& slot) const {
  const at::Tensor part = flat.narrow(0, slot.offset, slot.count);
  if (slot.shape.size() < 3) return part.view(slot.shape);
  const bool flat_kernel = slot.shape.size() == 3;
  const int64_t height = flat_kernel ? 1 : slot.shape[2], width = slot.shape.back();
  if (layout_ == at::MemoryFormat::Contiguous)
    return part.view({slot.shape[0], slot.shape[1], height, width});
  return part.view({slot.shape[0], height, width, slot.shape[1]}).permute({0, 3, 1, 2});
}

void Parameters::MakeLeaves() {
  for (const Slot& slot : slots_) {
    at::Tensor leaf = View(working_, slot).detach();
    leaf.set_requires_grad(true);
    leaf.mutable_grad() = View(gradient_, slot);
    leaves_[slot.name] = leaf;
  }
}

void Parameters::Freeze() {
  for (auto& [name, leaf] : leaves_) leaf.set_requires_grad(false);
}

}  // namespace mjp::app
