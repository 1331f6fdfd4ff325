#ifndef TESTS_SUPPORT_GPU_PRODUCT_WORK_H_
#define TESTS_SUPPORT_GPU_PRODUCT_WORK_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cuda/conv/conv.cuh"
#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/reference/token_activation_reference.h"
#include "tests/support/gpu/device_buffer.h"

// A convolution of stride 1 or a linear layer in a 16-bit format: all that it reads, and its
// definition in double precision.

namespace mjp_test {

// What a product has besides x and its weights.
struct ProductTerms {
  bool bias = true, residual = false, relu = false;
  int row_period = 0;  // of the biases of positions; 0: none
  mjp::TokenActivation activation = mjp::TokenActivation::kNone;
};

// Operands on the host and on the device, as the format stores them.
struct ProductWork {
  mjp::ConvShape s;
  ProductTerms terms;
  std::vector<float> w, x, bias, residual, row_bias;
  DeviceBuffer dw, dx, db, dr, drow, dy;

  ProductWork(const mjp::ConvShape& shape, const ProductTerms& of, mjp::Format format,
              OperandSource& operands)
      : s(shape),
        terms(of),
        w(operands.Draw(static_cast<size_t>(s.out_c) * s.K(), 0.0f,
                        1.0f / std::sqrt(static_cast<float>(s.K())))),
        x(operands.Draw(static_cast<size_t>(s.Positions()) * s.in_c)),
        bias(operands.Draw(s.out_c)),
        residual(operands.Draw(static_cast<size_t>(s.Positions()) * s.out_c)),
        row_bias(operands.Draw(static_cast<size_t>(std::max(of.row_period, 1)) * s.out_c)),
        dw(mjp::PackConvWeights(format, s, w.data(), s.in_c)),
        dx(Stored(format, x)),
        db(bias),
        dr(Stored(format, residual)),
        drow(row_bias),
        dy(residual.size() * mjp::FormatBytes(format)) {}

  mjp::ConvArgs Arguments() const {
    mjp::ConvArgs a;
    a.shape = s;
    a.x = dx.data(), a.weight = dw.data();
    a.bias = terms.bias ? db.as<float>() : nullptr;
    a.residual = terms.residual ? dr.data() : nullptr;
    a.row_bias = terms.row_period > 0 ? drow.as<float>() : nullptr;
    a.row_period = std::max(terms.row_period, 1);
    a.activation = terms.activation, a.relu = terms.relu, a.y = dy.data();
    return a;
  }

  // The definition, of one value.
  double Expected(size_t index) const {
    const size_t position = index / s.out_c, o = index % s.out_c;
    const int ox = static_cast<int>(position % s.out_w);
    const int oy = static_cast<int>(position / s.out_w % s.out_h);
    const size_t b = position / s.out_w / s.out_h;
    double sum = terms.bias ? bias[o] : 0;
    for (int ky = 0; ky < s.kernel_h; ++ky) {
      for (int kx = 0; kx < s.kernel_w; ++kx) {
        const int y = oy + ky - s.pad_h, xx = ox + kx - s.pad_w;
        if (y < 0 || y >= s.in_h || xx < 0 || xx >= s.in_w) continue;
        for (int i = 0; i < s.in_c; ++i)
          sum += double{w[((o * s.in_c + i) * s.kernel_h + ky) * s.kernel_w + kx]} *
                 x[((b * s.in_h + y) * s.in_w + xx) * s.in_c + i];
      }
    }
    if (terms.row_period > 0) sum += row_bias[position % terms.row_period * s.out_c + o];
    sum = mjp::reference::Activate(terms.activation, sum);
    if (terms.residual) sum += residual[index];
    return terms.relu ? std::max(sum, 0.0) : sum;
  }

  // Asserts that what is stored is finite, and that some thousands of values agree with the
  // definition within the format's rounding.
  void ExpectDefinition(mjp::Format format, const std::vector<uint8_t>& stored) const {
    constexpr size_t kSamples = 8209;
    const auto y = Floats(format, stored);
    const double rounding = format == mjp::Format::kFp16 ? 1.2e-3 : 9e-3;
    const size_t stride = std::max<size_t>(1, y.size() / kSamples);
    for (size_t index = 0; index < y.size(); ++index) {
      ASSERT_TRUE(std::isfinite(y[index])) << "element " << index;
      if (index % stride != 0) continue;
      const double expected = Expected(index);
      ASSERT_NEAR(y[index], expected, rounding * (1 + std::abs(expected))) << "element " << index;
    }
  }
};

// Tests of what runs by Hopper's warpgroup products alone.
class WgmmaTest : public testing::TestWithParam<mjp::Format> {
 protected:
  void SetUp() override {
    DEVICE_OR_SKIP();
    if (!mjp::GpuTraits::Current().Wgmma()) GTEST_SKIP() << "no code or GPU of 9.0a";
  }
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GPU_PRODUCT_WORK_H_
