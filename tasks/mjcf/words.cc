#include "tasks/mjcf/words.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/command_line/edit_distance.h"
#include "base/text_stream.h"

namespace mjp::app {
namespace {

constexpr char kBlanks[] = " \t\r\n";

const char* WordFor(mjtObj type) {
  switch (type) {
    case mjOBJ_JOINT:
      return "joint";
    case mjOBJ_BODY:
      return "body";
    case mjOBJ_GEOM:
      return "geom";
    case mjOBJ_LIGHT:
      return "light";
    case mjOBJ_CAMERA:
      return "camera";
    case mjOBJ_KEY:
      return "keyframe";
    default:
      return "sensor";
  }
}

int CountOf(const mjModel* model, mjtObj type) {
  switch (type) {
    case mjOBJ_JOINT:
      return static_cast<int>(model->njnt);
    case mjOBJ_BODY:
      return static_cast<int>(model->nbody);
    case mjOBJ_GEOM:
      return static_cast<int>(model->ngeom);
    case mjOBJ_LIGHT:
      return static_cast<int>(model->nlight);
    case mjOBJ_CAMERA:
      return static_cast<int>(model->ncam);
    case mjOBJ_KEY:
      return static_cast<int>(model->nkey);
    default:
      return static_cast<int>(model->nsensor);
  }
}

}  // namespace

Error Place::Refuse(const std::string& why) const {
  return BadInput("\"" + element + "\"" + (entry.empty() ? "" : ", entry \"" + entry + "\"") +
                  ": " + why);
}

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::vector<std::string> Entries(const std::string& text) {
  std::vector<std::string> entries;
  TextReader reader(text);
  for (std::string entry; std::getline(reader, entry, ';');) {
    if (const std::string trimmed = Trimmed(entry); !trimmed.empty()) entries.push_back(trimmed);
  }
  return entries;
}

std::vector<std::string> Words(const std::string& text) {
  TextReader reader(text);
  std::vector<std::string> words;
  for (std::string word; reader >> word;) words.push_back(word);
  return words;
}

double ToNumber(const std::string& word, const Place& place) {
  double value = 0;
  const char* begin = word.data() + word.starts_with('+');
  const auto [end, code] = std::from_chars(begin, word.data() + word.size(), value);
  if (code == std::errc() && end == word.data() + word.size() && std::isfinite(value)) {
    return value;
  }
  throw place.Refuse("\"" + word + "\" is no number");
}

std::string NoSuch(const std::string& what, const std::string& word,
                   const std::vector<std::string>& known) {
  std::string text = "\"" + word + "\" is no " + what;
  if (known.empty()) return text + "; there is none";
  const auto nearest = std::ranges::min_element(
      known, {}, [&](const std::string& each) { return EditDistance(word, each); });
  const size_t near = std::max<size_t>(2, word.size() / 3);
  if (EditDistance(word, *nearest) <= near) text += "; did you mean \"" + *nearest + "\"?";
  constexpr size_t kMost = 20;
  text += (text.back() == '?' ? " There are: " : "; there are: ");
  for (size_t i = 0; i < std::min(kMost, known.size()); ++i) text += (i ? ", " : "") + known[i];
  return known.size() > kMost ? text + " ..." : text;
}

std::vector<std::string> NamesOf(const mjModel* model, mjtObj type) {
  std::vector<std::string> names;
  for (int id = 0; id < CountOf(model, type); ++id) {
    const char* name = mj_id2name(model, type, id);
    if (name && *name) names.emplace_back(name);
  }
  return names;
}

int FindNamed(const mjModel* model, mjtObj type, const std::string& name, const Place& place) {
  const int id = mj_name2id(model, type, name.c_str());
  if (id >= 0) return id;
  throw place.Refuse(
      NoSuch(std::string(WordFor(type)) + " of the model", name, NamesOf(model, type)));
}

const char* CustomText(const mjModel* model, const std::string& name) {
  const int id = mj_name2id(model, mjOBJ_TEXT, name.c_str());
  return id < 0 ? nullptr : model->text_data + model->text_adr[id];
}

std::vector<double> CustomNumbers(const mjModel* model, const std::string& name) {
  const int id = mj_name2id(model, mjOBJ_NUMERIC, name.c_str());
  if (id < 0) return {};
  const mjtNum* begin = model->numeric_data + model->numeric_adr[id];
  return {begin, begin + model->numeric_size[id]};
}

}  // namespace mjp::app
