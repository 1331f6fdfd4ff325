// The shapes of LeRobot's `act` and `multi_task_dit` at their default sizes, weights random, each
// layer as one call of libtorch: BatchNorm folded, q, k and v in as few products as their inputs
// allow, attention by the library's fused kernel.

#include "apps/bench/baseline/torch_transformers.h"

#include <cmath>
#include <memory>
#include <vector>

namespace mjp::app {
namespace {

using at::Tensor;

constexpr int64_t kWidth = 512, kHeads = 8;

struct Dense {
  Tensor weight, bias;
  Tensor operator()(const Tensor& x) const { return at::linear(x, weight, bias); }
};

struct Convolution {
  Tensor weight, bias;
  int64_t stride, pad;
  Tensor operator()(const Tensor& x) const {
    return at::conv2d(x, weight, bias, {stride, stride}, {pad, pad});
  }
};

class Maker {
 public:
  Maker(const at::TensorOptions& options, bool channels_last)
      : options_(options), channels_last_(channels_last) {}

  Tensor Values(at::IntArrayRef shape) const { return at::randn(shape, options_); }
  Dense Layer(int64_t in, int64_t out) const {
    return {Values({out, in}) / std::sqrt(static_cast<double>(in)), Values({out})};
  }
  Convolution Conv(int64_t in, int64_t out, int64_t kernel, int64_t stride) const {
    const Tensor weight = Values({out, in, kernel, kernel}) / std::sqrt(in * kernel * kernel);
    const auto format =
        channels_last_ ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    return {weight.contiguous(format), Values({out}), stride, kernel / 2};
  }

 private:
  at::TensorOptions options_;
  bool channels_last_;
};

// x (B, rows, width) as (B, heads, rows, head size), and back.
Tensor SplitHeads(const Tensor& x) {
  return x.view({x.size(0), x.size(1), kHeads, kWidth / kHeads}).transpose(1, 2);
}
Tensor Attend(const Tensor& q, const Tensor& k, const Tensor& v) {
  const Tensor heads =
      at::scaled_dot_product_attention(SplitHeads(q), SplitHeads(k), SplitHeads(v));
  return heads.transpose(1, 2).reshape({q.size(0), q.size(1), kWidth});
}

class Norm {
 public:
  explicit Norm(const Maker& make) : weight_(make.Values({kWidth})), bias_(make.Values({kWidth})) {}
  Tensor operator()(const Tensor& x) const { return at::layer_norm(x, {kWidth}, weight_, bias_); }

 private:
  Tensor weight_, bias_;
};

class ResNet18 {
 public:
  explicit ResNet18(const Maker& make) : stem_(make.Conv(3, 64, 7, 2)) {
    int64_t in = 64;
    for (const int64_t out : {64, 128, 256, 512}) {
      for (int block = 0; block < 2; ++block) {
        const int64_t stride = block == 0 && out > 64 ? 2 : 1;
        blocks_.push_back({make.Conv(in, out, 3, stride), make.Conv(out, out, 3, 1),
                           make.Conv(in, out, 1, stride), in != out});
        in = out;
      }
    }
  }
  Tensor operator()(const Tensor& pictures) const {
    Tensor x = at::max_pool2d(stem_(pictures).relu_(), {3, 3}, {2, 2}, {1, 1});
    for (const Block& block : blocks_) {
      const Tensor shortcut = block.widens ? block.shortcut(x) : x;
      x = block.second(block.first(x).relu_()).add_(shortcut).relu_();
    }
    return x;
  }

 private:
  struct Block {
    Convolution first, second, shortcut;
    bool widens;
  };
  Convolution stem_;
  std::vector<Block> blocks_;
};

// Pictures (B, 3, 480, 640) to chunks (B, 100, 14).
class TorchAct {
 public:
  explicit TorchAct(const Maker& make)
      : backbone_(make),
        project_(make.Layer(kWidth, kWidth)),
        head_(make.Layer(kWidth, kActions)),
        last_(make),
        others_(make.Values({1, 2, kWidth})),
        positions_(make.Values({1, kTokens, kWidth})),
        queries_(make.Values({1, kChunk, kWidth})) {
    for (int i = 0; i < 4; ++i) encoder_.emplace_back(make);
    for (int i = 0; i < 2; ++i) decoder_.emplace_back(make);
  }

  Tensor operator()(const Tensor& pictures) const {
    const int64_t batch = pictures.size(0);
    const Tensor map = backbone_(pictures).permute({0, 2, 3, 1}).reshape({batch, -1, kWidth});
    Tensor x = at::cat({others_.expand({batch, 2, kWidth}), project_(map)}, 1);
    for (const Layer& layer : encoder_) {
      const Tensor placed = x + positions_;
      x = layer.norm1(x + layer.Attention(placed, placed, x));
      x = layer.norm2(x + layer.FeedForward(x));
    }
    // the decoder's self-attention reads zeros, and LeRobot runs it all the same
    const Tensor placed = x + positions_;
    Tensor y = at::zeros({batch, kChunk, kWidth}, x.options());
    const Tensor asked = y + queries_;
    y = decoder_[0].norm1(y + decoder_[0].Attention(asked, asked, y));
    y = decoder_[1].norm1(y + decoder_[1].Attention(y + queries_, placed, x));
    y = decoder_[1].norm2(y + decoder_[1].FeedForward(y));
    return head_(last_(y));
  }

