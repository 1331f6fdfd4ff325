#ifndef TASKS_MJCF_START_H_
#define TASKS_MJCF_START_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/mjcf/draws.h"
#include "tasks/mjcf/words.h"

namespace mjp::app {

// What an entry of a start draws.
enum class StartField {
  kJoint,
  kJointVelocity,
  kJointYaw,
  kBodyPos,
  kBodyYaw,
  kGeomRgba,
  kGeomSize,
  kLightPos,
  kLightDiffuse,
  kCameraPos
};

// How an episode of a task file begins (docs/tasks.md, The start): keyframe, draws, settling.
class Start {
 public:
  // Reads `task.start` and `task.random` of `model`. Throws Error naming entry and word.
  explicit Start(const mjModel* model);

  // Brings `data`, and what of `model` is drawn, to where the episode of `seed` begins, by nothing
  // else: `original` is the model as it was compiled, of which `model` is a copy. No plugin is to
  // act in it. Time is 0.
  void Apply(uint32_t seed, const mjModel* original, mjModel* model, mjData* data) const;
  // Whether something of the model itself is drawn.
  bool changes_model() const { return changes_model_; }
  // Gives `to`, compiled from the same file, what of `from` is drawn.
  static void CopyDrawn(const mjModel* from, mjModel* to);
  // Whether CopyDrawn would change nothing but the disabled flags.
  static bool DrawnAlike(const mjModel* a, const mjModel* b);

 private:
  enum class Kind { kUniform, kNormal, kAround, kChoice };
  struct Draw {
    StartField field;
    int id, begin, count;  // of its components
    Kind kind;
    std::vector<double> numbers;  // as they are written, one set for each component
  };
  void ReadKey(const mjModel* model, const std::vector<std::string>& words, const Place& place);
  void ReadSettle(const mjModel* model, const std::vector<std::string>& words, const Place& place);
  void ReadDraw(const mjModel* model, const std::vector<std::string>& words, const Place& place);
  static void CheckSizes(const mjModel* model, const Draw& draw, const Place& place);
  double Value(const Draw& draw, uint32_t entry, int component, double base, Draws& draws,
               int choice) const;

  int key_ = -1;     // keyframe; negative: none
  int settle_ = -1;  // steps of the engine; negative: none
  bool numpy_ = false;
  bool changes_model_ = false, changes_sizes_ = false;
  std::vector<Draw> draws_;
};

}  // namespace mjp::app

#endif  // TASKS_MJCF_START_H_
