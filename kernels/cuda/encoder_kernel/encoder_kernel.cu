// The encoder kernel: stem and residual blocks of a picture's encoder in one cluster of CTAs. Bound
// by the latency of a layer, and, where layers have many channels, by the weights, of which each
// CTA reads its share from L2 once.
//
// A layer is: multiply the input, which a CTA has in shared memory as far as its rows need it, with
// its slice of the out channels; add up what the warps have; exchange the moments of the norm;
// normalise, add the residual; store the map in the shared memory of the CTAs that read it next.
// Bytes: all weights once for each picture, from L2.

#include "kernels/cuda/encoder_kernel/epilogue.cuh"
#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/launch.cuh"

namespace mjp::encoder_kernel {
namespace {

// Whether this code is for a GPU whose clusters may have 16 blocks (GpuTraits::LargestCluster).
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1100)
constexpr bool kHaveLargeClusters = false;
#else
constexpr bool kHaveLargeClusters = true;
#endif

struct Cta {
  const uint8_t* input_here;
  uint32_t input;  // the same, in shared memory
  float* sums;
  Exchange& exchange;
  const Layer* layers;  // in shared memory
};

template <typename T>
using Vector = Pack<T, kVectorChannels>;

// f(byte from the input's start, row, column, vector of 8 channels, outside) for each vector of a
// layer's input; `outside` the map lies the border.
template <typename Function>
__device__ __forceinline__ void ForEachInputVector(const Layer& l, const Share& share,
                                                   Function&& f) {
  const int vectors = l.in_c / kVectorChannels, pixels = RowPixels(l);
#pragma unroll 4
  for (int i = threadIdx.x; i < share.in_rows * pixels * vectors; i += kThreads) {
    const int vector = i % vectors, pixel = i / vectors;
    const int row = share.in_row0 + pixel / pixels, column = pixel % pixels - 1;
    const bool outside = row < 0 || row >= l.in_h || column < 0 || column >= l.in_w;
    f(pixel * PixelBytes(l) + vector * 16, row, column, vector, outside);
  }
}

// Brings the first layer's input into shared memory.
__device__ __forceinline__ void LoadInput(const Args& a, const Cta& cta) {
  const Layer& l = cta.layers[0];
  const Share share(l);
  if (share.rows <= 0) return;
  const auto* map = static_cast<const uint4*>(a.x) +
                    size_t{1} * blockIdx.x * l.in_h * l.in_w * l.in_c / kVectorChannels;
  ForEachInputVector(l, share, [&](int at, int row, int column, int vector, bool outside) {
    uint4 v = make_uint4(0, 0, 0, 0);
    if (!outside)
      v = LoadNow16(map + (row * l.in_w + column) * (l.in_c / kVectorChannels) + vector);
    StoreShared(cta.input + at, v);
  });
}

// Zeros around the input of the layer that comes next.
__device__ __forceinline__ void ClearBorder(const Layer& next, const Cta& cta) {
  const Share share(next);
  if (share.rows <= 0) return;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int pixels = RowPixels(next);
  const auto clear = [&](int pixel) {
    for (int i = lane; i < next.in_c / kVectorChannels; i += 32)
      StoreShared(cta.input + pixel * PixelBytes(next) + i * 16, make_uint4(0, 0, 0, 0));
  };
  for (int i = warp; i < 2 * share.in_rows; i += kWarps)
    clear((i >> 1) * pixels + (i & 1) * (pixels - 1));
  const auto clear_row = [&](int row) {
    for (int i = warp; i < pixels; i += kWarps) clear(row * pixels + i);
  };
  if (share.in_row0 < 0) clear_row(0);
  for (int row = next.in_h - share.in_row0; row < share.in_rows; ++row) clear_row(row);
}

// Bytes of a layer's input that the layer before sends.
__device__ __forceinline__ int InputBytes(const Layer& l) {
  const Share share(l);
  if (share.rows <= 0) return 0;
  const int rows =
      min(share.in_row0 + share.in_rows, static_cast<int>(l.in_h)) - max(share.in_row0, 0);
  return rows * l.in_w * l.in_c * 2;
}

// The block's input at this thread's vectors.
template <typename T, int kVectors>
__device__ __forceinline__ void ReadResidual(const Layer& l, const Share& share,
                                             const Channels& channels, const Cta& cta,
                                             Vector<T> (&residual)[kVectors]) {
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int position = channels.Position(i);
    if (position >= share.rows * l.out_w) continue;
    const int2 place = PlaceOf(l, position);
    const int at = FirstTap(l, place) + (RowPixels(l) + 1) * PixelBytes(l) + channels.first * 2;
    residual[i] = *reinterpret_cast<const Vector<T>*>(cta.input_here + at);
  }
}

