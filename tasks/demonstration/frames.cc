#include "tasks/demonstration/frames.h"

#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/text_stream.h"
#include "plugin/pictures/pose.h"
#include "tasks/mjcf/check/terms.h"
#include "tasks/mjcf/words.h"

namespace mjp::app {
namespace {

constexpr int kWidth = 320, kHeight = 240;  // of a camera that says nothing

int FramesPerSecond(const TaskFile& file) {
  const double rate = 1 / file.period(), whole = std::round(rate);
  if (whole >= 1 && std::abs(rate - whole) < 1e-6 * whole) return static_cast<int>(whole);
  TextWriter text;
  text << "attribute period is " << file.period() << " s: a data set needs a whole number of "
       << "frames a second, as 0.1 or 0.02 gives";
  throw BadInput(text.str());
}

// Said before the work rather than with the first episode.
void CheckVideo(const std::string& camera, PictureSize size) {
  constexpr int kLeast = 64;
  const auto fits = [](int side) { return side >= kLeast && side % 2 == 0; };
  if (fits(size.width) && fits(size.height)) return;
  throw BadInput("camera " + camera + ": a video has even sides of at least 64 pixels, not " +
                 std::to_string(size.width) + " x " + std::to_string(size.height) +
                 "; give --picture, or leave --video out");
}

// LeRobot splits names at dots, and files are named after them.
std::string FeatureOf(const std::string& camera) {
  std::string name = camera;
  for (char& c : name) c = c == '/' || c == '.' ? '_' : c;
  return "observation.images." + name;
}

PictureRequest Requested(const std::string& camera, PictureSize size, int cuda_device) {
  return {{camera}, size.width, size.height, cuda_device};
}

// What the numbers of state, environment and action are called.
struct TermNames {
  Json state = Json::array(), environment = Json::array(), action = Json::array();
};

TermNames NamesOf(const TaskFile& file) {
  const ControlBinding& controls = file.policy().controls;
  TermNames names;
  int control = 0, next = 0;
  for (const TermRow& row : ListTerms(file, nullptr)) {
    if (row.feature == "state") names.state.push_back(row.name);
    if (row.feature == "environment") names.environment.push_back(row.name);
    if (row.feature != "action") continue;
    // of several controls that one number drives the first names it
    if (controls.indices()[control++] == next) {
      names.action.push_back(row.name);
      ++next;
    }
  }
  // an order of its own: numbers then are their own names
  if (next != controls.action_size()) {
    names.action = Json::array();
    for (int i = 0; i < controls.action_size(); ++i)
      names.action.push_back("action " + std::to_string(i));
  }
  return names;
}

std::vector<double> Single(const std::vector<mjtNum>& numbers) {
  std::vector<double> rounded;
  for (const mjtNum number : numbers) rounded.push_back(static_cast<float>(number));
  return rounded;
}

}  // namespace

void PictureOptions::SetSize(const char* option, const std::string& text) {
  constexpr int kMost = 4096;
  char rest = 0;
  const bool read = std::sscanf(text.c_str(), "%dx%d%c", &width, &height, &rest) == 2;
  const auto fits = [](int extent) { return extent >= 1 && extent <= kMost; };
  if (read && fits(width) && fits(height)) return;
  throw Error(ExitCode::kUsage,
              std::string(option) + ": '" + text + "' is no size such as 320x240");
}

PictureSize SizeOf(const mjModel* model, const std::string& camera, const PictureOptions& options) {
  if (options.width > 0) return {options.width, options.height};
  const int id = mj_name2id(model, mjOBJ_CAMERA, camera.c_str());
  const int* resolution = model->cam_resolution + 2 * id;
  if (id >= 0 && resolution[0] > 1 && resolution[1] > 1) return {resolution[0], resolution[1]};
  return {kWidth, kHeight};
}

datasets::Info InfoOf(const TaskFile& file, const PictureOptions& options) {
  using datasets::MakeFeature;
  const Outline& policy = file.policy();
  const TermNames names = NamesOf(file);
  datasets::Info info;
  info.fps = FramesPerSecond(file);
  info.robot_type = file.name();
  if (policy.state.size() > 0) {
    info.features.push_back(
        MakeFeature("observation.state", "float32", {policy.state.size()}, names.state));
  }
  if (policy.environment.size() > 0) {
    info.features.push_back(MakeFeature("observation.environment_state", "float32",
                                        {policy.environment.size()}, names.environment));
  }
  for (const std::string& camera : policy.config.cameras) {
    const PictureSize size = SizeOf(file.model(), camera, options);
    if (options.video) CheckVideo(camera, size);
    info.features.push_back(MakeFeature(FeatureOf(camera), options.video ? "video" : "image",
                                        {size.height, size.width, 3},
                                        {"height", "width", "channels"}));
    const auto looks = LooksBy(policy.config.renderer, file.model(), Requested(camera, size, -1));
    if (!looks.empty()) info.features.back().look = LookToJson(looks[0]);
  }
  info.features.push_back(
      MakeFeature("action", "float32", {policy.controls.action_size()}, names.action));
  info.features.push_back(MakeFeature("next.reward", "float32", {1}));
  info.features.push_back(MakeFeature("next.success", "bool", {1}));
  info.features.push_back(MakeFeature("next.done", "bool", {1}));
  info.features.push_back(MakeFeature("seed", "int64", {1}));
  return info;
}

std::string DescriptionOf(const TaskFile& file) {
  const char* text = CustomText(file.model(), "task.description");
  if (text) return Trimmed(text);
  const std::string& instruction = file.policy().config.policy.instruction;
  return instruction.empty() ? file.name() : instruction;
}

FrameMaker::FrameMaker(const TaskFile& file, const PictureOptions& options)
    : file_(file),
      description_(DescriptionOf(file)),
      pose_(static_cast<size_t>(PoseSize(file.model()))) {
  const Config& config = file.policy().config;
  const auto notice = [](const mjModel*, const std::string& why) {
    std::fprintf(stderr, "pictures are drawn by MuJoCo's renderer: %s\n", why.c_str());
  };
  for (const std::string& camera : config.cameras) {
    const PictureSize size = SizeOf(file.model(), camera, options);
    cameras_.push_back({FeatureOf(camera), size,
                        std::make_unique<PictureHistory>(
                            file.model(), config.renderer,
                            Requested(camera, size, options.cuda_device), 1, notice)});
  }
}

FrameMaker::~FrameMaker() = default;

datasets::Frame FrameMaker::Look(EpisodeWorld& world, bool pictures) {
  const Outline& policy = file_.policy();
  datasets::Frame frame;
  frame.task = description_;
  const auto read = [&](const ObservationBinding& binding, const char* feature) {
    if (binding.size() == 0) return;
    std::vector<mjtNum> numbers(static_cast<size_t>(binding.size()));
    binding.Read(world.data(), numbers);
    frame.numbers[feature] = Single(numbers);
  };
  read(policy.state, "observation.state");
  read(policy.environment, "observation.environment_state");
  if (!pictures) return frame;
  ReadPose(world.model(), world.data(), pose_);
  for (Camera& camera : cameras_) {
    camera.pictures->Draw(world.model(), world.data(), pose_);
    const std::span<const uint8_t> rgb = camera.pictures->Newest();
    frame.pictures[camera.feature] = {
        camera.size.height, camera.size.width, {rgb.begin(), rgb.end()}};
  }
  return frame;
}

datasets::Frame FrameMaker::Make(EpisodeWorld& world, const Demonstration& demonstration,
                                 int step) {
  const size_t at = static_cast<size_t>(step);
  datasets::Frame frame = Look(world);
  const std::vector<float>& action = demonstration.actions[at];
  frame.numbers["action"] = {action.begin(), action.end()};
  frame.numbers["next.reward"] = {demonstration.rewards[at]};
  frame.numbers["next.success"] = {demonstration.success[at] ? 1.0 : 0.0};
  frame.numbers["next.done"] = {at + 1 == demonstration.actions.size() ? 1.0 : 0.0};
  frame.numbers["seed"] = {static_cast<double>(demonstration.result.seed)};
  return frame;
}

}  // namespace mjp::app
