#ifndef APPS_TRAIN_OPTIMISATION_KNOWN_ACTIONS_H_
#define APPS_TRAIN_OPTIMISATION_KNOWN_ACTIONS_H_

#include <ATen/ATen.h>

#include "apps/train/data/dataset.h"

// Chunks whose beginning is known in training, as a policy's is that decides while a robot moves
// (training-time action conditioning, K. Black et al. 2025): the network sees it without noise, and
// the loss counts the rest.

namespace mjp::app {

// Which actions of each chunk are known, (B * draws, horizon, 1), of rows `late` (B, bool): those
// before the first action, and kLateSteps more where a row is late. Of the other draws a share has
// 0 to kLateSteps more, each number alike; the rest none at all.
inline at::Tensor KnownActions(const at::Tensor& late, int64_t draws, double share, int first,
                               int horizon) {
  const int64_t count = late.size(0) * draws;
  const at::TensorOptions numbers = late.options().dtype(at::kFloat);
  const at::Tensor more = (at::rand({count}, numbers) * (kLateSteps + 1)).floor();
  const at::Tensor drawn = at::rand({count}, numbers) < share;
  const at::Tensor rows = at::where(drawn, more + first, at::zeros_like(more));
  const at::Tensor all = at::where(late.repeat_interleave(draws, 0, count),
                                   at::full_like(rows, first + kLateSteps), rows);
  return at::arange(horizon, numbers).view({1, -1, 1}) < all.view({-1, 1, 1});
}

// The mean square of what is not known of chunks (N, horizon, action_dim).
inline at::Tensor ErrorOfUnknown(const at::Tensor& predicted, const at::Tensor& target,
                                 const at::Tensor& known) {
  const at::Tensor counted = at::logical_not(known).to(at::kFloat).expand_as(target);
  return ((predicted - target).square() * counted).sum() / counted.sum();
}

}  // namespace mjp::app

#endif  // APPS_TRAIN_OPTIMISATION_KNOWN_ACTIONS_H_