// Normalises this thread's vectors and sends them where the next layer, or the caller, reads them;
// in place of the sums, where their means are asked for.
template <typename T, int kVectors>
__device__ __forceinline__ void FinishVectors(const Args& a, const Layer& l, const Layer& next,
                                              bool sends, const Share& share,
                                              const Channels& channels,
                                              const Values<kVectors>& values, float2 moments,
                                              const Cta& cta, Vector<T> (&residual)[kVectors]) {
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int position = channels.Position(i);
    if (position >= share.rows * l.out_w) continue;
    const Vector<T> y = Finish<T>(l, channels, values[i], moments, residual[i]);
    if (l.is_shortcut) {
      residual[i] = y;
      continue;
    }
    const int2 place = PlaceOf(l, position);
    const int row = share.row0 + place.y;
    if (sends) {
      SendVector(next, cta.exchange, row, place.x, channels.first,
                 reinterpret_cast<const uint4&>(y));
    } else if (a.features != nullptr) {
      float* to = cta.sums + position * l.Tiles() * kTileChannels + channels.vector * 8;
#pragma unroll
      for (int c = 0; c < kVectorChannels; ++c) to[c] = ToFloat(y.v[c]);
    } else {
      const size_t at = (size_t{1} * blockIdx.x * l.out_h + row) * l.out_w + place.x;
      *reinterpret_cast<Vector<T>*>(static_cast<T*>(a.y) + at * l.out_c + channels.first) = y;
    }
  }
}

// How many maps were sent until now, and whether the last of them is yet to be waited for.
struct Maps {
  uint32_t sent = 0;
  bool awaited = false;
};

// Says what will arrive in this layer.
__device__ __forceinline__ void Expect(const Layer& l, const Layer& next, const Cta& cta,
                                       bool works, bool sends, int turn) {
  if (threadIdx.x != 0) return;
  const int groups = l.Tiles() * kTileChannels / kVectorChannels / l.group_vectors;
  ExpectBytes(SharedAddress(&cta.exchange.moments_here[turn]),
              works ? l.slices * groups * static_cast<int>(sizeof(Moment)) : 0);
  if (sends) ExpectBytes(SharedAddress(&cta.exchange.map_here), InputBytes(next));
}

template <Format F, int kVectors>
__device__ __forceinline__ void RunLayer(const Args& a, int index, const Cta& cta, Maps& maps,
                                         WeightPipeline& weights,
                                         Vector<Storage<F>> (&residual)[kVectors]) {
  using T = Storage<F>;
  // copies: in registers, whatever is written meanwhile
  const Layer l = cta.layers[index], next = cta.layers[min(index + 1, a.layer_count - 1)];
  const bool sends = !l.is_shortcut && index + 1 < a.layer_count;
  const Share share(l);
  const bool works = share.rows > 0;
  const Channels channels(l, share);
  const int turn = index & 1;
  Values<kVectors> values;
  if (maps.awaited) AwaitBarrier(SharedAddress(&cta.exchange.map_here), (maps.sent - 1) & 1);
  if (l.clears_border) __syncthreads();  // it is clear
  if (works) {
    if (l.reads_residual) ReadResidual(l, share, channels, cta, residual);
    Multiply<F>(l, share, cta.input, cta.sums, weights);
  }
  __syncthreads();
  ArriveAtClusterBarrierRelaxed();
  if (works) {
    AddSums(l, share, channels, cta.sums, values);
    SendMoments(l, share, channels, values, cta.exchange, turn);
  }
  // meanwhile; what arrives before it is expected counts, too
  Expect(l, next, cta, works, sends, turn);
  weights.CatchUp();
  if (sends && next.clears_border) ClearBorder(next, cta);
  AwaitBarrier(SharedAddress(&cta.exchange.moments_here[turn]), index >> 1 & 1);
  // nobody reads the input any more
  WaitAtClusterBarrier();
  if (works) {
    const float2 moments = CombineMoments(l, channels, cta.exchange.moments[turn]);
    FinishVectors(a, l, next, sends, share, channels, values, moments, cta, residual);
  }
  maps.awaited = sends;
  maps.sent += sends;
}

// The means of the last map, whose values stand in place of the sums.
__device__ __forceinline__ void AveragePool(const Args& a, const Cta& cta) {
  const Layer& l = cta.layers[a.layer_count - 1];
  const Share share(l);
  const int channels = l.Tiles() * kTileChannels, positions = l.out_h * l.out_w;
  const int channel = static_cast<int>(threadIdx.x);
  __syncthreads();
  if (share.rows <= 0 || channel >= channels) return;
  float sum = 0.0f;
  for (int i = 0; i < positions; ++i) sum += cta.sums[i * channels + channel];
  a.features[blockIdx.x * l.out_c + share.part * channels + channel] =
      sum / static_cast<float>(positions);
}

