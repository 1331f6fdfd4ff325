#ifndef PLUGIN_SCORE_H_
#define PLUGIN_SCORE_H_

#include <mujoco/mujoco.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Numbers that tell how well a task is going, for people to see. The plugin knows no task; a task
// adds its own by RegisterScore.

namespace mjp {

// A score of one model and its copies. Calls may be concurrent.
struct Score {
  // Reads the number off a simulation of `model`, as that is now, whose positions are up to date.
  // Throws as `check` does.
  std::function<double(const mjModel* model, const mjData* data)> read;
  // Throws Error, a sentence, where the score would not be that of what `model` has.
  std::function<void(const mjModel* model)> check;

  explicit operator bool() const { return static_cast<bool>(read); }
};

// Makes the score for `model`; empty where the model is not of that task.
using ScoreFactory = std::function<Score(const mjModel* model)>;

// Adds a score. The first registration of a name stands. Safe in static constructors.
void RegisterScore(const std::string& name, ScoreFactory factory);

// The scores that `model` has, by name.
std::vector<std::pair<std::string, Score>> ScoresOf(const mjModel* model);

// The names of all scores, also of those that a model does not have.
std::vector<std::string> ScoreNames();

}  // namespace mjp

#endif  // PLUGIN_SCORE_H_
