#include "kernels/reference/megakernel_program.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace mjp::reference {
namespace {

using megakernel::GemmTile;
using megakernel::kCtas;
using megakernel::kNormGroups;
using megakernel::kRowsPerBatch;
using megakernel::kTileChannels;
using megakernel::Layer;
using megakernel::Mailbox;
using megakernel::OutputTile;

constexpr int kPartChannels = 64;  // of an activation's part, where a group has as many
constexpr int kMostWriters = 4;    // of a K slice's sums of an output tile

int GroupChannels(const Layer& layer) { return layer.shape.out_c / kNormGroups; }
// CTAs that each make a part of a K slice of an output tile.
int Writers(const Layer& layer) {
  return layer.shape.phases * std::max(1, GroupChannels(layer) / kTileChannels);
}

int CtasOf(const MegakernelProgram& p) { return p.ctas > 0 ? p.ctas : kCtas; }

class Compiler {
 public:
  Compiler(const MegakernelProgram& program, const MegakernelFault& fault)
      : program_(program), fault_(fault) {
    PlaceLocations();
    for (int cta = 0; cta < CtasOf(program); ++cta) {
      if (program.warp_specialized) {
        CompileMmaWarps(cta), CompileEpilogueWarps(cta);
      } else {
        CompileThreads(cta, 0), CompileThreads(cta, 1);
      }
    }
  }
  CompiledProgram Take() { return std::move(out_); }

 private:
  const Layer& At(int layer) const { return program_.layers[layer]; }
  int layer_count() const { return static_cast<int>(program_.layers.size()); }
  bool Is(MegakernelFault::Kind kind, int layer) const {
    return fault_.kind == kind && fault_.layer == layer;
  }

  int Place(Location location, int cells) {
    location.cell = out_.cells;
    out_.cells += cells;
    out_.locations.push_back(std::move(location));
    return static_cast<int>(out_.locations.size()) - 1;
  }
  void PlaceActivations(int layer) {
    const int parts = std::max(1, GroupChannels(At(layer)) / kPartChannels);
    for (int tile = 0; tile < kCtas; ++tile) {
      Location l;
      l.kind = Location::kActivation, l.layer = layer;
      l.parts = l.buffer_stride = parts;
      const int at = Place(l, 2 * parts);
      if (tile == 0) activations_[layer].push_back(at);
    }
  }
  // Mailboxes at one offset are the same two buffers.
  void PlaceMailboxes(int layer, const Mailbox& mailbox, bool shortcut) {
    const int parts = kMostWriters << At(layer).split_k_log2;
    const auto [found, is_new] = buffers_.try_emplace(mailbox.offset, std::pair{out_.cells, parts});
    if (found->second.second != parts) throw Unsupported("mailboxes of two layouts at one place");
    if (is_new) out_.cells += 2 * program_.row_batches * kCtas * parts;
    mailboxes_[shortcut][layer] = static_cast<int>(out_.locations.size());
    for (int batch = 0; batch < program_.row_batches; ++batch) {
      const int ring = fault_.kind == MegakernelFault::kBatchesShareMailboxes ? 0 : batch;
      for (int tile = 0; tile < kCtas; ++tile) {
        Location l;
        l.kind = Location::kMailbox, l.layer = layer, l.parts = parts;
        l.cell = found->second.first + (2 * ring * kCtas + tile) * parts;
        l.buffer_stride = kCtas * parts;
        l.uses = mailbox.uses, l.index = mailbox.index;
        out_.locations.push_back(std::move(l));
      }
    }
  }
  void PlaceLocations() {
    activations_.resize(layer_count());
    for (auto& m : mailboxes_) m.resize(layer_count(), -1);
    for (int layer = 0; layer < layer_count(); ++layer) {
      const Layer& l = At(layer);
      if (l.output)
        for (int batch = 0; batch < program_.row_batches; ++batch) PlaceActivations(layer);
      if (l.mailbox.tile_values > 0) PlaceMailboxes(layer, l.mailbox, false);
      if (l.shortcut_mailbox.tile_values > 0) PlaceMailboxes(layer, l.shortcut_mailbox, true);
    }
    Location head;
    head.kind = Location::kHead, head.layer = layer_count() - 1, head.parts = kNormGroups;
    for (int row = 0; row < program_.rows; ++row) {
      const int at = Place(head, kNormGroups);
      if (row == 0) head_ = at;
    }
    // what the warps of a CTA share: sums of CTA-local layers, and the rows' x
    const int sums = out_.cells, x = sums + 2 * kCtas;
    out_.cells = x + kCtas;
    for (int layer = 0; layer < layer_count(); ++layer) {
      local_.push_back(static_cast<int>(out_.locations.size()));
      if (!At(layer).cta_local) continue;
      for (int i = 0; i < 2 * kCtas; ++i) PlaceShared(layer, sums + i);
    }
    x_ = static_cast<int>(out_.locations.size());
    for (int cta = 0; cta < kCtas; ++cta) PlaceShared(0, x + cta);
  }
  void PlaceShared(int layer, int cell) {
    Location l;
    l.layer = layer, l.cell = cell;
    out_.locations.push_back(std::move(l));
  }

