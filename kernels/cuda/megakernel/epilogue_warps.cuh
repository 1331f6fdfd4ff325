#ifndef KERNELS_CUDA_MEGAKERNEL_EPILOGUE_WARPS_CUH_
#define KERNELS_CUDA_MEGAKERNEL_EPILOGUE_WARPS_CUH_

#include "kernels/cuda/megakernel/layer_descriptor.cuh"

// The owner epilogue of a CTA's output tile: receives the partial sums, adds bias, normalises
// (GroupNorm), activates (Mish), modulates (FiLM), adds the residual and publishes the activations.
// A thread has four channels of a position.

namespace mjp::megakernel {

// A thread's part of the output tiles of all layers; `step_offset` changes with the pass.
struct EpilogueThread {
  int index, batch;
  int tile_row;    // of the output tile
  int group;       // likewise
  int source_row;  // min(tile_row, rows - 1): unused rows compute what the last row does
  uint32_t step_offset,
      cond_offset;  // begin of FiLM's terms of the row's timestep and environment, values
  int barrier = kTileMoments;  // of the tile's threads, in the portable kernel
};
__device__ __forceinline__ EpilogueThread MakeEpilogueThread(const CtaState& cta,
                                                             const OutputTile& tile, int batch,
                                                             int thread) {
  EpilogueThread t;
  t.index = thread, t.batch = batch, t.group = tile.group;
  t.tile_row = batch * kRowsPerBatch + tile.row_slot;
  t.source_row = min(t.tile_row, cta.a.rows - 1);
  t.step_offset = 0;
  t.cond_offset = t.source_row / cta.a.film.rows_per_env * cta.a.film.width;
  return t;
}
// Goes on to the pass whose timesteps are set.
__device__ __forceinline__ void SetTimestep(const CtaState& cta, EpilogueThread& t) {
  t.step_offset = cta.timesteps[t.source_row] * cta.a.film.width;
}

__device__ __forceinline__ float4 LoadReadOnly4(const float* from) {
  return __ldg(reinterpret_cast<const float4*>(from));
}

// Loads the epilogue's terms of four channels of the group; before the partial sums are polled.
// same_channels: for the next row batch, whose bias and norm are in `t` already.
__device__ __forceinline__ void LoadOwnerTerms(const CtaState& cta, const LayerDescriptor& desc,
                                               const EpilogueThread& thread, int channel,
                                               bool same_channels, ChannelTerms& t) {
  const float4 zero = make_float4(0, 0, 0, 0), one = make_float4(1, 1, 1, 1);
  if (!same_channels) {
    t.bias = t.scale = t.shift = zero;
    if (desc.bias) t.bias = LoadReadOnly4(desc.bias + channel);
    if (desc.scale)
      t.scale = LoadReadOnly4(desc.scale + channel), t.shift = LoadReadOnly4(desc.shift + channel);
  }
  t.film_scale[0] = one, t.film_scale[1] = t.film_shift[0] = t.film_shift[1] = zero;
  if (desc.film_shift < 0) return;
  const FilmTables& f = cta.a.film;
  const uint32_t step = thread.step_offset + channel, cond = thread.cond_offset + channel;
  t.film_shift[0] = LoadReadOnly4(f.step_table + (step + desc.film_shift));
  t.film_shift[1] = LoadReadOnly4(f.cond + (cond + desc.film_shift));
  if (desc.film_scale < 0) return;
  t.film_scale[0] = LoadReadOnly4(f.step_table + (step + desc.film_scale));
  t.film_scale[1] = LoadReadOnly4(f.cond + (cond + desc.film_scale));
}

// a * a + b * b in one order of roundings: the first product is rounded, the second one is not.
// Where a plain expression is compiled, an edit far away can swap the two, and the bits with them.
__device__ __forceinline__ float SumOfSquares(float a, float b) {
  return __fmaf_rn(b, b, __fmul_rn(a, a));
}

// Mean and variance of the output tile of the first `threads` threads, whole warps, at most kMost.
// From the sum of squares: what that loses where the mean is far from zero, 16-bit formats have
// lost before. Without branches on the number of warps: they would take longer.
// kWarpSpecialized: which of two squares is rounded first differs, and the bits are kept. sync():
// a barrier of these threads.
template <int kMost, bool kWarpSpecialized, typename Sync>
__device__ __forceinline__ float2 TileMoments(const float4& x, int thread, int threads,
                                              float inverse_values, float2* moments,
                                              const Sync& sync) {
  float sum = (x.x + x.y) + (x.z + x.w);
  float squares = kWarpSpecialized ? SumOfSquares(x.x, x.y) + SumOfSquares(x.z, x.w)
                                   : SumOfSquares(x.y, x.x) + SumOfSquares(x.w, x.z);
  __syncwarp();
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) {
    sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    squares += __shfl_xor_sync(0xffffffffu, squares, mask);
  }
  if ((thread & 31) == 0) moments[thread >> 5] = make_float2(sum, squares);
  sync();
  float2 sums_of[kMost];
#pragma unroll
  for (int w = 0; w < kMost; ++w) sums_of[w] = moments[w];
  sum = sums_of[0].x, squares = sums_of[0].y;
#pragma unroll
  for (int w = 1; w < kMost; ++w) {
    sum = w * 32 < threads ? sum + sums_of[w].x : sum;
    squares = w * 32 < threads ? squares + sums_of[w].y : squares;
  }
  const float mean = sum * inverse_values, variance = squares * inverse_values - mean * mean;
  return make_float2(mean, variance < 0.0f ? 0.0f : variance);  // NaN stays
}

