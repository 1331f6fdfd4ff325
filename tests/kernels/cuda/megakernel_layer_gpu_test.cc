// Every layer of the launched megakernel by itself: what it published against its definition in
// double precision, made of what it read, which the layers before it left in device memory. So a
// layer answers for itself alone, whatever network it is of.

#include <cmath>
#include <cstdio>
#include <map>

#include "kernels/cuda/primitives/gpu_traits.h"
#include "tests/support/megakernel_launch.h"

namespace {

namespace mk = mjp::megakernel;
using mjp::Format;
using mjp::reference::Signal;
using mjp_test::MegakernelLaunch;

// A layer as the checkpoint has it, in the order of the kernel's.
struct LayerWeights {
  const mjp::Conv* conv = nullptr;
  const mjp::GroupNorm* norm = nullptr;  // null: a resampling
  const mjp::FilmTerms* film = nullptr;
  bool down = false, up = false;
  // of a block's second convolution: the layer of its first one, and the 1x1 beside that
  int block = -1;
  const mjp::Conv* shortcut = nullptr;
};

std::vector<LayerWeights> WeightsOf(const mjp::UnetWeights& w, const mjp::NormConvUnet& unet) {
  std::vector<LayerWeights> all;
  const auto block = [&](const mjp::ResidualBlock1d& b, const mjp::NormConvBlock& device) {
    LayerWeights first, second;
    first.conv = &b.conv1, first.norm = &b.norm1, first.film = &device.film;
    second.conv = &b.conv2, second.norm = &b.norm2;
    second.block = static_cast<int>(all.size());
    second.shortcut = b.residual ? &*b.residual : nullptr;
    all.push_back(first), all.push_back(second);
  };
  const auto level = [&](const mjp::UnetLevel& l, const mjp::NormConvLevel& device, bool up) {
    block(l.block1, device.block1), block(l.block2, device.block2);
    if (!l.resample) return;
    LayerWeights resample;
    resample.conv = &*l.resample, resample.down = !up, resample.up = up;
    all.push_back(resample);
  };
  for (size_t i = 0; i < w.down.size(); ++i) level(w.down[i], unet.down[i], false);
  block(w.mid1, unet.mid1), block(w.mid2, unet.mid2);
  for (size_t i = 0; i < w.up.size(); ++i) level(w.up[i], unet.up[i], true);
  LayerWeights last;
  last.conv = &w.final_conv, last.norm = &w.final_norm;
  all.push_back(last);
  return all;
}

// What a layer is, of all that the kernel has different code for.
std::string KindOf(const mk::Layer& l, bool specialized) {
  std::string kind = l.shape.in_c == 0     ? "first"
                     : l.shape.phases == 2 ? "up"
                     : l.shape.stride == 2 ? "down"
                     : l.output == nullptr ? "final"
                     : l.source[1]         ? "concatenated"
                                           : "plain";
  if (l.shape.shortcut) kind += ", shortcut";
  if (l.adds_residual) kind += ", residual";
  if (l.cta_local) kind += ", CTA-local";
  if (l.split_k_log2 > 0) kind += ", K split";
  const int positions = l.shape.out_length << l.rows_log2;
  if (l.shape.in_c > 0) kind += ", " + std::to_string(positions) + " positions";
  return kind + (specialized ? "" : ", not specialized");
}

class LayerCheck {
 public:
  explicit LayerCheck(MegakernelLaunch& launch)
      : launch_(launch), weights_(WeightsOf(launch.checkpoint->unet, launch.unet())) {}

  size_t size() const { return weights_.size(); }
  // What layer `i` reads of a row.
  Signal Input(int i, int row) {
    const mk::Layer& l = launch_.layers()[i];
    if (l.shape.in_c == 0) return launch_.X(row);
    const Signal x = launch_.Activations(WriterOf(l.source[0]), row);
    if (l.source[1] == nullptr) return x;
    return mjp::reference::Concatenated(x, launch_.Activations(WriterOf(l.source[1]), row));
  }
  // Channels [begin, end) of what layer `i` is to make of a row; whole norm groups.
  Signal Expected(int i, int row, int begin, int end) {
    const LayerWeights& w = weights_[i];
    const Signal x = Input(i, row);
    const std::vector<float> weight = launch_.Operands(w.conv->weight.data);
    const float* bias = w.conv->bias.data.data();
    const int taps = static_cast<int>(w.conv->weight.shape[2]);
    if (w.up)
      return mjp::reference::Upsample1d(x, weight.data(), bias, launch_.layers()[i].shape.out_c,
                                        begin, end);
    Signal y =
        mjp::reference::Conv1d(x, weight.data(), bias, taps, w.down ? 2 : 1, taps / 2, begin, end);
    if (!w.norm) return y;
    const int groups = (end - begin) * mk::kNormGroups / launch_.layers()[i].shape.out_c;
    mjp::reference::NormMish(y, groups, w.norm->weight.data.data() + begin,
                             w.norm->bias.data.data() + begin);
    if (w.film)
      Film(y, launch_.FilmTerms(row, w.film->scale_offset + begin, w.film->scale_offset + end),
           launch_.FilmTerms(row, w.film->bias_offset + begin, w.film->bias_offset + end));
    if (w.block >= 0) AddTo(y, Residual(w, row, begin, end));
    return y;
  }
  // The network's output of a row, (actions, horizon).
  Signal ExpectedOutput(int row) {
    const int last = static_cast<int>(size()) - 1, channels = launch_.layers()[last].shape.out_c;
    const mjp::Conv& head = launch_.checkpoint->unet.out;
    const std::vector<float> weight = launch_.Operands(head.weight.data);
    return mjp::reference::Conv1d(Expected(last, row, 0, channels), weight.data(),
                                  head.bias.data.data(), 1, 1, 0, 0, MegakernelLaunch::kActions);
  }

