#include "tasks/mjcf/batch/mjcf_batch.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/threads.h"
#include "plugin/pictures/pose.h"
#include "tasks/evaluation/disturbances.h"
#include "tasks/evaluation/hosted_failure.h"
#include "tasks/mjcf/check/terms.h"
#include "tasks/mjcf/pictures/requested_pictures.h"
#include "tasks/mjcf/video.h"

namespace mjp::app {
namespace {

std::shared_ptr<mjModel> SharedCopy(const TaskFile& file) {
  return {CopyOfModel(file.model()).release(), ModelDeleter()};
}

// In single precision, as the policy has them.
std::vector<float> Single(std::span<const mjtNum> numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace

MjcfBatch::MjcfBatch(std::shared_ptr<const TaskFile> file, const EvaluationOptions& options,
                     const mjp::Policy& policy, int count)
    : file_(std::move(file)),
      conditions_(options.conditions),
      config_(policy.config()),
      threads_(options.policy.threads),
      robots_(static_cast<size_t>(count)) {
  const std::vector<std::string> misfits = Misfits(*file_, config_);
  if (!misfits.empty()) throw BadInput(misfits[0]);
  std::shared_ptr<mjModel> shared;
  for (Robot& robot : robots_) {
    if (!shared || file_->start().changes_model()) shared = SharedCopy(*file_);
    robot.model = shared;
    robot.world = std::make_unique<TaskWorld>(*file_, shared);
    robot.data = MakeData(shared.get());
    const Outline& outline = file_->policy();
    robot.units = std::make_unique<UnitCheck>(policy.checkpoint().stats, outline.state,
                                              outline.environment, outline.controls);
  }
  if (!config_.cameras.empty()) MakePictures(policy.device_ordinal());
}

MjcfBatch::~MjcfBatch() = default;

void MjcfBatch::MakePictures(int device) {
  const auto notice = [](const mjModel*, const std::string& why) {
    std::fprintf(stderr, "pictures are drawn by MuJoCo's renderer: %s\n", why.c_str());
  };
  scratch_ = MakeData(file_->model());
  pictures_ = std::make_unique<PictureHistory>(file_->model(), file_->policy().config.renderer,
                                               PicturesFor(*file_, config_, device), 1, notice);
  if (device >= 0 && !DisturbsPictures(conditions_)) pictures_->KeepOnGpu();
}

MjcfBatch::Look MjcfBatch::Take(Robot& robot) const {
  const Outline& policy = file_->policy();
  const size_t states = policy.state.size();
  std::vector<mjtNum> numbers(states + policy.environment.size());
  const auto state = std::span(numbers).first(states),
             environment = std::span(numbers).subspan(states);
  policy.state.Read(robot.world->data(), state);
  policy.environment.Read(robot.world->data(), environment);
  robot.units->Observed(file_->model(), file_->instance(), numbers);
  Look look;
  look.tick = robot.tick;
  look.state = Single(state);
  look.environment = Single(environment);
  look.pose.resize(pictures_ ? static_cast<size_t>(PoseSize(robot.model.get())) : 0);
  if (pictures_) ReadPose(robot.model.get(), robot.data.get(), look.pose);
  return look;
}

void MjcfBatch::Start(int i, uint32_t seed) {
  Robot& robot = robots_[i];
  robot.world->Start(seed);
  robot.world->CopyStart(robot.model.get(), robot.data.get());
  robot.world->Update();
  robot.seed = seed;
  robot.tick = 0;
  robot.moved = false;
  const ControlBinding& controls = file_->policy().controls;
  robot.held.assign(static_cast<size_t>(controls.action_size()), 0);
  for (int k = controls.size() - 1; k >= 0; --k) {
    // as a chunk has it, in single precision
    robot.held[controls.indices()[k]] =
        static_cast<float>(controls.ToAction(k, robot.data->ctrl[controls.addresses()[k]]));
  }
  robot.looks.assign(static_cast<size_t>(config_.n_obs_steps), Take(robot));
  robot.state = robot.previous = MovingState(robot.model.get(), robot.data.get());
  robot.outcome = {};
}

std::vector<double> MjcfBatch::HeldAction(int i) const {
  return {robots_[i].held.begin(), robots_[i].held.end()};
}

void MjcfBatch::Move(Robot& robot, std::span<const double> action) {
  // before the first chunk acts nothing is written, as in the plugin
  robot.moved = robot.moved || !std::ranges::equal(action, robot.held);
  if (robot.moved) file_->policy().controls.Write(action, robot.data.get());
  robot.outcome = {};
  for (int k = 0; k < file_->substeps() && robot.outcome.failure.empty(); ++k) {
    robot.units->Controlled(file_->model(), file_->instance(), robot.data.get(),
                            robot.moved ? action : std::span<const double>());
    mj_step(robot.model.get(), robot.data.get());
    robot.outcome.failure = PhysicsFailure(robot.data.get());
  }
  robot.previous = std::move(robot.state);
  robot.state = MovingState(robot.model.get(), robot.data.get());
  ++robot.tick;
  if (!robot.outcome.failure.empty()) return;
  robot.world->Judge(robot.model.get(), robot.data.get(), robot.outcome);
  std::rotate(robot.looks.begin(), robot.looks.begin() + 1, robot.looks.end());
  robot.looks.back() = Take(robot);
}

void MjcfBatch::Step(std::span<const int> ids, std::span<const double> actions) {
  const double begin = Now();
  const size_t width = robots_[0].held.size();
  ForEachOnThreads(threads_, ids.size(),
                   [&](size_t k) { Move(robots_[ids[k]], actions.subspan(k * width, width)); });
  seconds_.physics += Now() - begin;
}

// Draws what the policy is going to look at and has not been drawn.
void MjcfBatch::Draw(std::span<const int> ids) {
  if (!pictures_) return;
  const double begin = Now();
  std::vector<Fresh> fresh;
  for (const int i : ids) {
    Robot& robot = robots_[i];
    for (Look& look : robot.looks) {
      if (look.on_gpu || !look.rgb.empty()) continue;
      ApplyPose(robot.model.get(), look.pose, scratch_.get());
      pictures_->Draw(robot.model.get(), scratch_.get(), look.pose);
      look.on_gpu = pictures_->NewestOnGpu();
      if (look.on_gpu) continue;
      const std::span<const uint8_t> drawn = pictures_->Newest();
      look.rgb.assign(drawn.begin(), drawn.end());
      fresh.push_back({robot.seed, &look});
    }
  }
  if (!fresh.empty() && DisturbsPictures(conditions_)) DisturbAll(fresh);
  seconds_.pictures += Now() - begin;
}

void MjcfBatch::DisturbAll(std::span<const Fresh> fresh) const {
  ForEachOnThreads(threads_, fresh.size(), [&](size_t k) {
    const auto [seed, look] = fresh[k];
    const size_t size = look->rgb.size() / config_.cameras.size();
    for (size_t camera = 0; camera < config_.cameras.size(); ++camera) {
      DisturbPicture(conditions_, seed, look->tick, config_.cameras[0].width,
                     std::span(look->rgb).subspan(camera * size, size));
    }
  });
}

void MjcfBatch::Observe(std::span<const int> ids) { Draw(ids); }

void MjcfBatch::Judge(int i, StepOutcome& outcome) const { outcome = robots_[i].outcome; }

std::unique_ptr<EpisodeVideo> MjcfBatch::MakeVideo(int i, const std::string& folder,
                                                   const EpisodeResult& episode) {
  TaskWorld& world = *robots_[i].world;
  return std::make_unique<WorldVideo>(folder + "/eval_episode_" + std::to_string(episode.index),
                                      VideoCamera(file_->model(), file_->policy().config),
                                      file_->period(), world.model(), world.data());
}

void MjcfBatch::ClearInput() {
  gpu_pictures_.clear();
  frames_.clear();
  state_.clear();
  environment_.clear();
  keys_.clear();
}

// On the GPU as long as all are; from the first one on that is not, on the host.
void MjcfBatch::AddPicture(const Look& look) {
  if (look.on_gpu) gpu_pictures_.push_back(look.on_gpu);
  if (look.on_gpu && frames_.empty()) return;
  for (const std::shared_ptr<const GpuPicture>& picture : gpu_pictures_) {
    frames_.resize(frames_.size() + picture->bytes());
    picture->Download(std::span(frames_).last(picture->bytes()));
  }
  gpu_pictures_.clear();
  frames_.insert(frames_.end(), look.rgb.begin(), look.rgb.end());
}

void MjcfBatch::AddInput(int i, uint32_t seed, int, uint32_t decision) {
  Robot& robot = robots_[i];
  Draw(std::span(&i, 1));
  for (const Look& look : robot.looks) {
    AddPicture(look);
    state_.insert(state_.end(), look.state.begin(), look.state.end());
    environment_.insert(environment_.end(), look.environment.begin(), look.environment.end());
  }
  keys_.push_back({seed, decision});
}

mjp::PolicyInput MjcfBatch::Input() {
  mjp::PolicyInput input;
  input.count = static_cast<int>(keys_.size());
  input.gpu_pictures = gpu_pictures_;
  input.frames = frames_;
  input.state = state_;
  input.environment = environment_;
  input.keys = keys_;
  return input;
}

}  // namespace mjp::app
