#ifndef APPS_BENCH_SUITES_TRANSFORMER_CUDA_H_
#define APPS_BENCH_SUITES_TRANSFORMER_CUDA_H_

#include "apps/bench/harness.h"

namespace mjp::app {

// Rows of the suite kernels: the transformers' operators on the GPU.
BenchRows TransformerKernelsCuda(const BenchOptions& options);

}  // namespace mjp::app

#endif  // APPS_BENCH_SUITES_TRANSFORMER_CUDA_H_
