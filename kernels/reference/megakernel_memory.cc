#include "kernels/reference/megakernel_memory.h"

namespace mjp::reference {

int Snapshots::Make(int actor, const Clock& clock) {
  if (free_.empty()) {
    free_.push_back(static_cast<int>(all_.size()));
    all_.emplace_back();
  }
  const int i = free_.back();
  free_.pop_back();
  all_[i] = {actor, 1, clock};
  return i;
}

void Snapshots::Drop(int i) {
  if (i >= 0 && --all_[i].references == 0) free_.push_back(i);
}

void Memory::Issue(int actor, const Store& store, Kind kind) {
  const bool clear = kind == kClear;
  Cell& cell = cells_[store.cell];
  // an address has one order of stores
  while (cell.pending > 0) DeliverTo(cell.pending_actor, store.cell);
  cell.pending_actor = actor, ++cell.pending;
  cell.last_location = store.location, cell.last_pass = store.pass;
  if (store.snapshot >= 0) snapshots_.Keep(store.snapshot);
  Queue& queue = queues_[clear][actor];
  queue.stores.push_back(store);
  if (queue.listed < 0) {
    queue.listed = static_cast<int>(actors_[clear].size());
    actors_[clear].push_back(actor);
  }
  if (kind == kAtOnce) DeliverTo(actor, store.cell);
}

void Memory::Remove(int actor, bool clear, int index) {
  Queue& queue = queues_[clear][actor];
  queue.stores[index] = queue.stores.back();
  queue.stores.pop_back();
  if (!queue.stores.empty()) return;
  std::vector<int>& actors = actors_[clear];
  actors[queue.listed] = actors.back();
  queues_[clear][actors.back()].listed = queue.listed;
  actors.pop_back();
  queue.listed = -1;
}

void Memory::Deliver(const Store& store) {
  Cell& cell = cells_[store.cell];
  snapshots_.Drop(cell.snapshot);
  cell.location = store.location, cell.pass = store.pass, cell.tag = store.tag;
  cell.snapshot = store.snapshot;
  --cell.pending;
  for (int actor = cell.waiter; actor >= 0; actor = next_waiter_[actor]) woken_.push_back(actor);
  cell.waiter = -1;
}

void Memory::DeliverTo(int actor, int cell) {
  for (const bool clear : {false, true}) {
    const std::vector<Store>& stores = queues_[clear][actor].stores;
    for (size_t i = 0; i < stores.size(); ++i) {
      if (stores[i].cell != cell) continue;
      const Store store = stores[i];
      Remove(actor, clear, static_cast<int>(i));
      return Deliver(store);
    }
  }
}

void Memory::Flush(int actor) {
  for (const bool clear : {false, true}) {
    while (!queues_[clear][actor].stores.empty()) {
      const Store store = queues_[clear][actor].stores.back();
      Remove(actor, clear, static_cast<int>(queues_[clear][actor].stores.size()) - 1);
      Deliver(store);
    }
  }
}

bool Memory::DeliverAny(bool clears) {
  const bool clear = actors_[0].empty() || (clears && !actors_[1].empty() && random_() % 2 == 0);
  if (actors_[clear].empty() || (clear && !clears)) return false;
  const int actor = actors_[clear][random_() % actors_[clear].size()];
  const std::vector<Store>& stores = queues_[clear][actor].stores;
  const int index = static_cast<int>(random_() % stores.size());
  const Store store = stores[index];
  Remove(actor, clear, index);
  Deliver(store);
  return true;
}

void Memory::Wait(int actor, int cell) {
  next_waiter_[actor] = cells_[cell].waiter;
  cells_[cell].waiter = actor;
}

}  // namespace mjp::reference
