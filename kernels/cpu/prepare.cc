#include "kernels/cpu/prepare.h"

#include <algorithm>
#include <cmath>

namespace mjp::cpu {
namespace {

void Crop(const PrepareArgs& args, int n) {
  const uint8_t* frame = args.rgb + n * args.frame_stride;
  for (int h = 0; h < args.y.height; ++h) {
    for (int w = 0; w < args.y.width; ++w) {
      const uint8_t* in = frame + (int64_t{h + args.top} * args.width + w + args.left) * 3;
      float* out = args.y.At(n, h, w);
      for (int c = 0; c < 3; ++c) out[c] = args.table[c * 256 + in[c]];
    }
  }
}

// across first, then down, as PyTorch does; only the rows and columns of the crop are made
void ResizeAndCrop(const PrepareArgs& args, int n, float* across) {
  const uint8_t* frame = args.rgb + n * args.frame_stride;
  const ResizeTaps &tx = *args.resize_x, &ty = *args.resize_y;
  const int width = args.y.width;
  for (int h = 0; h < args.height; ++h) {
    for (int w = 0; w < width; ++w) {
      const int column = w + args.left;
      for (int c = 0; c < 3; ++c) {
        float sum = 0;
        for (int k = 0; k < tx.taps; ++k) {
          const int source = std::min(tx.first[column] + k, args.width - 1);  // weight 0 beyond
          const uint8_t value = frame[(int64_t{h} * args.width + source) * 3 + c];
          sum += tx.weights[column * tx.taps + k] * args.table[c * 256 + value];
        }
        across[(h * width + w) * 3 + c] = sum;
      }
    }
  }
  for (int h = 0; h < args.y.height; ++h) {
    const int row = h + args.top;
    for (int w = 0; w < width; ++w) {
      float* out = args.y.At(n, h, w);
      for (int c = 0; c < 3; ++c) {
        float sum = 0;
        for (int k = 0; k < ty.taps; ++k) {
          const int source = std::min(ty.first[row] + k, args.height - 1);
          sum += ty.weights[row * ty.taps + k] * across[(source * width + w) * 3 + c];
        }
        out[c] = sum;
      }
    }
  }
}

}  // namespace

ResizeTaps MakeResizeTaps(int input, int output) {
  const double scale = static_cast<double>(input) / output;
  const double support = std::max(scale, 1.0), inverse = 1.0 / support;
  ResizeTaps resize;
  resize.taps = static_cast<int>(std::ceil(support)) * 2 + 1;
  resize.weights.assign(size_t{1} * output * resize.taps, 0.0f);
  for (int i = 0; i < output; ++i) {
    const double center = scale * (i + 0.5);
    // NOLINTBEGIN(bugprone-incorrect-roundings): the picture library truncates here too
    const int first = std::max(static_cast<int>(center - support + 0.5), 0);
    const int last = std::min(static_cast<int>(center + support + 0.5), input);
    // NOLINTEND(bugprone-incorrect-roundings)
    resize.first.push_back(first);
    double total = 0;
    const auto weight = [&](int k) {
      return std::max(1.0 - std::abs((k + first - center + 0.5) * inverse), 0.0);
    };
    for (int k = 0; k < last - first; ++k) total += weight(k);
    for (int k = 0; k < last - first; ++k) {
      resize.weights[size_t{1} * i * resize.taps + k] = static_cast<float>(weight(k) / total);
    }
  }
  return resize;
}

void Prepare(const PrepareArgs& args, int begin, int end, float* scratch) {
  for (int n = begin; n < end; ++n) {
    if (args.resize_x == nullptr) {
      Crop(args, n);
    } else {
      ResizeAndCrop(args, n, scratch);
    }
  }
}

}  // namespace mjp::cpu
