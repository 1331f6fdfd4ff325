#include "apps/train/data/recorded_frames.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "apps/train/run_length.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/threads.h"
#include "datasets/dataset.h"
#include "datasets/places.h"

namespace mjp::app {
namespace {

constexpr char kState[] = "observation.state";
constexpr char kEnvironment[] = "observation.environment_state";
constexpr char kAction[] = "action";
constexpr char kPicture[] = "observation.image";  // the beginning of a camera's name

std::vector<datasets::Feature> Cameras(const datasets::Info& info, const RecordedOptions& options) {
  std::vector<datasets::Feature> cameras;
  for (const datasets::Feature& feature : info.features) {
    if (!feature.IsPicture() || !feature.name.starts_with(kPicture)) continue;
    const auto& chosen = options.cameras;
    if (chosen.empty() || std::ranges::find(chosen, feature.name) != chosen.end()) {
      cameras.push_back(feature);
    }
  }
  for (const std::string& name : options.cameras) {
    const auto same = [&](const datasets::Feature& feature) { return feature.name == name; };
    if (std::ranges::any_of(cameras, same)) continue;
    throw Error(ExitCode::kUsage, "--camera " + name + ": " + options.folder +
                                      " has no pictures of that name; `mjpolicy dataset " +
                                      options.folder + "` lists them");
  }
  for (const datasets::Feature& camera : cameras) {
    if (camera.Height() == cameras[0].Height() && camera.Width() == cameras[0].Width()) continue;
    throw Unsupported(options.folder + ": pictures of " + cameras[0].name + " and " + camera.name +
                      " differ in size, which a policy cannot see: choose by --camera, or record "
                      "with --picture");
  }
  return cameras;
}

// A feature of numbers: all of its frames (F, elements), or (F, 0) where there is none.
at::Tensor Empty(const datasets::Info& info, const char* name, int64_t frames) {
  const datasets::Feature* feature = info.Find(name);
  return at::empty({frames, feature ? feature->Elements() : 0}, at::kFloat);
}

void ReadNumbers(datasets::Dataset& dataset, size_t episode, const char* name, at::Tensor& out) {
  if (out.size(1) == 0) return;
  const datasets::Episode& of = dataset.episodes()[episode];
  const auto column = dataset.Read(episode, *dataset.info().Find(name));
  auto* to = out.mutable_data_ptr<float>() + of.from * out.size(1);
  const auto count = static_cast<size_t>(of.length * out.size(1));
  const auto& values = column.values;
  if (values.numbers.size() + values.ints.size() != count) {
    throw BadInput(dataset.folder() + ": episode " + std::to_string(episode) + " has " +
                   std::to_string(values.numbers.size()) + " values of \"" + name + "\", not " +
                   std::to_string(count));
  }
  for (size_t i = 0; i < count; ++i) {
    const double value =
        values.numbers.empty() ? static_cast<double>(values.ints[i]) : values.numbers[i];
    to[i] = static_cast<float>(value);
    if (!std::isfinite(to[i])) {
      throw BadInput(dataset.folder() + ": episode " + std::to_string(episode) + ": \"" + name +
                     "\" is not finite; `mjpolicy dataset` says where");
    }
  }
}

// One picture u8 (height, width, 3), resized as LeRobot does: bilinear, antialiased.
at::Tensor Resized(const datasets::Picture& picture, const RecordedOptions& options) {
  const at::Tensor raw = at::from_blob(const_cast<uint8_t*>(picture.rgb.data()),
                                       {picture.height, picture.width, 3}, at::kByte);
  if (options.resize_height == 0) return raw;
  const at::Tensor planes = raw.permute({2, 0, 1}).unsqueeze(0).to(at::kFloat).contiguous();
  const at::Tensor small = at::_upsample_bilinear2d_aa(
      planes, {options.resize_height, options.resize_width}, /*align_corners=*/false);
  return small.squeeze(0).permute({1, 2, 0}).round().clamp(0, 255).to(at::kByte);
}

void ReadPictures(datasets::Dataset& dataset, size_t episode,
                  const std::vector<datasets::Feature>& cameras, const RecordedOptions& options,
                  RecordedFrames& frames) {
  const datasets::Episode& of = dataset.episodes()[episode];
  for (size_t camera = 0; camera < cameras.size(); ++camera) {
    for (int64_t frame = 0; frame < of.length; ++frame) {
      const datasets::Picture& picture = dataset.ReadPicture(episode, cameras[camera], frame);
      frames.pictures[camera].select(0, of.from + frame).copy_(Resized(picture, options));
    }
  }
}

// The CRC-32 of what an episode has in all tensors.
uint32_t ContentOf(const datasets::Episode& episode, const RecordedFrames& frames) {
  std::vector<at::Tensor> all = {frames.state, frames.environment, frames.action};
  all.insert(all.end(), frames.pictures.begin(), frames.pictures.end());
  uLong sum = crc32_z(0, nullptr, 0);
  for (const at::Tensor& tensor : all) {
    const at::Tensor part = tensor.narrow(0, episode.from, episode.length).contiguous();
    sum = crc32_z(sum, static_cast<const uint8_t*>(part.const_data_ptr()), part.nbytes());
  }
  return static_cast<uint32_t>(sum);
}

FeatureStats Extremes(const at::Tensor& values) {
  FeatureStats stats;
  stats.mode = Normalization::kMinMax;
  if (values.size(1) == 0) return stats;
  const at::Tensor low = std::get<0>(values.min(0)), high = std::get<0>(values.max(0));
  for (int64_t i = 0; i < values.size(1); ++i) {
    const float least = low[i].item<float>(), most = high[i].item<float>();
    const float spread = most > least ? 0.0f : 1.0f;
    stats.first.push_back(least - spread);
    stats.second.push_back(most + spread);
  }
  return stats;
}

}  // namespace

NormalizerStats RecordedFrames::Statistics() const {
  NormalizerStats stats;
  stats.state = Extremes(state);
  stats.environment = Extremes(environment);
  stats.action = Extremes(action);
  stats.cameras.assign(cameras.size(),
                       {Normalization::kMeanStd, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}});
  return stats;
}

