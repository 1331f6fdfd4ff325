#ifndef KERNELS_CUDA_ROW_KERNEL_PLAN_H_
#define KERNELS_CUDA_ROW_KERNEL_PLAN_H_

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "kernels/cuda/row_kernel/row_kernel.cuh"

// How the row kernel runs a network: what stands where in shared memory, and which warp multiplies
// what. Made on the host, without a device.

namespace mjp::row_kernel {

// Activations of a row in shared memory, with zeros before and behind.
struct Buffer {
  int at = -1, pitch = 0;        // bytes: of position 0; of a position
  int length = 0, channels = 0;  // 0: none
};

// A convolution to be planned.
struct Convolution {
  NormConvShape shape;         // in_c: a multiple of 16; rows are not read
  Buffer source[2];            // channels in order, as many of each; the second may be empty
  Buffer output;               // none: the head
  Buffer residual;             // added at the end; or none
  bool adds_shortcut = false;  // adds the sums of the shortcut that was multiplied last
  const float *bias = nullptr, *shortcut_bias = nullptr;
  int groups = 0;  // 0: no norm, no activation
  const float *scale = nullptr, *shift = nullptr;
  int film_scale = -1, film_bias = -1;
  // The weights of tap `tap` (shape.taps: the shortcut) of 16 out and 16 in channels.
  std::function<FragmentSource(int phase, int out_tile, int in_block, int tap)> fragment;
};

class Plan {
 public:
  // `halo`: zeros on either side of a row.
  Plan(const Config& config, int halo);

  // Memory of a value, where none that still counts stands; and back.
  Buffer Take(int length, int channels);
  void GiveBack(const Buffer& buffer);
  void Add(const Convolution& convolution);
  // Ends the plan, once everything is added.
  void Finish();

  bool Supported() const { return supported_; }
  const std::vector<Layer>& layers() const { return layers_; }
  const std::vector<TermSource>& terms() const { return terms_; }
  int term_count() const { return term_count_; }  // channels of all layers
  const std::vector<uint16_t>& steps() const { return steps_; }
  const SharedLayout& shared() const { return shared_; }
  // Fragments in the order of WeightRanges(): of each warp of each CTA its first one and their
  // number.
  std::vector<FragmentSource> Fragments() const;
  std::vector<int2> WeightRanges() const;

 private:
  // Adds a table of the steps (in block, tap), `chunks` for each of k_split parts; returns where it
  // begins.
  int AddSteps(const Convolution& c, int k_split, int chunks, int taps, int pad);
  void PlanEpilogue(const Convolution& c, Layer& s);
  void AddFragments(const Convolution& c, const Layer& s, bool split);

  int ctas_, halo_;
  bool supported_ = true;
  std::vector<Layer> layers_;
  std::vector<TermSource> terms_;
  int term_count_ = 0;
  std::vector<uint16_t> steps_;
  std::vector<std::vector<FragmentSource>> fragments_;  // of each warp of each CTA
  std::map<std::pair<int, int>, std::vector<Buffer>> free_;
  SharedLayout shared_;
  int activations_end_, sums_ = 0, shortcut_sums_ = 0;  // bytes
  int output_bytes_ = 0;                                // of the layer that was added last
};

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_PLAN_H_
