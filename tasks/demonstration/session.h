#ifndef TASKS_DEMONSTRATION_SESSION_H_
#define TASKS_DEMONSTRATION_SESSION_H_

#include <array>
#include <cstdint>
#include <future>
#include <memory>
#include <string>

#include "tasks/demonstration/demonstration_writer.h"
#include "tasks/demonstration/person.h"

namespace mjp::app {

// A person records a data set: episodes one after the other, each driven in real time, then kept or
// discarded. Not thread-safe; episodes are put on the disk on a thread of their own.
class RecordingSession {
 public:
  enum class Phase {
    kReady,    // at a start
    kShowing,  // the person drives
    kOver,     // the episode has ended: it waits to be kept or discarded
  };

  // `hand` as Person has it. options.by and keep_all are a person's whatever they say. Throws Error
  // as DemonstrationWriter and Person do.
  RecordingSession(RecordOptions options, std::shared_ptr<const TaskFile> file,
                   const std::string& hand);
  // Waits for what is being saved.
  ~RecordingSession();

  // Goes to the start of the next seed, or of this one again. What was shown is forgotten.
  void Next();
  void Again();
  // Lets the person drive from the start.
  void Start();
  // One step of the engine; the person's action is taken at the begin of each control step. Nothing
  // where nobody drives. Throws Error where the action cannot be taken.
  void Advance();
  // Moves what is dragged by (x, y, z) of the world: the hand's target, or a mocap body, from the
  // next control step on.
  void Drag(const std::array<double, 3>& by);
  // Takes the next of these to be dragged.
  void NextTarget();
  // Goes back to before control step `step` of the episode.
  void Rewind(int step);
  // Ends the episode, hands it to the disk, and goes to the next start. Without a control step
  // nothing is kept. Throws Error where the one before could not be saved.
  void Keep();
  // Throws Error where an episode could not be saved since the last call.
  void CheckSaved();
  // Waits until all kept episodes can be read. Throws Error as CheckSaved.
  void Finish();

  Phase phase() const { return phase_; }
  bool between_control_steps() const { return !within_; }
  int step() const { return static_cast<int>(showing_.shown().rewards.size()); }
  uint32_t seed() const { return seed_; }
  bool success() const { return showing_.shown().result.success(); }
  double reward() const;  // of the last control step
  double score() const;   // the largest so far
  // An episode is on its way to the disk; kept() counts it from the CheckSaved on that ends this.
  bool saving() const { return saving_.valid(); }
  int64_t kept() const { return kept_; }  // episodes that cannot be lost any more

  // What is dragged; empty: nothing is there that could be.
  std::string target_name() const;
  std::array<mjtNum, 3> target() const;
  bool drags_mocap() const { return mocap_body_ >= 0; }
  int targets() const;  // that there are
  Person& person() { return person_; }
  const Person& person() const { return person_; }
  EpisodeWorld& world() { return world_; }
  const TaskFile& file() const { return *file_; }

 private:
  void Begin();
  int mocap_bodies() const { return file_->model()->nmocap; }

  RecordOptions options_;
  std::shared_ptr<const TaskFile> file_;
  DemonstrationWriter writer_;
  EpisodeWorld world_;
  Showing showing_;
  Person person_;
  std::vector<mjtNum> action_;
  std::vector<mjtNum> mocap_;  // as EpisodeWorld::PlaceMocap has it
  int mocap_body_ = -1;        // that is dragged; negative: the hand is
  Phase phase_ = Phase::kReady;
  bool within_ = false;  // a control step
  uint32_t seed_;
  int64_t kept_;
  std::future<void> saving_;  // uses writer_ until it is ready
};

}  // namespace mjp::app

#endif  // TASKS_DEMONSTRATION_SESSION_H_