  int ActivationAt(int layer, int batch, int row, int group) const {
    return activations_[layer][batch] + group * kRowsPerBatch + row;
  }
  int MailboxAt(int layer, bool shortcut, int batch, int row, int group) const {
    return mailboxes_[shortcut][layer] + batch * kCtas + group * kRowsPerBatch + row;
  }

  // Adds an operation whose accesses follow.
  Op& Add(int actor, Op::Kind kind, int layer, int barrier = 0) {
    actor_ = actor;
    Op op = {kind, layer};
    op.barrier = barrier;
    op.first = op.end = static_cast<int>(out_.accesses.size());
    out_.ops[actor].push_back(op);
    return out_.ops[actor].back();
  }
  // Adds to the operation that was added last.
  void Touch(int location, int first, int count) {
    if (count == 0) return;
    out_.accesses.push_back({location, first, count});
    const int index = static_cast<int>(out_.ops[actor_].size()) - 1;
    Op& op = out_.ops[actor_][index];
    op.end = static_cast<int>(out_.accesses.size());
    Location& l = out_.locations[location];
    const Location::Touch touch = {actor_, index, first, count};
    (op.kind == Op::kRead ? l.reads : op.kind == Op::kStore ? l.stores : l.clears).push_back(touch);
  }
  void TouchAll(int location) { Touch(location, 0, out_.locations[location].parts); }
  // Half `half` of two of a location's parts, or all.
  void TouchShare(int location, int half, bool halves) {
    const int parts = out_.locations[location].parts, first = halves ? parts / 2 : parts;
    if (half == 0) return Touch(location, 0, halves ? std::max(1, first) : parts);
    if (halves && parts > 1) Touch(location, first, parts - first);
  }

  int ProducerOf(const void* source) const {
    for (int i = 0; i < layer_count(); ++i)
      if (source != nullptr && At(i).output == source) return i;
    throw Unsupported("a layer reads what no layer makes");
  }
  // The activations of a CTA's GEMM tile, in channels [begin, end). half: one of two halves of the
  // threads takes every other part; -1: all.
  void TouchInput(int layer, const GemmTile& gemm, int batch, int begin, int end, int half = -1) {
    const Layer& l = At(layer);
    int turn = 0;
    for (int c = begin; c < end;) {
      const bool second = c >= l.source_channels;
      const int producer = ProducerOf(l.source[second]), group_c = GroupChannels(At(producer));
      const int part_c = std::min(kPartChannels, group_c);
      const int channel = c - (second ? l.source_channels : 0);
      for (int row = gemm.row0; row < EndRow(program_, l, gemm, fault_); ++row)
        if (half < 0 || turn++ % 2 == half)
          Touch(ActivationAt(producer, batch, row, channel / group_c), channel % group_c / part_c,
                1);
      c += part_c;
    }
  }
  // The partial sums of a CTA's GEMM tile. half: as above, of rows.
  void TouchSums(int layer, bool shortcut, const GemmTile& gemm, int batch, int half = -1) {
    const Layer& l = At(layer);
    const int group_c = GroupChannels(l), of_group = std::max(1, group_c / kTileChannels);
    const int writers = Writers(l);
    if (writers > kMostWriters) throw Unsupported("more than four CTAs make a K slice of a tile");
    const int out = ((gemm.group_block << l.groups_log2) * group_c) + gemm.out;
    const int groups = std::max(1, kTileChannels / group_c), each = kMostWriters / writers;
    const int writer = gemm.phase * of_group + out % group_c / kTileChannels;
    for (int group = out / group_c; group < out / group_c + groups; ++group)
      for (int row = gemm.row0; row < EndRow(program_, l, gemm, fault_); ++row)
        if (half < 0 || (row - gemm.row0) % 2 == half)
          Touch(MailboxAt(layer, shortcut, batch, row, group),
                gemm.k_slice * kMostWriters + writer * each, each);
  }

