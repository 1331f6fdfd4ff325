#ifndef KERNELS_REFERENCE_ROW_KERNEL_PROTOCOL_H_
#define KERNELS_REFERENCE_ROW_KERNEL_PROTOCOL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

// The exchanges of the row kernel across clusters, warp by warp, as lists of what each warp does in
// turn: barriers of a CTA, partial sums to the owner, activations through L2. A run takes the warps
// in random order and says what went wrong. For tests; README.md of the kernel tells the rules.

namespace mjp::reference {

// A fault that is planted.
enum class ProtocolFault {
  kNone,
  kHeadAmongTheOthers,  // the head's sums in turn with the other layers'
  kNoBarrierForInput,   // warps multiply once they have received their own part of the input
  kOnePlaceForSums,
  kOneMailbox,
  kShortcutsTooNear,  // the second layer after one has another
};

struct ProtocolShape {
  int groups = 3;  // clusters, and CTAs of each
  int layers = 5, passes = 4;
  int tile_warps = 2, idle_warps = 1;  // MMA warps of a CTA that have a tile, and that have none
  int receiving_warps = 2;             // MMA warps that bring a part of the input
  std::vector<int> shortcuts = {0};    // layers whose shortcut the next one adds
};

class RowKernelProtocol {
 public:
  explicit RowKernelProtocol(const ProtocolShape& shape, ProtocolFault fault = ProtocolFault::kNone)
      : shape_(shape), fault_(fault), ctas_(shape.groups * shape.groups) {
    if (fault == ProtocolFault::kShortcutsTooNear) shape_.shortcuts = {1, 3};
    for (auto& mailbox : mailboxes_) mailbox.assign(shape.groups * kParts, -1);
    for (int cta = 0; cta < shape.groups * shape.groups; ++cta) AddWarps(cta);
  }

  // Runs all warps to their end in an order that `seed` draws. What went wrong; empty: nothing.
  std::string Run(uint32_t seed) {
    std::mt19937 random(seed);
    size_t late = 0;  // a warp that hardly gets on
    for (size_t blocked = 0, turn = 0;; ++turn) {
      if (turn % kTurnsOfOneLateWarp == 0) late = random() % warps_.size();
      if (!in_flight_.empty() && random() % 4 == 0) Deliver(random() % in_flight_.size());
      const size_t warp = random() % warps_.size();
      if (warp == late && random() % 64 != 0) continue;
      if (Step(warps_[warp])) {
        blocked = 0;
      } else if (++blocked > 10 * kTurnsOfOneLateWarp) {
        if (in_flight_.empty()) break;
        Deliver(0), blocked = 0;
      }
      if (!error_.empty()) return error_;
    }
    for (const Warp& warp : warps_)
      if (warp.next < warp.steps.size()) return "no warp can go on";
    return "";
  }

 private:
  static constexpr size_t kTurnsOfOneLateWarp = 3000;
  static constexpr int kParts = 2;             // of a group's activations: of each epilogue warp
  static constexpr int kLayerWithoutNorm = 1;  // whose warps do not wait for each other
  enum class Kind {
    kSync,
    kArrive,
    kSendSums,
    kSendShortcut,
    kExpectSums,
    kReadSums,
    kReadShortcut,
    kPublish,
    kReceive
  };
  // Of a barrier and its warps; of a place, its phase or layer, a number, and a part; of
  // activations, their number and group, and the warp.
  struct Action {
    Kind kind;
    int a = 0, b = 0, c = 0, d = 0;
  };
  struct Warp {
    int cta;
    std::vector<Action> steps;
    size_t next = 0;
    bool waits = false;
  };
  struct Barrier {
    int arrived = 0, count = 0;
    std::vector<Warp*> waiting;
  };
  // Sums of a layer at the owner: a part of each tile and CTA, and the barrier that counts them.
  struct Place {
    std::map<int, int> parts;  // number of the layer's, by part
    int phase = 0, pending = 0;
    bool expects = false;
  };
  struct Cta {
    std::map<int, Barrier> barriers;
    Place places[3];
    std::map<int, int> received;  // the number of the activations, by warp
  };
  struct Message {
    int owner, place, counted_at, part, number;
  };
  enum BarrierId { kSumsReady = 1, kInputReady, kInputStored, kMoments };