 private:
  int WriterOf(const void* source) const {
    for (size_t i = 0; i < launch_.layers().size(); ++i)
      if (launch_.layers()[i].output == source) return static_cast<int>(i);
    ADD_FAILURE() << "a layer reads what no layer makes";
    return 0;
  }
  Signal Residual(const LayerWeights& w, int row, int begin, int end) {
    const Signal x = Input(w.block, row);
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

  MegakernelLaunch& launch_;
  std::vector<LayerWeights> weights_;
};

// The largest error of a unit; infinite where a value is not a number.
double Worst(const double* actual, const std::vector<double>& expected) {
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(actual[i] - expected[i]) / (1 + std::abs(expected[i]));
    if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
  }
  return worst;
}

struct Case {
  const char* name;
  std::vector<int> down_dims;
  int horizon, rows;
};
const Case kCases[] = {
    {"one_row", {256, 512, 1024}, 16, 1},      {"two_batches", {256, 512, 1024}, 16, 19},
    {"short", {256, 512, 1024}, 8, 16},        {"one_level", {1024}, 4, 2},
    {"few_channels", {128, 256, 1024}, 16, 3}, {"not_specialized", {512, 2048}, 8, 5},
};

class MegakernelLayers : public testing::TestWithParam<std::tuple<Case, Format>> {};

TEST_P(MegakernelLayers, AgreeWithTheirDefinitions) {
  DEVICE_OR_SKIP();
  if (!mjp::GpuTraits::Current().Wgmma())
    GTEST_SKIP() << "the loaded code is not Hopper's, and has no megakernel";
  const auto& [c, format] = GetParam();
  // docs/NUMERICS.md: of a layer; fp16 partial sums are rounded on their way
  const double limit = format == Format::kFp16 ? 3e-3 : 9e-3;
  MegakernelLaunch launch(c.down_dims, c.horizon, c.rows, format);
  ASSERT_TRUE(launch.Runs());
  std::map<std::string, double> worst;
  for (int pass = 0; pass < 2; ++pass) {  // of either buffer
    launch.RunPass();
    LayerCheck check(launch);
    ASSERT_EQ(check.size(), launch.layers().size());
    for (int i = 0; i < static_cast<int>(check.size()); ++i) {
      const mk::Layer& l = launch.layers()[i];
      const std::string kind = KindOf(l, launch.specialized());
      const int channels = l.shape.out_c / mk::kNormGroups;
      for (const int row : {0, c.rows / 2, c.rows - 1}) {
        if (l.output == nullptr) continue;
        const int begin = (i + row + 3 * pass) % mk::kNormGroups * channels;
        const Signal published = launch.Activations(i, row);
        const Signal expected = check.Expected(i, row, begin, begin + channels);
        const double error = Worst(&published.values[static_cast<size_t>(begin) * published.length],
                                   expected.values);
        worst[kind] = std::max(worst[kind], error);
        EXPECT_LE(error, limit) << "layer " << i << ", row " << row << ": " << kind;
      }
    }
    for (const int row : {0, c.rows - 1}) {
      const Signal expected = check.ExpectedOutput(row);
      std::vector<double> actual;
      for (int a = 0; a < MegakernelLaunch::kActions; ++a)
        for (int at = 0; at < c.horizon; ++at)
          actual.push_back(launch.output[(row * c.horizon + at) * MegakernelLaunch::kActions + a]);
      const double error = Worst(actual.data(), expected.values);
      worst["head"] = std::max(worst["head"], error);
      EXPECT_LE(error, limit) << "the network's output of row " << row;
    }
  }
  for (const auto& [kind, error] : worst) std::printf("    %s: %.2g\n", kind.c_str(), error);
}

INSTANTIATE_TEST_SUITE_P(All, MegakernelLayers,
                         testing::Combine(testing::ValuesIn(kCases),
                                          testing::Values(Format::kFp16, Format::kBf16)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  mjp_test::FormatName(std::get<1>(info.param));
                         });

}  // namespace
