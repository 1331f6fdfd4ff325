// The image U-Net on the CPU against its definition in double precision, layer by layer as
// image_diffusion/model.h states it.

#include "image_diffusion/cpu/unet2d.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/reference/conv_reference.h"
#include "kernels/reference/group_norm_reference.h"
#include "tests/support/check_close.h"

namespace {

using Maps = std::vector<double>;  // (batch, channels, size, size)

struct Picture {
  int batch, channels, size;
  Maps data;
};

std::vector<float> Floats(const Maps& maps) { return {maps.begin(), maps.end()}; }

Picture Conv(const mjp::Conv& conv, const Picture& x, int stride) {
  const auto& shape = conv.weight.shape;
  const int kernel = static_cast<int>(shape[2]);
  mjp::reference::ConvShape s{.batch = x.batch,
                              .in = x.channels,
                              .height = x.size,
                              .width = x.size,
                              .out = static_cast<int>(shape[0]),
                              .kernel_h = kernel,
                              .kernel_w = kernel,
                              .stride = stride,
                              .pad_h = kernel / 2,
                              .pad_w = kernel / 2};
  return {x.batch, s.out, s.OutHeight(),
          mjp::reference::Conv(s, Floats(x.data).data(), conv.weight.data.data(),
                               conv.bias.data.data())};
}

double Mish(double x) { return x * std::tanh(std::log1p(std::exp(x))); }

Picture NormMish(const mjp::GroupNorm& norm, const Picture& x) {
  const int cells = x.size * x.size;
  Maps last(x.data.size());
  for (int n = 0; n < x.batch; ++n)
    for (int c = 0; c < x.channels; ++c)
      for (int i = 0; i < cells; ++i)
        last[(n * cells + i) * x.channels + c] = x.data[(n * x.channels + c) * cells + i];
  last = mjp::reference::GroupNorm(last, x.batch, cells, x.channels, norm.groups,
                                   norm.weight.data.data(), norm.bias.data.data());
  Picture y = x;
  for (int n = 0; n < x.batch; ++n)
    for (int c = 0; c < x.channels; ++c)
      for (int i = 0; i < cells; ++i)
        y.data[(n * x.channels + c) * cells + i] = Mish(last[(n * cells + i) * x.channels + c]);
  return y;
}

std::vector<double> Dense(const mjp::Linear& layer, const std::vector<double>& x) {
  std::vector<double> y(layer.bias.data.begin(), layer.bias.data.end());
  for (size_t o = 0; o < y.size(); ++o)
    for (size_t i = 0; i < x.size(); ++i)
      y[o] += static_cast<double>(layer.weight.data[o * x.size() + i]) * x[i];
  return y;
}

std::vector<double> MishAll(std::vector<double> x) {
  for (double& v : x) v = Mish(v);
  return x;
}

std::vector<double> Embedding(const mjp::UnetWeights& unet, int t) {
  const int half = static_cast<int>(unet.time1.weight.shape[1]) / 2;
  std::vector<double> sinusoid(2 * half);
  for (int j = 0; j < half; ++j) {
    const double angle = t * std::pow(10000.0, -j / (half - 1.0));
    sinusoid[j] = std::sin(angle);
    sinusoid[half + j] = std::cos(angle);
  }
  return MishAll(Dense(unet.time2, MishAll(Dense(unet.time1, sinusoid))));
}

Picture Block(const mjp::ResidualBlock1d& block, const Picture& x,
              const std::vector<std::vector<double>>& embeddings) {
  Picture h = NormMish(block.norm1, Conv(block.conv1, x, 1));
  const int cells = h.size * h.size;
  for (int n = 0; n < h.batch; ++n) {
    const std::vector<double> film = Dense(block.film, embeddings[n]);
    for (int c = 0; c < h.channels; ++c)
      for (int i = 0; i < cells; ++i) {
        double& v = h.data[(n * h.channels + c) * cells + i];
        v = v * film[c] + film[h.channels + c];
      }
  }
  Picture y = NormMish(block.norm2, Conv(block.conv2, h, 1));
  const Picture side = block.residual ? Conv(*block.residual, x, 1) : x;
  for (size_t i = 0; i < y.data.size(); ++i) y.data[i] += side.data[i];
  return y;
}

Picture Join(const Picture& a, const Picture& b) {
  Picture y{a.batch, a.channels + b.channels, a.size, {}};
  const size_t one = a.data.size() / a.batch, two = b.data.size() / b.batch;
  for (int n = 0; n < a.batch; ++n) {
    y.data.insert(y.data.end(), a.data.begin() + n * one, a.data.begin() + (n + 1) * one);
    y.data.insert(y.data.end(), b.data.begin() + n * two, b.data.begin() + (n + 1) * two);
  }
  return y;
}

Picture Doubled(const Picture& x) {
  Picture y{x.batch, x.channels, 2 * x.size, {}};
  for (int m = 0; m < x.batch * x.channels; ++m)
    for (int r = 0; r < y.size; ++r)
      for (int c = 0; c < y.size; ++c)
        y.data.push_back(x.data[(m * x.size + r / 2) * x.size + c / 2]);
  return y;
}

Picture Reference(const mjp::ImageModel& model, Picture h, const std::vector<int>& t) {
  const mjp::UnetWeights& unet = model.unet;
  std::vector<std::vector<double>> e;
  for (const int step : t) e.push_back(Embedding(unet, step));
  std::vector<Picture> skips;
  for (const mjp::UnetLevel& level : unet.down) {
    h = Block(level.block2, Block(level.block1, h, e), e);
    skips.push_back(h);
    if (level.resample) h = Conv(*level.resample, h, 2);
  }
  h = Block(unet.mid2, Block(unet.mid1, h, e), e);
  for (const mjp::UnetLevel& level : unet.up) {
    h = Block(level.block2, Block(level.block1, Join(h, skips.back()), e), e);
    skips.pop_back();
    if (level.resample) h = Conv(*level.resample, Doubled(h), 1);
  }
  return Conv(unet.out, NormMish(unet.final_norm, Conv(unet.final_conv, h, 1)), 1);
}

TEST(Unet2dTest, MatchesItsDefinition) {
  mjp::ImageConfig config;
  config.size = 12;
  config.unet.down_dims = {16, 24, 40};
  config.unet.step_embed_dim = 16;
  const auto model = mjp::RandomImageModel(config, 7);
  const int rows = 2, cells = config.size * config.size;
  const std::vector<int> timesteps = {900, 40, 3};
  const int step[rows] = {2, 0};
  std::vector<float> x(rows * config.Elements());
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.37f * static_cast<float>(i));
  Picture first{rows, 3, config.size, Maps(x.size())};
  for (int n = 0; n < rows; ++n)
    for (int i = 0; i < cells; ++i)
      for (int c = 0; c < 3; ++c) first.data[(n * 3 + c) * cells + i] = x[(n * cells + i) * 3 + c];
  const Picture expected = Reference(*model, first, {3, 900});

  for (const int threads : {1, 3}) {
    mjp::cpu::ThreadPool pool(threads);
    mjp::cpu::Unet2d unet(*model, timesteps, rows, pool);
    std::vector<float> output(x.size());
    unet.Forward(x.data(), step, rows, output.data());
    std::vector<float> planes(output.size());
    for (int n = 0; n < rows; ++n)
      for (int i = 0; i < cells; ++i)
        for (int c = 0; c < 3; ++c)
          planes[(n * 3 + c) * cells + i] = output[(n * cells + i) * 3 + c];
    // some tens of float32 layers over values of about 1
    EXPECT_TRUE(mjp_test::CheckClose(planes, expected.data, 2e-4));
  }
}

}  // namespace
