#ifndef KERNELS_REFERENCE_MEGAKERNEL_MEMORY_H_
#define KERNELS_REFERENCE_MEGAKERNEL_MEMORY_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/reference/megakernel_program.h"

// The memory that the interpreter's actors share: stores become visible in any order and as late as
// they may, and carry what their actor knew.

namespace mjp::reference {

// What an actor knows of all: how many operations each has done, and before how many of them a
// fence stands, whose stores all see.
struct alignas(64) Clock {
  std::array<uint16_t, kActors> done = {}, fenced = {};

  void Join(const Clock& other) {
    for (int i = 0; i < kActors; ++i) {
      done[i] = std::max(done[i], other.done[i]);
      fenced[i] = std::max(fenced[i], other.fenced[i]);
    }
  }
};

// What an actor knew when it stored, kept as long as what it stored.
class Snapshots {
 public:
  struct Snapshot {
    int actor = 0, references = 0;
    Clock clock;
  };
  int Make(int actor, const Clock& clock);
  const Snapshot& operator[](int i) const { return all_[i]; }
  void Keep(int i) { ++all_[i].references; }
  void Drop(int i);

 private:
  std::vector<Snapshot> all_;
  std::vector<int> free_;
};

// A place in memory as all see it, and who stored there last, seen or not.
struct Cell {
  int location = -1, pass = -1;  // of the value; -1: nothing, or cleared
  int snapshot = -1;
  uint8_t tag = 0;
  int last_location = -1, last_pass = -1;  // stored last
  int pending_actor = -1;                  // whose store is on its way; -1: none
  int pending = 0;                         // so many
  int waiter = -1;                         // the first actor that waits for it
};

class Memory {
 public:
  Memory(int cells, uint64_t seed) : cells_(cells), random_(seed) {}

  struct Store {
    int cell, location, pass, snapshot;
    uint8_t tag;
  };
  Cell& operator[](int i) { return cells_[i]; }
  Snapshots& snapshots() { return snapshots_; }
  // When a store is seen: what warps of a CTA share is at once.
  enum Kind { kLate, kClear, kAtOnce };
  // Puts a store on its way.
  void Issue(int actor, const Store& store, Kind kind);
  // Lets all see what an actor stored.
  void Flush(int actor);
  // Lets all see some store; `clears`: a clear where there is no other. False where there is none.
  bool DeliverAny(bool clears);
  // The actors that may go on since.
  std::vector<int>& woken() { return woken_; }
  void Wait(int actor, int cell);

 private:
  struct Queue {
    std::vector<Store> stores;
    int listed = -1;  // place in actors_
  };
  void Deliver(const Store& store);
  void DeliverTo(int actor, int cell);
  void Remove(int actor, bool clear, int index);

  std::vector<Cell> cells_;
  Snapshots snapshots_;
  std::array<Queue, kActors> queues_[2];  // stores; clears
  std::vector<int> actors_[2];            // whose queues are not empty
  std::vector<int> woken_;
  std::array<int, kActors> next_waiter_ = {};
  std::minstd_rand random_;
};

}  // namespace mjp::reference

#endif  // KERNELS_REFERENCE_MEGAKERNEL_MEMORY_H_
