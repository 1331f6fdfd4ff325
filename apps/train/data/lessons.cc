#include "apps/train/data/lessons.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "policy/checkpoint/checkpoint.h"
#include "tasks/demonstration/checkpoint_demonstrator.h"
#include "tasks/demonstration/lessons/lesson.h"
#include "tasks/task_code.h"
#if MJPOLICY_HAVE_CUDA
#include "kernels/cuda/primitives/gpu_probe.h"
#endif

namespace mjp::app {
namespace {

// A feature of numbers of all frames (frames, numbers).
at::Tensor Numbers(const std::vector<datasets::Frame>& frames, const std::string& name) {
  const auto found = frames.front().numbers.find(name);
  const auto count = found == frames.front().numbers.end() ? 0 : found->second.size();
  at::Tensor values =
      at::empty({static_cast<int64_t>(frames.size()), static_cast<int64_t>(count)}, at::kFloat);
  auto* to = values.mutable_data_ptr<float>();
  if (count == 0) return values;
  for (const datasets::Frame& frame : frames) {
    to = std::ranges::transform(frame.numbers.at(name), to, [](double value) {
           return static_cast<float>(value);
         }).out;
  }
  return values;
}

// Which picture each frame has (frames); negative: none.
at::Tensor PictureOf(const std::vector<datasets::Frame>& frames) {
  std::vector<int64_t> places;
  int64_t next = 0;
  for (const datasets::Frame& frame : frames) {
    places.push_back(frame.pictures.empty() ? -1 : next++);
  }
  return at::tensor(places, at::kLong);
}

// A camera's pictures of the frames that have them: u8 (pictures, height, width, 3).
at::Tensor Pictures(const std::vector<datasets::Frame>& frames, const std::string& camera) {
  std::vector<const datasets::Picture*> seen;
  for (const datasets::Frame& frame : frames) {
    if (!frame.pictures.empty()) seen.push_back(&frame.pictures.at(camera));
  }
  at::Tensor pictures =
      at::empty({static_cast<int64_t>(seen.size()), seen[0]->height, seen[0]->width, 3}, at::kByte);
  auto* to = pictures.mutable_data_ptr<uint8_t>();
  for (const datasets::Picture* each : seen) to = std::ranges::copy(each->rgb, to).out;
  return pictures;
}

RecordedFrames Recorded(const TaskFile& file, const Lesson& lesson, const datasets::Info& info) {
  RecordedFrames frames;
  frames.fps = static_cast<int>(std::lround(1 / file.period()));
  frames.begin = {0, static_cast<int64_t>(lesson.frames.size())};
  frames.held_out = {false};
  frames.state = Numbers(lesson.frames, "observation.state");
  frames.environment = Numbers(lesson.frames, "observation.environment_state");
  frames.action = Numbers(lesson.frames, "action");
  frames.picture_of = PictureOf(lesson.frames);
  for (const datasets::Feature& feature : info.features) {
    if (!feature.IsPicture()) continue;
    AddCamera(feature, "lesson", frames);
    frames.pictures.push_back(Pictures(lesson.frames, feature.name));
  }
  return frames;
}

bool Seen(const Lesson& lesson) {
  const auto seen = [](const datasets::Frame& frame) { return !frame.pictures.empty(); };
  return std::ranges::any_of(lesson.frames, seen);
}

// All lessons one after the other.
RecordedFrames Together(std::vector<RecordedFrames>& lessons) {
  RecordedFrames all = lessons.front();
  const auto join = [&](auto part) {
    std::vector<at::Tensor> parts;
    for (const RecordedFrames& lesson : lessons) parts.push_back(part(lesson));
    return at::cat(parts);
  };
  all.state = join([](const RecordedFrames& lesson) { return lesson.state; });
  all.environment = join([](const RecordedFrames& lesson) { return lesson.environment; });
  all.action = join([](const RecordedFrames& lesson) { return lesson.action; });
  for (size_t i = 0; i < all.pictures.size(); ++i) {
    all.pictures[i] = join([i](const RecordedFrames& lesson) { return lesson.pictures[i]; });
  }
  all.begin = {0};
  int64_t pictures = 0;
  for (RecordedFrames& lesson : lessons) {
    all.begin.push_back(all.begin.back() + lesson.frames());
    const at::Tensor& places = lesson.picture_of;
    lesson.picture_of = at::where(places < 0, places, places + pictures);
    if (!lesson.pictures.empty()) pictures += lesson.pictures[0].size(0);
  }
  all.picture_of = join([](const RecordedFrames& lesson) { return lesson.picture_of; });
  return all;
}

#if MJPOLICY_HAVE_CUDA
// Lets this thread's policies be made for a GPU; negative: for none.
std::optional<DeviceScope> OnDevice(int cuda_device) {
  if (cuda_device < 0) return std::nullopt;
  return std::optional<DeviceScope>(std::in_place, cuda_device);
}
#else
int OnDevice(int) { return 0; }
#endif

}  // namespace

std::map<std::string, std::string> LearnerAttributes(const TaskFile& file, const LessonOptions& how,
                                                     const std::string& checkpoint) {
  const Config& said = file.policy().config;
  std::map<std::string, std::string> attributes = {
      {"checkpoint", std::filesystem::absolute(checkpoint).string()},
      {"sampler", "ddim"},
      {"steps", "10"},
      {"temperature", "1"},
      {"threads", "1"}};
  if (said.action_steps == 0) {
    attributes["action_steps"] = std::to_string(LoadCheckpoint(checkpoint)->config.n_action_steps);
  }
  if (said.action_steps == 0 || !said.replan_beyond) {
    attributes["replan_beyond"] = "0";
    attributes["replan_after"] = "";
  }
  if (how.cuda_device < 0) {
    attributes["backend"] = "cpu";
    attributes["precision"] = "";  // the GPU's
  }
  return attributes;
}

LessonSchool::LessonSchool(const std::string& model, const LessonOptions& how, int threads)
    : file_(std::make_shared<const TaskFile>(model)), how_(how), threads_(threads) {
  MakeExpert(*file_);
  if (file_->policy().config.cameras.empty()) {
    throw BadInput(model + ": lessons need a camera: give the policy an attribute camera");
  }
}

std::string LessonSchool::task() const { return file_->name(); }

PlayedLessons LessonSchool::Play(const LessonPlan& plan, const std::atomic<bool>& stop) const {
  const int gpu = how_.cuda_device;
  DemonstratorFactory learners;
  if (!plan.checkpoint.empty()) {
    [[maybe_unused]] const auto device = OnDevice(gpu);
    learners = CheckpointDemonstrators(file_, LearnerAttributes(*file_, how_, plan.checkpoint));
  }
  const datasets::Info info = InfoOf(*file_, {how_.width, how_.height});
  std::vector<RecordedFrames> lessons(static_cast<size_t>(plan.count));
  std::atomic<int> next = 0, succeeded = 0, lost = 0;
  RunOnThreads(std::min(threads_, plan.count), [&](const std::atomic<bool>& failed) {
    [[maybe_unused]] const auto device = OnDevice(gpu);
    LessonPlayer player(file_, MakeExpert(*file_), how_);
    const std::unique_ptr<Demonstrator> learner = learners ? learners() : nullptr;
    for (int i = next++; i < plan.count && !failed && !stop; i = next++) {
      const uint32_t seed = plan.seed + static_cast<uint32_t>(i);
      const Lesson lesson = learner ? player.PlayAfter(*learner, seed) : player.Play(seed);
      succeeded += lesson.end == LessonEnd::kSucceeded;
      lost += lesson.end == LessonEnd::kLost;
      if (lesson.end == LessonEnd::kTaught && Seen(lesson))
        lessons[i] = Recorded(*file_, lesson, info);
    }
  });
  std::erase_if(lessons, [](const RecordedFrames& lesson) { return lesson.begin.empty(); });
  PlayedLessons played;
  played.succeeded = succeeded;
  played.lost = lost;
  played.taught = static_cast<int>(lessons.size());
  if (lessons.empty()) return played;
  played.frames = Together(lessons);
  HoldOut(plan.validation, played.frames);
  return played;
}

}  // namespace mjp::app
