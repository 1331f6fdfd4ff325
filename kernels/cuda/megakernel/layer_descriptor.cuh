#ifndef KERNELS_CUDA_MEGAKERNEL_LAYER_DESCRIPTOR_CUH_
#define KERNELS_CUDA_MEGAKERNEL_LAYER_DESCRIPTOR_CUH_

#include "kernels/cuda/megakernel/exchange/mailbox.cuh"
#include "kernels/cuda/megakernel/megakernel.cuh"
#include "kernels/cuda/norm_conv/warp_mma.cuh"

// The addresses and sizes of a layer as one CTA sees them, computed once per launch: between two
// exchanges a thread has but its own offset to add.

namespace mjp::megakernel {

// What stands for a number of row batches in the portable kernel, whose CTAs are several of the
// virtual CTAs that own an output tile each: one row batch, no warp specialisation.
inline constexpr int kVirtualCtas = -1;
inline constexpr int kPackBytes = kPackChannels * sizeof(uint16_t);

// Activations: (row batches, 2 buffers, row sets, channels / 8, length, 2^row_set_log2 rows, 8).
struct ActivationSource {
  const uint8_t* from;
  uint32_t row_set_bytes, buffer_bytes;  // from one to the next
  int row_set_log2;
};

// The two buffers of a layer's mailbox, for each row batch.
struct MailboxRing {
  int buffer_bytes;  // from one to the next
  int uses, index;
};
// The buffer of a pass and row batch, in bytes from the first one, and the epoch of its values. Two
// buffers in turn are enough (TwoMailboxBuffersSuffice).
struct MailboxSlot {
  int bytes;
  uint32_t epoch;
};
MJP_HOST_DEVICE __forceinline__ MailboxSlot SlotOf(const MailboxRing& ring, uint32_t pass,
                                                   int batch) {
  const uint32_t use = pass * ring.uses + ring.index;
  return {static_cast<int>(2 * batch + (use & 1)) * ring.buffer_bytes, (use >> 1 & 1) ^ 1};
}

// A CTA's weights of a layer: for each K block, of each warp `bytes`.
struct alignas(16) WeightTile {
  const uint8_t* weight;
  int k_blocks, bytes;
};

struct alignas(16) LayerDescriptor {
  WeightTile next_weights;  // of the layer that the CTA multiplies next
  bool has_work;            // whether the CTA has a GEMM tile here
  int initial_poll_delay;   // cycles from the CTA's own output to the first poll of its input
  int channel0, phase;      // of the GEMM tile
  // the input, [channels / 8][position][row]; the sources from the CTA group's first row on, the
  // second one as if it went on where the first one ends; with warp specialisation the first one is
  // that of channel0
  ActivationSource source[2];
  int source_channels;            // of source[0]
  int vectors;                    // of 8 channels, of a K block of all rows
  int rows_log2, in_length_log2;  // rows and positions
  int halo, halo_log2;            // zero vectors before a channel block's rows; with those behind
  // A stride-2 input stands as two planes, odd positions first (after one zero), then even ones:
  // taps 0 and 2 are neighbours in the odd plane, tap 1 is in the even one.
  int even_plane;  // where the even one begins, in positions; 0: all stand in order
  // the partial sums it sends: first mailbox buffers, from the CTA group's first row on
  uint8_t *send, *shortcut_send;
  int out, group_channels_log2;             // first out channel in the CTA group
  int send_group, send_row, send_position;  // bytes to the next one
  int columns_log2;                         // of the GEMM tile: positions x rows
  MailboxRing ring, shortcut_ring;
  // the output tile it owns
  const uint8_t *receive, *shortcut_receive;          // in the first mailbox buffers
  uint8_t* output;                                    // null: the head reads it
  uint32_t output_buffer;                             // bytes between its buffers
  int output_row_set_log2;                            // rows of a row set
  int tile_values, length_log2;                       // of the tile
  float inverse_tile_values;                          // 1 / tile_values
  int slice_bytes;                                    // of the tile's partial sums of a K slice
  const float *bias, *shortcut_bias, *scale, *shift;  // of the group's channels; or null
  int film_scale, film_shift;                         // likewise; -1: none
};

// Where a row of activations begins, whose row sets are `row_set_bytes` apart.
template <typename Byte>
MJP_HOST_DEVICE __forceinline__ Byte* RowAt(Byte* rows, int row, uint32_t row_set_bytes,
                                            int row_set_log2) {
  return rows + (row >> row_set_log2) * row_set_bytes +
         (row & ((1 << row_set_log2) - 1)) * kPackBytes;
}

MJP_HOST_DEVICE __forceinline__ ActivationSource MakeActivationSource(const Layer& layer,
                                                                      const GemmTile& gemm,
                                                                      int which) {
  const int channels = which ? layer.shape.in_c - layer.source_channels : layer.source_channels;
  ActivationSource s;
  s.row_set_log2 = layer.source_row_set_log2[which];
  s.row_set_bytes = (channels / kPackChannels * kPackBytes)
                    << (layer.in_length_log2 + s.row_set_log2);
  s.buffer_bytes = channels / kPackChannels * kPackBytes * (kRowsPerBatch << layer.in_length_log2);
  s.from = RowAt(static_cast<const uint8_t*>(layer.source[which]), gemm.row0, s.row_set_bytes,
                 s.row_set_log2);
  if (which)
    s.from -= (layer.source_channels / kPackChannels * kPackBytes)
              << (layer.in_length_log2 + s.row_set_log2);
  return s;
}

// The input of the CTA's GEMM tile.
MJP_HOST_DEVICE __forceinline__ void DescribeInput(const Args& args, const Layer& layer,
                                                   const GemmTile& gemm, LayerDescriptor& d) {
  const int length = 1 << layer.in_length_log2;
  d.has_work = layer.shape.in_c > 0 && gemm.has_work;
  // a poll that comes too soon is one more load in the producers' way, the more rows the more of
  // them: measured
  d.initial_poll_delay = 125 + (50 << layer.rows_log2);
  d.channel0 = gemm.k_slice * layer.k_slice, d.phase = gemm.phase;
  for (int i = 0; i < 2; ++i) d.source[i] = MakeActivationSource(layer, gemm, i);
  d.source_channels = layer.source_channels;
  if (args.warp_specialized && d.channel0 >= d.source_channels) d.source[0] = d.source[1];
  d.rows_log2 = layer.rows_log2, d.in_length_log2 = layer.in_length_log2;
  d.vectors = ((layer.cta_local ? kLocalBlockK : kBlockK) / kPackChannels)
              << (layer.rows_log2 + layer.in_length_log2);
  d.halo = layer.halo << layer.rows_log2;
  d.halo_log2 = Log2(layer.padded_length - length) + layer.rows_log2;
  d.even_plane = layer.shape.stride == 2 ? length / 2 + 1 : 0;
}

// The mailboxes: where its partial sums go, and where those of its output tile arrive. T: storage
// type of activations.
template <typename T>
MJP_HOST_DEVICE __forceinline__ void DescribeMailboxes(const Args& args, const Layer& layer,
                                                       const GemmTile& gemm, int cta,
                                                       LayerDescriptor& d) {
  constexpr int kValueBytes = sizeof(float);  // a tile's mailbox has room for float32 partial sums
  constexpr int kSumBytes = kPartialSumsAreF16<T> ? sizeof(__half) : sizeof(float);
  const auto ring = [&](const Mailbox& m) {
    return MailboxRing{kCtas * m.tile_values * kValueBytes, m.uses, m.index};
  };
  const auto in = [&](const Mailbox& m) {
    return reinterpret_cast<uint8_t*>(args.mailboxes + m.offset);
  };
  d.group_channels_log2 = layer.group_channels_log2;
  d.length_log2 = layer.out_length_log2 + layer.shape.phases - 1;
  d.tile_values = 1 << (layer.group_channels_log2 + d.length_log2);
  d.inverse_tile_values = 1.0f / d.tile_values;
  const int tile_bytes = layer.mailbox.tile_values * kValueBytes;
  d.slice_bytes = kSumBytes * d.tile_values;
  d.send_group = kRowsPerBatch * tile_bytes, d.send_row = tile_bytes;
  d.send_position = kSumBytes * layer.shape.phases << layer.group_channels_log2;
  d.out = gemm.out, d.columns_log2 = layer.rows_log2 + layer.out_length_log2;
  const int group = gemm.group_block << layer.groups_log2;
  const int send = (group * kRowsPerBatch + gemm.row0) * tile_bytes + gemm.k_slice * d.slice_bytes +
                   (kSumBytes * gemm.phase << layer.group_channels_log2);
  const int receive = cta * tile_bytes;
  d.send = in(layer.mailbox) + send, d.shortcut_send = in(layer.shortcut_mailbox) + send;
  d.receive = in(layer.mailbox) + receive;
  d.shortcut_receive = in(layer.shortcut_mailbox) + receive;
  d.ring = ring(layer.mailbox), d.shortcut_ring = ring(layer.shortcut_mailbox);
}

// The CTA's output tile: where it is published, and the epilogue's terms of its channels.
MJP_HOST_DEVICE __forceinline__ void DescribeOutput(const Layer& layer, const OutputTile& tile,
                                                    LayerDescriptor& d) {
  const int channel0 = tile.group << layer.group_channels_log2;
  const auto at = [&](const float* p) { return p ? p + channel0 : nullptr; };
  const uint32_t row_set_bytes = (layer.epilogue.channels / kPackChannels * kPackBytes)
                                 << (d.length_log2 + layer.output_row_set_log2);
  d.output_row_set_log2 = layer.output_row_set_log2;
  d.output_buffer = (layer.epilogue.channels / kPackChannels * kPackBytes * kRowsPerBatch)
                    << d.length_log2;
  if (layer.output)
    d.output =
        RowAt(static_cast<uint8_t*>(layer.output), tile.row_slot, row_set_bytes,
              layer.output_row_set_log2) +
        ((channel0 / kPackChannels * kPackBytes) << (d.length_log2 + layer.output_row_set_log2));
  d.bias = at(layer.epilogue.bias), d.shortcut_bias = at(layer.epilogue.shortcut_bias);
  d.scale = at(layer.epilogue.norm_scale), d.shift = at(layer.epilogue.norm_shift);
  d.film_scale = layer.epilogue.film_scale < 0 ? -1 : layer.epilogue.film_scale + channel0;
  d.film_shift = layer.epilogue.film_shift < 0 ? -1 : layer.epilogue.film_shift + channel0;
}

// Of CTA `cta`, whose output tile is `tile`. T: storage type of activations.
template <typename T>
MJP_HOST_DEVICE __forceinline__ LayerDescriptor
MakeLayerDescriptor(const Args& args, const Layer& layer, const OutputTile& tile, int cta) {
  const GemmTile gemm = GemmTileOf(layer, tile);
  LayerDescriptor d = {};
  DescribeInput(args, layer, gemm, d);
  DescribeMailboxes<T>(args, layer, gemm, cta, d);
  DescribeOutput(layer, tile, d);
  return d;
}
// Of this CTA.
template <typename T>
__device__ __forceinline__ LayerDescriptor MakeLayerDescriptor(const Args& args, const Layer& layer,
                                                               const OutputTile& tile) {
  return MakeLayerDescriptor<T>(args, layer, tile, static_cast<int>(blockIdx.x));
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_LAYER_DESCRIPTOR_CUH_
