#include "tasks/mjcf/rules.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>

namespace mjp::app {
namespace {

constexpr char kSteps[] = "task.steps", kRunOn[] = "task.run_on", kSuccess[] = "task.success",
               kFailure[] = "task.failure", kScore[] = "task.score", kMeasures[] = "task.measures";
constexpr std::string_view kPrefix = "task.";

// All elements that a task file may have.
const std::vector<std::string>& KnownNumbers() {
  static const std::vector<std::string> names = {kSteps, kRunOn};
  return names;
}
const std::vector<std::string>& KnownTexts() {
  static const std::vector<std::string> names = {
      "task.start", "task.random", kSuccess,    kFailure,
      kScore,       kMeasures,     "task.code", "task.description"};
  return names;
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

void CheckName(const std::string& name, bool is_number) {
  if (!name.starts_with(kPrefix)) return;
  const auto& right = is_number ? KnownNumbers() : KnownTexts();
  const auto& other = is_number ? KnownTexts() : KnownNumbers();
  if (Has(right, name)) return;
  if (Has(other, name)) {
    throw Place{name, ""}.Refuse(is_number ? "is a text: write <text name=... data=...>"
                                           : "is a number: write <numeric name=... data=...>");
  }
  std::vector<std::string> all = KnownNumbers();
  all.insert(all.end(), KnownTexts().begin(), KnownTexts().end());
  throw BadInput(NoSuch("element of a task", name, all));
}

void CheckNames(const mjModel* model) {
  for (int i = 0; i < model->nnumeric; ++i) CheckName(mj_id2name(model, mjOBJ_NUMERIC, i), true);
  for (int i = 0; i < model->ntext; ++i) CheckName(mj_id2name(model, mjOBJ_TEXT, i), false);
  for (int i = 0; i < model->ntuple; ++i) {
    const std::string name = mj_id2name(model, mjOBJ_TUPLE, i);
    if (name.starts_with(kPrefix)) throw Place{name, ""}.Refuse("a task has no tuples");
  }
}

int WholeNumber(const mjModel* model, const char* name, int low, int high) {
  const std::vector<double> numbers = CustomNumbers(model, name);
  if (numbers.size() == 1 && numbers[0] == std::floor(numbers[0]) && numbers[0] >= low &&
      numbers[0] <= high) {
    return static_cast<int>(numbers[0]);
  }
  throw Place{name, ""}.Refuse("expected one whole number from " + std::to_string(low) + " to " +
                               std::to_string(high));
}

// "name: what it is"
std::pair<std::string, std::string> Split(const std::string& entry, const Place& place,
                                          const char* form) {
  const size_t colon = entry.find(':');
  if (colon == std::string::npos) throw place.Refuse(std::string("write ") + form);
  return {Trimmed(entry.substr(0, colon)), Trimmed(entry.substr(colon + 1))};
}

void CheckMeasureName(const std::string& name, const Place& place) {
  const auto letter = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  if (!name.empty() && std::ranges::all_of(name, letter)) return;
  throw place.Refuse("the name of a measure is of letters, digits and _");
}

// The means of results would have that of the measure in the place of the score's,
// `avg_max_reward`.
void CheckIsTheReward(const mjModel* model, const std::string& name, const Place& place) {
  const char* score = CustomText(model, kScore);
  if (name != "reward" || (score && Trimmed(score) == name)) return;
  throw place.Refuse("results call the score so: give the measure another name, or the text " +
                     std::string(kScore) + " the value \"reward\"");
}

}  // namespace

Rules::Rules(const mjModel* model, double period) {
  CheckNames(model);
  if (CustomNumbers(model, kSteps).empty()) {
    throw BadInput(
        "the model is no task: it says not how long an episode lasts; write <custom>"
        "<numeric name=\"task.steps\" data=\"400\"/>, in control steps "
        "(docs/tasks.md)");
  }
  steps_ = WholeNumber(model, kSteps, 1, 100000);
  if (!CustomNumbers(model, kRunOn).empty()) run_on_ = WholeNumber(model, kRunOn, 0, 1) != 0;
  if (CustomText(model, "task.code")) return;  // judged by code
  const char* score = CustomText(model, kScore);
  if (score && std::string_view(score).find(':') != std::string_view::npos) {
    ReadStages(model, score);
  }
  ReadMeasures(model);
  ReadScore(model);
  ReadSuccess(model, period);
  if (const char* text = CustomText(model, kFailure)) {
    failure_ = Read(model, text, {kFailure, text});
  }
}

Condition Rules::Read(const mjModel* model, const std::string& text, const Place& place) {
  Condition condition(model, text, !stages_.empty(), place);
  stage_ = std::max(stage_, condition.stage());
  return condition;
}

void Rules::ReadStages(const mjModel* model, const std::string& text) {
  std::vector<Stage> stages;
  highest_ = 0;
  for (const std::string& entry : Entries(text)) {
    const Place place{kScore, entry};
    const auto [value, condition] = Split(entry, place, "VALUE: CONDITION");
    const double number = ToNumber(value, place);
    if (number < 0) throw place.Refuse("a stage is worth 0 or more");
    stages.push_back({number, Read(model, condition, place)});
    highest_ = std::max(highest_, number);
  }
  if (highest_ == 0) throw Place{kScore, text}.Refuse("one stage must be worth more than 0");
  stages_ = std::move(stages);
}

void Rules::ReadMeasures(const mjModel* model) {
  const char* text = CustomText(model, kMeasures);
  for (const std::string& entry : Entries(text ? text : "")) {
    const Place place{kMeasures, entry};
    const auto [name, what] =
        Split(entry, place, "NAME: CONDITION, or NAME: SENSOR from LOW to HIGH");
    CheckMeasureName(name, place);
    CheckIsTheReward(model, name, place);
    for (const Measure& each : measures_) {
      if (each.name == name) throw place.Refuse("there is a measure of that name already");
    }
    Measure measure;
    measure.name = name;
    const std::vector<std::string> words = Words(what);
    if (words.size() == 5 && words[1] == "from" && words[3] == "to") {
      const SensorNumber number = FindSensorNumber(model, words[0], place);
      stage_ = std::max(stage_, number.stage);
      measure.address = number.address;
      measure.low = ToNumber(words[2], place);
      measure.high = ToNumber(words[4], place);
      if (measure.low == measure.high) throw place.Refuse("LOW and HIGH are the same");
    } else {
      measure.condition = Read(model, what, place);
    }
    measures_.push_back(std::move(measure));
  }
}

void Rules::ReadScore(const mjModel* model) {
  const char* text = CustomText(model, kScore);
  if (!text || !stages_.empty()) return;
  const std::string name = Trimmed(text);
  std::vector<std::string> names;
  for (size_t i = 0; i < measures_.size(); ++i) {
    names.push_back(measures_[i].name);
    if (name == measures_[i].name) reward_measure_ = static_cast<int>(i);
  }
  if (reward_measure_ >= 0) return;
  throw Place{kScore, ""}.Refuse(NoSuch("measure of task.measures", name, names) +
                                 ". Stages are written as VALUE: CONDITION; ...");
}

void Rules::ReadSuccess(const mjModel* model, double period) {
  const char* text = CustomText(model, kSuccess);
  if (!text) throw BadInput("the task says not what success is: write text \"task.success\"");
  const Place place{kSuccess, text};
  std::vector<std::string> words = Words(text);
  double seconds = 0;
  if (words.size() >= 2 && words[words.size() - 2] == "for") {
    seconds = ToNumber(words.back(), place);
    if (seconds < 0) throw place.Refuse("the time that it must hold is below 0");
    words.resize(words.size() - 2);
  }
  std::string condition;
  for (const std::string& word : words) condition += word + " ";
  success_ = Read(model, condition, place);
  const double steps = std::ceil(seconds / period - 1e-9);
  if (steps >= steps_) throw place.Refuse("it would have to hold for longer than an episode lasts");
  hold_ = 1 + static_cast<int>(steps);
}

std::vector<std::string> Rules::measures() const {
  std::vector<std::string> names;
  for (const Measure& measure : measures_) names.push_back(measure.name);
  if (names.empty()) names.emplace_back("score");
  return names;
}

double Rules::StageValue(const mjtNum* sensors) const {
  double value = 0;
  for (const Stage& stage : stages_) {
    if (stage.condition.Holds(sensors, 0)) value = stage.value;
  }
  return value;
}

double Rules::Share(const Measure& measure, const mjtNum* sensors, double score) const {
  if (measure.condition) return measure.condition->Holds(sensors, score) ? 1 : 0;
  const double way = measure.high - measure.low;
  return std::clamp((sensors[measure.address] - measure.low) / way, 0.0, 1.0);
}

void Rules::Judge(const mjtNum* sensors, int& held, StepOutcome& outcome) const {
  const double score = StageValue(sensors);
  outcome.failure.clear();
  outcome.measures.clear();
  for (const Measure& measure : measures_) {
    outcome.measures.push_back(Share(measure, sensors, score));
  }
  const bool holds = success_->Holds(sensors, score);
  held = holds ? held + 1 : 0;
  if (reward_measure_ >= 0) {
    outcome.reward = outcome.measures[reward_measure_];
  } else if (!stages_.empty()) {
    outcome.reward = score / highest_;
  } else {
    outcome.reward = holds ? 1 : 0;
  }
  if (measures_.empty()) outcome.measures.push_back(outcome.reward);
  outcome.lost = failure_ && failure_->Holds(sensors, score);
  outcome.success = held >= hold_ && !outcome.lost;
  outcome.enough = !run_on_;
}

}  // namespace mjp::app
