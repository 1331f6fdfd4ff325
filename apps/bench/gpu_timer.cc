#include "apps/bench/gpu_timer.h"

#include "kernels/cuda/primitives/graph_capture.h"
#include "policy/cuda/arena.h"

namespace mjp::app {
namespace {

// A captured graph with two events in it.
class TimedGraph {
 public:
  explicit TimedGraph(const std::function<void(TimedGraph&)>& enqueue)
      : graph_(mjp::InstantiateGraph(mjp::CaptureGraph(stream(), [&] { enqueue(*this); }))) {}

  cudaStream_t stream() const { return stream_.get(); }
  void Begin() { Record(begin_.get()); }
  void End() { Record(end_.get()); }

  // Milliseconds between the events, by the device's clock.
  double Run() {
    float elapsed = 0;
    mjp::CheckCuda(cudaGraphLaunch(graph_.get(), stream()), "launch");
    mjp::CheckCuda(cudaStreamSynchronize(stream()), "launch");
    mjp::CheckCuda(cudaEventElapsedTime(&elapsed, begin_.get(), end_.get()), "event");
    return elapsed;
  }

 private:
  void Record(cudaEvent_t event) {
    mjp::CheckCuda(cudaEventRecordWithFlags(event, stream(), cudaEventRecordExternal), "event");
  }

  mjp::CudaStream stream_ = mjp::MakeCudaStream();
  mjp::CudaEvent begin_ = mjp::MakeCudaEvent(), end_ = mjp::MakeCudaEvent();
  mjp::CudaGraphExec graph_;
};

// `run` returns milliseconds.
BenchRow Repeat(const std::string& suite, const std::string& name, double seconds, int copies,
                const std::function<double()>& run) {
  constexpr int kWarmUp = 3, kLeast = 20;
  for (int i = 0; i < kWarmUp; ++i) run();
  std::vector<double> times;
  for (const double end = mjp::Now() + seconds; mjp::Now() < end || times.size() < kLeast;)
    times.push_back(run() / copies);
  BenchRow row = FromTimes(suite, name, times);
  row.device = "GPU";
  return row;
}

}  // namespace

BenchRow TimeInLoop(const std::string& suite, const std::string& name, double seconds, int copies,
                    const GpuWork& work) {
  return TimeCopies(suite, name, seconds, copies, [&](cudaStream_t stream) {
    for (int i = 0; i < copies; ++i) work(stream);
  });
}

BenchRow TimeCopies(const std::string& suite, const std::string& name, double seconds, int copies,
                    const GpuWork& work) {
  TimedGraph graph([&](TimedGraph& g) {
    g.Begin();
    work(g.stream());
    g.End();
  });
  BenchRow row = Repeat(suite, name, seconds, copies, [&] { return graph.Run(); });
  row.caches = "loop";
  return row;
}

BenchRow TimeStream(const std::string& suite, const std::string& name, double seconds,
                    const GpuWork& work) {
  const mjp::CudaStream stream = mjp::MakeCudaStream();
  const mjp::CudaEvent begin = mjp::MakeCudaEvent(), end = mjp::MakeCudaEvent();
  BenchRow row = Repeat(suite, name, seconds, 1, [&] {
    float elapsed = 0;
    mjp::CheckCuda(cudaEventRecord(begin.get(), stream.get()), "event");
    work(stream.get());
    mjp::CheckCuda(cudaEventRecord(end.get(), stream.get()), "event");
    mjp::CheckCuda(cudaStreamSynchronize(stream.get()), "launch");
    mjp::CheckCuda(cudaEventElapsedTime(&elapsed, begin.get(), end.get()), "event");
    return static_cast<double>(elapsed);
  });
  row.caches = "loop";
  return row;
}

static int L2Bytes() {
  int device = 0, bytes = 0;
  mjp::CheckCuda(cudaGetDevice(&device), "device");
  mjp::CheckCuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device), "size of the L2");
  return bytes;
}

BenchRow TimeCold(const std::string& suite, const std::string& name, double seconds,
                  const GpuWork& work) {
  const size_t flushed = size_t{2} * L2Bytes();
  mjp::DeviceArena arena;
  arena.TakeBytes(flushed);
  arena.Seal();
  void* other = arena.TakeBytes(flushed);
  TimedGraph graph([&](TimedGraph& g) {
    mjp::CheckCuda(cudaMemsetAsync(other, 0, flushed, g.stream()), "flush of the cache");
    g.Begin();
    work(g.stream());
    g.End();
  });
  BenchRow row = Repeat(suite, name, seconds, 1, [&] { return graph.Run(); });
  row.caches = "cold";
  return row;
}

BenchRows TimeKernel(const std::string& suite, const std::string& name, double seconds,
                     mjp::Format format, const KernelSetup& setup) {
  constexpr int kCopies = 20;
  mjp::DeviceArena arena;
  DeviceData data(arena, format);
  setup(data);
  arena.Seal();
  const GpuWork work = setup(data);
  return {TimeInLoop(suite, name, seconds, kCopies, work), TimeCold(suite, name, seconds, work)};
}

}  // namespace mjp::app
