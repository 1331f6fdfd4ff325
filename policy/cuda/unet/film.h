#ifndef POLICY_CUDA_UNET_FILM_H_
#define POLICY_CUDA_UNET_FILM_H_

#include <vector>

#include "policy/checkpoint/network.h"
#include "policy/cuda/layers.h"

namespace mjp {

// Where a block's FiLM terms stand among those of all blocks.
struct FilmTerms {
  int scale_offset = -1;  // -1: bias only
  int bias_offset = 0;
};

// FiLM is split: Linear(Mish([step; cond])) = step_table[t] + cond(Mish(conditioning)). The first
// term is a table made at load, the second one product per decision for all blocks together.
struct DeviceFilm {
  int width = 0;                      // terms of all blocks
  std::vector<FilmTerms> blocks;      // in the order in which they run
  DeviceConv cond;                    // (width, cond_dim), with the bias
  const float* step_table = nullptr;  // (train_steps, width)
  // (environments, width): of a part of the vector that is not multiplied here; or null.
  const float* of_environment = nullptr;
};

// Those of the blocks of `unet`, in the order in which they run. `scale`: FiLM has scales too.
std::vector<FilmTerms> FilmTermsOf(const UnetWeights& unet, bool scale);

// Packs the FiLM layers of `checkpoint`; with `measuring`, sizes alone.
DeviceFilm LoadFilm(LayerLoader& loader, const Checkpoint& checkpoint, bool measuring);

// The conditioning vector's part of FiLM for `rows` rows, each of environment row / rows_per_env.
class FilmConditioning {
 public:
  FilmConditioning(const DeviceFilm& film, Format format, int rows, int rows_per_env,
                   DeviceArena& arena);

  // The same vector, in the same memory, for other rows of the same environments.
  FilmConditioning Shared(int rows_per_env) const;

  void* input() const { return mish_cond_; }  // (environments, padded cond), storage: Mish(cond)
  // A block's terms; the reader's row_step is still to be set.
  FilmArgs Terms(const FilmTerms& block) const;
  // The tables that they stand in.
  FilmTables Tables() const;
  // Enqueues the product; once per decision.
  void Run(cudaStream_t stream) const;

 private:
  Format format_;
  int rows_per_env_;
  const float* step_table_;
  void* mish_cond_;
  ConvArgs product_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_FILM_H_
