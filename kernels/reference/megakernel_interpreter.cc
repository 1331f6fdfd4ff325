#include "kernels/reference/megakernel_interpreter.h"

#include <algorithm>
#include <array>
#include <set>

#include "kernels/reference/megakernel_memory.h"

namespace mjp::reference {
namespace {

using megakernel::kCtas;
using megakernel::kRowsPerBatch;

constexpr size_t kMostViolations = 4;

struct Actor {
  Clock clock;
  int op = 0, pass = 0;             // counted from the launch's first one
  int ops = 0;                      // of a pass
  bool begun = false, met = false;  // the operation; its barrier
  std::vector<Access> left;         // single parts that have not been taken
};

// A barrier of a CTA at which two actors wait for each other.
struct NamedBarrierState {
  bool came[2] = {};
  Clock clock;  // of who came first
};

// How the actors are interleaved.
struct Style {
  bool slow_last;  // some CTAs run when no other can
  bool linger;     // clears are seen when nothing else is left to do
  bool run_on;     // an actor runs until it waits
  bool late;       // stores are seen when no actor can run
};

class Machine {
 public:
  Machine(const MegakernelProgram& program, const MegakernelRun& run)
      : program_(program),
        run_(run),
        compiled_(Compile(program, run.fault)),
        memory_(compiled_.cells, run.seed + 1),
        random_(run.seed + 1),
        style_{(run.seed & 1) != 0, (run.seed & 2) != 0, (run.seed & 4) != 0, (run.seed & 8) != 0},
        actors_(kActors) {
    for (int i = 0; i < kActors; ++i) actors_[i].ops = static_cast<int>(compiled_.ops[i].size());
    const int kind = static_cast<int>(random_() % 3), chosen = static_cast<int>(random_() % kCtas);
    for (int cta = 0; cta < kCtas; ++cta)
      slow_[cta] =
          style_.slow_last && (kind == 0   ? cta == chosen
                               : kind == 1 ? cta % kRowsPerBatch == chosen % kRowsPerBatch
                                           : cta / kRowsPerBatch == chosen / kRowsPerBatch);
  }

  MegakernelReport Run() {
    for (int launch = 0; launch < run_.launches && !Stopped(); ++launch) {
      before_ = launch * run_.passes;
      RunLaunch();
    }
    return report_;
  }

 private:
  bool Stopped() const { return report_.violations.size() >= kMostViolations || deadlock_; }
  bool Planted(MegakernelFault::Kind kind) const { return run_.fault.kind == kind; }

  std::string Name(int actor) const {
    const char* const* names = program_.warp_specialized ? kWarps : kThreads;
    return "CTA " + std::to_string(actor / 2) + "'s " + names[actor % 2];
  }
  std::string Place(int layer, int pass) const {
    return " in layer " + std::to_string(layer) + " of pass " + std::to_string(pass);
  }
  // The first of each kind, which the first words tell.
  void Report(int actor, const Op& op, const std::string& what) {
    if (Stopped() || !kinds_.insert(what.substr(0, 14)).second) return;
    report_.violations.push_back(Name(actor) + Place(op.layer, Pass(actor)) + ": " + what);
  }
  // Counted over all launches.
  int Pass(int actor) const { return before_ + actors_[actor].pass; }

  // Between launches all is seen by all.
  void RunLaunch() {
    Clock all;
    for (int i = 0; i < kActors; ++i)
      all.done[i] = all.fenced[i] = static_cast<uint16_t>(before_ * actors_[i].ops);
    for (Actor& a : actors_) a.clock = all, a.pass = a.op = 0, a.begun = false;
    for (auto& cta : barriers_)
      for (NamedBarrierState& m : cta) m = {};
    for (int i = 0; i < kActors; ++i)
      if (actors_[i].ops > 0) Wake(i);
    while (!Stopped()) {
      if (!style_.late && random_() % 2 == 0) memory_.DeliverAny(!style_.linger);
      WakeWaiters();
      if (const int actor = Choose(); actor >= 0) {
        RunActor(actor);
      } else if (!memory_.DeliverAny(!style_.linger) && !memory_.DeliverAny(true)) {
        break;
      }
      WakeWaiters();
    }
    for (int i = 0; i < kActors; ++i) memory_.Flush(i);
    memory_.woken().clear();
    if (!Stopped()) FindDeadlock();
  }
  void FindDeadlock() {
    for (int i = 0; i < kActors && !Stopped(); ++i) {
      if (actors_[i].pass == run_.passes || actors_[i].ops == 0) continue;
      const Op& op = compiled_.ops[i][actors_[i].op];
      Report(i, op,
             op.kind == Op::kSync ? "waits at a barrier for ever" : "waits for a value for ever");
      deadlock_ = true;
    }
  }

