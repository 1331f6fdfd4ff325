#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/conv/conv.cuh"
#include "kernels/cuda/transformer/norm_linear.cuh"
#include "kernels/reference/layer_norm_reference.h"
#include "kernels/reference/token_activation_reference.h"
#include "tests/support/gpu/device_buffer.h"

namespace {

using mjp::Format;

class NormLinearGpu : public testing::TestWithParam<Format> {
 protected:
  // Runs `a` with drawn weights on `input` (rows, in), and compares with the definition.
  void Check(mjp::NormLinearArgs a, const std::vector<double>& input, double tolerance) {
    const Format format = GetParam();
    mjp_test::OperandSource operands(format, 21);
    const int rows = a.sequences * a.rows;
    const auto w =
        operands.Draw(size_t{1} * a.out * a.in, 0.0f, 1.0f / std::sqrt(static_cast<float>(a.in)));
    const auto bias = operands.Draw(a.out);
    mjp::ConvShape shape;
    shape.in_c = a.in, shape.out_c = a.out;
    const mjp_test::DeviceBuffer dw(mjp::PackConvWeights(format, shape, w.data(), a.in)), db(bias);
    const size_t bytes = a.y_fp32 ? 4 : 2;
    const mjp_test::DeviceBuffer dy(bytes * rows * a.out);
    a.weight = dw.data(), a.bias = db.as<float>(), a.y = dy.data();
    ASSERT_TRUE(mjp::NormLinearSupports(format, a));
    mjp::LaunchNormLinear(format, a, nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), "norm and linear layer");
    const auto y = mjp_test::Floats(a.y_fp32 ? Format::kFp32 : format, dy.Download());
    std::vector<double> expected(y.size());
    for (int r = 0; r < rows; ++r) {
      for (int o = 0; o < a.out; ++o) {
        double sum = bias[o];
        for (int i = 0; i < a.in; ++i)
          sum += input[size_t{1} * r * a.in + i] * w[size_t{1} * o * a.in + i];
        expected[size_t{1} * r * a.out + o] = mjp::reference::Activate(a.activation, sum);
      }
    }
    Rotate(a, expected);
    double worst = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      const double d = std::abs(y[i] - expected[i]) / (1 + std::abs(expected[i]));
      if (!(d <= worst)) worst = d;
    }
    RecordProperty("difference", std::to_string(worst));
    EXPECT_LE(worst, tolerance * (format == Format::kFp16 ? 1 : 8));
  }

  // Pairs of neighbours, by angles p 100^(-2 i / head).
  void Rotate(const mjp::NormLinearArgs& a, std::vector<double>& y) const {
    for (int r = 0; r < a.sequences * a.rows; ++r) {
      for (int o = 0; o < a.rotary_columns; o += 2) {
        const int pair = o % a.rotary_head / 2;
        const double angle = r % a.rows * std::pow(100.0, -2.0 * pair / a.rotary_head);
        double &first = y[size_t{1} * r * a.out + o], &second = y[size_t{1} * r * a.out + o + 1];
        const double turned = first * std::cos(angle) - second * std::sin(angle);
        second = second * std::cos(angle) + first * std::sin(angle);
        first = turned;
      }
    }
  }
};

