// Flat scenes to pictures on the GPU.
//
// A block draws 12 rows of one picture: 9 warps, each a tile of 32 x 4 pixels, each thread 4 pixels
// side by side, stored as three words. The scene is prepared once per block by its first threads;
// then every pixel stands for itself: four points are tested against at most four rectangles and
// two discs. Pixels outside of the boxes cost four comparisons, so the run time is the write of
// 27,648 bytes per picture plus about 1,500 pixels of tests.

#include "kernels/cuda_check.h"
#include "kernels/raster_pixel.h"
#include "kernels/rasterise_cuda.h"

namespace dp {
namespace {

using raster::PreparedScene;

constexpr int kPixels = 4;      // of a thread, side by side
constexpr int kTileWidth = 32;  // pixels of a warp
constexpr int kTileHeight = 4;
constexpr int kTilesAcross = kPictureSize / kTileWidth;
constexpr int kRows = 12;  // of a block
constexpr int kThreads = kRows * kPictureSize / kPixels;
constexpr int kWordsPerRow = kPictureSize * 3 / 4;
static_assert(kTileWidth / kPixels * kTileHeight == 32, "a tile is what one warp draws");
static_assert(kRows % kTileHeight == 0 && kPictureSize % kRows == 0, "tiles fill the picture");

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

// scenes (count), rgb (count, 96, 24, 3) words; grid (96 / kRows, count)
__global__ void __launch_bounds__(kThreads)
    RasteriseKernel(const FlatScene* __restrict__ scenes, uint32_t* __restrict__ rgb) {
  __shared__ PreparedScene prepared;
  Prepare(scenes[blockIdx.y], &prepared);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int x = warp % kTilesAcross * kTileWidth + lane % (kTileWidth / kPixels) * kPixels;
  const int y =
      blockIdx.x * kRows + warp / kTilesAcross * kTileHeight + lane / (kTileWidth / kPixels);
  uint32_t pixel[kPixels];
  for (int i = 0; i < kPixels; ++i) pixel[i] = RasterPixel(prepared, x + i, y);
  uint32_t* out =
      rgb + (static_cast<size_t>(blockIdx.y) * kPictureSize + y) * kWordsPerRow + x / 4 * 3;
  out[0] = pixel[0] | pixel[1] << 24;
  out[1] = pixel[1] >> 8 | pixel[2] << 16;
  out[2] = pixel[2] >> 16 | pixel[3] << 8;
}

}  // namespace

void RasteriseCuda(const FlatScene* scenes, int count, uint8_t* rgb, cudaStream_t stream) {
  constexpr int kMostPerLaunch = 65535;  // limit of the grid's second dimension
  for (int first = 0; first < count; first += kMostPerLaunch) {
    const int now = count - first < kMostPerLaunch ? count - first : kMostPerLaunch;
    uint8_t* out = rgb + static_cast<size_t>(first) * kPictureBytes;
    RasteriseKernel<<<dim3(kPictureSize / kRows, now), kThreads, 0, stream>>>(
        scenes + first, reinterpret_cast<uint32_t*>(out));
    CheckCuda(cudaGetLastError(), "launch of the rasteriser");
  }
}

}  // namespace dp