  int Rank(int cta) const { return cta % shape_.groups; }
  int Group(int cta) const { return cta / shape_.groups; }
  bool IsOwner(int cta) const { return Rank(cta) == Group(cta); }
  int MmaWarps() const { return shape_.tile_warps + shape_.idle_warps; }
  int Number(int pass, int layer) const { return pass * (shape_.layers - 1) + layer; }
  bool IsHead(int layer) const { return layer + 1 == shape_.layers; }
  // Of all layers, in order: what tells the sums of one from those of another.
  int SumsNumber(int pass, int layer) const { return pass * shape_.layers + layer; }
  int PlaceOf(int pass, int layer) const {
    if (fault_ == ProtocolFault::kOnePlaceForSums) return 0;
    if (fault_ == ProtocolFault::kHeadAmongTheOthers) return SumsNumber(pass, layer) % 2;
    return IsHead(layer) ? 2 : Number(pass, layer) % 2;
  }
  int Phase(int pass, int layer) const {
    if (fault_ == ProtocolFault::kOnePlaceForSums) return SumsNumber(pass, layer) % 2;
    if (fault_ == ProtocolFault::kHeadAmongTheOthers) return SumsNumber(pass, layer) / 2 % 2;
    return (IsHead(layer) ? pass : Number(pass, layer) / 2) % 2;
  }
  bool HasShortcut(int layer) const {
    const auto& all = shape_.shortcuts;
    return std::find(all.begin(), all.end(), layer) != all.end();
  }
  // Of a layer: of each CTA that multiplies, those of the tiles, and one of the shortcut.
  int Messages(int layer) const {
    return (layer == 0 ? 1 : shape_.groups) * (shape_.tile_warps + HasShortcut(layer));
  }

  void AddWarps(int cta) {
    for (int warp = 0; warp < MmaWarps(); ++warp) AddMmaWarp(cta, warp);
    for (int half = 0; half < 2 && IsOwner(cta); ++half)
      for (int warp = 0; warp < kParts; ++warp) AddEpilogueWarp(cta, half, warp);
  }

  // Warps have a tile each; the last one has the shortcut.
  void AddMmaWarp(int cta, int warp) {
    std::vector<Action> steps;
    for (int pass = 0; pass < shape_.passes; ++pass)
      for (int layer = 0; layer < shape_.layers; ++layer) {
        if (layer == 0 && !IsOwner(cta)) continue;
        const int input = layer > 0 ? Number(pass, layer - 1) : -1;
        if (layer > 0 && warp < shape_.receiving_warps)
          steps.push_back({Kind::kReceive, input, Rank(cta), warp});
        if (layer > 0 && fault_ != ProtocolFault::kNoBarrierForInput)
          steps.push_back({Kind::kSync, kInputStored, MmaWarps()});
        if (layer == 0 && pass > 0) steps.push_back({Kind::kSync, kInputReady, MmaWarps() + 4});
        const int place = PlaceOf(pass, layer), number = SumsNumber(pass, layer);
        if (warp < shape_.tile_warps)
          steps.push_back({Kind::kSendSums, place, input, number, warp});
        if (warp + 1 == MmaWarps() && HasShortcut(layer))
          steps.push_back({Kind::kSendShortcut, place, input, number, warp});
        if (IsOwner(cta)) steps.push_back({Kind::kArrive, kSumsReady, MmaWarps() + 4});
      }
    warps_.push_back({cta, steps});
  }

  void AddEpilogueWarp(int cta, int half, int warp) {
    std::vector<Action> steps;
    for (int pass = 0; pass < shape_.passes; ++pass) {
      for (int layer = 0; layer < shape_.layers; ++layer) {
        const int number = Number(pass, layer), place = PlaceOf(pass, layer);
        if (HasShortcut(layer - 1) && number % 2 == half)
          steps.push_back({Kind::kReadShortcut, 0, 0, SumsNumber(pass, layer - 1)});
        steps.push_back({Kind::kSync, kSumsReady, MmaWarps() + 4});
        if (half == 0 && warp == 0) steps.push_back({Kind::kExpectSums, place, layer});
        const bool reads = IsHead(layer) || number % 2 == half;
        const int expected = reads ? SumsNumber(pass, layer) : -1;
        steps.push_back({Kind::kReadSums, place, Phase(pass, layer), expected});
        if (IsHead(layer) || number % 2 != half) continue;
        if (layer != kLayerWithoutNorm) steps.push_back({Kind::kSync, kMoments + half, kParts});
        steps.push_back({Kind::kPublish, number, Group(cta), 0, warp});
      }
      if (pass + 1 < shape_.passes) steps.push_back({Kind::kArrive, kInputReady, MmaWarps() + 4});
    }
    warps_.push_back({cta, steps});
  }

