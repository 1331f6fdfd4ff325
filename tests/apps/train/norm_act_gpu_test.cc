// The fused norm against ATen's own operators in double precision, forward and backward.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "apps/train/network/norm_act.h"

namespace mjp::app {
namespace {

struct Case {
  std::vector<int64_t> shape;
  int64_t groups;
  Activation activation;
  bool film, residual;
};

const Case kCases[] = {
    {{3, 32, 48, 48}, 4, Activation::kRelu, false, false},
    {{3, 64, 24, 24}, 4, Activation::kRelu, false, true},
    {{2, 192, 6, 6}, 12, Activation::kNone, false, false},
    {{5, 64, 1, 16}, 8, Activation::kMish, true, false},
    {{5, 80, 1, 8}, 8, Activation::kMish, false, true},
    {{2, 2048, 1, 4}, 8, Activation::kMish, true, false},
    {{1, 8, 1, 1}, 1, Activation::kMish, true, true},
};

double RelativeError(const at::Tensor& value, const at::Tensor& reference) {
  const at::Tensor difference = value.detach().to(at::kCPU, at::kDouble) - reference.detach();
  return difference.norm().item<double>() / (reference.norm().item<double>() + 1e-12);
}

// Inputs of a case: leaves in double on the CPU, rounded through `type`.
std::vector<at::Tensor> MakeLeaves(const Case& c, at::ScalarType type) {
  const int64_t n = c.shape[0], channels = c.shape[1];
  std::vector<at::Tensor> leaves = {torch::randn(c.shape) * 2 + 0.5,
                                    1 + 0.3 * torch::randn(channels), 0.3 * torch::randn(channels)};
  if (c.film) leaves.push_back(torch::randn({n, 2 * channels}));
  if (c.residual) leaves.push_back(torch::randn(c.shape));
  for (at::Tensor& leaf : leaves) leaf = leaf.to(type).to(at::kDouble);
  return leaves;
}

NormActInput ToInput(const Case& c, const std::vector<at::Tensor>& leaves) {
  NormActInput input{leaves[0], leaves[1], leaves[2], c.groups, c.activation, {}, {}};
  if (c.film) input.film = leaves[3];
  if (c.residual) input.residual = leaves.back();
  return input;
}

void Check(const Case& c, at::ScalarType type, double tolerance) {
  torch::manual_seed(7);
  std::vector<at::Tensor> reference = MakeLeaves(c, type), fused;
  for (at::Tensor& leaf : reference) {
    at::Tensor copy = leaf.to(at::kCUDA, type);
    if (copy.dim() == 4) copy = copy.contiguous(at::MemoryFormat::ChannelsLast);
    fused.push_back(copy.requires_grad_());
    leaf.requires_grad_();
  }
  const at::Tensor dy = torch::randn(c.shape).to(type).to(at::kDouble);
  const at::Tensor expected = NormActReference(ToInput(c, reference));
  expected.backward(dy);
  const at::Tensor y = NormAct(ToInput(c, fused));
  y.backward(dy.to(at::kCUDA, type).contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_LE(RelativeError(y, expected), tolerance);
  for (size_t i = 0; i < fused.size(); ++i) {
    EXPECT_LE(RelativeError(fused[i].grad(), reference[i].grad()), tolerance) << "input " << i;
  }
}

class NormActGpuTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU";
  }
};

TEST_P(NormActGpuTest, MatchesTheReferenceInFloat32) { Check(GetParam(), at::kFloat, 2e-5); }
// bfloat16 results carry 8 bits: 2^-9 each, more where a gradient passes a ReLU at 0
TEST_P(NormActGpuTest, MatchesTheReferenceInBfloat16) { Check(GetParam(), at::kBFloat16, 2e-2); }

INSTANTIATE_TEST_SUITE_P(Shapes, NormActGpuTest, ::testing::ValuesIn(kCases));

}  // namespace
}  // namespace mjp::app
