#include "policy/cuda/unet/megakernel_plan.h"

#include <map>
#include <utility>

namespace mjp {
namespace {

using megakernel::Layer;

constexpr int kMaxGroupChannels = 128;

// A value of the graph: what a layer's output is to the next ones.
struct Value {
  int step = -1;  // that made it; -1: x
  int channels = 0, length = 0;
  bool ends_block = false;  // a residual block's output, which the owners have as residual
};

// Lowers a U-Net into layers, in the order in which they run.
class Lowering {
 public:
  Lowering(const NormConvUnet& unet, int horizon, MegakernelPlan& plan) : plan_(plan) {
    const Value x = LowerUnet(
        unet.steps, Value{},
        [&](const NormConvBlock& block, const UnetPlace&, const Value& in, const Value* skip) {
          return block.conv1.shape.in_c == 0 ? FirstBlock(block, unet.first, horizon)
                                             : Block(block, in, skip);
        },
        [&](const DeviceNormConv& conv, const UnetPlace&, const Value& in) {
          return Resample(conv, in);
        });
    MegakernelPlan::Step last = Convolve(unet.final_conv, x, nullptr, x.length);
    CheckNorm(unet.final_norm);
    last.layer.output_row_set_log2 = 0;
    last.has_output = false;
    Append(last);
    Require(1 << plan.steps.back().layer.group_channels_log2 <= kMaxGroupChannels);
  }

 private:
  void Require(bool holds) { plan_.supported = plan_.supported && holds; }

  void CheckNorm(const DeviceNorm& norm) { Require(norm.groups == megakernel::kNormGroups); }

  static void SetFilm(megakernel::EpilogueTerms& epilogue, const FilmTerms& film) {
    epilogue.film_scale = film.scale_offset;
    epilogue.film_shift = film.bias_offset;
  }

  static MegakernelPlan::Step Convolve(const DeviceNormConv& conv, const Value& x,
                                       const Value* skip, int out_length) {
    MegakernelPlan::Step step;
    Layer& s = step.layer;
    s.shape = conv.shape;
    s.shape.rows = megakernel::kRowsPerBatch;
    s.shape.in_length = x.length;
    s.shape.out_length = out_length;
    s.source_channels = x.channels;
    s.epilogue.channels = conv.shape.out_c;
    step.source[0] = x.step;
    if (skip != nullptr) step.source[1] = skip->step;
    return step;
  }

  Value Append(const MegakernelPlan::Step& step) {
    const NormConvShape& shape = step.layer.shape;
    const int index = static_cast<int>(plan_.steps.size());
    plan_.steps.push_back(step);
    plan_.supported = plan_.supported && megakernel::PlanLayer(plan_.steps.back().layer);
    return {index, shape.out_c, shape.out_length * shape.phases, step.layer.adds_residual};
  }

  Value SecondHalf(const NormConvBlock& block, const Value& hidden) {
    MegakernelPlan::Step conv2 = Convolve(block.conv2, hidden, nullptr, hidden.length);
    CheckNorm(block.norm2);
    conv2.layer.adds_residual = true;
    return Append(conv2);
  }

  Value Block(const NormConvBlock& block, const Value& x, const Value* skip) {
    MegakernelPlan::Step conv1 = Convolve(block.conv1, x, skip, x.length);
    CheckNorm(block.norm1);
    SetFilm(conv1.layer.epilogue, block.film);
    Require(conv1.layer.shape.shortcut || (skip == nullptr && x.ends_block));
    return SecondHalf(block, Append(conv1));
  }

  // The first convolution is the epilogue warps' own.
  Value FirstBlock(const NormConvBlock& block, const FirstConvWeights& conv, int horizon) {
    MegakernelPlan::Step first;
    Layer& s = first.layer;
    s.shape.rows = megakernel::kRowsPerBatch;
    s.shape.in_length = s.shape.out_length = horizon;
    s.shape.out_c = conv.out_c;
    s.epilogue.channels = conv.out_c;
    CheckNorm(block.norm1);
    SetFilm(s.epilogue, block.film);
    return SecondHalf(block, Append(first));
  }

  Value Resample(const DeviceNormConv& conv, const Value& x) {
    const bool up = conv.shape.phases == 2;
    return Append(Convolve(conv, x, nullptr, up ? x.length : x.length / 2));
  }