  // Whether the warp did something.
  bool Step(Warp& warp) {
    if (warp.waits || warp.next == warp.steps.size()) return false;
    const Action& s = warp.steps[warp.next];
    Cta& cta = ctas_[warp.cta];
    switch (s.kind) {
      case Kind::kSync:
      case Kind::kArrive:
        Arrive(cta.barriers[s.a], warp, s);
        return true;
      case Kind::kSendSums:
      case Kind::kSendShortcut:
        for (const auto& [receiver, number] : cta.received)
          if (s.b >= 0 && number != s.b && number != s.b + 1)  // the next one has another place
            error_ = "a warp multiplied what had not been received";
        in_flight_.push_back({Group(warp.cta) * shape_.groups + Group(warp.cta),
                              s.kind == Kind::kSendSums ? s.a : 2, s.a,
                              Rank(warp.cta) * MmaWarps() + s.d, s.c});
        break;
      case Kind::kExpectSums:
        cta.places[s.a].pending += Messages(s.b);
        cta.places[s.a].expects = true;
        EndPhase(cta.places[s.a]);
        break;
      case Kind::kReadSums:
        if (cta.places[s.a].phase % 2 == s.b) return false;  // has not ended
        if (s.c >= 0) CheckParts(cta.places[s.a], s.c);
        break;
      case Kind::kReadShortcut:  // its sums have been counted with those of its layer
        CheckParts(cta.places[2], s.c);
        break;
      case Kind::kPublish:
        Mailbox(s.a)[s.b * kParts + s.d] = s.a;
        break;
      case Kind::kReceive: {
        for (int part = 0; part < kParts; ++part) {
          if (shape_.receiving_warps > 1 && part != s.c % kParts) continue;
          const int there = Mailbox(s.a)[s.b * kParts + part];
          if (there > s.a) error_ = "activations were overwritten before they had been received";
          if (there != s.a) return false;
        }
        cta.received[s.c] = s.a;
        break;
      }
    }
    ++warp.next;
    return true;
  }

  std::vector<int>& Mailbox(int number) {
    return mailboxes_[fault_ == ProtocolFault::kOneMailbox ? 0 : number % 2];
  }

  void Arrive(Barrier& barrier, Warp& warp, const Action& s) {
    if (barrier.arrived > 0 && barrier.count != s.b)
      error_ = "warps arrive at a barrier for different numbers of them";
    barrier.count = s.b;
    ++barrier.arrived;
    ++warp.next;
    if (s.kind == Kind::kSync) barrier.waiting.push_back(&warp), warp.waits = true;
    if (barrier.arrived < barrier.count) return;
    for (Warp* each : barrier.waiting) each->waits = false;
    barrier = {};
  }

  void Deliver(size_t i) {
    const Message m = in_flight_[i];
    in_flight_.erase(in_flight_.begin() + static_cast<ptrdiff_t>(i));
    Place& place = ctas_[m.owner].places[m.place];
    if (place.parts.contains(m.part)) error_ = "sums were overwritten before they had been read";
    place.parts[m.part] = m.number;
    Place& counted = ctas_[m.owner].places[m.counted_at];
    --counted.pending;
    EndPhase(counted);
  }
  static void EndPhase(Place& place) {
    if (!place.expects || place.pending != 0) return;
    ++place.phase;
    place.expects = false;
  }
  // By the warps that add them up: the last one of them leaves the place free.
  void CheckParts(Place& place, int number) {
    if (place.parts.empty()) error_ = "sums have not arrived";
    for (const auto& [part, of] : place.parts)
      if (of != number) error_ = "sums are of another layer";
    const int readers = number % shape_.layers + 1 == shape_.layers ? 4 : 2;
    if (++reads_[{&place, number}] == readers) place.parts.clear();
  }

  ProtocolShape shape_;
  ProtocolFault fault_;
  std::deque<Cta> ctas_;
  std::deque<Warp> warps_;
  std::vector<int> mailboxes_[2];  // the number of what stands there, by group and part
  std::deque<Message> in_flight_;  // sums on their way
  std::map<std::pair<Place*, int>, int> reads_;
  std::string error_;
};

}  // namespace mjp::reference

#endif  // KERNELS_REFERENCE_ROW_KERNEL_PROTOCOL_H_
