#include "policy/cuda/device_unet.h"

#include <Eigen/Core>
#include <cmath>
#include <string>

#include "kernels/error.h"

namespace dp {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixD = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<const Matrix> AsMatrix(const Tensor& t) {
  return {t.data.data(), t.shape[0], t.shape[1]};
}
Eigen::Map<const Eigen::RowVectorXf> AsRow(const Tensor& t) { return {t.data.data(), t.shape[0]}; }

double MishValue(double x) { return x * std::tanh(std::log1p(std::exp(x))); }

// Mish of the embedding of every timestep: (train_steps, e). In double: done once, at load.
MatrixD StepEmbeddings(const UnetWeights& unet, int train_steps) {
  const auto e = unet.time2.weight.shape[0], half = e / 2;
  MatrixD sinusoid(train_steps, e);
  for (int t = 0; t < train_steps; ++t) {
    for (int j = 0; j < half; ++j) {
      const double angle = t * std::exp(-j * std::log(10000.0) / static_cast<double>(half - 1));
      sinusoid(t, j) = std::sin(angle);
      sinusoid(t, half + j) = std::cos(angle);
    }
  }
  const auto dense = [](const MatrixD& x, const Linear& l) -> MatrixD {
    return (x * AsMatrix(l.weight).cast<double>().transpose()).rowwise() +
           AsRow(l.bias).cast<double>();
  };
  const MatrixD hidden = dense(sinusoid, unet.time1).unaryExpr(&MishValue);
  return dense(hidden, unet.time2).unaryExpr(&MishValue);
}

// The FiLM layers of all blocks side by side.
class FilmCollector {
 public:
  FilmCollector(int embed_dim, bool scale) : embed_dim_(embed_dim), scale_(scale) {}

  void Add(const ResidualBlock1d& block, DeviceBlock1d& out) {
    layers_.push_back(&block.film);
    const int terms = static_cast<int>(block.film.weight.shape[0]);
    out.scale_offset = scale_ ? width_ : -1;
    out.bias_offset = scale_ ? width_ + terms / 2 : width_;
    width_ += terms;
  }
  int width() const { return width_; }

  // The columns of the condition, with the biases.
  Linear ConditionPart() const {
    const int64_t columns = layers_.front()->weight.shape[1] - embed_dim_;
    Linear out;
    out.weight.shape = {width_, columns};
    out.bias.shape = {width_};
    for (const Linear* l : layers_) {
      const Matrix part = AsMatrix(l->weight).rightCols(columns);
      out.weight.data.insert(out.weight.data.end(), part.data(), part.data() + part.size());
      out.bias.data.insert(out.bias.data.end(), l->bias.data.begin(), l->bias.data.end());
    }
    return out;
  }
  // (steps, width): the columns of the step embedding times `embeddings`.
  std::vector<float> StepPart(const MatrixD& embeddings) const {
    Matrix table(embeddings.rows(), width_);
    const Matrix rows = embeddings.cast<float>();
    int64_t at = 0;
    for (const Linear* l : layers_) {
      const int64_t terms = l->weight.shape[0];
      table.middleCols(at, terms).noalias() =
          rows * AsMatrix(l->weight).leftCols(embed_dim_).transpose();
      at += terms;
    }
    return {table.data(), table.data() + table.size()};
  }

 private:
  int64_t embed_dim_;
  bool scale_;
  int width_ = 0;
  std::vector<const Linear*> layers_;
};

DeviceBlock1d LoadBlock(LayerLoader& loader, const ResidualBlock1d& block, int kernel,
                        FilmCollector& film) {
  DeviceBlock1d out;
  out.conv1 = loader.Conv1d(block.conv1, 1, kernel / 2);
  out.conv2 = loader.Conv1d(block.conv2, 1, kernel / 2);
  out.norm1 = loader.Norm(block.norm1);
  out.norm2 = loader.Norm(block.norm2);
  if (block.residual) out.residual = loader.Conv1d(*block.residual, 1, 0);
  out.channels = out.conv1.shape.out_c;
  film.Add(block, out);
  return out;
}

}  // namespace

DeviceUnet LoadDeviceUnet(LayerLoader& loader, const Checkpoint& checkpoint, bool measuring) {
  const UnetConfig& config = checkpoint.config.unet;
  const UnetWeights& unet = checkpoint.unet;
  for (int dim : config.down_dims) {
    if (dim % 8 != 0)
      throw Unsupported("U-Net width " + std::to_string(dim) +
                        ": the GPU kernels take multiples of 8; use the CPU backend");
  }
  FilmCollector film(config.step_embed_dim, config.film_scale);
  const auto block = [&](const ResidualBlock1d& b) {
    return LoadBlock(loader, b, config.kernel_size, film);
  };
  DeviceUnet out;
  for (const UnetLevel& level : unet.down) {
    DeviceLevel1d& l =
        out.down.emplace_back(DeviceLevel1d{block(level.block1), block(level.block2), {}});
    if (level.resample) l.resample = loader.Conv1d(*level.resample, 2, 1);
  }
  out.mid1 = block(unet.mid1);
  out.mid2 = block(unet.mid2);
  for (const UnetLevel& level : unet.up) {
    DeviceLevel1d& l =
        out.up.emplace_back(DeviceLevel1d{block(level.block1), block(level.block2), {}});
    if (level.resample) l.resample = loader.Transposed1d(*level.resample);
  }
  out.final_conv = loader.Conv1d(unet.final_conv, 1, config.kernel_size / 2);
  out.final_norm = loader.Norm(unet.final_norm);
  out.out = loader.Conv1d(unet.out, 1, 0);
  out.film_width = film.width();
  out.film_cond = loader.Dense(film.ConditionPart());
  const int steps = checkpoint.config.scheduler.train_steps;
  out.step_table =
      loader.Floats(measuring ? std::vector<float>(static_cast<size_t>(steps) * film.width())
                              : film.StepPart(StepEmbeddings(unet, steps)));
  return out;
}

}  // namespace dp
