// Flat scenes to pictures on the GPU.
//
// A block makes one picture, or a strip of it where there are few. It begins as a copy of the
// background (walls and goal, drawn once by the CPU), 16 bytes at a time; then the pixels in the
// boxes of the bar, the stem and the agent, about 700 of 9216, are drawn over it, each by a thread
// of its own: four points tested against the rectangles and the discs. Eight blocks share a
// multiprocessor, so 1024 pictures are one wave; of a strip each box is at most one pixel per
// thread. Bytes moved: 27,648 read (from the caches) and written.

#include <vector>

#include "kernels/cuda/primitives/launch.cuh"
#include "tasks/pusht/pictures/raster_pixel.h"
#include "tasks/pusht/pictures/rasterise_cuda.h"

namespace mjp {
namespace {

using raster::Box;
using raster::PreparedScene;

constexpr int kThreads = 256;
constexpr int kVectors = kPictureBytes / 16;
constexpr int kStrips = 16, kFewPictures = 32;  // up to so many are drawn in strips
static_assert(kPictureBytes % (16 * kStrips) == 0 && kPictureSize % kStrips == 0);

__device__ uint4 background[kVectors];

// Fills `prepared`, in shared memory, with the whole block.
__device__ void Prepare(const FlatScene& scene, PreparedScene* prepared) {
  const int thread = threadIdx.x;
  if (thread < PreparedScene::kCorners) raster::PrepareCorner(scene, thread, prepared);
  __syncthreads();
  if (thread < PreparedScene::kCorners) raster::PrepareEdge(thread, prepared);
  __syncthreads();
  if (thread < PreparedScene::kRectangles) raster::PrepareBoxes(thread, prepared);
  __syncthreads();
}

// The picture's pixels with a tap in a box of the 512 x 512 drawing, and at most two more.
__device__ Box PixelsOf(const Box& box) {
  const auto first = [](int v) { return max(v * 3 / 16 - 1, 0); };
  const auto last = [](int v) { return min(v * 3 / 16, kPictureSize - 1); };
  return {first(max(box.x_lo, 0)), last(max(box.x_hi, -16)), first(max(box.y_lo, 0)),
          last(max(box.y_hi, -16))};
}

// Draws the pixels of `box` in the rows [y_lo, y_hi] of `picture` with the whole block.
__device__ void DrawBox(const PreparedScene& scene, const Box& box, int y_lo, int y_hi,
                        uint8_t* picture) {
  Box pixels = PixelsOf(box);
  pixels.y_lo = max(pixels.y_lo, y_lo), pixels.y_hi = min(pixels.y_hi, y_hi);
  const int width = pixels.x_hi - pixels.x_lo + 1, height = pixels.y_hi - pixels.y_lo + 1;
  if (width <= 0 || height <= 0) return;
  for (int i = threadIdx.x; i < width * height; i += kThreads) {
    const int x = pixels.x_lo + i % width, y = pixels.y_lo + i / width;
    const uint32_t colour = RasterPixel(scene, x, y);
    uint8_t* out = picture + (y * kPictureSize + x) * 3;
    for (int c = 0; c < 3; ++c) out[c] = static_cast<uint8_t>(colour >> (8 * c));
  }
}

// scenes (count), rgb (count, 96, 96, 3) as vectors; grid (count, strips)
__global__ void __launch_bounds__(kThreads)
    RasteriseKernel(const FlatScene* __restrict__ scenes, uint4* __restrict__ rgb) {
  __shared__ PreparedScene prepared;
  WaitForPredecessor();
  ReleaseSuccessor();
  uint4* out = rgb + static_cast<size_t>(blockIdx.x) * kVectors;
  const int vectors = kVectors / gridDim.y, rows = kPictureSize / gridDim.y;
  const int first = blockIdx.y * vectors, top = blockIdx.y * rows;
  for (int i = threadIdx.x; i < vectors; i += kThreads) out[first + i] = background[first + i];
  Prepare(scenes[blockIdx.x], &prepared);
  const auto [x, y] = prepared.agent;
  constexpr int kReach = raster::kAgentReach;
  const Box agent = {x - kReach, x + kReach, y - kReach, y + kReach};
  for (const Box& box : {prepared.rectangle[0].box, prepared.rectangle[1].box, agent}) {
    DrawBox(prepared, box, top, top + rows - 1, reinterpret_cast<uint8_t*>(out));
    __syncthreads();  // boxes may overlap
  }
}

}  // namespace

CudaRasteriser::CudaRasteriser() {
  constexpr float kOut = -raster::kFarAway;
  const FlatScene nothing = {kOut, kOut, kOut, kOut, 0};
  std::vector<uint8_t> picture(kPictureBytes);
  RasteriseCpu(&nothing, 1, picture.data());
  CheckCuda(cudaMemcpyToSymbol(background, picture.data(), picture.size()),
            "background of the rasteriser");
}

void CudaRasteriser::Draw(const FlatScene* scenes, int count, uint8_t* rgb,
                          cudaStream_t stream) const {
  if (count == 0) return;
  LaunchShape shape;
  shape.grid = dim3(count, count <= kFewPictures ? kStrips : 1);
  shape.block = dim3(kThreads);
  Launch(RasteriseKernel, shape, stream, "rasteriser", scenes, reinterpret_cast<uint4*>(rgb));
}

}  // namespace mjp
