#ifndef POLICY_SCENE_DRAWER_H_
#define POLICY_SCENE_DRAWER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct CUstream_st;  // a cudaStream_t points to it

// How a policy draws its own pictures, on its own device, from small descriptions of what they
// show. What a scene's bytes mean is the drawer's and its caller's alone.

namespace mjp {

// Draws scenes on one GPU.
class GpuSceneDrawer {
 public:
  virtual ~GpuSceneDrawer() = default;

  // Enqueues `count` scenes (count, scene_bytes) to rgb (count, height, width, 3), both in that
  // GPU's memory and aligned to 16 bytes. May be captured in a graph. Scenes are not checked: what
  // cannot be drawn is left out of sight. Throws Error.
  virtual void EnqueueDraw(const std::byte* scenes, int count, uint8_t* rgb,
                           CUstream_st* stream) const = 0;
};

// Draws scenes as RGB pictures, 8 bits, row 0 at the top; the same bits on every device. Lives as
// long as the policies that draw with it. Const calls may be concurrent.
class SceneDrawer {
 public:
  virtual ~SceneDrawer() = default;

  virtual size_t scene_bytes() const = 0;
  virtual int width() const = 0;  // pixels
  virtual int height() const = 0;
  size_t picture_bytes() const { return size_t{3} * width() * height(); }

  // Draws scenes (count, scene_bytes) into rgb (count, height, width, 3). Throws Error for spans of
  // the wrong size, and for a scene that cannot be drawn.
  virtual void DrawOnCpu(std::span<const std::byte> scenes, std::span<uint8_t> rgb) const = 0;

  // Puts what never moves on the current GPU; not while a stream is captured. Throws
  // Error(kRetryable), or Error(kEnvironment) where the build has no CUDA.
  virtual std::unique_ptr<GpuSceneDrawer> MakeGpuDrawer() const = 0;
};

}  // namespace mjp

#endif  // POLICY_SCENE_DRAWER_H_
