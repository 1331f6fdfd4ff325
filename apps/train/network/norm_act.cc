#include "apps/train/network/norm_act.h"

#include <torch/csrc/autograd/custom_function.h>

#include <optional>

namespace mjp::app {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr double kEpsilon = 1e-5;

#if MJPOLICY_HAVE_CUDA
class FusedNormAct : public torch::autograd::Function<FusedNormAct> {
 public:
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& weight,
                          const Variable& bias, const std::optional<Variable>& film,
                          const std::optional<Variable>& residual, int64_t groups,
                          int64_t activation) {
    const NormActInput input{x,
                             weight,
                             bias,
                             groups,
                             static_cast<Activation>(activation),
                             film.value_or(Variable()),
                             residual.value_or(Variable())};
    const NormActForward forward = NormActForwardCuda(input);
    context->save_for_backward(
        {x, weight, bias, input.film, input.residual, forward.y, forward.mean, forward.rstd});
    context->saved_data["groups"] = groups;
    context->saved_data["activation"] = activation;
    return forward.y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const NormActInput input{saved[0],
                             saved[1],
                             saved[2],
                             context->saved_data["groups"].toInt(),
                             static_cast<Activation>(context->saved_data["activation"].toInt()),
                             saved[3],
                             saved[4]};
    const at::Tensor dy = gradients[0].contiguous(at::MemoryFormat::ChannelsLast);
    NormActBackward backward = NormActBackwardCuda(input, {saved[5], saved[6], saved[7]}, dy);
    return {backward.dx, backward.dweight, backward.dbias, backward.dfilm, backward.dresidual, {},
            {}};
  }
};

// The same on a GPU, in one kernel each way.
at::Tensor Fused(const NormActInput& input) {
  const auto dense = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.contiguous(at::MemoryFormat::ChannelsLast) : tensor;
  };
  const auto given = [](const at::Tensor& tensor) {
    return tensor.defined() ? std::optional(tensor) : std::nullopt;
  };
  return FusedNormAct::apply(dense(input.x), input.weight, input.bias, given(input.film),
                             given(dense(input.residual)), input.groups,
                             static_cast<int64_t>(input.activation));
}
#endif

}  // namespace

at::Tensor NormAct(const NormActInput& input) {
#if MJPOLICY_HAVE_CUDA
  if (input.x.is_cuda()) return Fused(input);
#endif
  return NormActReference(input);
}

at::Tensor NormActReference(const NormActInput& input) {
  at::Tensor y = at::group_norm(input.x, input.groups, input.weight, input.bias, kEpsilon);
  if (input.activation == Activation::kRelu) {
    return at::relu(input.residual.defined() ? y + input.residual : y);
  }
  if (input.activation == Activation::kMish) y = at::mish(y);
  if (input.film.defined()) {
    const std::vector<at::Tensor> parts =
        input.film.view({input.film.size(0), -1, 1, 1}).chunk(2, /*dim=*/1);
    y = y * parts[0] + parts[1];
  }
  return input.residual.defined() ? y + input.residual : y;
}

}  // namespace mjp::app
