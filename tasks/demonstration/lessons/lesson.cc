#include "tasks/demonstration/lessons/lesson.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/error.h"
#include "tasks/physics/random_stream.h"
#include "tasks/task_code.h"

namespace mjp::app {
namespace {

// What the random numbers of a lesson are for.
enum Purpose : uint64_t { kNoise = 11, kTakeover = 12, kFirstPicture = 13 };

// A disturbance of actions that changes slowly: it forgets half of itself in 14 control steps.
class SlowNoise {
 public:
  // `level`: standard deviation, share of each number's range.
  SlowNoise(double level, const std::vector<ActionRange>& ranges)
      : level_(level), ranges_(ranges), now_(ranges.size()) {}

  void Add(RandomStream& random, std::vector<float>& action) {
    constexpr double kKept = 0.95;
    const double fresh = std::sqrt(1 - kKept * kKept);
    for (size_t i = 0; i < action.size(); ++i) {
      const double deviation = level_ * (ranges_[i].high - ranges_[i].low);
      now_[i] = kKept * now_[i] + fresh * deviation * random.Normal();
      action[i] += static_cast<float>(now_[i]);
    }
  }

 private:
  double level_;
  const std::vector<ActionRange>& ranges_;
  std::vector<double> now_;
};

}  // namespace

LessonPlayer::LessonPlayer(std::shared_ptr<const TaskFile> file,
                           std::unique_ptr<Demonstrator> teacher, const LessonOptions& options)
    : file_(std::move(file)),
      teacher_(std::move(teacher)),
      options_(options),
      world_(file_, MakeTaskCode(*file_)),
      looks_(*file_, {options.width, options.height, false, options.cuda_device}),
      ranges_(ActionRanges(*file_)) {}

Lesson LessonPlayer::Play(uint32_t seed) {
  Lesson lesson;
  world_.Start(seed);
  Teach(seed, lesson);
  return lesson;
}

Lesson LessonPlayer::PlayAfter(Demonstrator& learner, uint32_t seed) {
  Lesson lesson;
  RandomStream random(seed, kTakeover);
  const int steps = file_->rules().steps();
  const int takeover = steps / 3 + random.Below(steps - steps / 3 + 1);
  if (const auto end = Learn(learner, seed, takeover)) {
    lesson.end = *end;
  } else {
    Teach(seed, lesson);
  }
  return lesson;
}

std::optional<LessonEnd> LessonPlayer::Learn(Demonstrator& learner, uint32_t seed, int steps) {
  world_.Start(seed);
  learner.Begin(seed, world_.model(), world_.data());
  std::vector<mjtNum> numbers(static_cast<size_t>(world_.action_size()));
  StepOutcome outcome;
  for (int step = 0; step < steps; ++step) {
    learner.Act(world_.model(), world_.data(), numbers);
    world_.Step(std::vector<float>(numbers.begin(), numbers.end()), outcome);
    if (outcome.success && outcome.failure.empty()) return LessonEnd::kSucceeded;
    if (outcome.lost || !outcome.failure.empty()) return LessonEnd::kLost;
  }
  return std::nullopt;
}

void LessonPlayer::Teach(uint32_t seed, Lesson& lesson) {
  RandomStream random(seed, kNoise);
  SlowNoise noise(2 * random.Uniform() * options_.noise, ranges_);
  teacher_->Begin(options_.style, world_.model(), world_.data());
  std::vector<mjtNum> numbers(static_cast<size_t>(world_.action_size()));
  StepOutcome outcome;
  int left = file_->rules().steps(), succeeded = 0;
  int until_picture = RandomStream(seed, kFirstPicture).Below(options_.picture_every);
  while (left-- > 0 && !outcome.lost && outcome.failure.empty()) {
    const bool seen = until_picture-- == 0;
    if (seen) until_picture = options_.picture_every - 1;
    datasets::Frame frame = looks_.Look(world_, seen);
    teacher_->Act(world_.model(), world_.data(), numbers);
    std::vector<float> action(numbers.begin(), numbers.end());
    frame.numbers["action"] = {action.begin(), action.end()};
    lesson.frames.push_back(std::move(frame));
    noise.Add(random, action);
    world_.Step(action, outcome);
    if (outcome.success && succeeded++ == 0) left = std::min(left, options_.run_on);
  }
  if (outcome.success && outcome.failure.empty()) lesson.end = LessonEnd::kTaught;
}

}  // namespace mjp::app
