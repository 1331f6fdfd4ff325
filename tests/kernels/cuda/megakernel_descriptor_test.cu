// The descriptors that the megakernel's CTAs compute of their layers, on the host: where one CTA
// sends, another receives, and where one publishes, others read.

#include <gtest/gtest.h>

#include <map>
#include <unordered_map>

#include "kernels/cuda/megakernel/layer_descriptor.cuh"
#include "tests/support/gpu/megakernel_network.h"

namespace {

namespace mk = mjp::megakernel;

// Every CTA's descriptors of a program.
class Descriptors {
 public:
  explicit Descriptors(const mjp_test::PlannedUnet& unet, int rows) {
    bool runs;
    program = unet.Program(rows, 0, &runs);
    EXPECT_TRUE(runs);
    mk::Args args;
    args.warp_specialized = program.warp_specialized;
    args.row_batches = program.row_batches;
    args.mailboxes = reinterpret_cast<float*>(uintptr_t{1} << 40);
    for (const mk::Layer& layer : program.layers)
      for (int cta = 0; cta < mk::kCtas; ++cta)
        all_.push_back(mk::MakeLayerDescriptor<__half>(args, layer, mk::TileOfCta(cta), cta));
  }
  const mk::LayerDescriptor& At(size_t layer, int cta) const {
    return all_[layer * mk::kCtas + cta];
  }

  mjp::reference::MegakernelProgram program;

