#include "apps/image_diffusion/torch_judge.h"

#include <c10/core/GradMode.h>

#include <algorithm>

#include "apps/image_diffusion/reference.h"
#include "apps/image_diffusion/torch_unet.h"
#include "apps/train/optimisation/optimizer.h"
#include "apps/train/run_state.h"
#include "base/error.h"
#include "policy/checkpoint/checkpoint_source.h"
#include "policy/checkpoint/safetensors_writer.h"

namespace mjp::app {
namespace {

constexpr int kGroups = 8;
constexpr int64_t kChannels[] = {32, 64, 128, 128};
constexpr int64_t kStrides[] = {1, 2, 2, 1};

std::string LayerName(size_t i, const char* kind) { return kind + std::to_string(i); }

// The classifier's tensors with their shapes, taken from `source`.
NamedTensors JudgeTensors(mjp::TensorSource& source, int64_t channels, int64_t classes) {
  NamedTensors tensors;
  const auto take = [&](const std::string& name, const std::vector<int64_t>& shape) {
    tensors.push_back({name + ".weight", source.Take(name + ".weight", shape)});
    tensors.push_back({name + ".bias", source.Take(name + ".bias", {shape[0]})});
  };
  for (size_t i = 0; i < std::size(kChannels); ++i) {
    take(LayerName(i, "conv"), {kChannels[i], channels, 3, 3});
    take(LayerName(i, "norm"), {kChannels[i]});
    channels = kChannels[i];
  }
  take("out", {classes + 1, channels});  // the last one: none of them
  return tensors;
}

class JudgeNetwork : private Layers {
 public:
  using Layers::Layers;