// This CTA's copy of the layers, what other CTAs write, and where that is.
__device__ __forceinline__ void SetUp(const Args& a, uint32_t input, Layer* layers,
                                      Exchange& exchange) {
  for (int i = threadIdx.x; i < a.layer_count * static_cast<int>(sizeof(Layer) / 4); i += kThreads)
    reinterpret_cast<uint32_t*>(layers)[i] = reinterpret_cast<const uint32_t*>(a.layers)[i];
  const int rank = static_cast<int>(threadIdx.x);
  const uint32_t map_here = SharedAddress(&exchange.map_here);
  if (rank < a.ctas) exchange.in_cta[rank] = {InCta(input, rank), InCta(map_here, rank)};
  if (threadIdx.x == 0) {
    for (const uint64_t& barrier : exchange.moments_here) InitBarrier(SharedAddress(&barrier), 1);
    InitBarrier(map_here, 1);
    FenceBarrierInit();
  }
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < a.layer_count) {
    Layer& l = layers[threadIdx.x];
    l.part = static_cast<int8_t>(blockIdx.z % l.parts);
    l.slice = static_cast<int8_t>(blockIdx.z / l.parts);
  }
  __syncthreads();
}

// grid: (pictures, 1, CTAs of a cluster)
template <Format F, int kVectors>
__global__ void __launch_bounds__(kThreads, 1) EncoderKernel(const __grid_constant__ Args a) {
  if constexpr (!kHaveLargeClusters) return Trap();
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ Exchange exchange;
  __shared__ __align__(16) Layer layers[kMostLayers];
  SetUp(a, SharedAddress(shared + a.shared.input), layers, exchange);
  const Cta cta = {shared + a.shared.input, SharedAddress(shared + a.shared.input),
                   reinterpret_cast<float*>(shared + a.shared.sums), exchange, layers};
  // weights are on the way before anything else is
  WeightPipeline weights(layers, a.layer_count, SharedAddress(shared));
  ReleaseSuccessor();
  WaitForPredecessor();
  LoadInput(a, cta);
  ClusterBarrier();
  Maps maps;
  Vector<Storage<F>> residual[kVectors] = {};
#pragma unroll 1
  for (int i = 0; i < a.layer_count; ++i) RunLayer<F>(a, i, cta, maps, weights, residual);
  if (a.features != nullptr) AveragePool(a, cta);
  WaitCopies<0>();
}

using Kernel = void (*)(Args);

Kernel KernelOf(Format format, const Args& args) {
  const bool few = args.thread_vectors <= kFewVectors;
  if (format == Format::kFp16)
    return few ? EncoderKernel<Format::kFp16, kFewVectors>
               : EncoderKernel<Format::kFp16, kMostVectors>;
  if (format == Format::kBf16)
    return few ? EncoderKernel<Format::kBf16, kFewVectors>
               : EncoderKernel<Format::kBf16, kMostVectors>;
  throw Unsupported("the encoder kernel has fp16 and bf16 kernels alone");
}

void Allow(Kernel kernel) {
  AllowShared(kernel, GpuTraits::Current().shared_bytes - kTableBytes,
              "shared memory of the encoder kernel");
  CheckCuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
            "clusters of the encoder kernel");
}

}  // namespace

int ClustersAtOnce(Format format, const Args& args) {
  if (args.ctas > GpuTraits::Current().LargestCluster() || FormatBytes(format) != 2) return 0;
  const Kernel kernel = KernelOf(format, args);
  Allow(kernel);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {1, 1, static_cast<unsigned>(args.ctas)};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1, 1, args.ctas);
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = args.shared.end;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  const cudaError_t status = cudaOccupancyMaxActiveClusters(&clusters, kernel, &config);
  if (status == cudaErrorInvalidClusterSize) {  // none fits
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  CheckCuda(status, "clusters of the encoder kernel");
  return clusters;
}

void LaunchEncoderKernel(Format format, const Args& args, cudaStream_t stream) {
  const Kernel kernel = KernelOf(format, args);
  Allow(kernel);
  LaunchShape shape;
  shape.grid = dim3(args.pictures, 1, args.ctas);
  shape.block = dim3(kThreads);
  shape.cluster_z = args.ctas;
  shape.beyond_portable = true;
  shape.shared_bytes = args.shared.end;
  Launch(kernel, shape, stream, "encoder kernel", args);
}

}  // namespace mjp::encoder_kernel
