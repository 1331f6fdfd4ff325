#include "policy/prefix/event_replanning.h"

#include <algorithm>
#include <cstddef>

namespace mjp {

EventReplanning::EventReplanning(const PolicyConfig& config, const Rule& rule, int action_steps,
                                 int latency)
    : beyond_(rule.beyond),
      action_steps_(action_steps),
      action_dim_(config.action_dim),
      first_(config.FirstAction() + latency),
      most_(MostFollowed(config, rule.after, latency)) {}

int EventReplanning::MostFollowed(const PolicyConfig& config, int after, int latency) {
  const int wanted = after > 0 ? after : config.n_action_steps;
  return std::min(wanted, config.horizon - config.FirstAction() - latency);
}

int EventReplanning::Choose(std::span<const float> before, int age, std::span<float> chunk) const {
  if (age < 0) return 0;
  const int now = age + action_steps_;
  if (now >= most_ || Departs(before, chunk, most_ - now)) return 0;
  const size_t ahead = static_cast<size_t>(action_steps_) * action_dim_;
  std::copy(before.begin() + ahead, before.end(), chunk.begin());
  return now;
}

// a number that is none departs
bool EventReplanning::Departs(std::span<const float> before, std::span<const float> chunk,
                              int rows) const {
  const size_t ahead = static_cast<size_t>(action_steps_) * action_dim_;
  for (int row = first_; row < first_ + rows; ++row) {
    double square = 0;
    for (int c = 0; c < action_dim_; ++c) {
      const size_t at = static_cast<size_t>(row) * action_dim_ + c;
      const double apart = double{chunk[at]} - double{before[at + ahead]};
      square += apart * apart;
    }
    if (!(square <= beyond_ * beyond_)) return true;
  }
  return false;
}

EventReplanning::Rule ResolveRule(const PolicyConfig& config, int action_steps,
                                  std::optional<double> beyond, int after) {
  return {beyond.value_or(action_steps == 0 ? config.replan_beyond : 0), after};
}

std::optional<EventReplanning> ReplanningOf(const PolicyConfig& config,
                                            const EventReplanning::Rule& rule, int action_steps,
                                            int latency, const std::string& option, ExitCode code) {
  if (rule.beyond == 0 && rule.after == 0) return std::nullopt;
  if (rule.beyond == 0) {
    throw Error(code, option +
                          ": is missing: a chunk that is followed for so long is left where a new "
                          "one departs from it by more than that");
  }
  if (config.temporal_ensemble) {
    throw Error(code, option +
                          ": this checkpoint ensembles the chunks of all control steps; leave "
                          "it out");
  }
  const int most = EventReplanning::MostFollowed(config, rule.after, latency);
  if (action_steps >= most) {
    const std::string late = latency > 0 ? " after a latency of " + std::to_string(latency) : "";
    throw Error(code, option + ": a chunk is followed for " + std::to_string(most) +
                          " control steps at most" + late + ", and a decision comes every " +
                          std::to_string(action_steps) + ": " +
                          (action_steps > 1 ? "decide more often (action steps), " : "") +
                          (latency > 0 ? "allow less latency, " : "") +
                          "or give 0, which takes every new chunk");
  }
  return EventReplanning(config, rule, action_steps, latency);
}

}  // namespace mjp
