#ifndef KERNELS_REFERENCE_ROW_KERNEL_INTERPRETER_H_
#define KERNELS_REFERENCE_ROW_KERNEL_INTERPRETER_H_

#include <cuda_fp16.h>

#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/cuda/row_kernel/plan.h"
#include "kernels/reference/group_norm_reference.h"

// The row kernel's plan, executed on the host for one row: the same tables, ranges and places in
// shared memory, in double precision but for what shared memory keeps as fp16. For tests.

namespace mjp::reference {

class RowKernelInterpreter {
 public:
  // `weights` of each layer are in host memory. `film`: FiLM's terms of the row, step and
  // conditioning together.
  RowKernelInterpreter(const row_kernel::Plan& plan, const row_kernel::Config& config,
                       std::span<const row_kernel::ConvolutionWeights> weights,
                       std::vector<double> film)
      : plan_(plan),
        across_(config.clusters > 1),
        ranks_(across_ ? config.ctas : 1),
        film_(std::move(film)),
        fragments_(plan.Fragments(weights)),
        terms_(plan.Terms(weights)),
        ranges_(plan.WeightRanges()),
        memory_(config.clusters * config.ctas, std::vector<uint8_t>(plan.shared().end)) {}

  // The head's output (out channels, positions) of x (positions, channels), at `x_buffer`.
  std::vector<double> Run(const row_kernel::Buffer& x_buffer, const std::vector<double>& x,
                          int channels) {
    for (auto& memory : memory_)
      for (int l = 0; l < x_buffer.length; ++l)
        for (int c = 0; c < channels; ++c)
          Put(memory, x_buffer.at + l * x_buffer.pitch + 2 * c, x[l * channels + c]);
    const size_t warps = ranges_.size();
    next_.assign(warps, 0);
    for (size_t w = 0; w < warps; ++w) next_[w] = ranges_[w].x;
    for (const row_kernel::Layer& s : plan_.layers()) {
      const bool head = &s == &plan_.layers().back();
      for (size_t cta = 0; cta < memory_.size(); ++cta) Multiply(s, static_cast<int>(cta));
      if (across_) SendSums(s);
      const std::vector<std::vector<uint8_t>> before = memory_;
      for (size_t cta = 0; cta < memory_.size() && !head; ++cta)
        if (IsOwner(static_cast<int>(cta))) RunEpilogue(s, static_cast<int>(cta), before[cta]);
    }
    return sums_[0];
  }
  // Whether every warp's stream was read to its end.
  bool ReadAll() const {
    for (size_t w = 0; w < ranges_.size(); ++w)
      if (next_[w] != ranges_[w].x + ranges_[w].y) return false;
    return true;
  }

 private:
  static void Put(std::vector<uint8_t>& memory, int at, double v) {
    const __half h = __float2half_rn(static_cast<float>(v));
    std::memcpy(&memory.at(at), &h, 2);
  }
  static double Get(const uint8_t* at) {
    __half h;
    std::memcpy(&h, at, 2);
    return __half2float(h);
  }
  static double Get(const std::vector<uint8_t>& memory, int at) { return Get(&memory.at(at)); }

  // Row `o`, column `i` of a fragment.
  static double WeightOf(const row_kernel::FragmentSource& f, int o, int i) {
    if (f.from == nullptr) return 0;
    if (f.o_stride == 0) {
      if (f.half >= 0 && o >= 8) return 0;
      if (f.half == 1) o += 8;
      const int lane = o % 8 * 4 + i % 8 / 2, r = o / 8 + i / 8 * 2;
      return Get(static_cast<const uint8_t*>(f.from) + lane * 16 + r * 4 + i % 2 * 2);
    }
    const bool inside = o < f.o_count && i < f.i_count;
    return inside ? static_cast<const float*>(f.from)[o * f.o_stride + i * f.i_stride] : 0.0;
  }

  // Across clusters the owner of a norm group is one CTA of its cluster.
  int SliceOf(int cta) const { return cta / ranks_; }
  bool IsOwner(int cta) const { return !across_ || cta % ranks_ == SliceOf(cta); }
  bool Multiplies(const row_kernel::Layer& s, int cta) const {
    return !across_ || s.slices > 1 || IsOwner(cta);
  }

  // Adds the sums of a cluster's CTAs to those of its owner.
  void SendSums(const row_kernel::Layer& s) {
    for (int cta = 0; cta < static_cast<int>(memory_.size()); ++cta) {
      const int owner = SliceOf(cta) * ranks_ + SliceOf(cta);
      if (IsOwner(cta) || !Multiplies(s, cta)) continue;
      const auto add = [&](std::vector<std::vector<double>>& sums) {
        for (size_t i = 0; i < sums[cta].size(); ++i) sums[owner][i] += sums[cta][i];
      };
      add(sums_);
      if (s.shortcut_chunks > 0) add(shortcut_sums_);
    }
  }

