#ifndef APPS_BENCH_GPU_TIMER_H_
#define APPS_BENCH_GPU_TIMER_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <string>

#include "apps/bench/device_data.h"
#include "apps/bench/harness.h"

namespace mjp::app {

// Puts work on a stream; it is captured in a graph.
using GpuWork = std::function<void(cudaStream_t)>;

// Times `work` as it runs within a graph: `copies` of it one behind the other, divided by `copies`.
BenchRow TimeInLoop(const std::string& suite, const std::string& name, double seconds, int copies,
                    const GpuWork& work);

// The same of `work` that puts `copies` of something on the stream by itself.
BenchRow TimeCopies(const std::string& suite, const std::string& name, double seconds, int copies,
                    const GpuWork& work);

// Times `work` as the CPU enqueues it, without a graph.
BenchRow TimeStream(const std::string& suite, const std::string& name, double seconds,
                    const GpuWork& work);

// Times one `work` that finds nothing of its data in the L2 cache.
BenchRow TimeCold(const std::string& suite, const std::string& name, double seconds,
                  const GpuWork& work);

// Lays out a kernel's arguments and returns its launch. Called twice: to measure, then to place.
using KernelSetup = std::function<GpuWork(DeviceData&)>;

// Times one kernel both ways, in the loop among 20 copies.
BenchRows TimeKernel(const std::string& suite, const std::string& name, double seconds,
                     mjp::Format format, const KernelSetup& setup);

}  // namespace mjp::app

#endif  // APPS_BENCH_GPU_TIMER_H_
