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

// Reads the number off a simulation whose positions are up to date. Const calls may be concurrent.
using Score = std::function<double(const mjData*)>;

// Makes the score for `model`, which must outlive it; empty where the model is not of that task.
using ScoreFactory = std::function<Score(const mjModel* model)>;

// Adds a score. The first registration of a name stands. Safe in static constructors.
void RegisterScore(const std::string& name, ScoreFactory factory);

// The scores that `model` has, by name.
std::vector<std::pair<std::string, Score>> ScoresOf(const mjModel* model);

}  // namespace mjp

#endif  // PLUGIN_SCORE_H_
