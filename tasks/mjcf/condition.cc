#include "tasks/mjcf/condition.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "plugin/model/binding.h"

namespace mjp::app {
namespace {

constexpr std::string_view kSigns = "!|<>=", kBlanks = " \t\r\n";

bool IsIn(std::string_view set, char c) { return set.find(c) != std::string_view::npos; }

// "a", "!", "|", "<", ">=" and numbers
std::vector<std::string> Tokens(const std::string& text) {
  std::vector<std::string> tokens;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (IsIn(kBlanks, text[i])) {
      ++i;
      continue;
    }
    if (IsIn(kSigns, text[i])) {
      end += (text[i] == '<' || text[i] == '>') && end < text.size() && text[end] == '=';
    } else {
      while (end < text.size() && !IsIn(kSigns, text[end]) && !IsIn(kBlanks, text[end])) ++end;
    }
    tokens.push_back(text.substr(i, end - i));
    i = end;
  }
  return tokens;
}

std::vector<std::string> SensorsOfTheWorld(const mjModel* model) {
  std::vector<std::string> names;
  for (int id = 0; id < model->nsensor; ++id) {
    const char* name = mj_id2name(model, mjOBJ_SENSOR, id);
    const int type = model->sensor_type[id];
    if (name && *name && type != mjSENS_PLUGIN && type != mjSENS_USER) names.emplace_back(name);
  }
  return names;
}

}  // namespace

SensorNumber FindSensorNumber(const mjModel* model, const std::string& text, const Place& place) {
  std::string name = text;
  const std::optional<Components> chosen = CutComponents(name);
  if (!chosen) throw place.Refuse("\"" + text + "\": a component is chosen as NAME[1]");
  const int id = mj_name2id(model, mjOBJ_SENSOR, name.c_str());
  if (id < 0) throw place.Refuse(NoSuch("sensor of the model", name, SensorsOfTheWorld(model)));
  const int type = model->sensor_type[id], dim = model->sensor_dim[id];
  if (type == mjSENS_PLUGIN || type == mjSENS_USER) {
    throw place.Refuse("sensor \"" + name +
                       "\" is filled by a plugin or the host; judge by sensors of the world");
  }
  const int end = chosen->end < 0 ? dim : chosen->end;
  if (end > dim) {
    throw place.Refuse("\"" + text + "\": that sensor has " + std::to_string(dim) + " numbers");
  }
  if (end - chosen->begin != 1) {
    throw place.Refuse("sensor \"" + name + "\" has " + std::to_string(dim) +
                       " numbers; choose one, as in " + name + "[0]");
  }
  return {model->sensor_adr[id] + chosen->begin,
          static_cast<mjtStage>(model->sensor_needstage[id])};
}

// condition = group group ...; group = term | term | ...; term = [!] name [comparison number]
class Condition::Parser {
 public:
  Parser(const mjModel* model, const std::string& text, bool knows_score, const Place& place,
         Condition& condition)
      : model_(model),
        tokens_(Tokens(text)),
        knows_score_(knows_score),
        place_(place),
        condition_(condition) {}

  void Parse() {
    if (tokens_.empty()) throw place_.Refuse("a condition is missing");
    while (at_ < tokens_.size()) {
      std::vector<Term> group{ParseTerm()};
      while (Take("|")) group.push_back(ParseTerm());
      condition_.groups_.push_back(std::move(group));
    }
  }

 private:
  bool Take(const char* token) {
    if (at_ >= tokens_.size() || tokens_[at_] != token) return false;
    ++at_;
    return true;
  }

  std::string Next(const char* what) {
    if (at_ >= tokens_.size()) throw place_.Refuse(std::string(what) + " is missing at the end");
    if (IsIn(kSigns, tokens_[at_][0])) {
      throw place_.Refuse("\"" + tokens_[at_] + "\" stands where " + what + " is expected");
    }
    return tokens_[at_++];
  }

  Term ParseTerm() {
    Term term;
    while (Take("!")) term.negated = !term.negated;
    const std::string name = Next("the name of a sensor");
    if (name == "score" && knows_score_) {
      term.is_score = true;
    } else {
      const SensorNumber number = FindSensorNumber(model_, name, place_);
      term.address = number.address;
      condition_.stage_ = std::max(condition_.stage_, number.stage);
    }
    constexpr std::pair<const char*, Comparison> kComparisons[] = {{">", Comparison::kAbove},
                                                                   {"<", Comparison::kBelow},
                                                                   {">=", Comparison::kAtLeast},
                                                                   {"<=", Comparison::kAtMost}};
    for (const auto& [sign, comparison] : kComparisons) {
      if (!Take(sign)) continue;
      term.comparison = comparison;
      term.number = ToNumber(Next("a number"), place_);
      return term;
    }
    if (at_ < tokens_.size() && tokens_[at_] == "=") {
      throw place_.Refuse("numbers of a simulation are hardly ever equal: compare by < > <= >=");
    }
    return term;
  }

  const mjModel* model_;
  std::vector<std::string> tokens_;
  bool knows_score_;
  const Place& place_;
  Condition& condition_;
  size_t at_ = 0;
};

Condition::Condition(const mjModel* model, const std::string& text, bool knows_score,
                     const Place& place) {
  Parser(model, text, knows_score, place, *this).Parse();
}

bool Condition::Holds(const Term& term, const mjtNum* sensors, double score) {
  const double value = term.is_score ? score : sensors[term.address];
  switch (term.comparison) {
    case Comparison::kAbove:
      return (value > term.number) != term.negated;
    case Comparison::kBelow:
      return (value < term.number) != term.negated;
    case Comparison::kAtLeast:
      return (value >= term.number) != term.negated;
    case Comparison::kAtMost:
      break;
  }
  return (value <= term.number) != term.negated;
}

bool Condition::Holds(const mjtNum* sensors, double score) const {
  return std::ranges::all_of(groups_, [&](const std::vector<Term>& group) {
    return std::ranges::any_of(group,
                               [&](const Term& term) { return Holds(term, sensors, score); });
  });
}

}  // namespace mjp::app
