#include "tasks/mjcf/check/terms.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text_stream.h"
#include "plugin/model/units.h"

namespace mjp::app {
namespace {

using Range = std::pair<double, double>;

// "rad", or "m x 25.3" where the policy's number is another one.
std::string UnitName(const Quantity& quantity) {
  if (quantity.unit == Unit::kOther) return "";
  TextWriter text;
  text.precision(3);
  text << (quantity.unit == Unit::kLength ? "m" : "rad");
  if (quantity.scale != 1) text << " x " << quantity.scale;
  return text.str();
}

// The attribute in which the factor of `feature` stands.
std::string AttributeOf(const std::string& feature, const Config& config) {
  if (feature == "state") return config.state_map.attribute;
  if (feature == "environment") return config.environment_map.attribute;
  const auto given = [](double factor) { return factor != 1; };
  const bool scaled = std::ranges::any_of(config.action_scale, given);
  if (!scaled) return config.action_map.attribute;
  const bool both = std::ranges::any_of(config.action_map.gain, given);
  return both ? "action_scale and " + config.action_map.attribute : "action_scale";
}

// Rows of the quantities of one feature; things with several numbers get their components.
std::vector<TermRow> RowsOf(const std::string& feature, const std::vector<Quantity>& quantities,
                            const Config& config) {
  std::vector<TermRow> rows;
  int component = 0;
  for (size_t i = 0; i < quantities.size(); ++i) {
    const std::string& name = quantities[i].name;
    const bool as_before = i > 0 && quantities[i - 1].name == name;
    const bool as_after = i + 1 < quantities.size() && quantities[i + 1].name == name;
    component = as_before ? component + 1 : 0;
    const bool several = (as_before || as_after) && name.find('[') == std::string::npos;
    TermRow row;
    row.feature = feature;
    row.name = several ? name + "[" + std::to_string(component) + "]" : name;
    row.unit = UnitName(quantities[i]);
    row.attribute = AttributeOf(feature, config);
    row.scale = quantities[i].scale;
    rows.push_back(row);
  }
  return rows;
}

void Widen(std::optional<Range>& range, double value) {
  if (!range) range = {value, value};
  range->first = std::min(range->first, value);
  range->second = std::max(range->second, value);
}

void AddTrained(std::vector<TermRow>& rows, const FeatureStats& stats,
                const std::vector<int>& indices = {}) {
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].trained = TrainedRange(stats, indices.empty() ? i : static_cast<size_t>(indices[i]));
  }
}

// Says what the range of control `i` and its clip let through.
void AddControlRange(const mjModel* model, const ControlBinding& controls, int i, TermRow& row) {
  const int address = controls.addresses()[i];
  const auto clip = controls.Clip(i);
  if (!model->actuator_ctrllimited[address]) {
    row.seen = clip;
    return;
  }
  for (const int end : {0, 1}) {
    Widen(row.seen, controls.ToAction(i, model->actuator_ctrlrange[2 * address + end]));
  }
  if (!clip) return;
  const Range whole = *(row.unclipped = row.seen);
  row.seen = {std::clamp(clip->first, whole.first, whole.second),
              std::clamp(clip->second, whole.first, whole.second)};
}

double Largest(const Range& range) {
  return std::max(std::abs(range.first), std::abs(range.second));
}

double Width(const Range& range) { return range.second - range.first; }

// What tells the unit of `row`: a clip in a wrong unit says nothing of the control's.
const Range& Reach(const TermRow& row) { return row.unclipped ? *row.unclipped : *row.seen; }

// By how much what is seen is larger than what training saw; none: not known.
std::optional<double> SizeOfUnit(const TermRow& row) {
  if (!row.seen || !row.trained) return {};
  const double seen = Largest(Reach(row)), trained = Largest(*row.trained);
  if (!(seen > 0 && trained > 0)) return {};
  return seen / trained;
}

constexpr double kOtherUnit = 10, kSurelyOtherUnit = 50;  // a degree is a 57th of a radian