  MegakernelPlan& plan_;
};

// Activations are stored in the layout of the first layer that reads them.
void SetSourceLayouts(MegakernelPlan& plan) {
  for (MegakernelPlan::Step& reader : plan.steps) {
    for (int i = 0; i < 2; ++i) {
      if (reader.source[i] < 0) continue;
      Layer& writer = plan.steps[reader.source[i]].layer;
      if (writer.output_row_set_log2 < 0) writer.output_row_set_log2 = reader.layer.rows_log2;
      reader.layer.source_row_set_log2[i] = writer.output_row_set_log2;
    }
  }
}

// Layers whose mailboxes have one layout use the same buffers in turn.
void PlaceMailboxes(MegakernelPlan& plan, megakernel::Mailbox Layer::*mailbox) {
  const auto layout = [&](const Layer& s) {
    return std::pair{(s.*mailbox).tile_values, s.split_k_log2};
  };
  std::map<std::pair<int, int>, int> uses;
  for (auto& [s, source, has_output] : plan.steps)
    if ((s.*mailbox).tile_values > 0) (s.*mailbox).index = uses[layout(s)]++;
  for (const auto& [key, count] : uses) {
    for (auto& [s, source, has_output] : plan.steps)
      if (layout(s) == key) (s.*mailbox).uses = count, (s.*mailbox).offset = plan.mailbox_values;
    plan.mailbox_values += 2 * plan.row_batches * megakernel::kCtas * key.first;
  }
}

// What the layers' split lets the CTAs do, and what the order of their waits rests on.
void SplitLayers(MegakernelPlan& plan) {
  std::vector<Layer> layers = plan.Layers();
  if (plan.supported) megakernel::SpanAllRowsOnce(layers);
  plan.warp_specialized = !plan.target.portable && megakernel::CanSpecializeWarps(layers);
  if (plan.warp_specialized) megakernel::PlanCtaLocal(layers);
  plan.supported = plan.supported && megakernel::SkewIsBounded(layers) &&
                   megakernel::EveryCtaMultiplies(layers) &&
                   megakernel::TwoMailboxBuffersSuffice(layers) &&
                   (plan.row_batches == 1 || plan.warp_specialized);
  if (plan.supported) megakernel::PlaceFence(layers);
  for (size_t i = 0; i < layers.size(); ++i) plan.steps[i].layer = layers[i];
  SetSourceLayouts(plan);
  PlaceMailboxes(plan, &Layer::mailbox);
  PlaceMailboxes(plan, &Layer::shortcut_mailbox);
}

// The shared memory of a CTA; not supported where it has not as much.
void PlaceInShared(const megakernel::CommonArgs& sizes, Format format, MegakernelPlan& plan) {
  megakernel::Args args;
  args.common = sizes;
  args.layer_count = static_cast<int>(plan.steps.size());
  args.row_batches = plan.row_batches, args.warp_specialized = plan.warp_specialized;
  if (plan.target.portable) {
    plan.portable = megakernel::PlanPortable(plan.Layers(), args, format, plan.target);
    plan.shared.bytes = plan.portable->shared_bytes;
    plan.supported = plan.portable->fits;
    return;
  }
  plan.shared = megakernel::PlanSharedSpace(plan.Layers(), args, format, plan.target.shared_bytes);
  plan.supported = plan.shared.bytes <= plan.target.shared_bytes;
}

}  // namespace

std::vector<Layer> MegakernelPlan::Layers() const {
  std::vector<Layer> layers;
  for (const Step& step : steps) layers.push_back(step.layer);
  return layers;
}

megakernel::CommonArgs MegakernelSizes(const NormConvUnet& unet, int horizon, int rows,
                                       int rows_per_env) {
  megakernel::CommonArgs a;
  a.rows = rows;
  a.length = horizon;
  a.action_dim = unet.head.out_c;
  a.first.taps = unet.first.taps, a.first.in_c = unet.first.in_c, a.first.out_c = unet.first.out_c;
  a.x_halo = unet.first.taps / 2 * unet.first.in_c;
  a.last_channels = unet.final_conv.shape.out_c;
  a.last_group_channels = a.last_channels / megakernel::kNormGroups;
  a.picard.window = rows_per_env > 1 ? rows_per_env : 0;
  return a;
}

MegakernelPlan PlanMegakernel(const NormConvUnet& unet, Format format, int horizon, int rows,
                              int rows_per_env, const megakernel::Target& target) {
  MegakernelPlan plan;
  plan.target = target, plan.rows = rows, plan.rows_per_env = rows_per_env;
  plan.row_batches = rows > megakernel::kRowsPerBatch ? megakernel::kMaxRowBatches : 1;
  Lowering(unet, horizon, plan);
  SplitLayers(plan);
  plan.supported = plan.supported && unet.first.shortcut_weight != nullptr &&
                   (rows_per_env == 1 || horizon * unet.head.out_c % 4 == 0);
  if (plan.supported)
    PlaceInShared(MegakernelSizes(unet, horizon, rows, rows_per_env), format, plan);
  return plan;
}

}  // namespace mjp
