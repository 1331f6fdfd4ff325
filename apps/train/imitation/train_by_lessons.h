#ifndef APPS_TRAIN_IMITATION_TRAIN_BY_LESSONS_H_
#define APPS_TRAIN_IMITATION_TRAIN_BY_LESSONS_H_

#include <atomic>
#include <ostream>
#include <string>

#include "apps/train/data/lessons.h"
#include "apps/train/imitation/train_on_dataset.h"

namespace mjp::app {

struct LessonTraining {
  std::string model;  // a task file with an expert
  int lessons = 300;  // of the expert alone, before the training
  LessonOptions how;
};

// Trains a policy for a task file by lessons of its expert, and in options.rounds.count rounds of
// options.rounds.episodes starts by lessons from where the student had got to (DAgger). Frames are
// kept in memory alone: a run that goes on plays its lessons again, those of a round after the
// student in options.out/students/<round>. Other files and options are those of TrainOnDataset.
// Returns whether the training is complete. Throws Error for a file, lessons or options that cannot
// be used.
bool TrainByLessons(const LessonTraining& lessons, const ImitationOptions& imitation,
                    const TrainOptions& options, Ranks& ranks, std::ostream& progress,
                    const std::atomic<bool>& stop);

}  // namespace mjp::app

#endif  // APPS_TRAIN_IMITATION_TRAIN_BY_LESSONS_H_