 private:
  static constexpr int64_t kTokens = 302, kChunk = 100, kActions = 14, kBetween = 3200;
  struct Layer {
    explicit Layer(const Maker& make)
        : q(make.Layer(kWidth, kWidth)),
          k(make.Layer(kWidth, kWidth)),
          v(make.Layer(kWidth, kWidth)),
          out(make.Layer(kWidth, kWidth)),
          linear1(make.Layer(kWidth, kBetween)),
          linear2(make.Layer(kBetween, kWidth)),
          norm1(make),
          norm2(make) {}
    Tensor Attention(const Tensor& queries, const Tensor& keys, const Tensor& values) const {
      return out(Attend(q(queries), k(keys), v(values)));
    }
    Tensor FeedForward(const Tensor& x) const { return linear2(linear1(x).relu_()); }
    Dense q, k, v, out, linear1, linear2;
    Norm norm1, norm2;
  };
  ResNet18 backbone_;
  Dense project_, head_;
  std::vector<Layer> encoder_, decoder_;
  Norm last_;
  Tensor others_, positions_, queries_;
};

// A pass over x (B, 32, 2), its modulation made in each pass, as LeRobot does.
class TorchDit {
 public:
  explicit TorchDit(const Maker& make)
      : time1_(make.Layer(kTime, 4 * kTime)),
        time2_(make.Layer(4 * kTime, kTime)),
        input_(make.Layer(kActions, kWidth)),
        output_(make.Layer(kWidth, kActions)),
        cosines_(make.Values({1, 1, kHorizon, kWidth / kHeads})),
        sines_(make.Values({1, 1, kHorizon, kWidth / kHeads})) {
    for (int i = 0; i < 6; ++i) {
      blocks_.push_back({make.Layer(kTime + kCondition, 6 * kWidth), make.Layer(kWidth, 3 * kWidth),
                         make.Layer(kWidth, kWidth), make.Layer(kWidth, 4 * kWidth),
                         make.Layer(4 * kWidth, kWidth)});
    }
  }
  Tensor operator()(const Tensor& x, const Tensor& time, const Tensor& condition) const {
    const Tensor steps = time.to(x.dtype()).unsqueeze(1).expand({x.size(0), kTime});
    const Tensor features = at::silu(at::cat({time2_(at::gelu(time1_(steps))), condition}, 1));
    Tensor h = input_(x);
    for (const Block& block : blocks_) {
      const auto terms = block.modulation(features).unsqueeze(1).chunk(6, 2);
      const auto qkv = block.qkv(Modulated(h, terms[0], terms[1])).chunk(3, 2);
      const Tensor heads = at::scaled_dot_product_attention(
          Turned(SplitHeads(qkv[0])), Turned(SplitHeads(qkv[1])), SplitHeads(qkv[2]));
      h = h + terms[2] * block.out(heads.transpose(1, 2).reshape(h.sizes()));
      const Tensor hidden = at::gelu(block.mlp1(Modulated(h, terms[3], terms[4])), "tanh");
      h = h + terms[5] * block.mlp2(hidden);
    }
    return output_(h);
  }

 private:
  static constexpr int64_t kTime = 256, kHorizon = kTorchDitHorizon, kActions = kTorchDitActions,
                           kCondition = kTorchDitCondition;
  struct Block {
    Dense modulation, qkv, out, mlp1, mlp2;
  };
  static Tensor Modulated(const Tensor& x, const Tensor& shift, const Tensor& scale) {
    return at::layer_norm(x, {kWidth}, {}, {}, 1e-6) * (1 + scale) + shift;
  }
  Tensor Turned(const Tensor& x) const {
    const auto halves = x.chunk(2, 3);
    return x * cosines_ + at::cat({-halves[1], halves[0]}, 3) * sines_;
  }
  Dense time1_, time2_, input_, output_;
  Tensor cosines_, sines_;
  std::vector<Block> blocks_;
};

}  // namespace

TorchActPass MakeTorchAct(const at::TensorOptions& options, bool channels_last) {
  return [network = std::make_shared<TorchAct>(Maker(options, channels_last))](
             const Tensor& pictures) { return (*network)(pictures); };
}

TorchDitPass MakeTorchDit(const at::TensorOptions& options) {
  return [network = std::make_shared<TorchDit>(Maker(options, false))](
             const Tensor& x, const Tensor& step, const Tensor& condition) {
    return (*network)(x, step, condition);
  };
}

}  // namespace mjp::app
