#ifndef POLICY_CPU_PICTURE_INPUT_H_
#define POLICY_CPU_PICTURE_INPUT_H_

#include <cstdint>
#include <vector>

#include "kernels/cpu/prepare.h"
#include "kernels/cpu/thread_pool.h"
#include "policy/checkpoint/network.h"
#include "policy/cpu/layers.h"

namespace mjp::cpu {

// What a network does with a normalised picture before its first layer; 0: it does not.
struct PictureSteps {
  int resize_height = 0, resize_width = 0;  // bilinear, antialiased
  int crop_height = 0, crop_width = 0;      // of the middle
};

// Pictures of one camera, from bytes to what the first layer reads.
class PictureInput {
 public:
  // Makes room for `frames` at a time, in a frame of `halo` zeros.
  PictureInput(const CameraFeature& camera, const FeatureStats& stats, const PictureSteps& steps,
               int frames, int halo, ThreadPool& pool);

  // Frames at a time.
  int capacity() const { return pictures_.view.batch; }
  // Normalises, resizes and crops `count` RGB frames, frame_stride bytes apart.
  void Prepare(const uint8_t* rgb, int64_t frame_stride, int count);
  // The prepared frames: (capacity, height, width, 3).
  const Features& view() const { return pictures_.view; }

 private:
  CameraFeature camera_;
  PictureSteps steps_;
  ThreadPool& pool_;
  std::vector<float> table_;  // (3, 256): normalised values of a byte
  ResizeTaps resize_y_, resize_x_;
  AlignedBuffer scratch_;  // (threads, of Prepare)
  size_t scratch_pitch_ = 0;
  OwnedFeatures pictures_;
};

}  // namespace mjp::cpu

#endif  // POLICY_CPU_PICTURE_INPUT_H_