  // Logits (N, classes + 1) of maps (N, channels, size, size).
  at::Tensor Classify(const at::Tensor& x) const {
    at::Tensor h = x;
    for (size_t i = 0; i < std::size(kChannels); ++i) {
      h = Activate(Norm(LayerName(i, "norm"), Conv(LayerName(i, "conv"), h, kStrides[i]), kGroups,
                        Activation::kRelu));
    }
    return Linear("out", h.mean({2, 3}));
  }
};

// What is no picture of the set, made of pictures x: blends of two, halves of two, noise.
at::Tensor Impostors(const at::Tensor& x) {
  const int64_t third = x.size(0) / 3, half = x.size(2) / 2;
  const at::Tensor other = x.roll(1, 0);
  const at::Tensor share = at::rand({third, 1, 1, 1}, x.options()) * 0.4 + 0.3;
  const at::Tensor blends = other.narrow(0, 0, third).lerp(x.narrow(0, 0, third), share);
  const at::Tensor halves =
      at::cat({x.narrow(0, third, third).narrow(2, 0, half),
               other.narrow(0, third, third).narrow(2, half, x.size(2) - half)},
              2);
  const at::Tensor rest = x.narrow(0, 2 * third, x.size(0) - 2 * third);
  const at::Tensor noise = rest * 0.3 + at::randn_like(rest) * 0.7;
  return at::cat({blends, halves, noise.clamp(-1, 1)}, 0);
}

// Root mean square distance, in levels, of each row of x to the nearest of `others`.
at::Tensor NearestDistance(const at::Tensor& x, const at::Tensor& others) {
  constexpr int64_t kChunk = 4096;
  const at::Tensor rows = Normalised(x, at::kFloat).flatten(1);
  at::Tensor nearest = at::full({rows.size(0)}, 1e30, rows.options());
  for (int64_t first = 0; first < others.size(0); first += kChunk) {
    const int64_t count = std::min(kChunk, others.size(0) - first);
    const at::Tensor chunk = Normalised(others.narrow(0, first, count), at::kFloat).flatten(1);
    nearest = at::minimum(nearest, std::get<0>(at::cdist(rows, chunk).min(1)));
  }
  return nearest * (127.5 / std::sqrt(static_cast<double>(rows.size(1))));
}

}  // namespace

SplitPictures Split(const mjp::PictureSet& pictures, const at::Device& device) {
  constexpr int64_t kEvery = 10;
  const at::Tensor pixels =
      at::from_blob(const_cast<uint8_t*>(pictures.pixels.data()),
                    {pictures.count(), pictures.size, pictures.size, pictures.channels}, at::kByte);
  const at::Tensor labels =
      at::from_blob(const_cast<uint8_t*>(pictures.labels.data()), {pictures.count()}, at::kByte)
          .to(at::kLong);
  // classes may take turns with the numbers of the pictures: a fixed permutation is split
  const at::Tensor number = at::arange(pictures.count(), at::kLong);
  const at::Tensor held = (number * 7919 + number.div(kEvery, "floor")).remainder(kEvery) == 0;
  const auto part = [&](const at::Tensor& all, const at::Tensor& mask) {
    return all.index({mask}).to(device);
  };
  const at::Tensor rest = held.logical_not();
  return {part(pixels, rest), part(pixels, held), part(labels, rest), part(labels, held)};
}

at::Tensor Normalised(const at::Tensor& bytes, at::ScalarType type) {
  return (bytes.to(type) / 127.5 - 1).permute({0, 3, 1, 2});
}

std::optional<double> TrainJudge(const mjp::PictureSet& pictures, uint64_t seed,
                                 const std::string& path, const std::atomic<bool>& stop) {
  constexpr int64_t kSteps = 2000, kBatch = 256;
  constexpr int64_t kImpostors = kBatch / 3;  // few: a picture is one of the set unless it shows
  const at::Device device = DefaultDevice();
  const SplitPictures split = Split(pictures, device);
  const auto classes = static_cast<int64_t>(pictures.classes.size());
  SeedGenerator(device, seed);  // libtorch begins each process with another
  const auto initial = MakeInitialWeights(seed);
  Parameters parameters(JudgeTensors(*initial, pictures.channels, classes), device, at::kFloat);
  const JudgeNetwork network(parameters);
  const Ranks ranks(1);
  Optimizer optimizer(parameters, {.learning_rate = 2e-3, .warmup_steps = 50}, ranks);
  const int64_t steps = std::min(kSteps, 10 * (pictures.count() / kBatch + 1));
  for (int64_t step = 0; step < steps; ++step) {
    if (stop) return std::nullopt;
    optimizer.SetStep(step, static_cast<double>(step) / static_cast<double>(steps));
    const at::Tensor rows =
        at::randint(split.training.size(0), {kBatch}, split.training_labels.options());
    const at::Tensor real = Normalised(split.training.index_select(0, rows), at::kFloat);
    at::Tensor x = at::cat({real, Impostors(real.narrow(0, 0, kImpostors))}, 0);
    // from none on, and the same for both, or noise would tell them apart
    x = (x + at::rand({x.size(0), 1, 1, 1}, x.options()) * 0.05 * at::randn_like(x)).clamp(-1, 1);
    const at::Tensor labels = at::cat({split.training_labels.index_select(0, rows),
                                       at::full({kImpostors}, classes, rows.options())});
    at::cross_entropy_loss(network.Classify(x), labels).backward();
    optimizer.Update();
  }
  mjp::SafetensorsWriter writer;
  for (const auto& [name, tensor] :
       JudgeTensors(*parameters.Source(parameters.master()), pictures.channels, classes)) {
    writer.AddFloats(name, tensor.shape, tensor.data);
  }
  writer.Write(path);
  const c10::NoGradGuard no_grad;
  const at::Tensor found = network.Classify(Normalised(split.held_out, at::kFloat)).argmax(1);
  return found.eq(split.held_out_labels).to(at::kDouble).mean().item<double>();
}

Judgement JudgePictures(const std::string& folder, const mjp::PictureSet& training,
                        const std::vector<float>& x) {
  const c10::NoGradGuard no_grad;
  const at::Device device = DefaultDevice();
  const auto classes = static_cast<int64_t>(training.classes.size());
  const mjp::SafetensorsFile file = mjp::SafetensorsFile::Read(folder + "/judge.safetensors");
  mjp::CheckpointSource source(file);
  const Parameters parameters(JudgeTensors(source, training.channels, classes), device, at::kFloat);
  const JudgeNetwork network(parameters);
  const int64_t size = training.size,
                count = static_cast<int64_t>(x.size()) / training.PictureBytes();
  const at::Tensor bytes =
      ((at::tensor(x).view({count, size, size, training.channels}) + 1) * 127.5)
          .round()
          .clamp(0, 255)
          .to(at::kByte)
          .to(device);
  const at::Tensor chances = at::softmax(network.Classify(Normalised(bytes, at::kFloat)), 1);
  const auto [best, chosen] = chances.narrow(1, 0, classes).max(1);
  Judgement judgement;
  judgement.count = count;
  const at::Tensor sure = best >= kSureConfidence;
  for (int64_t c = 0; c < classes; ++c) {
    const at::Tensor mine = sure.logical_and(chosen == c);
    const int64_t found = mine.sum().item<int64_t>();
    judgement.per_class.push_back(found);
    judgement.recognised += found;
    judgement.confidence.push_back(found > 0 ? best.masked_select(mine).mean().item<double>()
                                             : 0.0);
  }
  const SplitPictures split = Split(training, device);
  const at::Tensor known = at::softmax(network.Classify(Normalised(split.held_out, at::kFloat)), 1);
  judgement.recognised_held_out = std::get<0>(known.narrow(1, 0, classes).max(1))
                                      .ge(kSureConfidence)
                                      .to(at::kDouble)
                                      .mean()
                                      .item<double>();
  const auto median = [&](const at::Tensor& pictures) {
    return NearestDistance(pictures, split.training).median().item<double>();
  };
  judgement.nearest = median(bytes);
  judgement.nearest_held_out = median(
      split.held_out.narrow(0, 0, std::min(split.held_out.size(0), std::max<int64_t>(count, 100))));
  return judgement;
}

}  // namespace mjp::app