// Whether training used so little of a control's range that it may have left it alone.
bool IsHardlyUsed(const TermRow& row) {
  constexpr double kHardly = 0.01;
  return Width(*row.trained) < kHardly * Width(Reach(row));
}

// Whether starts are so near to 0 that they tell nothing of a unit. A start in metres where
// training had millimetres is as small beside it, but not in the model.
bool IsNearZero(const TermRow& row) {
  constexpr double kNear = 1e-3;  // of training's; rad or m
  const double seen = Largest(*row.seen);
  return seen < kNear * Largest(*row.trained) &&
         (row.unit.empty() || seen < kNear * std::abs(row.scale));
}

// Whether starts are so much smaller than what training saw that only another unit explains it.
bool StartsAreSmall(const TermRow& row, double size) {
  return size <= 1 / kSurelyOtherUnit && !IsNearZero(row);
}

// Whether the unit of `row` looks wrong, as TermWarnings says.
bool HasOtherUnit(const TermRow& row, const std::vector<TermRow>& rows) {
  const std::optional<double> size = SizeOfUnit(row);
  if (!size) return false;
  const bool action = row.feature == "action", large = *size >= kOtherUnit;
  // each for itself
  if (action && *size <= 1 / kOtherUnit) return true;
  if (action ? *size >= kSurelyOtherUnit && !IsHardlyUsed(row) : large) return true;
  if (action ? !large : !StartsAreSmall(row, *size)) return false;
  return std::ranges::all_of(rows, [&](const TermRow& other) {
    if (other.feature != row.feature || other.unit != row.unit) return true;
    const std::optional<double> others = SizeOfUnit(other);
    if (!others) return true;
    return action ? *others >= kOtherUnit : IsNearZero(other) || StartsAreSmall(other, *others);
  });
}

std::string UnitWarning(const TermRow& row) {
  const double size = *SizeOfUnit(row);
  TextWriter text;
  text.precision(3);
  text << row.feature << " " << row.name << ": the unit looks wrong by a factor of about "
       << std::max(size, 1 / size) << ": "
       << (row.feature == "action" ? "the control goes up to " : "the starts go up to ")
       << Largest(Reach(row)) << ", training up to " << Largest(*row.trained) << "; see "
       << row.attribute;
  return text.str();
}

// Whether a clip leaves so little of a control's range that it looks wrong. What training gave is
// never too little.
bool ClipsMost(const TermRow& row) {
  constexpr double kLeast = 0.1;  // of the range
  if (!row.unclipped || Width(*row.seen) >= kLeast * Width(*row.unclipped)) return false;
  const double margin = kLeast * Width(*row.seen);
  return !row.trained || row.trained->first < row.seen->first - margin ||
         row.trained->second > row.seen->second + margin;
}

std::string ClipWarning(const TermRow& row) {
  TextWriter text;
  text.precision(3);
  text << row.feature << " " << row.name << ": action_clip leaves "
       << 100 * Width(*row.seen) / Width(*row.unclipped) << " % of the control's range, "
       << row.seen->first << " to " << row.seen->second
       << "; is it in the policy's unit, and not in the control's?";
  return text.str();
}

// Whether an observation lies outside of what training saw.
bool LiesOutside(const TermRow& row) {
  constexpr double kMargin = 0.1;  // of the range
  if (!row.seen || !row.trained || row.feature == "action") return false;
  const double margin = kMargin * (row.trained->second - row.trained->first);
  return row.seen->first < row.trained->first - margin ||
         row.seen->second > row.trained->second + margin;
}

std::string OutsideWarning(const TermRow& row) {
  TextWriter text;
  text.precision(3);
  text << row.feature << " " << row.name
       << ": starts lie outside of what training saw: " << row.seen->first << " to "
       << row.seen->second << ", trained with " << row.trained->first << " to "
       << row.trained->second;
  return text.str();
}

}  // namespace