  void CompileMmaWarps(int cta) {
    const int actor = 2 * cta;
    const bool windows = program_.window > 0;
    if (windows) Add(actor, Op::kStore, 0), TouchAll(x_ + cta);
    Add(actor, Op::kArrive, 0, kPass).when = windows ? Op::kEveryPass : Op::kFirstPass;
    for (int layer = 0; layer < layer_count(); ++layer) CompileGemm(layer, cta);
    for (int batch = 0; batch < program_.row_batches; ++batch)
      Published(actor, layer_count() - 1, batch);
    if (!windows) return;
    Add(actor, Op::kRead, layer_count() - 1);
    for (int row = 0; row < program_.rows; ++row) TouchAll(head_ + row);
  }
  // Waits for what the epilogue warps published of `layer`.
  void Published(int actor, int layer, int batch) {
    if (!Is(MegakernelFault::kPublishedBarrierLeftOut, layer))
      Add(actor, Op::kSync, layer, kPublished + batch);
  }
  void Sent(int actor, int layer, int batch, Op::Kind kind) {
    if (!Is(MegakernelFault::kSentBarrierLeftOut, layer)) Add(actor, kind, layer, kSent + batch);
  }
  void CompileGemm(int layer, int cta) {
    const int actor = 2 * cta, batches = program_.row_batches;
    const Layer& l = At(layer);
    const GemmTile gemm = GemmTileOfCta(program_, layer, cta, fault_);
    if (l.shape.in_c == 0 || !gemm.has_work) {
      for (int batch = 0; batch < batches; ++batch) {
        if (layer > 0) Published(actor, layer - 1, batch);
        Sent(actor, layer, batch, Op::kArrive);
      }
      return;
    }
    const int channel0 = gemm.k_slice * l.k_slice;
    Published(actor, layer - 1, 0);
    for (int batch = 0; batch < batches; ++batch) {
      Add(actor, Op::kRead, layer).awaited = !Is(MegakernelFault::kInputNotAwaited, layer);
      TouchInput(layer, gemm, batch, channel0, channel0 + l.k_slice);
      Add(actor, Op::kStore, layer);
      if (l.cta_local) {
        TouchAll(local_[layer] + batch * kCtas + cta);
      } else {
        TouchSums(layer, false, gemm, batch);
      }
      Sent(actor, layer, batch, Op::kArrive);
      if (batch + 1 < batches) Published(actor, layer - 1, batch + 1);
      if (!l.shape.shortcut) continue;
      Add(actor, Op::kStore, layer);
      TouchSums(layer, true, gemm, batch);
    }
  }

