#ifndef POLICY_CPU_LAYERS_H_
#define POLICY_CPU_LAYERS_H_

#include <numeric>

#include "kernels/cpu/aligned_buffer.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/group_norm.h"
#include "kernels/cpu/thread_pool.h"
#include "policy/checkpoint/network.h"

// Layers of both networks: packed from the checkpoint's tensors, run on blocks.

namespace mjp::cpu {

struct NormLayer {
  int groups = 0;  // 0: none
  AlignedBuffer weight, bias;
};

NormLayer PackNorm(const GroupNorm& norm);
ConvLayer PackConv1d(const Conv& conv, int stride);
ConvLayer PackTransposedConv1d(const Conv& conv);
ConvLayer PackConv2d(const Conv& conv, int stride);
ConvLayer PackLinear(const Linear& linear);

// Maps that own their memory. The halo is zero and stays so.
struct OwnedFeatures {
  AlignedBuffer memory;
  Features view;
};
OwnedFeatures MakeFeatures(int batch, int height, int width, int channels, int halo_y, int halo_x);

// Output channels at which a convolution with its norm may be divided between threads: whole panels
// and whole groups.
inline int Granule(const ConvLayer& conv, const NormLayer& norm) {
  const int panel = PanelChannels();
  return norm.groups == 0 ? panel : std::lcm(panel, conv.out / norm.groups);
}

// Arguments of the normalisation that follows a convolution into `y`.
inline GroupNormArgs NormArgs(const NormLayer& norm, const Features& y, Activation activation) {
  GroupNormArgs args;
  args.y = y;
  args.groups = norm.groups;
  args.weight = norm.weight.data();
  args.bias = norm.bias.data();
  args.activation = activation;
  return args;
}

// The same maps, as many as `batch`.
inline Features WithBatch(Features features, int batch) {
  features.batch = batch;
  return features;
}

}  // namespace mjp::cpu

#endif  // POLICY_CPU_LAYERS_H_
