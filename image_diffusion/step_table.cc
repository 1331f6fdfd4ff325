#include "image_diffusion/step_table.h"

#include <Eigen/Core>
#include <cmath>

#include "policy/unet/unet_walk.h"

namespace mjp {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

double Mish(double x) { return x * std::tanh(std::log1p(std::exp(x))); }

// x (rows, in) W^T + b
Matrix Dense(const Matrix& x, const Linear& layer) {
  const Eigen::Map<const FloatMatrix> weight(layer.weight.data.data(), layer.weight.shape[0],
                                             layer.weight.shape[1]);
  const Eigen::Map<const Eigen::RowVectorXf> bias(layer.bias.data.data(), layer.bias.shape[0]);
  return (x * weight.cast<double>().transpose()).rowwise() + bias.cast<double>();
}

Matrix Sinusoid(const std::vector<int>& timesteps, int64_t width) {
  const int64_t half = width / 2;
  Matrix out(timesteps.size(), width);
  for (size_t i = 0; i < timesteps.size(); ++i) {
    for (int64_t j = 0; j < half; ++j) {
      const double frequency = std::exp(-static_cast<double>(j) * std::log(10000.0) / (half - 1.0));
      out(i, j) = std::sin(timesteps[i] * frequency);
      out(i, half + j) = std::cos(timesteps[i] * frequency);
    }
  }
  return out;
}

std::vector<const Linear*> FilmLayers(const UnetWeights& unet) {
  std::vector<const Linear*> layers;
  for (const ResidualBlock1d* block : BlocksOf(unet)) layers.push_back(&block->film);
  return layers;
}

}  // namespace

StepTable MakeStepTable(const UnetWeights& unet, const std::vector<int>& timesteps) {
  const Matrix sinusoid = Sinusoid(timesteps, unet.time1.weight.shape[1]);
  const Matrix hidden = Dense(sinusoid, unet.time1).unaryExpr(&Mish);
  const Matrix embedding = Dense(hidden, unet.time2).unaryExpr(&Mish);
  const std::vector<const Linear*> layers = FilmLayers(unet);
  StepTable table;
  for (const Linear* layer : layers) {
    table.offsets.push_back(table.width);
    table.width += static_cast<int>(layer->bias.shape[0]);
  }
  FloatMatrix values(timesteps.size(), table.width);
  for (size_t i = 0; i < layers.size(); ++i) {
    values.middleCols(table.offsets[i], layers[i]->bias.shape[0]) =
        Dense(embedding, *layers[i]).cast<float>();
  }
  table.values.assign(values.data(), values.data() + values.size());
  return table;
}

}  // namespace mjp
