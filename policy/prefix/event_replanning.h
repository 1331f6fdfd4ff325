#ifndef POLICY_PREFIX_EVENT_REPLANNING_H_
#define POLICY_PREFIX_EVENT_REPLANNING_H_

#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "policy/checkpoint/config.h"

namespace mjp {

inline constexpr double kMostReplanBeyond = 1e9;  // of the setting, the policy's unit

// Event-triggered replanning: a robot that decides often goes on with the chunk it took, unless a
// new one departs from the rest of it. So small differences between decisions do not make it waver,
// and a disturbance is answered at the next decision. The rule is that of event-triggered control
// (W. Heemels, K. Johansson, P. Tabuada: An introduction to event-triggered and self-triggered
// control, 2012), with the new chunk as the prediction; closed-loop chunks that agree with the last
// one are the idea of Bidirectional Decoding (Y. Liu et al., 2024).
class EventReplanning {
 public:
  struct Rule {
    // Largest distance (Euclidean, over the numbers of one action, the policy's unit) of an action
    // of the new chunk from the same moment's in the old one.
    double beyond = 0;
    // Control steps at most that a chunk is followed; 0: as many as the checkpoint executes at
    // once.
    int after = 0;
  };
  // `action_steps`, `latency`: control steps from decision to decision, and from an observation to
  // its first action.
  EventReplanning(const PolicyConfig& config, const Rule& rule, int action_steps, int latency);

  // Control steps at most that a chunk is followed: `after`, or as many actions as a chunk has from
  // `latency` on.
  static int MostFollowed(const PolicyConfig& config, int after, int latency);

  // `chunk` (H, action_dim): a new one. `before`: the one that the decision before gave, of the
  // same size, `age` control steps after the observation that it answers; a negative age: there is
  // none. Where that one is to be followed, its rest takes the place of the first H - action_steps
  // rows. Returns the age of what `chunk` is now.
  int Choose(std::span<const float> before, int age, std::span<float> chunk) const;

 private:
  bool Departs(std::span<const float> before, std::span<const float> chunk, int rows) const;

  double beyond_;
  int action_steps_, action_dim_;
  int first_;  // row that is executed first
  int most_;
};

// The rule of who executes `config` as it asks, but for what is given: `action_steps` (0: none),
// `beyond`, `after` (0: none). Whoever gives action steps alone takes every chunk.
EventReplanning::Rule ResolveRule(const PolicyConfig& config, int action_steps,
                                  std::optional<double> beyond, int after);

// None for `beyond` 0. Throws Error with `code` where no chunk could be followed, where the policy
// ensembles its chunks, or where `after` is given alone; `option` is what the text calls `beyond`.
std::optional<EventReplanning> ReplanningOf(const PolicyConfig& config,
                                            const EventReplanning::Rule& rule, int action_steps,
                                            int latency, const std::string& option, ExitCode code);

}  // namespace mjp

#endif  // POLICY_PREFIX_EVENT_REPLANNING_H_
