#ifndef APPS_TRAIN_ROUNDS_H_
#define APPS_TRAIN_ROUNDS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "tasks/pusht/planner/demonstration_stream.h"
#include "tasks/results/report.h"

namespace mjp::app {

struct RoundOptions {
  int count = 0;                 // rounds of labelled episodes, evenly over the training
  int episodes = 1024;           // of every round, and of the evaluation at the end
  int disturbed_episodes = 256;  // further ones of every round: pushes, latency, unsteady actions
  int original_episodes = 0;     // further ones: plain, in the benchmark's original physics
  int late_episodes = 0;         // further ones: decisions act kLateSteps later
  int action_steps = 8;          // actions executed per decision
  PlannerOptions planner;        // the teacher
  uint64_t seed = 0;
  std::string folder;       // of the rows; rounds that lie there are not played again
  std::string late_folder;  // of the rows of late decisions

  // Rows that so many rounds make at most, but for those of late decisions, and of these.
  int64_t Capacity(int rounds) const;
  int64_t LateCapacity(int rounds) const;
};

// What rounds left in a folder.
struct KeptRounds {
  int count = 0;     // rounds
  int64_t rows = 0;  // of all together
};

// Of `folder`; none where there is no such. Throws Error naming what is missing or damaged.
KeptRounds KeptIn(const std::string& folder);

// How the project's own engine plays rounds, on all cores where `threads` is 0.
mjp::PolicyOptions PolicyOfRounds(bool cuda, int threads, const mjp::SamplerOptions& sampler);

// What was seen in a round.
struct Observed {
  std::vector<DemonstrationRow> rows;  // the states in which was decided; the targets are decisions
  Figures figures;                     // of the plain episodes
};

// DAgger: in every round the student plays episodes from starts it has not seen, and the planner
// labels every state in which it decided. The rows lie in the folder as demonstrations do.
class Rounds {
 public:
  // policy.threads plan, too.
  Rounds(const RoundOptions& options, const mjp::PolicyOptions& policy);
  // A round that is not labelled yet comes not to lie in the folder.
  ~Rounds();

  // Whether the next round is due at `progress` (0 to 1) of the training. Throws what the labelling
  // of the last threw.
  bool Due(double progress);
  // Waits until the last round is labelled. Throws what its labelling threw.
  void Wait();
  // The same for `seconds` at most. Returns whether it is labelled.
  bool WaitFor(double seconds);
  // Which round comes next, from 0: so many were played.
  int next() const { return next_; }

  // Plays the next round with `student`, once the last is labelled, calls `keep` with how the
  // undisturbed episodes went, and starts labelling in the background; only then the round may come
  // to lie in the folder. If `stop` became true, neither.
  void Play(const std::shared_ptr<const mjp::Checkpoint>& student,
            const std::function<void(const Figures&)>& keep, const std::atomic<bool>& stop);
  // Plays round `round` without labelling. Nothing is seen if `stop` became true.
  Observed Observe(const std::shared_ptr<const mjp::Checkpoint>& student, int round,
                   const std::atomic<bool>& stop) const;
  // Plays without labelling, from starts of its own: how good the student is.
  Figures Evaluate(const std::shared_ptr<const mjp::Checkpoint>& student,
                   const std::atomic<bool>& stop) const;

 private:
  struct Labels;
  static constexpr int kPlain = -1, kOriginal = -2;
  // Plays all episodes of a round; figures of the plain ones.
  Figures PlayAll(const std::shared_ptr<const mjp::Checkpoint>& student, int round,
                  std::vector<Labels>& labels, const std::atomic<bool>& stop) const;
  // Plays the plain episodes of a round, those in the original physics, or a part of the disturbed
  // or the late ones.
  Figures Episodes(const std::shared_ptr<const mjp::Checkpoint>& student, int round, int part,
                   std::vector<Labels>* labels, const std::atomic<bool>& stop) const;
  void Label(int round, std::vector<Labels> labels, const Figures& figures) const;
  // Episodes of a part, and the seed of the first one.
  int CountOf(int part) const;
  uint32_t SeedOf(int round, int part) const;

  RoundOptions options_;
  mjp::PolicyOptions policy_;
  int next_ = 0;
  std::atomic<bool> abandoned_ = false;  // labels are not needed any more
  std::future<void> labelling_;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_ROUNDS_H_