std::vector<TermRow> ListTerms(const TaskFile& file, const NormalizerStats* stats) {
  const Outline& policy = file.policy();
  std::vector<TermRow> state = RowsOf("state", policy.state.quantities(), policy.config);
  std::vector<TermRow> environment =
      RowsOf("environment", policy.environment.quantities(), policy.config);
  std::vector<TermRow> action = RowsOf("action", policy.controls.quantities(), policy.config);
  for (size_t i = 0; i < action.size(); ++i) {
    AddControlRange(file.model(), policy.controls, static_cast<int>(i), action[i]);
  }
  if (stats) {
    AddTrained(state, stats->state);
    AddTrained(environment, stats->environment);
    AddTrained(action, stats->action, policy.controls.indices());
  }
  state.insert(state.end(), environment.begin(), environment.end());
  state.insert(state.end(), action.begin(), action.end());
  return state;
}

void SeeStart(const Outline& policy, const mjData* data, std::vector<TermRow>& rows) {
  auto row = rows.begin();
  for (const ObservationBinding* binding : {&policy.state, &policy.environment}) {
    std::vector<mjtNum> numbers(static_cast<size_t>(binding->size()));
    binding->Read(data, numbers);
    for (const mjtNum number : numbers) Widen((row++)->seen, number);
  }
}

std::vector<std::string> TermWarnings(const std::vector<TermRow>& rows) {
  std::vector<std::string> warnings;
  for (const TermRow& row : rows) {
    if (HasOtherUnit(row, rows)) {
      warnings.push_back(UnitWarning(row));
    } else if (ClipsMost(row)) {
      warnings.push_back(ClipWarning(row));
    } else if (LiesOutside(row)) {
      warnings.push_back(OutsideWarning(row));
    }
  }
  return warnings;
}

std::vector<std::string> Misfits(const TaskFile& file, const PolicyConfig& config) {
  std::vector<std::string> misfits;
  const auto compare = [&](const char* attribute, const char* feature, int given, int wanted) {
    if (given == wanted) return;
    misfits.push_back("attribute " + std::string(attribute) + " gives " + std::to_string(given) +
                      " numbers, the checkpoint's " + feature + " has " + std::to_string(wanted));
  };
  const Outline& policy = file.policy();
  compare("state", "observation.state", policy.state.size(), config.state_dim);
  compare("environment", "observation.environment_state", policy.environment.size(),
          config.environment_dim);
  compare("actuators", "action", policy.controls.action_size(), config.action_dim);
  const size_t cameras = policy.config.cameras.size();
  if (cameras != config.cameras.size()) {
    misfits.push_back("attribute camera names " + std::to_string(cameras) +
                      " cameras, the checkpoint has " + std::to_string(config.cameras.size()));
  }
  return misfits;
}

std::string TermTable(const std::vector<TermRow>& rows) {
  const auto cell = [](const std::optional<Range>& range, bool high) {
    char text[32] = "-";
    if (range) std::snprintf(text, sizeof(text), "%.4g", high ? range->second : range->first);
    return std::string(text);
  };
  size_t width = 4;
  for (const TermRow& row : rows) width = std::max(width, row.name.size());
  std::string table;
  const auto add = [&](const char* feature, const std::string& name, const std::string& unit,
                       const std::string& low, const std::string& high, const std::string& from,
                       const std::string& to) {
    char line[256];
    std::snprintf(line, sizeof(line), "%-12s %-*.80s %-10s %11s %11s %13s %13s\n", feature,
                  static_cast<int>(std::min<size_t>(width, 80)), name.c_str(), unit.c_str(),
                  low.c_str(), high.c_str(), from.c_str(), to.c_str());
    table += line;
  };
  add("feature", "name", "unit", "seen from", "to", "trained from", "to");
  for (const TermRow& row : rows) {
    add(row.feature.c_str(), row.name, row.unit.empty() ? "-" : row.unit, cell(row.seen, false),
        cell(row.seen, true), cell(row.trained, false), cell(row.trained, true));
  }
  return table;
}

}  // namespace mjp::app