  // Adds up all warps' steps of a layer in a CTA into (out channels of all phases, positions).
  void Multiply(const row_kernel::Layer& s, int cta) {
    sums_.resize(memory_.size()), shortcut_sums_.resize(memory_.size());
    sums_[cta].assign(static_cast<size_t>(s.tiles) * 16 * s.length, 0);
    if (s.shortcut_chunks > 0) shortcut_sums_[cta].assign(sums_[cta].size(), 0);
    if (!Multiplies(s, cta)) return;
    for (int warp = 0; warp < row_kernel::kWarps; ++warp) {
      for (row_kernel::Unit unit = s.FirstUnit(warp); unit.tile < s.tiles;
           unit = s.NextUnit(unit)) {
        const bool second = unit.tile * s.phases >= s.tiles && !unit.shortcut;
        int& next = next_[cta * row_kernel::kWarps + warp];
        for (int i = 0; i < s.Chunks(unit) * kChunkFragments; ++i)
          AddStep(s, cta, unit.tile,
                  plan_.steps()[s.ChunksAt(unit) * kChunkFragments + i] * 16 +
                      (second ? s.phase_bytes : 0),
                  fragments_[next++], unit.shortcut ? shortcut_sums_[cta] : sums_[cta]);
      }
    }
  }

  void AddStep(const row_kernel::Layer& s, int cta, int tile, int at,
               const row_kernel::FragmentSource& fragment, std::vector<double>& sums) const {
    for (int o = 0; o < 16; ++o)
      for (int i = 0; i < 16; ++i) {
        const double w = WeightOf(fragment, o, i);
        for (int n = 0; w != 0 && n < s.length; ++n)
          sums[(static_cast<size_t>(tile) * 16 + o) * s.length + n] +=
              w * Get(memory_[cta], at + n * s.row_bytes + i * 2);
      }
  }

  void RunEpilogue(const row_kernel::Layer& s, int cta, const std::vector<uint8_t>& memory) {
    const int group_channels = 1 << s.group_channels_log2;
    const row_kernel::TermSource& terms = terms_[&s - plan_.layers().data()];
    for (int first = 0; first < s.channels * s.phases; first += group_channels) {
      double mean = 0, squares = 0;
      const double count = group_channels * s.length;
      const auto raw = [&](int c, int n) {
        const int phase = (first + c) / s.channels;
        const int row = (first + c) % s.channels + phase * s.phase_rows;
        return sums_[cta][static_cast<size_t>(row) * s.length + n] +
               terms.bias[SliceOf(cta) * s.channels + (first + c) % s.channels];
      };
      for (int c = 0; c < group_channels; ++c)
        for (int n = 0; n < s.length; ++n) mean += raw(c, n) / count;
      for (int c = 0; c < group_channels; ++c)
        for (int n = 0; n < s.length; ++n) squares += std::pow(raw(c, n) - mean, 2) / count;
      for (int c = 0; c < group_channels; ++c)
        for (int n = 0; n < s.length; ++n) {
          const int slice = (first + c) % s.channels, channel = SliceOf(cta) * s.channels + slice;
          const int kept = across_ ? slice : channel;  // its place in shared memory
          double y = raw(c, n);
          if (s.normalizes) {
            y = (y - mean) / std::sqrt(squares + 1e-5) * terms.scale[channel] +
                terms.shift[channel];
            y *= std::tanh(std::log1p(std::exp(y)));
          }
          if (s.film_scale >= 0) y *= film_[s.film_scale + channel];
          if (s.film_bias >= 0) y += film_[s.film_bias + channel];
          if (s.shortcut_parts_log2 >= 0)
            y += shortcut_sums_[cta][static_cast<size_t>(slice) * s.length + n] +
                 terms.shortcut_bias[channel];
          if (s.residual >= 0) y += Get(memory, s.residual + n * s.residual_pitch + 2 * kept);
          const int position = n * s.phases + (first + c) / s.channels;
          for (int to = 0; to < static_cast<int>(memory_.size()); ++to)
            if (!across_ || to % ranks_ == SliceOf(cta))
              Put(memory_[to], s.output + position * s.output_pitch + 2 * kept, y);
        }
    }
  }

  const row_kernel::Plan& plan_;
  bool across_;  // clusters
  int ranks_;    // CTAs of a cluster that have slices of the in channels
  std::vector<double> film_;
  std::vector<row_kernel::FragmentSource> fragments_;
  std::vector<row_kernel::TermSource> terms_;
  std::vector<int2> ranges_;
  std::vector<std::vector<uint8_t>> memory_;  // of each CTA
  std::vector<int> next_;                     // fragment of each warp
  std::vector<std::vector<double>> sums_, shortcut_sums_;
};

}  // namespace mjp::reference

#endif  // KERNELS_REFERENCE_ROW_KERNEL_INTERPRETER_H_
