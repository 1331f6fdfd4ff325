#ifndef KERNELS_CUDA_ROW_KERNEL_PLAN_H_
#define KERNELS_CUDA_ROW_KERNEL_PLAN_H_

#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/row_kernel/row_kernel.cuh"

// How the row kernel runs a network: what stands where in shared memory, and which warp multiplies
// what. A function of sizes alone, made on the host; the weights come to it when they are placed.

namespace mjp::row_kernel {

// Activations of a row in shared memory, with zeros before and behind.
struct Buffer {
  int at = -1, pitch = 0;        // bytes: of position 0; of a position
  int length = 0, channels = 0;  // 0: none
};

// A convolution to be planned.
struct Convolution {
  int in_c = 0, out_c = 0;  // of the network, a multiple of 16 in
  int taps = 1, stride = 1, pad = 0;
  int out_length = 1, phases = 1;  // positions of a phase; 2 phases: transposed
  bool shortcut = false;           // and the block's 1x1 convolution of the same input
  Buffer source[2];                // channels in order, as many of each; the second may be empty.
                                   // Across clusters a CTA has a slice of the channels of each
  Buffer output;                   // none: the head
  Buffer residual;                 // added at the end; or none
  bool adds_shortcut = false;      // adds the sums of the shortcut that was multiplied last
  int groups = 0;                  // 0: no norm, no activation
  int film_scale = -1, film_bias = -1;
};

// The weights of a planned convolution.
struct ConvolutionWeights {
  // Those of tap `tap` (taps: the shortcut) of 16 out and 16 in channels.
  std::function<FragmentSource(int phase, int out_tile, int in_block, int tap)> fragment;
  const float *bias = nullptr, *scale = nullptr, *shift = nullptr;
  const float* shortcut_bias = nullptr;  // of the shortcut that is added
};

class Plan {
 public:
  // `halo`: zeros on either side of a row.
  Plan(const Config& config, int halo);

  // Channels that a CTA keeps of a value that has so many.
  int Kept(int channels) const { return channels / slices_; }
  // Memory of a value, of which `channels` are kept, where none that still counts stands; and back.
  Buffer Take(int length, int channels);
  void GiveBack(const Buffer& buffer);
  void Add(const Convolution& convolution);
  // Ends the plan, once everything is added.
  void Finish();

  bool Supported() const { return supported_; }
  const std::vector<Layer>& layers() const { return layers_; }
  int term_count() const { return term_count_; }        // channels of all layers
  int mailbox_pairs() const { return mailbox_pairs_; }  // across clusters: of a slice, at most
  const std::vector<uint16_t>& steps() const { return steps_; }
  const SharedLayout& shared() const { return shared_; }
  // Of each warp of each CTA its first fragment, and their number.
  std::vector<int2> WeightRanges() const;
  // Where the fragments, in the order of WeightRanges(), and the terms come from; `weights` of each
  // layer.
  std::vector<FragmentSource> Fragments(std::span<const ConvolutionWeights> weights) const;
  std::vector<TermSource> Terms(std::span<const ConvolutionWeights> weights) const;

 private:
  // Adds a table of the steps (in block, tap), `chunks` for each of k_split parts; returns where it
  // begins.
  int AddSteps(const Convolution& c, int k_split, int chunks, int taps, int pad);
  bool Takes(const Convolution& c, int channels) const;
  void ShareSteps(int steps, bool shortcut, Layer& s) const;
  void PlanEpilogue(const Convolution& c, Layer& s);
  void ShareGroups(const Convolution& c, Layer& s);
  void PlanSums(const Convolution& c, Layer& s);
  // Whether CTA `cta` of all clusters multiplies in the layer.
  bool Multiplies(const Layer& s, int cta) const;
  int FragmentsOfWarp(int cta, int warp) const;
  // Adds those of layer `i`.
  void AddFragments(size_t i, int cta, int warp, const ConvolutionWeights& weights,
                    std::vector<FragmentSource>& fragments) const;

  // Parts of the out channels, and across clusters of the in channels.
  int parts_, slices_;
  int halo_;
  bool supported_ = true;
  std::vector<Convolution> convolutions_;
  std::vector<Layer> layers_;  // of each convolution
  int elements_ = 0;           // of x
  int term_count_ = 0;
  std::vector<uint16_t> steps_;
  std::map<std::pair<int, int>, std::vector<Buffer>> free_;
  SharedLayout shared_;
  int activations_end_, sums_ = 0, shortcut_sums_ = 0;  // bytes
  int output_bytes_ = 0;                                // of the layer that was added last
  int mailbox_pairs_ = 0;
};

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_PLAN_H_