  void WakeWaiters() {
    for (const int woken : memory_.woken()) Wake(woken);
    memory_.woken().clear();
  }
  void Wake(int actor) { runnable_[slow_[actor / 2]].push_back(actor); }
  int Choose() {
    std::vector<int>& from = runnable_[runnable_[0].empty()];
    if (from.empty()) return -1;
    const size_t i = random_() % from.size();
    std::swap(from[i], from.back());
    const int actor = from.back();
    from.pop_back();
    return actor;
  }
  void RunActor(int actor) {
    const Actor& a = actors_[actor];
    int left = style_.run_on ? 1 << 20 : 1 + static_cast<int>(random_() % 4);
    while (a.pass < run_.passes && !Stopped()) {
      if (!Do(actor)) return;
      if (--left == 0) return Wake(actor);
    }
  }

  // Does an actor's next operation; false where it has to wait.
  bool Do(int actor) {
    Actor& a = actors_[actor];
    const Op& op = compiled_.ops[actor][a.op];
    if (a.op == 0 && !a.begun) BeginPass(actor, op);
    if (!Skipped(a, op)) {
      switch (op.kind) {
        case Op::kRead:
          if (!Read(actor, op)) return false;
          break;
        case Op::kStore:
          Store(actor, op);
          break;
        case Op::kClear:
          Clear(actor, op);
          break;
        case Op::kFence:
          memory_.Flush(actor);
          a.clock.fenced[actor] = a.clock.done[actor];
          break;
        case Op::kArrive:
        case Op::kSync:
          if (!ArriveAndWait(actor, op)) return false;
          break;
      }
    }
    ++a.clock.done[actor];
    a.begun = false;
    if (++a.op == a.ops) a.op = 0, ++a.pass;
    return true;
  }
  bool Skipped(const Actor& a, const Op& op) const {
    return (op.when == Op::kFirstPass && a.pass > 0) ||
           (op.when == Op::kAllButLastPass && a.pass + 1 == run_.passes);
  }

  // I3: all have done the passes before the one before.
  void BeginPass(int actor, const Op& op) {
    const Actor& a = actors_[actor];
    for (int i = 0; i < kActors; ++i) {
      if (actors_[i].ops == 0) continue;  // of a CTA that is not there
      report_.skew = std::max(report_.skew, a.pass - actors_[i].pass);
      if (a.clock.done[i] < (Pass(actor) - 1) * actors_[i].ops)
        return Report(actor, op, "begins, and " + Name(i) + " may be two passes behind");
    }
  }

  int CellOf(const Location& l, int part, int pass, bool other = false) const {
    int buffer = 0;
    if (l.kind == Location::kActivation) buffer = ((pass + 1) & 1) ^ other;
    if (l.kind == Location::kMailbox && !Planted(MegakernelFault::kOneMailboxBuffer))
      buffer = (pass * l.uses + l.index) & 1;
    return l.cell + buffer * l.buffer_stride + part;
  }
  uint8_t TagOf(const Location& l, int pass) const {
    if (l.kind == Location::kActivation) return 1;
    if (l.kind == Location::kHead) return (pass + 1) & 1;
    const int use = pass * l.uses + l.index;
    return (Planted(MegakernelFault::kOneMailboxBuffer) ? use & 1 : use >> 1 & 1) ^ 1;
  }

  // Takes what has come; false where something has not. At first all is polled, then what is
  // missing is waited for one after the other.
  bool Read(int actor, const Op& op) {
    Actor& a = actors_[actor];
    if (!a.begun) {
      a.begun = true, a.left.clear();
      for (int i = op.first; i < op.end; ++i) CheckOldIsGone(actor, op, compiled_.accesses[i]);
      for (int i = op.first; i < op.end; ++i) {
        const Access& all = compiled_.accesses[i];
        for (int part = all.first; part < all.first + all.count; ++part)
          if (!Take(actor, op, {all.location, part, 1})) a.left.push_back({all.location, part, 1});
      }
    }
    while (!a.left.empty()) {
      const Access access = a.left.back();
      if (!Take(actor, op, access)) {
        const Location& l = compiled_.locations[access.location];
        memory_.Wait(actor, CellOf(l, access.first, Pass(actor)));
        return false;
      }
      a.left.pop_back();
    }
    return true;
  }
  bool Take(int actor, const Op& op, const Access& access) {
    const Location& l = compiled_.locations[access.location];
    const int pass = Pass(actor);
    const Cell& cell = memory_[CellOf(l, access.first, pass)];
    if (op.awaited && l.kind != Location::kShared && cell.tag != TagOf(l, pass)) return false;
    ++report_.values;
    if (cell.location != access.location || cell.pass != pass) {
      Report(actor, op, "takes " + Content(cell) + " for that" + Place(l.layer, pass));
      return true;
    }
    Clock& clock = actors_[actor].clock;
    const Snapshots::Snapshot& then = memory_.snapshots()[cell.snapshot];
    if (clock.done[then.actor] < then.clock.done[then.actor]) clock.Join(then.clock);
    return true;
  }
  std::string Content(const Cell& cell) const {
    if (cell.location < 0) return "what is cleared";
    return "the value" + Place(compiled_.locations[cell.location].layer, cell.pass);
  }
  // I5: before a reader polls it knows that what stood there with the same tag is gone.
  void CheckOldIsGone(int actor, const Op& op, const Access& access) {
    const Location& l = compiled_.locations[access.location];
    const int pass = Pass(actor);
    if (pass == 0 || (l.kind != Location::kActivation && l.kind != Location::kHead)) return;
    const Clock& clock = actors_[actor].clock;
    for (const Location::Touch& t : l.kind == Location::kHead ? l.stores : l.clears) {
      if (access.first + access.count <= t.first || t.first + t.count <= access.first) continue;
      if (t.actor != actor && clock.fenced[t.actor] <= (pass - 1) * actors_[t.actor].ops + t.op)
        return Report(actor, op,
                      "may see the value of two passes before of layer " + std::to_string(l.layer) +
                          ": no fence of " + Name(t.actor) + " is behind what replaced it");
    }
  }

