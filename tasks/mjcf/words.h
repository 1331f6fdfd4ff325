#ifndef TASKS_MJCF_WORDS_H_
#define TASKS_MJCF_WORDS_H_

#include <mujoco/mujoco.h>

#include <string>
#include <vector>

#include "base/error.h"

// The texts of a task file: entries with ';' between them, made of words.

namespace mjp::app {

// Where in a task file something stands.
struct Place {
  std::string element;  // "task.start"
  std::string entry;    // as it is written; empty: the element as a whole

  // text "task.start", entry "joint cart around": <why>
  Error Refuse(const std::string& why) const;
};

// `text` without blanks at its ends.
std::string Trimmed(const std::string& text);

// The entries of a text, without blanks around them; those that are empty left out.
std::vector<std::string> Entries(const std::string& text);

std::vector<std::string> Words(const std::string& text);

// The number that `word` wholly is, finite. Throws place.Refuse.
double ToNumber(const std::string& word, const Place& place);

// `"uniforn" is no distribution; did you mean "uniform"? There are: uniform, normal`: the word
// nearest to `word`, if one is near, and the first of all.
std::string NoSuch(const std::string& what, const std::string& word,
                   const std::vector<std::string>& known);

// The names of all objects of a type; objects without one are left out.
std::vector<std::string> NamesOf(const mjModel* model, mjtObj type);

// The object of that name. Throws place.Refuse with those that there are.
int FindNamed(const mjModel* model, mjtObj type, const std::string& name, const Place& place);

// The text or the numbers of that name in <custom>; null or empty: there is none.
const char* CustomText(const mjModel* model, const std::string& name);
std::vector<double> CustomNumbers(const mjModel* model, const std::string& name);

}  // namespace mjp::app

#endif  // TASKS_MJCF_WORDS_H_
