#ifndef IMAGE_DIFFUSION_CUDA_UNET2D_H_
#define IMAGE_DIFFUSION_CUDA_UNET2D_H_

#include <optional>
#include <vector>

#include "image_diffusion/model.h"
#include "image_diffusion/step_table.h"
#include "policy/cuda/layers.h"

namespace mjp {

// The image U-Net as launches of the convolution, and of the normalisation with everything that
// follows it; two maps that a block reads together are never copied into one.
class CudaUnet2d {
 public:
  // Packs the weights and plans `rows` pictures in `arena`, twice: first measured, then placed.
  CudaUnet2d(const ImageModel& model, const StepTable& table, Format format, int rows,
             DeviceArena& arena);

  void* input() const { return input_; }  // (rows, size, size, input_pitch), storage; zeros beyond
  int input_pitch() const { return input_pitch_; }
  float* output() const { return output_; }    // (rows, size, size, channels)
  int* row_step() const { return row_step_; }  // (rows): each row's step, an index into the table

  const std::vector<Op>& ops() const { return ops_; }  // of a pass
  // Enqueues one pass.
  void Run(cudaStream_t stream) const;

 private:
  // A map on the device: (rows, size, size, channels). Memory goes round: what is given back is
  // taken by maps that are made later.
  struct Map {
    void* data = nullptr;
    int size = 0, channels = 0;
    size_t bytes = 0;
    bool lasts = false;  // a later layer reads it too
  };

  Map Take(int size, int channels);
  void GiveBack(const Map& map) { free_.push_back(map); }
  Map Convolve(const Conv& conv, const Map& x, const Map* x2, int stride, bool upsample2x);
  void Normalise(const GroupNorm& norm, const Map& map, const FilmArgs& film, const Map* residual);
  // The block of x, or of [x, skip], which stay.
  Map Block(const ResidualBlock1d& block, const Map& x, const Map* skip);

  Format format_;
  int rows_;
  DeviceArena& arena_;
  LayerLoader loader_;
  const StepTable& table_;
  const float *step_table_ = nullptr, *no_condition_ = nullptr;
  size_t blocks_ = 0;  // planned so far
  int* row_step_ = nullptr;
  std::vector<Map> free_;
  std::vector<Op> ops_;
  void* input_ = nullptr;
  int input_pitch_ = 0;
  float* output_ = nullptr;
};

}  // namespace mjp

#endif  // IMAGE_DIFFUSION_CUDA_UNET2D_H_
