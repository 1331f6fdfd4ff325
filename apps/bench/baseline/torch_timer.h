#ifndef APPS_BENCH_BASELINE_TORCH_TIMER_H_
#define APPS_BENCH_BASELINE_TORCH_TIMER_H_

#include <ATen/ATen.h>

#include <functional>
#include <string>

#include "apps/bench/harness.h"

namespace mjp::app {

// A number format of libtorch's work on the GPU, and its name in the rows.
struct TorchFormat {
  const char* name;
  at::ScalarType type;
};
inline constexpr TorchFormat kTorchFormats[] = {
    {"tf32", at::kFloat}, {"fp16", at::kHalf}, {"bf16", at::kBFloat16}};

// Appends two rows: `work` on the GPU eager, and as a captured graph.
void AddTorchWork(const TorchFormat& format, const std::string& name, double items,
                  const std::string& unit, double seconds, const std::function<void()>& work,
                  BenchRows& rows);

}  // namespace mjp::app

#endif  // APPS_BENCH_BASELINE_TORCH_TIMER_H_