  void Store(int actor, const Op& op) {
    const int pass = Pass(actor);
    const int snapshot = memory_.snapshots().Make(actor, actors_[actor].clock);
    for (int i = op.first; i < op.end; ++i) {
      const Access& access = compiled_.accesses[i];
      const Location& l = compiled_.locations[access.location];
      for (int part = access.first; part < access.first + access.count; ++part) {
        const int at = CellOf(l, part, pass);
        const Cell& cell = memory_[at];
        if (cell.last_location == access.location && cell.last_pass == pass)
          Report(actor, op, "stores a value that has been stored in this pass");
        if (l.kind == Location::kActivation && cell.last_location >= 0)
          Report(actor, op, "publishes where nothing was cleared");
        CheckUnread(actor, op, at, part);
        const Memory::Store store = {at, access.location, pass, snapshot, TagOf(l, pass)};
        memory_.Issue(actor, store, l.kind == Location::kShared ? Memory::kAtOnce : Memory::kLate);
      }
    }
    memory_.snapshots().Drop(snapshot);
  }

  void Clear(int actor, const Op& op) {
    const int pass = Pass(actor);
    const bool other = !Planted(MegakernelFault::kOwnBufferCleared);
    for (int i = op.first; i < op.end; ++i) {
      const Access& access = compiled_.accesses[i];
      const Location& l = compiled_.locations[access.location];
      for (int part = access.first; part < access.first + access.count; ++part) {
        const int at = CellOf(l, part, pass, other);
        CheckUnread(actor, op, at, part);
        memory_.Issue(actor, {at, -1, -1, -1, 0}, Memory::kClear);
      }
    }
  }
  // I4: all that read what an actor overwrites have read it, and the actor knows.
  void CheckUnread(int actor, const Op& op, int at, int part) {
    const Cell& cell = memory_[at];
    if (cell.last_location < 0) return;
    const Location& old = compiled_.locations[cell.last_location];
    const Clock& clock = actors_[actor].clock;
    for (const Location::Touch& t : old.reads) {
      if (part < t.first || part >= t.first + t.count || t.actor == actor) continue;
      if (clock.done[t.actor] <= cell.last_pass * actors_[t.actor].ops + t.op)
        return Report(actor, op,
                      "overwrites what " + Name(t.actor) + " may not have read" +
                          Place(compiled_.ops[t.actor][t.op].layer, cell.last_pass));
    }
  }

  bool ArriveAndWait(int actor, const Op& op) {
    Actor& a = actors_[actor];
    NamedBarrierState& m = barriers_[actor / 2][op.barrier];
    const int side = actor % 2;
    if (a.begun) return a.met;
    if (m.came[side]) Report(actor, op, "comes to a barrier twice before the other side does");
    a.met = m.came[1 - side];
    m.came[side] = !a.met, m.came[1 - side] = false;
    a.begun = true;
    if (!a.met) {
      m.clock = a.clock;
      return op.kind == Op::kArrive;
    }
    Release(actor ^ 1, op.barrier, a.clock);
    if (op.kind == Op::kSync) a.clock.Join(m.clock);
    return true;
  }
  // Lets an actor go on, if it waits at a barrier to which the other one came with `clock`.
  void Release(int actor, int barrier, const Clock& clock) {
    Actor& a = actors_[actor];
    if (a.pass == run_.passes || !a.begun) return;
    const Op& op = compiled_.ops[actor][a.op];
    if (op.kind != Op::kSync || op.barrier != barrier) return;
    a.met = true;
    a.clock.Join(clock);
    Wake(actor);
  }

  static constexpr const char* kWarps[2] = {"MMA warps", "epilogue warps"};
  static constexpr const char* kThreads[2] = {"first threads", "last threads"};

  const MegakernelProgram& program_;
  const MegakernelRun& run_;
  const CompiledProgram compiled_;
  Memory memory_;
  std::minstd_rand random_;
  Style style_;
  std::vector<Actor> actors_;
  std::array<std::array<NamedBarrierState, kBarriers>, kCtas> barriers_;
  std::array<bool, kCtas> slow_ = {};
  std::vector<int> runnable_[2];
  int before_ = 0;
  bool deadlock_ = false;
  std::set<std::string> kinds_;  // of violations
  MegakernelReport report_;
};

}  // namespace

MegakernelReport InterpretMegakernel(const MegakernelProgram& program, const MegakernelRun& run) {
  return Machine(program, run).Run();
}

}  // namespace mjp::reference
