#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>

#include "kernels/cuda/norm_conv/norm_conv.cuh"
#include "kernels/reference/group_norm_reference.h"
#include "tests/support/gpu/device_buffer.h"

namespace {

using mjp::Format;
using mjp::NormConvShape;
using mjp_test::DeviceBuffer;

struct Source {
  int channels = 0, groups = 0;  // groups 0: ready
  bool film = false, residual = false, materialize = false;
};
struct Case {
  const char* name;
  NormConvShape shape;
  Source first, second;
};

NormConvShape Shape(int rows, int length, int in_c, int out_c, int taps, int stride,
                    bool shortcut) {
  NormConvShape s;
  s.rows = rows, s.in_length = length, s.out_length = length / stride;
  s.in_c = in_c, s.out_c = out_c, s.taps = taps, s.stride = stride;
  s.pad = taps / 2;
  s.shortcut = shortcut;
  return s;
}
NormConvShape Transposed(int rows, int length, int channels) {
  NormConvShape s = Shape(rows, length, channels, channels, 2, 1, false);
  s.phases = 2;
  return s;
}

const Case kCases[] = {
    {"ready", Shape(1, 16, 128, 128, 5, 1, false), {128, 0}, {}},
    {"film", Shape(1, 4, 1024, 1024, 5, 1, false), {1024, 8, true}, {}},
    {"film, batch", Shape(19, 8, 512, 512, 5, 1, false), {512, 8, true}, {}},
    {"residual materialized",
     Shape(16, 16, 256, 256, 5, 1, false),
     {256, 8, false, true, true},
     {}},
    {"1x1 shortcut", Shape(3, 8, 256, 512, 5, 1, true), {256, 0}, {}},
    {"concatenated", Shape(5, 4, 512, 128, 5, 1, true), {256, 8, false, true}, {256, 0}},
    {"concatenated, 32 rows", Shape(32, 8, 512, 128, 5, 1, true), {256, 0}, {256, 0}},
    {"strided", Shape(7, 16, 256, 256, 3, 2, false), {256, 8, false, true, true}, {}},
    {"transposed", Transposed(7, 8, 256), {256, 8, false, true}, {}},
    {"kernel 3", Shape(2, 16, 64, 64, 3, 1, false), {64, 4, true}, {}},
    {"32 rows", Shape(32, 4, 512, 512, 5, 1, false), {512, 8, true}, {}},
};

// Everything one source needs, on both sides.
class SourceData {
 public:
  SourceData(const Source& source, int rows, int length, Format format, std::mt19937& random)
      : source_(source), rows_(rows), length_(length) {
    const size_t n = static_cast<size_t>(rows) * length * source.channels;
    const int width = 2 * source.channels;
    const auto draw = [&](size_t size, float mean, bool operand) {
      std::normal_distribution<float> normal(mean);
      std::vector<float> v(size);
      for (float& e : v) e = operand ? mjp_test::Operand(format, normal(random)) : normal(random);
      return v;
    };
    x_ = draw(n, 1, true), residual_ = draw(n, 0, true);
    weight_ = draw(source.channels, 1, false), bias_ = draw(source.channels, 0, false);
    table_ = draw(3 * static_cast<size_t>(width), 0.5f, false);
    cond_ = draw(static_cast<size_t>(rows) * width, 0.5f, false);
    for (int r = 0; r < rows; ++r) row_step_.push_back(r % 3);
    Activate(format);
    const auto stored = mjp_test::Stored(format, x_), res = mjp_test::Stored(format, residual_);
    for (const auto& [bytes, host] : std::initializer_list<std::pair<size_t, const void*>>{
             {stored.size(), stored.data()},
             {res.size(), res.data()},
             {weight_.size() * 4, weight_.data()},
             {bias_.size() * 4, bias_.data()},
             {table_.size() * 4, table_.data()},
             {cond_.size() * 4, cond_.data()},
             {row_step_.size() * 4, row_step_.data()},
             {stored.size(), nullptr}}) {
      device_.push_back(std::make_unique<DeviceBuffer>(bytes));
      if (host != nullptr) device_.back()->Upload(host);
    }
  }

  mjp::NormConvSource Args() const {
    mjp::NormConvSource s;
    s.x = device_[0]->data(), s.channels = source_.channels,
    s.group_channels = source_.groups ? source_.channels / source_.groups : 0;
    if (source_.residual) s.residual = device_[1]->data();
    s.weight = device_[2]->as<float>(), s.bias = device_[3]->as<float>();
    if (source_.film)
      s.film = {device_[4]->as<float>(), device_[5]->as<float>(),
                device_[6]->as<int>(),   1,
                2 * source_.channels,    0,
                source_.channels};
    if (source_.materialize) s.materialized = device_[7]->data();
    return s;
  }
  // What the convolution multiplies, rounded as an operand: (rows, length, channels).
  const std::vector<double>& activated() const { return activated_; }
  void CheckMaterialized(Format format, double tolerance) const {
    if (!source_.materialize) return;
    const auto materialized = mjp_test::Floats(format, device_[7]->Download());
    for (size_t i = 0; i < materialized.size(); ++i)
      ASSERT_NEAR(materialized[i], activated_[i], tolerance * (1 + std::abs(activated_[i])))
          << "materialized " << i;
  }