  void CompileEpilogueWarps(int cta) {
    const int actor = 2 * cta + 1;
    const bool windows = program_.window > 0;
    Add(actor, Op::kSync, 0, kPass).when = windows ? Op::kEveryPass : Op::kFirstPass;
    for (int layer = 0; layer < layer_count(); ++layer) {
      for (int batch = 0; batch < program_.row_batches; ++batch) {
        Clear(actor, layer, batch, cta, 0, false);
        if (At(layer).fence) Add(actor, Op::kFence, layer);
        Sent(actor, layer, batch, Op::kSync);
        if (layer == 0 && windows) Add(actor, Op::kRead, 0), TouchAll(x_ + cta);
        TakeSums(actor, layer, batch, cta, 0, false);
        Publish(actor, layer, batch, cta, 0, false);
        if (!Is(MegakernelFault::kPublishedBarrierLeftOut, layer))
          Add(actor, Op::kArrive, layer, kPublished + batch);
        TakeShortcut(actor, layer, batch, cta, 0, false);
      }
    }
    if (!windows) Step(actor, cta);
  }
  void Clear(int actor, int layer, int batch, int cta, int half, bool halves) {
    if (At(layer).output == nullptr || fault_.kind == MegakernelFault::kNothingCleared) return;
    Add(actor, Op::kClear, layer);
    TouchShare(ActivationAt(layer, batch, cta % kRowsPerBatch, cta / kRowsPerBatch), half, halves);
  }
  void TakeSums(int actor, int layer, int batch, int cta, int half, bool halves) {
    const Layer& l = At(layer);
    if (l.shape.in_c == 0) return;
    Add(actor, Op::kRead, layer).awaited = !Is(MegakernelFault::kSumsNotAwaited, layer);
    if (l.cta_local) return TouchAll(local_[layer] + batch * kCtas + cta);
    TouchShare(MailboxAt(layer, false, batch, cta % kRowsPerBatch, cta / kRowsPerBatch), half,
               halves);
  }
  void TakeShortcut(int actor, int layer, int batch, int cta, int half, bool halves) {
    if (!At(layer).shape.shortcut || At(layer).shape.in_c == 0) return;
    Add(actor, Op::kRead, layer);
    TouchShare(MailboxAt(layer, true, batch, cta % kRowsPerBatch, cta / kRowsPerBatch), half,
               halves);
  }
  void Publish(int actor, int layer, int batch, int cta, int half, bool halves) {
    const int row = cta % kRowsPerBatch, group = cta / kRowsPerBatch;
    Add(actor, Op::kStore, layer);
    if (At(layer).output) TouchShare(ActivationAt(layer, batch, row, group), half, halves);
    const int all = batch * kRowsPerBatch + row, last = layer_count() - 1;
    if (layer == (fault_.kind == MegakernelFault::kHeadSentSooner ? fault_.layer : last) &&
        all < program_.rows && half == 0)
      Touch(head_ + all, group, 1);
  }
  // The steps of a CTA's own rows; in a launch's last pass one CTA of each writes them down.
  void Step(int actor, int cta) {
    Op& op = Add(actor, Op::kRead, layer_count() - 1);
    if (cta >= kRowsPerBatch) op.when = Op::kAllButLastPass;
    for (int batch = 0; batch < program_.row_batches; ++batch)
      TouchAll(head_ + std::min(batch * kRowsPerBatch + cta % kRowsPerBatch, program_.rows - 1));
  }

