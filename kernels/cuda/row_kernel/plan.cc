#include "kernels/cuda/row_kernel/plan.h"

#include <algorithm>
#include <bit>

namespace mjp::row_kernel {
namespace {

constexpr int kMostGroupsPerWarp = 4;
constexpr int kHalfTile = kBlockChannels / 2;

int Divided(int a, int b) { return (a + b - 1) / b; }
bool IsPowerOfTwo(int x) { return std::has_single_bit(static_cast<unsigned>(std::max(x, 0))); }
int Log2(int power) { return std::countr_zero(static_cast<unsigned>(power)); }

// Chunks of a warp where `k_split` warps share `steps`.
int ChunksOfWarp(int steps, int k_split) {
  return Divided(Divided(steps, k_split), kChunkFragments);
}

bool IsHead(const Convolution& c) { return c.output.channels == 0; }

// Blocks of in channels that a CTA has.
int BlocksOf(const Convolution& c) {
  return (c.source[0].channels + c.source[1].channels) / kBlockChannels;
}

// Eight out channels of a fragment, the first or the second: a tile that is half empty.
FragmentSource HalfOf(FragmentSource f, int half) {
  if (f.from == nullptr) return f;
  if (f.o_stride == 0) {
    f.half = half;
    return f;
  }
  f.from = static_cast<const float*>(f.from) + half * kHalfTile * f.o_stride;
  f.o_count = std::clamp(f.o_count - half * kHalfTile, 0, kHalfTile);
  return f;
}

}  // namespace

Plan::Plan(const Config& config, int halo)
    : parts_(config.clusters > 1 ? config.clusters : config.ctas),
      slices_(config.clusters > 1 ? config.ctas : 1),
      halo_(halo) {
  const int ring = config.ring_chunks;
  supported_ = config.clusters == 1 ? IsPowerOfTwo(config.ctas) && config.ctas <= kMaxCtas &&
                                          (ring == kDeepRing || ring == kShallowRing)
                                    : config.clusters == kClusters && config.ctas == kMaxCtas &&
                                          ring == kClustersRing;
  shared_.activations = activations_end_ = kWarps * config.ring_chunks * kChunkBytes;
}

Buffer Plan::Take(int length, int channels) {
  std::vector<Buffer>& free = free_[{length, channels}];
  if (!free.empty()) {
    const Buffer buffer = free.back();
    free.pop_back();
    return buffer;
  }
  Buffer buffer;
  buffer.pitch = channels * 2 + 16;  // an odd number of vectors: rows in different banks
  buffer.at = activations_end_ + halo_ * buffer.pitch;
  buffer.length = length, buffer.channels = channels;
  activations_end_ += (length + 2 * halo_) * buffer.pitch;
  return buffer;
}

void Plan::GiveBack(const Buffer& buffer) {
  free_[{buffer.length, buffer.channels}].push_back(buffer);
}

int Plan::AddSteps(const Convolution& c, int k_split, int chunks, int taps, int pad) {
  const int at = static_cast<int>(steps_.size()) / kChunkFragments,
            of_source = c.source[0].channels / kBlockChannels;
  const int count = BlocksOf(c) * taps;
  for (int i = 0; i < k_split * chunks * kChunkFragments; ++i) {
    const int step = std::min(i, count - 1);  // those beyond multiply zeros
    const int block = step / taps, tap = step % taps;
    const Buffer& source = c.source[block >= of_source];
    const int bytes =
        source.at + (tap - pad) * source.pitch + block % of_source * kBlockChannels * 2;
    steps_.push_back(static_cast<uint16_t>(bytes / 16));
  }
  return at;
}

// A warp's norm group, or as many channels without a norm as share the work out.
void Plan::ShareGroups(const Convolution& c, Layer& s) {
  const int pairs = s.length / 2, all = s.channels * s.phases;
  int group_channels = c.groups > 0 ? c.out_c / c.groups : 2;
  while (c.groups == 0 && all % (2 * group_channels) == 0 && all / (2 * group_channels) >= kWarps &&
         2 * group_channels * pairs <= 32 * kMaxLanePairs)
    group_channels *= 2;
  int lanes = 32;
  if (slices_ > 1) {  // all of the CTA's channels, by half of the epilogue warps
    supported_ = supported_ && (c.groups == 0 || c.groups == parts_);
    group_channels = all, lanes = kGroupThreads;
  }
  supported_ = supported_ && IsPowerOfTwo(group_channels) && group_channels >= 2 &&
               IsPowerOfTwo(pairs) && s.length % 2 == 0 &&
               (slices_ > 1 || s.channels % group_channels == 0) &&
               group_channels * pairs <= lanes * kMaxLanePairs &&
               all / group_channels <= kMostGroupsPerWarp * kWarps;
  if (!supported_) return;
  s.group_channels_log2 = Log2(group_channels);
  s.pairs_log2 = Log2(pairs);
  s.lane_pairs = std::max(1, group_channels * pairs / lanes);
  s.groups = all / group_channels, s.group_pairs = group_channels * pairs;
  s.inverse_count = 1.0f / static_cast<float>(2 * s.group_pairs);
  mailbox_pairs_ = std::max(mailbox_pairs_, s.group_pairs);
}

void Plan::PlanEpilogue(const Convolution& c, Layer& s) {
  ShareGroups(c, s);
  s.output = c.output.at, s.output_pitch = c.output.pitch;
  if (c.residual.channels > 0) s.residual = c.residual.at, s.residual_pitch = c.residual.pitch;
  if (c.adds_shortcut) {
    s.shortcut_parts_log2 = layers_.back().parts_log2;
    s.shortcut_part_bytes = layers_.back().part_bytes;
  }
  s.film_scale = c.film_scale, s.film_bias = c.film_bias;
  s.normalizes = c.groups > 0;
  s.terms = term_count_;
  term_count_ += c.out_c;
}

// Partial sums of warps, or across clusters of the CTAs that have slices of the in channels.
void Plan::PlanSums(const Convolution& c, Layer& s) {
  s.slices = c.in_c / (BlocksOf(c) * kBlockChannels);
  s.parts_log2 = Log2(s.slices) + s.k_log2;
  s.part_bytes = s.tiles * kBlockChannels * s.n_tiles * kPositionTile * 4;
  if (slices_ > 1 && s.length <= kPositionTile / 2) s.part_bytes /= 2;
  const int bytes = s.part_bytes << s.parts_log2;
  s.sums_bytes = bytes * (1 + c.shortcut);
  // across clusters the head's have the place of shortcuts: the layer after it waits for no CTA
  const bool apart = slices_ > 1 && IsHead(c);
  if (!apart) sums_ = std::max(sums_, bytes);
  if (apart || c.shortcut) shortcut_sums_ = std::max(shortcut_sums_, bytes);
  // That is one place: across clusters the sums of the next layer but one may come too early, but
  // none of the third layer from there, which are sent after an exchange with the reader.
  const auto is_near = [&](size_t back) {
    return layers_.size() >= back && layers_[layers_.size() - back].shortcut_chunks > 0;
  };
  supported_ = supported_ && !(slices_ > 1 && (apart || c.shortcut) && (is_near(1) || is_near(2)));
}

// Whether the kernel has the shape, of which a CTA makes `channels` channels.
bool Plan::Takes(const Convolution& c, int channels) const {
  const Buffer* source = c.source;
  const bool shared_out =
      IsHead(c) || (c.out_c % parts_ == 0 &&
                    (channels % kBlockChannels == 0 || (channels == kHalfTile && slices_ == 1)));
  const int kept = BlocksOf(c) * kBlockChannels;
  return shared_out && (kept == c.in_c || kept * slices_ == c.in_c) &&
         (c.phases == 2 ? 1 : c.pad) <= halo_ && c.out_length <= kMaxPositions &&
         c.out_length >= 2 && source[0].channels % kBlockChannels == 0 &&
         (source[1].channels == 0 ||
          (source[1].channels == source[0].channels && source[1].pitch == source[0].pitch));
}

// No more warps for a tile than have a chunk each; across clusters CTAs share the steps, and a
// shortcut has warps of its own, if one unit for each warp is all.
void Plan::ShareSteps(int steps, bool shortcut, Layer& s) const {
  if (slices_ > 1) {
    if (shortcut && 2 * s.tiles <= kWarps) s.shortcut_warps_at = s.tiles;
    return;
  }
  while (s.tiles << (s.k_log2 + 1) <= kWarps && kChunkFragments << s.k_log2 < steps) ++s.k_log2;
}

void Plan::Add(const Convolution& c) {
  const bool head = IsHead(c);  // small: every part makes all of it
  const int blocks = BlocksOf(c), pad = c.phases == 2 ? 1 : c.pad;
  // of a CTA: whole tiles, or half of one
  const int channels = head ? Divided(c.out_c, kBlockChannels) * kBlockChannels : c.out_c / parts_;
  supported_ = supported_ && Takes(c, channels);
  if (!supported_) return;
  Layer s;
  s.phases = c.phases;
  s.channels = channels;
  s.phase_rows = Divided(channels, kBlockChannels) * kBlockChannels;
  s.tiles = c.phases * s.phase_rows / kBlockChannels;
  ShareSteps(blocks * c.taps, c.shortcut, s);
  const int k_split = 1 << s.k_log2;
  s.chunks = ChunksOfWarp(blocks * c.taps, k_split);
  s.chunks_at = AddSteps(c, k_split, s.chunks, c.taps, pad);
  s.length = c.out_length;
  s.n_tiles = s.length <= 8 ? 1 : s.length <= 16 ? 2 : 4;
  s.row_bytes = c.stride * c.source[0].pitch;
  s.phase_bytes = c.phases == 2 ? c.source[0].pitch : 0;
  PlanSums(c, s);
  if (c.shortcut) {
    s.shortcut_chunks = ChunksOfWarp(blocks, k_split);
    s.shortcut_chunks_at = AddSteps(c, k_split, s.shortcut_chunks, 1, 0);
  }
  if (head) elements_ = c.out_c * c.out_length;
  if (!head) PlanEpilogue(c, s);
  if (!layers_.empty()) s.input_bytes = output_bytes_;
  output_bytes_ = s.length * s.phases * c.out_c * 2;
  convolutions_.push_back(c);
  layers_.push_back(s);
}

void Plan::Finish() {
  const auto rounded = [](size_t bytes) { return static_cast<int>((bytes + 15) / 16 * 16); };
  // across clusters inputs of a chunk beyond the last unit are loaded, which nobody multiplies
  if (slices_ > 1) steps_.resize(steps_.size() + kChunkFragments);
  shared_.sums = activations_end_;
  if (slices_ > 1) shared_.sums_turn = sums_;
  shared_.shortcut_sums = shared_.sums + sums_ + shared_.sums_turn;
  shared_.steps = shared_.shortcut_sums + shortcut_sums_;
  shared_.layers = shared_.steps + rounded(steps_.size() * sizeof(uint16_t));
  shared_.barriers = shared_.layers + rounded(layers_.size() * sizeof(Layer));
  shared_.moments = shared_.barriers + (kSumsBarriers + 1) * 8;
  shared_.further = shared_.moments + (slices_ > 1 ? kWarps * 8 : 0);
  shared_.end = shared_.further + 8 * std::max(0, elements_ - kRoleThreads);
  shared_.head_sums = slices_ > 1 ? shared_.shortcut_sums : shared_.sums;
}

// What is not sliced is its owner's alone.
bool Plan::Multiplies(const Layer& s, int cta) const {
  return s.slices == slices_ || cta / slices_ == cta % slices_;
}

int Plan::FragmentsOfWarp(int cta, int warp) const {
  int fragments = 0;
  for (const Layer& s : layers_) {
    if (!Multiplies(s, cta)) continue;
    for (Unit unit = s.FirstUnit(warp); unit.tile < s.tiles; unit = s.NextUnit(unit))
      fragments += s.Chunks(unit) * kChunkFragments;
  }
  return fragments;
}

std::vector<int2> Plan::WeightRanges() const {
  std::vector<int2> ranges;
  int first = 0;
  for (int warp = 0; warp < parts_ * slices_ * kWarps; ++warp) {
    ranges.push_back({first, FragmentsOfWarp(warp / kWarps, warp % kWarps)});
    first += ranges.back().y;
  }
  return ranges;
}

std::vector<FragmentSource> Plan::Fragments(std::span<const ConvolutionWeights> weights) const {
  std::vector<FragmentSource> fragments;
  for (int cta = 0; cta < parts_ * slices_; ++cta)
    for (int warp = 0; warp < kWarps; ++warp)
      for (size_t i = 0; i < layers_.size(); ++i) AddFragments(i, cta, warp, weights[i], fragments);
  return fragments;
}

// In the order in which the warp multiplies them.
void Plan::AddFragments(size_t i, int cta, int warp, const ConvolutionWeights& weights,
                        std::vector<FragmentSource>& fragments) const {
  const Convolution& c = convolutions_[i];
  const Layer& s = layers_[i];
  if (!Multiplies(s, cta)) return;
  const int of_phase = s.tiles / s.phases, blocks = BlocksOf(c);
  const int of_source = c.source[0].channels / kBlockChannels,
            slice = s.slices > 1 ? cta % slices_ : 0;
  // block `block` of those that the CTA has, in the network
  const auto in_block = [&](int block) {
    return (block / of_source * s.slices + slice) * of_source + block % of_source;
  };
  const int first_out = IsHead(c) ? 0 : cta / slices_ * s.channels / kBlockChannels;
  const int half = s.channels == kHalfTile ? cta % 2 : -1;
  for (Unit unit = s.FirstUnit(warp); unit.tile < s.tiles; unit = s.NextUnit(unit)) {
    const int phase = unit.tile / of_phase, out = first_out + unit.tile % of_phase;
    const int taps = unit.shortcut ? 1 : c.taps, first_tap = unit.shortcut ? c.taps : 0;
    const int steps = s.Chunks(unit) * kChunkFragments;
    for (int step = unit.k * steps; step < (unit.k + 1) * steps; ++step) {
      FragmentSource fragment;
      if (step < blocks * taps)
        fragment = weights.fragment(phase, out, in_block(step / taps), first_tap + step % taps);
      fragments.push_back(half < 0 ? fragment : HalfOf(fragment, half));
    }
  }
}

// The head has its own.
std::vector<TermSource> Plan::Terms(std::span<const ConvolutionWeights> weights) const {
  std::vector<TermSource> terms;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (IsHead(convolutions_[i])) continue;
    const ConvolutionWeights& w = weights[i];
    terms.push_back(
        {w.bias, w.scale, w.shift, w.shortcut_bias, layers_[i].terms, convolutions_[i].out_c});
  }
  return terms;
}

}  // namespace mjp::row_kernel
