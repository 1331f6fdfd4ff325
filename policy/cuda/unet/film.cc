#include "policy/cuda/unet/film.h"

#include <Eigen/Core>
#include <cmath>

#include "policy/unet/unet_model.h"
#include "policy/unet/unet_walk.h"

namespace mjp {
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
  FilmCollector(const UnetWeights& unet, int embed_dim) : embed_dim_(embed_dim) {
    for (const ResidualBlock1d* block : BlocksOf(unet)) {
      layers_.push_back(&block->film);
      width_ += static_cast<int>(block->film.weight.shape[0]);
    }
  }
  int width() const { return width_; }

  // The columns of the conditioning vector, with the biases.
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
  int width_ = 0;
  std::vector<const Linear*> layers_;
};

}  // namespace

std::vector<FilmTerms> FilmTermsOf(const UnetWeights& unet, bool scale) {
  std::vector<FilmTerms> all;
  int width = 0;
  for (const ResidualBlock1d* block : BlocksOf(unet)) {
    const int terms = static_cast<int>(block->film.weight.shape[0]);
    all.push_back(scale ? FilmTerms{width, width + terms / 2} : FilmTerms{-1, width});
    width += terms;
  }
  return all;
}

DeviceFilm LoadFilm(LayerLoader& loader, const Checkpoint& checkpoint, bool measuring) {
  const UnetConfig& config = UnetOf(checkpoint).config.unet;
  const UnetWeights& unet = UnetOf(checkpoint).unet;
  const FilmCollector collector(unet, config.step_embed_dim);
  DeviceFilm out;
  out.blocks = FilmTermsOf(unet, config.film_scale);
  out.width = collector.width();
  out.cond = loader.Dense(collector.ConditionPart());
  const int steps = UnetOf(checkpoint).config.scheduler.train_steps;
  out.step_table =
      loader.Floats(measuring ? std::vector<float>(static_cast<size_t>(steps) * out.width)
                              : collector.StepPart(StepEmbeddings(unet, steps)));
  return out;
}

FilmConditioning::FilmConditioning(const DeviceFilm& film, Format format, int rows,
                                   int rows_per_env, DeviceArena& arena)
    : format_(format), rows_per_env_(rows_per_env), step_table_(film.step_table) {
  const size_t environments = rows / rows_per_env;
  product_.shape = film.cond.shape;
  product_.shape.batch = static_cast<int>(environments);
  product_.weight = film.cond.weight;
  product_.bias = film.cond.bias;
  // one environment's are a bias like any other: the faster kernel takes them
  if (environments == 1 && product_.bias == nullptr) {
    product_.bias = film.of_environment;
  } else {
    product_.row_bias = film.of_environment;
    product_.row_period = product_.shape.batch;
  }
  mish_cond_ = arena.TakeBytes(environments * product_.shape.in_c * FormatBytes(format));
  product_.x = mish_cond_;
  product_.y = arena.Take<float>(environments * film.width);
  product_.y_fp32 = true;
}

FilmConditioning FilmConditioning::Shared(int rows_per_env) const {
  FilmConditioning shared = *this;
  shared.rows_per_env_ = rows_per_env;
  return shared;
}

FilmArgs FilmConditioning::Terms(const FilmTerms& block) const {
  return {step_table_,
          static_cast<const float*>(product_.y),
          nullptr,
          rows_per_env_,
          product_.shape.out_c,
          block.scale_offset,
          block.bias_offset};
}

FilmTables FilmConditioning::Tables() const {
  return {step_table_, static_cast<const float*>(product_.y), rows_per_env_, product_.shape.out_c};
}

void FilmConditioning::Run(cudaStream_t stream) const { LaunchConv(format_, product_, stream); }

}  // namespace mjp
