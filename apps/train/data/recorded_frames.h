#ifndef APPS_TRAIN_DATA_RECORDED_FRAMES_H_
#define APPS_TRAIN_DATA_RECORDED_FRAMES_H_

#include <ATen/ATen.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "datasets/format/info.h"
#include "policy/checkpoint/config.h"
#include "policy/checkpoint/network.h"
#include "policy/pictures/picture_look.h"

namespace mjp::app {

struct RecordedOptions {
  std::string folder;                       // a LeRobotDataset of version 3.0
  std::vector<std::string> cameras;         // which features; empty: all observation.image*
  int resize_height = 0, resize_width = 0;  // of the pictures as they are loaded; 0: none
  double validation = 0.1;                  // share of the episodes that are held out; 0: none
  int threads = 1;                          // that decode pictures
};

// All frames of a data set of any task, in memory. F = frames of all episodes, P = those with
// pictures.
struct RecordedFrames {
  int fps = 0;
  std::vector<CameraFeature> cameras;  // sizes as they are recorded
  PictureLooks looks;                  // of the cameras, as far as the data set says
  std::vector<at::Tensor> pictures;    // of each camera: u8 (P, height, width, 3), resized
  at::Tensor picture_of;               // (F) int64: which of them a frame has; negative: none
  at::Tensor state, environment;       // (F, numbers) float32; (F, 0) where there are none
  at::Tensor action;                   // (F, numbers) float32
  std::vector<int64_t> begin;          // (episodes + 1): the first frame of each
  std::vector<bool> held_out;          // (episodes)
  std::string content;                 // follows from all that was read of a data set

  int64_t frames() const { return begin.back(); }
  // The statistics that a policy trained on them is normalised by: of state, environment and action
  // the extremes, where a number that never changes gets a range of 2 around it; of pictures the
  // levels 0 to 255 onto -1 to 1.
  NormalizerStats Statistics() const;
};

// Adds the camera of a data set's feature, whose info.json errors call `info`. Throws Error for a
// look that cannot be read.
void AddCamera(const datasets::Feature& feature, const std::string& info, RecordedFrames& frames);

// Marks every n-th episode as held out, so that they are about `share` of all.
void HoldOut(double share, RecordedFrames& frames);

// Puts the episodes of `more`, which has the same features, behind those of `frames`.
void Append(const RecordedFrames& more, RecordedFrames& frames);

// Moves each number of all actions into its range in `statistics` (extremes): beyond it a policy
// that clips its samples cannot go, and its loss would learn little but that.
void ClampActions(const FeatureStats& statistics, RecordedFrames& frames);

// Reads them. Every n-th episode is held out. Throws Error naming file and feature for what cannot
// be read, for a data set without action or observations, or with pictures of different sizes; soon
// after `stop` becomes true too.
RecordedFrames LoadRecordedFrames(const RecordedOptions& options, const std::atomic<bool>& stop);

}  // namespace mjp::app

#endif  // APPS_TRAIN_DATA_RECORDED_FRAMES_H_