void AddCamera(const datasets::Feature& feature, const std::string& info, RecordedFrames& frames) {
  frames.cameras.push_back({feature.name, 3, feature.Height(), feature.Width()});
  if (feature.look.is_null()) return;
  frames.looks[feature.name] =
      ParseLook(feature.look, info + ": \"" + feature.name + "\": \"look\"");
}

void HoldOut(double share, RecordedFrames& frames) {
  const size_t episodes = frames.begin.size() - 1;
  frames.held_out.assign(episodes, false);
  if (share <= 0 || episodes < 2) return;
  const auto every = std::max<size_t>(2, static_cast<size_t>(std::llround(1 / share)));
  for (size_t i = std::min(every, episodes) - 1; i < episodes; i += every)
    frames.held_out[i] = true;
}

void Append(const RecordedFrames& more, RecordedFrames& frames) {
  const int64_t before = frames.frames();
  for (size_t i = 1; i < more.begin.size(); ++i) frames.begin.push_back(before + more.begin[i]);
  frames.held_out.insert(frames.held_out.end(), more.held_out.begin(), more.held_out.end());
  const auto append = [](const at::Tensor& from, at::Tensor& to) { to = at::cat({to, from}); };
  const at::Tensor& places = more.picture_of;
  const int64_t pictures = frames.pictures.empty() ? 0 : frames.pictures[0].size(0);
  append(at::where(places < 0, places, places + pictures), frames.picture_of);
  for (size_t i = 0; i < frames.pictures.size(); ++i) append(more.pictures[i], frames.pictures[i]);
  append(more.state, frames.state);
  append(more.environment, frames.environment);
  append(more.action, frames.action);
}

void ClampActions(const FeatureStats& statistics, RecordedFrames& frames) {
  const at::Tensor low = at::tensor(statistics.first), high = at::tensor(statistics.second);
  frames.action = at::minimum(at::maximum(frames.action, low), high);
}

RecordedFrames LoadRecordedFrames(const RecordedOptions& options, const std::atomic<bool>& stop) {
  const datasets::Dataset dataset(options.folder);
  const datasets::Info& info = dataset.info();
  const std::vector<datasets::Feature> cameras = Cameras(info, options);
  RecordedFrames frames;
  frames.fps = info.fps;
  frames.begin = {0};
  for (const datasets::Episode& episode : dataset.episodes()) frames.begin.push_back(episode.to);
  frames.state = Empty(info, kState, frames.frames());
  frames.environment = Empty(info, kEnvironment, frames.frames());
  frames.picture_of = at::arange(frames.frames(), at::kLong);
  frames.action = Empty(info, kAction, frames.frames());
  if (frames.frames() == 0 || frames.action.size(1) == 0 || frames.state.size(1) == 0) {
    throw BadInput(options.folder + ": to train on it a data set needs frames with \"" + kAction +
                   "\" and \"" + kState + "\"");
  }
  for (const datasets::Feature& camera : cameras) {
    const int height = camera.Height(), width = camera.Width();
    AddCamera(camera, options.folder + "/meta/info.json", frames);
    frames.pictures.push_back(
        at::empty({frames.frames(), options.resize_height > 0 ? options.resize_height : height,
                   options.resize_height > 0 ? options.resize_width : width, 3},
                  at::kByte));
  }
  std::atomic<size_t> next = 0;
  std::vector<uint32_t> contents(dataset.episodes().size());
  RunOnThreads(options.threads, [&](const std::atomic<bool>& failed) {
    datasets::Dataset own(options.folder);
    for (size_t i = next++; i < own.episodes().size() && !failed && !stop; i = next++) {
      datasets::CheckPlaces(own, i);
      ReadNumbers(own, i, kState, frames.state);
      ReadNumbers(own, i, kEnvironment, frames.environment);
      ReadNumbers(own, i, kAction, frames.action);
      ReadPictures(own, i, cameras, options, frames);
      contents[i] = ContentOf(own.episodes()[i], frames);
    }
  });
  if (stop) throw Stopped();
  frames.content = Sha256(
      {reinterpret_cast<const uint8_t*>(contents.data()), contents.size() * sizeof(uint32_t)});
  HoldOut(options.validation, frames);
  return frames;
}

}  // namespace mjp::app