 private:
  std::vector<mk::LayerDescriptor> all_;
};

const std::vector<std::vector<int>> kNetworks = {{256, 512, 1024}, {512, 1024, 2048}};

// Calls see(layer, its index, row of a batch, out channel, position of the output).
template <typename See>
void ForSomeOutputs(const Descriptors& d, const See& see) {
  for (size_t i = 0; i < d.program.layers.size(); ++i) {
    const mk::Layer& l = d.program.layers[i];
    const int length = l.shape.out_length * l.shape.phases;
    for (int row = 0; row < mk::kRowsPerBatch; ++row)
      for (int channel = 0; channel < l.shape.out_c; channel += 4)
        for (const int position : {0, 1, length - 1}) see(l, i, row, channel, position);
  }
}

TEST(MegakernelDescriptors, PartialSumsGoWhereTheirOwnersReceiveThem) {
  for (const std::vector<int>& network : kNetworks) {
    const Descriptors all(mjp_test::PlannedUnet(network), 16);
    // a layer's mailbox, epoch's buffer aside: who stores there, for each four sums
    for (size_t i = 0; i < all.program.layers.size(); ++i) {
      const mk::Layer& l = all.program.layers[i];
      if (l.shape.in_c == 0 || l.cta_local) continue;
      std::unordered_map<const uint8_t*, int> sent, sent_shortcut;
      for (int cta = 0; cta < mk::kCtas; ++cta) {
        const mk::LayerDescriptor& d = all.At(i, cta);
        if (!d.has_work) continue;
        for (int m = 0; m < mk::kTileChannels; m += 4) {
          const int channel = d.out + m, group = channel >> d.group_channels_log2;
          const int in_group = channel & ((1 << d.group_channels_log2) - 1);
          for (int n = 0; n < 1 << d.columns_log2; ++n) {
            const int row = n & ((1 << d.rows_log2) - 1), position = n >> d.rows_log2;
            const ptrdiff_t at = static_cast<ptrdiff_t>(group) * d.send_group +
                                 in_group * sizeof(__half) + row * d.send_row +
                                 position * d.send_position;
            ++sent[d.send + at];
            if (l.shape.shortcut) ++sent_shortcut[d.shortcut_send + at];
          }
        }
      }
      size_t received = 0;
      for (int cta = 0; cta < mk::kCtas; ++cta) {
        const mk::LayerDescriptor& d = all.At(i, cta);
        for (int slice = 0; slice < 1 << l.split_k_log2; ++slice) {
          for (int v = 0; v < d.tile_values; v += 4, ++received) {
            const size_t at = slice * d.slice_bytes + v * sizeof(__half);
            ASSERT_EQ(sent[d.receive + at], 1) << "layer " << i << ", CTA " << cta;
            if (l.shape.shortcut) {
              ASSERT_EQ(sent_shortcut[d.shortcut_receive + at], 1) << "layer " << i;
            }
          }
        }
      }
      EXPECT_EQ(sent.size(), received) << "layer " << i << ": nobody receives it";
    }
  }
}

TEST(MegakernelDescriptors, ActivationsAreReadWhereTheyArePublished) {
  for (const std::vector<int>& network : kNetworks) {
    const Descriptors all(mjp_test::PlannedUnet(network), 16);
    // where a value is published, in the first buffer
    std::map<std::pair<void*, const uint8_t*>, std::tuple<int, int, int>> published;
    ForSomeOutputs(all, [&](const mk::Layer& l, size_t i, int row, int channel, int position) {
      if (l.output == nullptr || channel % 8 != 0) return;
      const int group = channel >> l.group_channels_log2;
      const mk::LayerDescriptor& d = all.At(i, group * mk::kRowsPerBatch + row);
      const int in_group = channel & ((1 << l.group_channels_log2) - 1);
      const uint8_t* at =
          d.output + (static_cast<size_t>((in_group / 8) << d.length_log2) + position) *
                         (mk::kPackBytes << d.output_row_set_log2);
      const std::tuple value(row, channel, position);
      EXPECT_EQ(published.emplace(std::pair{l.output, at}, value).first->second, value)
          << "layer " << i << ": two values at one place";
    });
    size_t found = 0;
    for (size_t i = 0; i < all.program.layers.size(); ++i) {
      const mk::Layer& l = all.program.layers[i];
      if (l.shape.in_c == 0) continue;
      for (int cta = 0; cta < mk::kCtas; ++cta) {
        const mk::LayerDescriptor& d = all.At(i, cta);
        if (!d.has_work) continue;
        const mk::GemmTile gemm = mk::GemmTileOf(l, mk::TileOfCta(cta));
        for (int channel = d.channel0; channel < d.channel0 + l.k_slice; channel += 8) {
          const bool second = channel >= d.source_channels;
          // with warp specialisation the first one is that of channel0
          const mk::ActivationSource& s = d.source[all.program.warp_specialized ? 0 : second];
          const int of_source = channel - (second ? l.source_channels : 0);
          for (int row = 0; row < 1 << l.rows_log2; ++row) {
            for (const int position : {0, l.shape.in_length - 1}) {
              const uint8_t* at =
                  mk::RowAt(s.from, row, s.row_set_bytes, s.row_set_log2) +
                  (static_cast<size_t>((channel / 8) << d.in_length_log2) + position) *
                      (mk::kPackBytes << s.row_set_log2);
              const auto value = published.find({const_cast<void*>(l.source[second]), at});
              ASSERT_NE(value, published.end()) << "layer " << i << ", CTA " << cta;
              ASSERT_EQ(value->second, std::tuple(gemm.row0 + row, of_source, position))
                  << "layer " << i << ", CTA " << cta;
              ++found;
            }
          }
        }
      }
    }
    EXPECT_GT(found, 100'000u);
  }
}

// Two buffers in turn, each use with the other epoch than the use before of its buffer; and so over
// passes.
TEST(MegakernelDescriptors, AMailboxAlternatesBuffersAndEpochs) {
  for (const int uses : {1, 2, 3, 7}) {
    int next = 0;
    std::map<int, uint32_t> epochs;  // of what the buffers hold: zeros at first
    for (uint32_t pass = 0; pass < 9; ++pass) {
      for (int index = 0; index < uses; ++index, ++next) {
        const mk::MailboxSlot first = mk::SlotOf({100, uses, index}, pass, 0);
        const mk::MailboxSlot second = mk::SlotOf({100, uses, index}, pass, 1);
        EXPECT_EQ(first.bytes, next % 2 * 100);
        EXPECT_EQ(second.bytes, first.bytes + 200) << "the batches' buffers are apart";
        EXPECT_EQ(second.epoch, first.epoch);
        EXPECT_NE(first.epoch, epochs[first.bytes]) << "a reader would take the old value";
        epochs[first.bytes] = first.epoch;
      }
    }
  }
}

}  // namespace