// Multiplies the final convolution's activations with the head's weights, and sends the group's
// partial sums of the actions.
__device__ __forceinline__ void SendHeadPartialSums(const CtaState& cta, const Layer& layer,
                                                    int row, int group, const float4& y,
                                                    int position, int channel) {
  const CommonArgs& a = cta.a;
  const int lanes = 1 << (layer.group_channels_log2 - 2), elements = a.length * a.action_dim;
  float* to = a.head_partial_sums + (row * kNormGroups + group) * elements;
  for (int action = 0; action < a.action_dim; ++action) {
    const float4 w = Load4(cta.head_weights + (action << layer.group_channels_log2) + channel);
    float sum = (y.x * w.x + y.y * w.y) + (y.z * w.z + y.w * w.w);
    for (int mask = 1; mask < lanes; mask *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (row < a.rows && threadIdx.x % lanes == 0)
      StoreTagged(to + position * a.action_dim + action, sum, cta.epoch);
  }
}

// Adds FiLM's terms of the conditioning to those of the timestep; here, and not where the compiler
// would. Once per epilogue: before the barrier with one batch, during the first loads with two,
// after them unspecialised, after ConvolveFirst for layer 0.
__device__ __forceinline__ void CombineFilm(ChannelTerms& t) {
  const auto join = [](float4& to, const float4& v) {
    Add4(to, v);
    asm volatile("" : "+f"(to.x), "+f"(to.y), "+f"(to.z), "+f"(to.w));
  };
  join(t.film_scale[0], t.film_scale[1]);
  join(t.film_shift[0], t.film_shift[1]);
}

// Norm, Mish and FiLM, whose terms are combined.
__device__ __forceinline__ float4 NormMishFilm(const ChannelTerms& t, const float2& moments,
                                               const float4& x) {
  const float inverse = FastInverseRoot(moments.y + kNormEpsilon);
  const auto one = [&](float v, float scale, float shift, float film_scale, float film_shift) {
    return MishFast((v - moments.x) * (scale * inverse) + shift) * film_scale + film_shift;
  };
  const float4 &scale = t.film_scale[0], &shift = t.film_shift[0];
  return make_float4(one(x.x, t.scale.x, t.shift.x, scale.x, shift.x),
                     one(x.y, t.scale.y, t.shift.y, scale.y, shift.y),
                     one(x.z, t.scale.z, t.shift.z, scale.z, shift.z),
                     one(x.w, t.scale.w, t.shift.w, scale.w, shift.w));
}

// Receives this thread's partial sums of all K slices, `slice_bytes` apart, and adds them.
// meanwhile() runs while the first loads are under way.
template <typename T, int kSlices, typename Meanwhile>
__device__ __forceinline__ float4 ReceiveSlices(CtaState& cta, const uint8_t* from, int thread,
                                                int slice_bytes, uint32_t epoch,
                                                const Meanwhile& meanwhile) {
  using Sums = PartialSums<T>;
  MailboxReader<Sums, kSlices> slices;
  slices.IssueLoads(from + thread * sizeof(typename Sums::Vector), slice_bytes);
  meanwhile();
  return slices.Receive(epoch, cta.watchdog);
}
template <typename T, typename Meanwhile>
__device__ __forceinline__ float4 ReceivePartialSums(CtaState& cta, int slices, const uint8_t* from,
                                                     int thread, int slice_bytes, uint32_t epoch,
                                                     const Meanwhile& meanwhile) {
  switch (slices) {
    case 1:
      return ReceiveSlices<T, 1>(cta, from, thread, slice_bytes, epoch, meanwhile);
    case 2:
      return ReceiveSlices<T, 2>(cta, from, thread, slice_bytes, epoch, meanwhile);
    case 4:
      return ReceiveSlices<T, 4>(cta, from, thread, slice_bytes, epoch, meanwhile);
    case 8:
      return ReceiveSlices<T, 8>(cta, from, thread, slice_bytes, epoch, meanwhile);
    default:
      return ReceiveSlices<T, kMaxSplitK>(cta, from, thread, slice_bytes, epoch, meanwhile);
  }
}

// The first poll of many K slices is put off by so many cycles: a poll too soon is repeated, which
// slows the producers down. Measured.
inline constexpr int kManySlices = 8;
template <int kRowBatches>
inline constexpr int kManySlicesPollDelay = kRowBatches == 1 ? 550 : 250;

// Adds the accumulators of four values of a CTA-local layer: of two warpgroups, each of two halves
// of K.
__device__ __forceinline__ float4 AddLocalAccumulators(const uint8_t* local, int position,
                                                       int channel) {
  const float* at = reinterpret_cast<const float*>(local) + position * kAccumulatorPitch + channel;
  float4 sum = Load4(at), others = Load4(at + kLocalPart);
  Add4(sum, Load4(at + kLocalTileChannels));
  Add4(others, Load4(at + kLocalPart + kLocalTileChannels));
  Add4(sum, others);
  return sum;
}

// Rounds four values to the storage type.
template <typename T>
__device__ __forceinline__ uint2 RoundToStorage(float4& x) {
  const Pack<T, 4> four = PackFour<T>(x);
  x = UnpackFour(four);
  return reinterpret_cast<const uint2&>(four);
}

// The thread's values of the layer's 1x1 shortcut, from channel `channel` of the group on.
template <typename T>
__device__ __forceinline__ float4 ReceiveShortcut(CtaState& cta, const Layer& layer,
                                                  const LayerDescriptor& desc,
                                                  const EpilogueThread& thread, uint32_t pass,
                                                  int position, int channel) {
  const float4 bias = LoadReadOnly4(desc.shortcut_bias + channel);
  float4 residual;
  if (layer.shape.in_c > 0) {
    const MailboxSlot slot = SlotOf(desc.shortcut_ring, pass, thread.batch);
    const uint8_t* from = desc.shortcut_receive + slot.bytes;
    residual = ReceivePartialSums<T>(cta, 1 << layer.split_k_log2, from, thread.index,
                                     desc.slice_bytes, slot.epoch, [] {});
  } else {
    const FirstConvWeights& f = cta.a.first;
    const int channels = 1 << desc.group_channels_log2;
    residual = ConvolveFirst(cta, cta.first_weights + f.taps * f.in_c * channels, 1, channels,
                             thread.source_row, position, channel);
  }
  Add4(residual, bias);
  return residual;
}

// Makes what any thread of the CTA cleared visible before what any of them stores from now on. By
// all threads, without warp specialisation.
__device__ __forceinline__ void FenceCta() {
  __threadfence();
  WaitAtBarrier<kMmaBarrier>();
}

// Where the tile's activations from this position and channel of the group on are published.
template <typename T>
__device__ __forceinline__ uint8_t* OutputAddress(const LayerDescriptor& desc, int batch,
                                                  int position, int channel) {
  const uint32_t eight = static_cast<uint32_t>(channel) / kPackChannels;
  const uint32_t pack = (eight << desc.length_log2) + position;
  return desc.output +
         (2 * batch * desc.output_buffer + ((pack * kPackBytes) << desc.output_row_set_log2) +
          static_cast<uint32_t>(channel) % kPackChannels * sizeof(T));
}

// What an output tile is made of: partial sums from the mailbox, or x, or local accumulators.
struct TileInput {
  const uint8_t* from;
  int slices, slice_bytes;
  uint32_t epoch;
  bool of_x, local;
};
__device__ __forceinline__ TileInput InputOfTile(const Layer& layer, const LayerDescriptor& desc,
                                                 uint32_t pass, int batch) {
  const MailboxSlot slot = SlotOf(desc.ring, pass, batch);
  return {desc.receive + slot.bytes, 1 << layer.split_k_log2, desc.slice_bytes, slot.epoch,
          layer.shape.in_c == 0,     layer.cta_local};
}

// Rounds activations, and stores them at `to` or multiplies them with the head's weights.
// kVirtual: of a CTA that stands for several.
template <typename T, bool kVirtual>
__device__ __forceinline__ void Publish(const CtaState& cta, const Layer& layer,
                                        const EpilogueThread& thread, int position, int channel,
                                        bool has_output, uint8_t* to, float4& x) {
  const uint2 four = RoundToStorage<T>(x);
  if (has_output) return StoreActivation(to, four);
  SendHeadPartialSums(cta, layer, thread.tile_row,
                      kVirtual ? thread.group : TileOfCta(blockIdx.x).group, x, position, channel);
}

// This thread's values of an output tile, before the bias, and FiLM's terms combined. prepare()
// loads the terms where they are not yet there: without warp specialisation (kRowBatches 0).
template <typename T, int kRowBatches, typename Prepare>
__device__ __forceinline__ float4 ReceiveTile(CtaState& cta, const TileInput& input,
                                              const EpilogueThread& thread, int group_channels_log2,
                                              int position, int channel, const uint8_t* local,
                                              ChannelTerms& t, const Prepare& prepare) {
  constexpr bool kWarpSpecialized = kRowBatches > 0;
  float4 x;
  if (kWarpSpecialized && input.local) {
    if (kRowBatches > 1) CombineFilm(t);
    x = AddLocalAccumulators(local, position, channel);
  } else if (!input.of_x) {
    x = ReceivePartialSums<T>(cta, input.slices, input.from, thread.index, input.slice_bytes,
                              input.epoch, [&] {
                                if (!kWarpSpecialized) prepare();
                                if (kRowBatches > 1) CombineFilm(t);
                              });
  } else {
    if (!kWarpSpecialized) prepare();
    x = ConvolveFirst(cta, cta.first_weights, cta.a.first.taps, 1 << group_channels_log2,
                      thread.source_row, position, channel);
    if (kWarpSpecialized) CombineFilm(t);
  }
  if (!kWarpSpecialized) CombineFilm(t);
  return x;
}

// The epilogue of this thread's values of one layer.
// pass: passes that ever ran before this one.
// residual: the thread's values; in shared memory with warp specialisation.
// t: terms of the channels; the row batch before leaves what both have in common.
// local: accumulators of a CTA-local layer.
// kRowBatches: 0 or kVirtualCtas without warp specialisation, when terms are loaded after the first
// poll; and once the partial sums have arrived received() runs.
template <typename T, int kRowBatches, typename Received>
__device__ __forceinline__ void RunEpilogue(CtaState& cta, const Layer& layer,
                                            const LayerDescriptor& desc,
                                            const EpilogueThread& thread, uint32_t pass,
                                            float4& residual, ChannelTerms& t, const uint8_t* local,
                                            const Received& received) {
  constexpr bool kWarpSpecialized = kRowBatches > 0;
  constexpr int kMostWarps = kWarpSpecialized ? kEpilogueThreads / 32 : kMmaWarps;
  const int batch = kRowBatches > 1 ? thread.batch : 0, first = thread.index * 4;
  const bool has_values = first < desc.tile_values;
  if (!kWarpSpecialized && !has_values) {
    received();
    if (layer.fence) FenceCta();
    return;
  }
  const int position = first >> desc.group_channels_log2,
            channel = first & ((1 << desc.group_channels_log2) - 1);
  uint8_t* output = OutputAddress<T>(desc, batch, position, channel);
  // shared memory is read before the partial sums are polled
  const TileInput input = InputOfTile(layer, desc, pass, batch);
  uint8_t* to = output + cta.epoch * desc.output_buffer;
  const int threads = desc.tile_values >> 2;
  const float inverse_values = desc.inverse_tile_values;
  const bool norm = desc.scale, has_output = desc.output, adds_residual = layer.adds_residual,
             has_shortcut = layer.shape.shortcut;
  float4 added;
  if (adds_residual) added = residual;
  const auto prepare = [&] {
    if (has_values) {
      LoadOwnerTerms(cta, desc, thread, channel, batch > 0, t);
      if (desc.output) ClearActivation(output + (cta.epoch ^ 1) * desc.output_buffer);
    }
    if (layer.fence)
      // kPartialSumsSent, just below, joins all epilogue threads
      kWarpSpecialized ? __threadfence() : FenceCta();
  };
  if (kWarpSpecialized) {
    prepare();
    if (kRowBatches == 1 && has_values && !input.of_x) CombineFilm(t);
    WaitAtBarrier<kPartialSumsSent>(batch);
    if (!has_values) return ArriveAtBarrier<kActivationPublished>(batch);
    if (input.slices >= kManySlices) SpinCycles(kManySlicesPollDelay<kRowBatches>);
  }
  float4 x = ReceiveTile<T, kRowBatches>(cta, input, thread, desc.group_channels_log2, position,
                                         channel, local, t, prepare);
  if (!kWarpSpecialized) received();
  Add4(x, t.bias);
  const auto sync = [&] {
    if constexpr (kRowBatches == kVirtualCtas) {
      asm volatile("bar.sync %0, %1;" ::"r"(thread.barrier), "r"(threads) : "memory");
    } else {
      asm volatile("bar.sync %0, %1;" ::"n"(int{kTileMoments}), "r"(threads) : "memory");
    }
  };
  if (norm)
    x = NormMishFilm(t,
                     TileMoments<kMostWarps, kWarpSpecialized>(x, thread.index, threads,
                                                               inverse_values, cta.moments, sync),
                     x);
  if (adds_residual) Add4(x, added);
  Publish<T, kRowBatches == kVirtualCtas>(cta, layer, thread, position, channel, has_output, to, x);
  if (kWarpSpecialized) ArriveAtBarrier<kActivationPublished>(batch);
  if (adds_residual) {
    residual = x;
  } else if (input.of_x || has_shortcut) {
    residual = ReceiveShortcut<T>(cta, layer, desc, thread, pass, position, channel);
  }
}

// All layers of a pass by the epilogue warps, of each row batch with `first` and `second`. `local`:
// the first batch's accumulators of CTA-local layers; residuals: of each thread and row batch.
template <Format F, int kRowBatches>
__device__ __forceinline__ void RunEpilogueLayers(CtaState& cta, const Layer* layers,
                                                  const LayerDescriptor* descriptors, int count,
                                                  const uint8_t* local, float4* residuals,
                                                  uint32_t pass, EpilogueThread first,
                                                  EpilogueThread second) {
  SetTimestep(cta, first), SetTimestep(cta, second);
  for (int i = 0; i < count; ++i) {
    ChannelTerms terms;
#pragma unroll 1
    for (int batch = 0; batch < kRowBatches; ++batch) {
      EpilogueThread thread = batch == 0 ? first : second;
      thread.index = RematerializeTid() - kMmaThreads;
      float4& residual = residuals[batch * kEpilogueThreads + thread.index];
      RunEpilogue<Storage<F>, kRowBatches>(cta, layers[i], descriptors[i], thread, pass, residual,
                                           terms, local + batch * kLocalAccumulatorBytes, [] {});
    }
  }
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_EPILOGUE_WARPS_CUH_
