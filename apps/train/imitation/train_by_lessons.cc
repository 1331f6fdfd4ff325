#include "apps/train/imitation/train_by_lessons.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "apps/train/imitation/run.h"
#include "apps/train/optimisation/device.h"
#include "apps/train/run_length.h"
#include "apps/train/run_state.h"
#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "policy/timing.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kFirstSeed = 3000000000;  // of the starts: beyond those of evaluations
constexpr char kStudents[] = "students";     // in data.json: how those of the rounds play

void Check(const LessonTraining& lessons, const ImitationOptions& imitation,
           const TrainOptions& options, const Ranks& ranks) {
  CheckLength(options);
  if (ranks.size() > 1) {
    throw Error(ExitCode::kUsage, "--expert trains on one GPU: leave --gpus out");
  }
  if (lessons.how.picture_every > 1 && imitation.shape.observation_steps > 1) {
    throw Error(ExitCode::kUsage,
                "--picture-every: needs --observation-steps 1, for frames one after the other");
  }
}

// A hash of all numbers of `frames`. Pictures are left out: another GPU draws them a little
// otherwise.
std::string NumbersOf(const RecordedFrames& frames) {
  std::string hashes;
  for (const at::Tensor& numbers : {frames.state, frames.environment, frames.action}) {
    const at::Tensor dense = numbers.contiguous();
    hashes += Sha256({static_cast<const uint8_t*>(dense.const_data_ptr()), dense.nbytes()});
  }
  return Sha256({reinterpret_cast<const uint8_t*>(hashes.data()), hashes.size()});
}

// What a run learns from, beside the students of the rounds. `first`: the lessons before the
// training, whose statistics normalise all.
Json DataOf(const std::string& task, const RecordedFrames& first, const LessonTraining& lessons,
            const ImitationOptions& imitation, const TrainOptions& options) {
  const LessonOptions& how = lessons.how;
  Json data = {{"task", task},
               {"lessons", lessons.lessons},
               {"lesson_noise", how.noise},
               {"lesson_style", how.style},
               {"picture_every", how.picture_every},
               {"picture", {how.width, how.height}},
               {"validation", imitation.data.validation},
               {"horizon", imitation.shape.horizon},
               {"crop", {imitation.shape.crop_width, imitation.shape.crop_height}},
               {"content", NumbersOf(first)},
               {"rounds", options.rounds.count},
               {"episodes", options.rounds.episodes}};
  if (options.rounds.count > 0) data[kStudents] = "as they are trained";
  return data;
}

// Throws Error for a run of an earlier build, which does not say what its lessons were, or whose
// students played as its checkpoint is executed and wherever there was a GPU.
void CheckLessonsKnown(const std::string& out) {
  const std::string data = out + "/data.json";
  if (!HasRunState(out + "/state.safetensors") || !fs::exists(data)) return;
  const Json told = ReadJson(data);
  const bool with_rounds = told.contains("rounds") && told.at("rounds") != 0;
  if (told.contains("content") && (!with_rounds || told.contains(kStudents))) return;
  throw BadInput(data + ": is of an earlier build; the lessons of this build are others; give " +
                 "another --out");
}

// Keeps a round's student for a run that goes on: the lessons of the round are a function of it.
// Throws Error where it cannot be kept.
void KeepStudent(const std::string& checkpoint, const fs::path& kept) {
  const fs::path unfinished = kept.string() + ".unfinished";
  std::error_code error;
  fs::remove_all(unfinished, error);
  fs::create_directories(kept.parent_path(), error);
  fs::copy(checkpoint, unfinished, error);
  if (!error) fs::rename(unfinished, kept, error);
  if (error) throw BadInput(kept.string() + ": cannot be made: " + error.message());
}

void Say(const PlayedLessons& played, int starts, double begin, std::ostream& progress) {
  progress << "lessons: " << played.taught << " of " << starts << " starts";
  if (played.succeeded > 0) progress << ", " << played.succeeded << " managed by the student alone";
  if (played.lost > 0) progress << ", " << played.lost << " failed for good by the student";
  progress << ", in " << static_cast<int>(Now() - begin) << " s" << std::endl;
}

}  // namespace

bool TrainByLessons(const LessonTraining& lessons, const ImitationOptions& imitation,
                    const TrainOptions& options, Ranks& ranks, std::ostream& progress,
                    const std::atomic<bool>& stop) {
  Check(lessons, imitation, options, ranks);
  CheckLessonsKnown(options.out);
  const at::Device device = ChooseDevice(options.device, ranks);
  LessonOptions how = lessons.how;
  how.cuda_device = device.is_cuda() ? device.index() : -1;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const LessonSchool school(lessons.model, how,
                            options.data.threads > 0 ? options.data.threads : cores);
  double begin = Now();
  uint32_t seed = kFirstSeed;
  LessonPlan plan = {lessons.lessons, seed, imitation.data.validation, ""};
  PlayedLessons first = school.Play(plan, stop);
  if (stop) return false;
  if (first.taught == 0) {
    throw BadInput(lessons.model + ": none of " + std::to_string(lessons.lessons) +
                   " lessons ended in success; give a smaller --lesson-noise");
  }
  Say(first, plan.count, begin, progress);
  const int rounds = options.rounds.count;
  const Json data = DataOf(school.task(), first.frames, lessons, imitation, options);
  ImitationRun run(std::move(first.frames), imitation.shape, data, rounds > 0, options, ranks,
                   stop);
  for (int round = 1; round <= rounds; ++round) {
    const fs::path student = fs::path(options.out) / "students" / std::to_string(round);
    // a round that was played is learnt from at once, also where a longer run has it later
    if (!fs::exists(student)) {
      if (!run.Train(static_cast<double>(round) / (rounds + 1), progress)) return false;
      KeepStudent(run.checkpoint(), student);
    }
    begin = Now();
    seed += static_cast<uint32_t>(plan.count);
    plan = {options.rounds.episodes, seed, 0, student};
    const PlayedLessons played = school.Play(plan, stop);
    if (stop) return false;
    Say(played, plan.count, begin, progress);
    if (played.taught > 0) run.Add(played.frames);
  }
  return run.Train(1, progress);
}

}  // namespace mjp::app