 private:
  void Activate(Format format) {
    activated_.assign(x_.begin(), x_.end());
    if (source_.groups == 0) return;
    const auto normalised = mjp::reference::GroupNorm(activated_, rows_, length_, source_.channels,
                                                      source_.groups, weight_.data(), bias_.data());
    for (size_t i = 0; i < normalised.size(); ++i) {
      const size_t channel = i % source_.channels, r = i / source_.channels / length_;
      double y = mjp::reference::Activate(mjp::Activation::kMish, normalised[i]);
      const auto term = [&](size_t k) {
        return static_cast<double>(table_[row_step_[r] * 2 * source_.channels + k]) +
               cond_[r * 2 * source_.channels + k];
      };
      if (source_.film) y = y * term(channel) + term(source_.channels + channel);
      if (source_.residual) y += residual_[i];
      activated_[i] =
          mjp::FormatBytes(format) == 4 ? y : mjp_test::Operand(format, static_cast<float>(y));
    }
  }

  Source source_;
  int rows_, length_;
  std::vector<float> x_, residual_, weight_, bias_, table_, cond_;
  std::vector<int> row_step_;
  std::vector<double> activated_;
  std::vector<std::unique_ptr<DeviceBuffer>> device_;
};

class NormConvGpu : public testing::TestWithParam<Format> {};

TEST_P(NormConvGpu, AgreesWithTheDefinition) {
  DEVICE_OR_SKIP();
  const Format format = GetParam();
  const double rounding = format == Format::kFp16 ? 3e-3 : 2e-2;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    std::mt19937 random(3);
    const NormConvShape& s = c.shape;
    const SourceData first(c.first, s.rows, s.in_length, format, random);
    const SourceData second(c.second, s.rows, s.in_length, format, random);
    const int taps = s.phases == 2 ? 4 : s.taps, out_length = s.out_length * s.phases;
    std::normal_distribution<float> normal(0, 1.0f / std::sqrt(static_cast<float>(taps * s.in_c)));
    const auto draw = [&](size_t n) {
      std::vector<float> v(n);
      for (float& e : v) e = mjp_test::Operand(format, normal(random));
      return v;
    };
    const auto w = draw(static_cast<size_t>(s.out_c) * s.in_c * taps);
    const auto shortcut = draw(static_cast<size_t>(s.out_c) * s.in_c);
    const auto bias = draw(s.out_c), shortcut_bias = draw(s.out_c);
    const auto packed = mjp::PackWeightFragments(format, s, w.data(), shortcut.data());
    ASSERT_EQ(packed.size(), mjp::WeightFragmentBytes(format, s));
    const size_t out = static_cast<size_t>(s.rows) * out_length * s.out_c;
    DeviceBuffer dw(packed.size()), db(bias.size() * 4), dbb(bias.size() * 4);
    DeviceBuffer dy(out * mjp::FormatBytes(format)), dr(out * mjp::FormatBytes(format));
    dw.Upload(packed.data()), db.Upload(bias.data()), dbb.Upload(shortcut_bias.data());

    mjp::NormConvArgs a;
    a.shape = s;
    a.source[0] = first.Args();
    if (c.second.channels > 0) a.source[1] = second.Args();
    a.weight = dw.data(), a.bias = db.as<float>(), a.shortcut_bias = dbb.as<float>();
    a.y = dy.data(), a.shortcut_y = dr.data();
    ASSERT_TRUE(mjp::NormConvSupports(format, a));
    mjp::LaunchNormConv(format, a, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), c.name);
    const auto y = mjp_test::Floats(format, dy.Download());
    const auto r = s.shortcut ? mjp_test::Floats(format, dr.Download()) : std::vector<float>();
    first.CheckMaterialized(format, rounding);

    const auto input = [&](int row, int l, int i) -> double {
      if (l < 0 || l >= s.in_length) return 0;
      const bool in_second = i >= c.first.channels;
      const SourceData& from = in_second ? second : first;
      const int channels = in_second ? c.second.channels : c.first.channels;
      return from.activated()[(static_cast<size_t>(row) * s.in_length + l) * channels +
                              (in_second ? i - c.first.channels : i)];
    };
    const size_t stride = std::max<size_t>(1, out / 1031);
    for (size_t index = 0; index < out; ++index) {
      ASSERT_TRUE(std::isfinite(y[index])) << "element " << index;
      if (index % stride != 0) continue;
      const int o = static_cast<int>(index % s.out_c);
      const int l = static_cast<int>(index / s.out_c % out_length);
      const int row = static_cast<int>(index / s.out_c / out_length);
      double sum = bias[o], side = shortcut_bias[o];
      for (int i = 0; i < s.in_c; ++i) {
        for (int k = 0; k < taps; ++k) {
          if (s.phases == 2) {
            const int twice = l + 1 - k;
            if (twice % 2 == 0)
              sum += w[(static_cast<size_t>(i) * s.out_c + o) * 4 + k] * input(row, twice / 2, i);
          } else {
            sum += w[(static_cast<size_t>(o) * s.in_c + i) * taps + k] *
                   input(row, l * s.stride + k - s.pad, i);
          }
        }
        side += shortcut[static_cast<size_t>(o) * s.in_c + i] * input(row, l, i);
      }
      ASSERT_NEAR(y[index], sum, rounding * (1 + std::abs(sum))) << "element " << index;
      if (s.shortcut) {
        ASSERT_NEAR(r[index], side, rounding * (1 + std::abs(side))) << "1x1 " << index;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, NormConvGpu, testing::Values(Format::kFp16, Format::kBf16),
                         [](const auto& info) { return mjp_test::FormatName(info.param); });

}  // namespace
