#ifndef TASKS_MJCF_CHECK_TERMS_H_
#define TASKS_MJCF_CHECK_TERMS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/checkpoint/network.h"
#include "tasks/mjcf/task_file.h"

namespace mjp::app {

// A number that a policy sees or gives, and what is known of it, in the policy's unit.
struct TermRow {
  std::string feature;  // "state", "environment" or "action"
  std::string name;     // as the attribute has it, with its component where there are several
  std::string unit;     // where it is known: "rad", "m", "m x 25.3"; or ""
  // Of observations what the starts showed, of actions what the control's range and action_clip let
  // through; none: no start was seen, or the control has neither.
  std::optional<std::pair<double, double>> seen;
  std::optional<std::pair<double, double>> trained;  // none: no checkpoint, or it does not say
  std::string attribute = "";  // the gain or scale that the file has, or could have
  double scale = 1;            // the policy's number per one of the model
  // Of an action, with action_clip: what the control's range alone lets through.
  std::optional<std::pair<double, double>> unclipped = {};
};

// All terms of a task file, in order, before a start is seen; `stats` (may be null) are those of a
// checkpoint.
std::vector<TermRow> ListTerms(const TaskFile& file, const NormalizerStats* stats);

// Widens what is seen of the observations among `rows`, which ListTerms made of the file, by what
// `data` shows of it; positions and sensors are up to date.
void SeeStart(const Outline& policy, const mjData* data, std::vector<TermRow>& rows);

// What looks wrong, as a sentence for each such term. Training saw something else, the units differ
// by ten or more, or action_clip leaves less than a tenth of a control's range. Starts may be near
// one point: smaller ones than training saw are told only where all of their unit are by fifty, and
// never near 0. A task may use little of a joint's range: a control that reaches farther than
// training did is told where all of its unit do, or by fifty where training used a hundredth of its
// range.
std::vector<std::string> TermWarnings(const std::vector<TermRow>& rows);

// What of the file's policy does not fit the checkpoint: sizes, cameras. Empty: all fits.
std::vector<std::string> Misfits(const TaskFile& file, const PolicyConfig& config);

// The terms as a table for people.
std::string TermTable(const std::vector<TermRow>& rows);

}  // namespace mjp::app

#endif  // TASKS_MJCF_CHECK_TERMS_H_