  // Threads [128 half, 128 half + 128) of a CTA without warp specialisation.
  void CompileThreads(int cta, int half) {
    const int actor = 2 * cta + half;
    const std::vector<int> tiles = TilesOfCta(program_, cta);
    std::vector<int> used;
    for (const int tile : tiles)
      if (tile % kRowsPerBatch < program_.row_slots) used.push_back(tile);
    Add(actor, Op::kSync, 0, kCta);
    for (int layer = 0; layer < layer_count(); ++layer) {
      for (const GemmOfCta& gemm : GemmsOfCta(program_, layer, tiles))
        CompileThreadsGemm(actor, layer, gemm);
      CompileThreadsEpilogues(actor, layer, used);
      if (layer > 0 && At(layer - 1).fence && used.empty() && half == 0) AwaitFences(actor, layer);
      if (layer > 0 && At(layer - 1).fence && fault_.kind != MegakernelFault::kNoBarrierBehindFence)
        Add(actor, Op::kSync, layer, kCta);
    }
    Add(actor, Op::kSync, layer_count() - 1, kCta);
    if (program_.window > 0) {
      Add(actor, Op::kRead, layer_count() - 1);
      for (int row = half; row < program_.rows; row += 2) TouchAll(head_ + row);
    } else if (half == 0 && !used.empty()) {
      CompileThreadsSteps(actor, tiles, used);
    }
  }
  // Something that each owner published behind its fence.
  void AwaitFences(int actor, int layer) {
    if (fault_.kind == MegakernelFault::kFencesNotAwaited) return;
    Add(actor, Op::kRead, layer);
    for (int row = 0; row < program_.row_slots; ++row)
      for (int group = 0; group < kNormGroups; ++group)
        Touch(ActivationAt(layer - 1, 0, row, group), 0, 1);
  }
  // The steps of its rows, and of all where it stands for more than a pair. Those who have a tile
  // of the first norm group write them down.
  void CompileThreadsSteps(int actor, const std::vector<int>& tiles, const std::vector<int>& used) {
    const bool writes =
        std::any_of(used.begin(), used.end(), [](int tile) { return tile < kRowsPerBatch; });
    Op& op = Add(actor, Op::kRead, layer_count() - 1);
    if (!writes) op.when = Op::kAllButLastPass;
    for (const int row : StepRows(program_, used, tiles)) TouchAll(head_ + row);
  }
  void CompileThreadsGemm(int actor, int layer, const GemmOfCta& of_cta) {
    const int half = actor % 2;
    std::vector<GemmTile> gemms;
    for (const int tile : of_cta.tiles)
      gemms.push_back(GemmTileOfCta(program_, layer, tile, fault_));
    const Layer& l = At(layer);
    const int begin = gemms[0].k_slice * l.k_slice;
    for (int c = begin; c < begin + l.k_slice; c += megakernel::kBlockK) {
      if (!of_cta.repeats) {
        Add(actor, Op::kRead, layer).awaited = !Is(MegakernelFault::kInputNotAwaited, layer);
        for (const GemmTile& gemm : gemms)
          TouchInput(layer, gemm, 0, c, c + megakernel::kBlockK, half);
      }
      Add(actor, Op::kSync, layer, kCta);  // the tensor cores read what all have put there
    }
    Add(actor, Op::kSync, layer, kCta);  // all send what all have summed
    for (const bool shortcut : {false, true}) {
      if (shortcut && !l.shape.shortcut) continue;
      Add(actor, Op::kStore, layer);
      for (const GemmTile& gemm : gemms) TouchSums(layer, shortcut, gemm, 0, half);
    }
  }
  // Of small tiles either half of the portable kernel's threads takes every other one.
  void CompileThreadsEpilogues(int actor, int layer, const std::vector<int>& tiles) {
    const int half = actor % 2, step = program_.ctas > 0 && TilesAreSmall(program_) ? 2 : 1;
    const bool halves = OutputTileValues(At(layer)) > kHalfTileValues;
    for (size_t i = 0; i < tiles.size(); i += step) {
      const size_t mine = step == 2 ? i + half : half == 0 || halves ? i : tiles.size();
      const int tile = mine < tiles.size() ? tiles[mine] : -1;
      CompileEpilogue(actor, layer, tile, step == 2 ? 0 : half, halves);
    }
  }
  // By threads that have all values of an output tile, or half of them; -1: by threads without any.
  void CompileEpilogue(int actor, int layer, int tile, int half, bool halves) {
    const Layer& l = At(layer);
    if (tile >= 0) Clear(actor, layer, 0, tile, half, halves);
    if (l.fence) Add(actor, Op::kFence, layer), Add(actor, Op::kSync, layer, kCta);
    if (tile < 0) return;
    TakeSums(actor, layer, 0, tile, half, halves);
    if (halves && l.epilogue.norm_scale) Add(actor, Op::kSync, layer, kCta);
    Publish(actor, layer, 0, tile, half, halves);
    TakeShortcut(actor, layer, 0, tile, half, halves);
  }

  const MegakernelProgram& program_;
  const MegakernelFault& fault_;
  CompiledProgram out_;
  int actor_ = 0, head_ = 0, x_ = 0;
  std::vector<std::vector<int>> activations_;        // layer, batch: of tile 0
  std::vector<int> mailboxes_[2];                    // likewise, of the first batch
  std::vector<int> local_;                           // likewise
  std::map<uint32_t, std::pair<int, int>> buffers_;  // offset: first cell, parts of a tile
};

}  // namespace

CompiledProgram Compile(const MegakernelProgram& program, const MegakernelFault& fault) {
  return Compiler(program, fault).Take();
}

}  // namespace mjp::reference
