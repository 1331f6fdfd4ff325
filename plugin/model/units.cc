#include "plugin/model/units.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include "base/text_stream.h"
#include "plugin/guard.h"
#include "plugin/notices.h"

namespace mjp {
namespace {

constexpr double kFarRanges = 10;   // outside of the statistics, in widths of them
constexpr double kFarExtents = 10;  // of the model, beyond which no length of it is expected
constexpr double kMostTurns = 10;   // of a hinge
constexpr double kLongClamped = 1;  // seconds of simulation

void Say(const mjModel* model, int instance, const std::string& text, const char* attribute) {
  Warn((InstanceName(model, instance) + ": " + text + "; is attribute " + attribute +
        "_scale right?")
           .c_str());
}

Notice NoticeOf(const char* attribute) {
  if (*attribute == 's') return Notice::kStateUnits;
  return *attribute == 'e' ? Notice::kEnvironmentUnits : Notice::kActionUnits;
}

}  // namespace

std::optional<std::pair<double, double>> TrainedRange(const FeatureStats& stats, size_t i) {
  if (stats.mode == Normalization::kIdentity || i >= stats.first.size()) return {};
  const double first = stats.first[i], second = stats.second[i];
  if (stats.mode != Normalization::kMeanStd) return {{first, second}};
  return {{first - 3 * second, first + 3 * second}};
}

bool IsCut(const mjModel* model, int address, mjtNum control) {
  constexpr double kMargin = 0.01;  // of the range
  if (!model->actuator_ctrllimited[address] || (model->opt.disableflags & mjDSBL_CLAMPCTRL)) {
    return false;
  }
  const mjtNum* range = model->actuator_ctrlrange + 2 * address;
  const mjtNum margin = kMargin * (range[1] - range[0]);
  return control < range[0] - margin || control > range[1] + margin;
}

std::vector<UnitCheck::Term> UnitCheck::Terms(const std::vector<Quantity>& quantities,
                                              const FeatureStats& stats,
                                              const std::vector<int>& indices) {
  std::vector<Term> terms;
  for (size_t i = 0; i < quantities.size(); ++i) {
    Term term{quantities[i], 0, 0};
    const size_t at = indices.empty() ? i : static_cast<size_t>(indices[i]);
    if (const auto range = TrainedRange(stats, at)) std::tie(term.low, term.high) = *range;
    terms.push_back(term);
  }
  return terms;
}

UnitCheck::UnitCheck(const NormalizerStats& stats, const ObservationBinding& state,
                     const ObservationBinding& environment, const ControlBinding& controls)
    : state_(Terms(state.quantities(), stats.state)),
      environment_(Terms(environment.quantities(), stats.environment)),
      action_(Terms(controls.quantities(), stats.action, controls.indices())),
      controls_(controls),
      cut_(controls.size()),
      inside_(controls.size()) {}

// Lengths and angles of training, in the model's unit, against what the model can reach.
void UnitCheck::CheckReach(const mjModel* model, int instance, const std::vector<Term>& terms,
                           const char* attribute) {
  const double length = kFarExtents * (model->stat.extent + mju_norm3(model->stat.center));
  for (const Term& term : terms) {
    const Quantity& quantity = term.quantity;
    if (term.low == term.high || quantity.unit == Unit::kOther) continue;
    const bool angle = quantity.unit == Unit::kAngle;
    const double limit = angle ? kMostTurns * 2 * std::numbers::pi : length;
    const double low = quantity.ToModel(term.low), high = quantity.ToModel(term.high);
    if (!(std::max(std::abs(low), std::abs(high)) > limit)) continue;
    if (!FirstNotice(model, instance, NoticeOf(attribute))) return;
    TextWriter text;
    text << "the checkpoint has seen \"" << quantity.name << "\" from " << low << " to " << high;
    if (angle) {
      text << " radians";
    } else {
      text << ", and the model's extent is " << model->stat.extent;
    }
    return Say(model, instance, text.str(), attribute);
  }
}

void UnitCheck::CheckValues(const mjModel* model, int instance, const std::vector<Term>& terms,
                            std::span<const mjtNum> values, const char* attribute) {
  for (size_t i = 0; i < terms.size() && i < values.size(); ++i) {
    const Term& term = terms[i];
    const double far = kFarRanges * (term.high - term.low);
    if (far <= 0 || !(values[i] < term.low - far || values[i] > term.high + far)) continue;
    if (!FirstNotice(model, instance, NoticeOf(attribute))) return;
    TextWriter text;
    text << "the policy sees \"" << term.quantity.name << "\" as " << values[i]
         << ", and was trained with " << term.low << " to " << term.high;
    return Say(model, instance, text.str(), attribute);
  }
}

void UnitCheck::CheckStatistics(const mjModel* model, int instance) const {
  CheckReach(model, instance, state_, "state");
  CheckReach(model, instance, environment_, "environment");
  CheckReach(model, instance, action_, "action");
}

void UnitCheck::Observed(const mjModel* model, int instance, std::span<const mjtNum> observation) {
  if (!checked_) CheckStatistics(model, instance);
  checked_ = true;
  CheckValues(model, instance, state_, observation.first(state_.size()), "state");
  CheckValues(model, instance, environment_, observation.subspan(state_.size()), "environment");
}

void UnitCheck::Controlled(const mjModel* model, int instance, const mjData* data,
                           std::span<const mjtNum> action) {
  // an object may serve several simulations, and a simulation may jump: a second is one of steps
  const bool jumped = !(data->time >= last_ && data->time <= last_ + 1.5 * model->opt.timestep);
  last_ = data->time;
  for (int i = 0; i < controls_.size(); ++i) {
    const int address = controls_.addresses()[i], index = controls_.indices()[i];
    const bool clipped = !action.empty() && controls_.Clips(i, action[index]);
    cut_[i] = clipped || IsCut(model, address, data->ctrl[address]);
    if (!cut_[i] || jumped) inside_[i] = data->time;
    if (said_clamped_ || data->time - inside_[i] < kLongClamped) continue;
    said_clamped_ = true;
    if (!FirstNotice(model, instance, Notice::kClamped)) continue;
    const mjtNum* range = model->actuator_ctrlrange + 2 * address;
    const auto [low, high] = clipped ? *controls_.Clip(i) : std::pair(range[0], range[1]);
    TextWriter text;
    text << "the policy wants control \"" << action_[i].quantity.name << "\" at "
         << (clipped ? controls_.ToUnclippedControl(i, action[index]) : data->ctrl[address])
         << ", and for " << kLongClamped << " s it has been cut to its "
         << (clipped ? "action_clip " : "ctrlrange ") << low << " to " << high
         << (clipped ? " (the policy's unit)" : "");
    Say(model, instance, text.str(), "action");
  }
}

}  // namespace mjp