TEST_P(NormLinearGpu, NormWithTermsAndRotary) {
  DEVICE_OR_SKIP();
  mjp_test::OperandSource operands(GetParam(), 2), numbers(Format::kFp32, 3);
  for (const int width : {128, 512}) {
    mjp::NormLinearArgs a;
    a.sequences = 2, a.rows = 16, a.in = width, a.out = 96;
    a.rotary_columns = 64, a.rotary_head = 32;
    const size_t size = size_t{2} * 16 * width;
    const auto x = numbers.Draw(size), branch = operands.Draw(size);
    const auto condition = numbers.Draw(size_t{2} * 3 * width), times = numbers.Draw(3 * width);
    const std::vector<int> time = {0, 0};
    std::vector<float> cosines, sines;
    for (int p = 0; p < a.rows; ++p) {
      for (int i = 0; i < a.rotary_head / 2; ++i) {
        const double angle = p * std::pow(100.0, -2.0 * i / a.rotary_head);
        cosines.push_back(static_cast<float>(std::cos(angle)));
        sines.push_back(static_cast<float>(std::sin(angle)));
      }
    }
    const mjp_test::DeviceBuffer dx(x), dbranch(mjp_test::Stored(GetParam(), branch)),
        dcondition(condition), dtimes(times), dtime(time), sum(4 * size), cosine(cosines),
        sine(sines);
    a.cosines = cosine.as<float>(), a.sines = sine.as<float>();
    a.norm.rows = 32, a.norm.width = width, a.norm.epsilon = 1e-6f;
    a.norm.x = dx.as<float>(), a.norm.branch = dbranch.data(), a.norm.sum = sum.as<float>();
    a.norm.terms = {dcondition.as<float>(),
                    dtimes.as<float>(),
                    dtime.as<int>(),
                    3 * width,
                    16,
                    1,
                    0,
                    width,
                    2 * width};
    std::vector<double> v, scale, shift;
    for (int s = 0; s < 2; ++s) {
      const auto term = [&](int c) { return double(condition[s * 3 * width + c]) + times[c]; };
      for (int c = 0; c < width; ++c) {
        shift.push_back(term(width + c)), scale.push_back(term(2 * width + c));
      }
      for (int i = 0; i < 16 * width; ++i)
        v.push_back(x[s * 16 * width + i] + term(i % width) * branch[s * 16 * width + i]);
    }
    const auto input = mjp::reference::Modulate(
        mjp::reference::LayerNorm(v, width, 1e-6, nullptr, nullptr), width, 16, scale, shift);
    Check(a, input, 3e-3);
    const auto kept = mjp_test::Floats(Format::kFp32, sum.Download());
    for (size_t i = 0; i < size; ++i) ASSERT_NEAR(kept[i], v[i], 1e-5) << i;
  }
}

TEST_P(NormLinearGpu, SumAloneOfFewRows) {
  DEVICE_OR_SKIP();
  mjp_test::OperandSource operands(GetParam(), 4), numbers(Format::kFp32, 5);
  mjp::NormLinearArgs a;
  a.sequences = 3, a.rows = 7, a.in = 384, a.out = 3;
  a.y_fp32 = true;
  a.activation = mjp::TokenActivation::kGeluTanh;
  const size_t size = size_t{3} * 7 * 384;
  const auto x = operands.Draw(size), zeros = std::vector<float>(3 * 384, 0.0f);
  const std::vector<int> time = {0, 0, 0};
  const mjp_test::DeviceBuffer dx(x), dzeros(zeros), dtime(time);
  a.norm.rows = 21, a.norm.width = a.in, a.norm.x = dx.as<float>(), a.norm.normalize = false;
  a.norm.terms = {dzeros.as<float>(), dzeros.as<float>(), dtime.as<int>(), 384, 7, 1, 0, 0, 0};
  Check(a, {x.begin(), x.end()}, 1e-5);
}

TEST(NormLinearShapes, AreWhatTheKernelHas) {
  mjp::NormLinearArgs a;
  a.rows = 32, a.in = 512, a.out = 512;
  EXPECT_TRUE(mjp::NormLinearSupports(Format::kFp16, a));
  EXPECT_FALSE(mjp::NormLinearSupports(Format::kFp32, a));
  a.rows = 33;
  EXPECT_FALSE(mjp::NormLinearSupports(Format::kFp16, a));
  for (const int in : {448, 640}) {
    a.rows = 32, a.in = in;
    EXPECT_FALSE(mjp::NormLinearSupports(Format::kFp16, a)) << in;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, NormLinearGpu, testing::Values(Format::kFp16, Format::kBf16),
                         [](const auto& info) { return mjp_test::FormatName(info.param); });

}  // namespace
