#ifndef TESTS_SUPPORT_MEGAKERNEL_LAYER_CHECK_H_
#define TESTS_SUPPORT_MEGAKERNEL_LAYER_CHECK_H_

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/megakernel/megakernel.cuh"
#include "kernels/reference/residual_block.h"
#include "policy/checkpoint/network.h"
#include "policy/cuda/unet/norm_conv_unet.h"
#include "policy/unet/unet_model.h"

// The megakernel's layers in double precision, one by one.

namespace mjp_test {

// A layer as the checkpoint has it, in the order of the kernel's.
struct LayerWeights {
  const mjp::Conv* conv = nullptr;
  const mjp::GroupNorm* norm = nullptr;  // null: a resampling
  const mjp::FilmTerms* film = nullptr;
  bool down = false, up = false;
  // of a block's second convolution: the layer of its first one, and the 1x1 shortcut of that
  int block = -1;
  const mjp::Conv* shortcut = nullptr;
};

inline std::vector<LayerWeights> WeightsOf(const mjp::UnetWeights& w,
                                           const mjp::NormConvUnet& unet) {
  std::vector<LayerWeights> all;
  const auto block = [&](const mjp::ResidualBlock1d& b, const mjp::NormConvBlock& device) {
    LayerWeights first, second;
    first.conv = &b.conv1, first.norm = &b.norm1, first.film = &device.film;
    second.conv = &b.conv2, second.norm = &b.norm2;
    second.block = static_cast<int>(all.size());
    second.shortcut = b.residual ? &*b.residual : nullptr;
    all.push_back(first), all.push_back(second);
  };
  const mjp::UnetOrder order = mjp::OrderOf(w);
  for (size_t i = 0; i < order.size(); ++i) {
    const auto& [place, layer] = order[i];
    if (const auto* b = std::get_if<const mjp::ResidualBlock1d*>(&layer)) {
      block(**b, std::get<mjp::NormConvBlock>(unet.steps[i].layer));
      continue;
    }
    LayerWeights resample;
    resample.conv = std::get<const mjp::Conv*>(layer);
    resample.down = !place.upsamples, resample.up = place.upsamples;
    all.push_back(resample);
  }
  LayerWeights last;
  last.conv = &w.final_conv, last.norm = &w.final_norm;
  all.push_back(last);
  return all;
}

// What each layer is to make of what it read, by its definition. Launch: whose layers those are, as
// MegakernelRun.
template <typename Launch>
class MegakernelLayerCheck {
 public:
  explicit MegakernelLayerCheck(Launch& launch)
      : launch_(launch), weights_(WeightsOf(mjp::UnetOf(*launch.checkpoint).unet, launch.unet())) {}

  size_t size() const { return weights_.size(); }
  // What layer `i` reads of a row.
  mjp::reference::Signal Input(int i, int row) {
    const mjp::megakernel::Layer& l = launch_.layers()[i];
    if (l.shape.in_c == 0) return launch_.X(row);
    const mjp::reference::Signal x = launch_.Activations(WriterOf(l.source[0]), row);
    if (l.source[1] == nullptr) return x;
    return mjp::reference::Concatenated(x, launch_.Activations(WriterOf(l.source[1]), row));
  }
  // Channels [begin, end) of what layer `i` is to make of a row; whole norm groups.
  mjp::reference::Signal Expected(int i, int row, int begin, int end) {
    const LayerWeights& w = weights_[i];
    const mjp::reference::Signal x = Input(i, row);
    const std::vector<float> weight = launch_.Operands(w.conv->weight.data);
    const float* bias = w.conv->bias.data.data();
    const int taps = static_cast<int>(w.conv->weight.shape[2]);
    if (w.up)
      return mjp::reference::Upsample1d(x, weight.data(), bias, launch_.layers()[i].shape.out_c,
                                        begin, end);
    mjp::reference::Signal y =
        mjp::reference::Conv1d(x, weight.data(), bias, taps, w.down ? 2 : 1, taps / 2, begin, end);
    if (!w.norm) return y;
    const int groups =
        (end - begin) * mjp::megakernel::kNormGroups / launch_.layers()[i].shape.out_c;
    mjp::reference::NormMish(y, groups, w.norm->weight.data.data() + begin,
                             w.norm->bias.data.data() + begin);
    if (w.film)
      Film(y, launch_.FilmTerms(row, w.film->scale_offset + begin, w.film->scale_offset + end),
           launch_.FilmTerms(row, w.film->bias_offset + begin, w.film->bias_offset + end));
    if (w.block >= 0) AddTo(y, Residual(w, row, begin, end));
    return y;
  }
  // The network's output of a row, (actions, horizon).
  mjp::reference::Signal ExpectedOutput(int row) {
    const int last = static_cast<int>(size()) - 1, channels = launch_.layers()[last].shape.out_c;
    const mjp::Conv& head = mjp::UnetOf(*launch_.checkpoint).unet.out;
    const std::vector<float> weight = launch_.Operands(head.weight.data);
    return mjp::reference::Conv1d(Expected(last, row, 0, channels), weight.data(),
                                  head.bias.data.data(), 1, 1, 0, 0, Launch::kActions);
  }

 private:
  int WriterOf(const void* source) const {
    for (size_t i = 0; i < launch_.layers().size(); ++i)
      if (launch_.layers()[i].output == source) return static_cast<int>(i);
    ADD_FAILURE() << "a layer reads what no layer makes";
    return 0;
  }
  mjp::reference::Signal Residual(const LayerWeights& w, int row, int begin, int end) {
    const mjp::reference::Signal x = Input(w.block, row);
    if (w.shortcut) {
      const std::vector<float> weight = launch_.Operands(w.shortcut->weight.data);
      return mjp::reference::Conv1d(x, weight.data(), w.shortcut->bias.data.data(), 1, 1, 0, begin,
                                    end);
    }
    return {end - begin,
            x.length,
            {x.values.begin() + static_cast<ptrdiff_t>(begin) * x.length,
             x.values.begin() + static_cast<ptrdiff_t>(end) * x.length}};
  }

  Launch& launch_;
  std::vector<LayerWeights> weights_;
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_MEGAKERNEL_LAYER_CHECK_H_
