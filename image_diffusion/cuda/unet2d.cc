#include "image_diffusion/cuda/unet2d.h"

#include <algorithm>

#include "policy/unet/unet_walk.h"

namespace mjp {

CudaUnet2d::CudaUnet2d(const ImageModel& model, const StepTable& table, Format format, int rows,
                       DeviceArena& arena)
    : format_(format), rows_(rows), arena_(arena), loader_(arena, format), table_(table) {
  const ImageConfig& config = model.config;
  const UnetWeights& unet = model.unet;
  step_table_ = loader_.Floats(table.values);
  no_condition_ = arena.Take<float>(table.width);  // memory begins as zeros
  row_step_ = arena.Take<int>(rows);
  Map input = Take(config.size, PaddedChannels(config.channels));
  input.lasts = true;
  input_ = input.data;
  input_pitch_ = input.channels;

  const Map h = LowerUnet(
      OrderOf(unet), input,
      [&](const ResidualBlock1d* block, const UnetPlace& place, const Map& x, const Map* skip) {
        Map y = Block(*block, x, skip);
        y.lasts = place.gives_skip;
        if (!x.lasts) GiveBack(x);
        if (skip != nullptr) GiveBack(*skip);
        return y;
      },
      [&](const Conv* conv, const UnetPlace& place, const Map& x) {
        const bool up = place.upsamples;
        const Map y = Convolve(*conv, x, nullptr, up ? 1 : 2, up);
        if (!x.lasts) GiveBack(x);
        return y;
      });
  const Map last = Convolve(unet.final_conv, h, nullptr, 1, false);
  Normalise(unet.final_norm, last, {}, nullptr);
  output_ = arena.Take<float>(size_t{1} * rows * config.Elements());
  GiveBack(Convolve(unet.out, last, nullptr, 1, false));
  ConvArgs& out = std::get<ConvArgs>(ops_.back());
  out.y = output_;
  out.y_fp32 = true;
}

CudaUnet2d::Map CudaUnet2d::Take(int size, int channels) {
  const size_t bytes = size_t{1} * rows_ * size * size * channels * FormatBytes(format_);
  // the smallest that is large enough
  const auto waste = [&](const Map& map) { return map.bytes < bytes ? ~size_t{0} : map.bytes; };
  const auto found = std::min_element(
      free_.begin(), free_.end(), [&](const Map& a, const Map& b) { return waste(a) < waste(b); });
  if (found == free_.end() || found->bytes < bytes) {
    return {arena_.TakeBytes(bytes), size, channels, bytes};
  }
  const Map map = {found->data, size, channels, found->bytes};
  free_.erase(found);
  return map;
}

CudaUnet2d::Map CudaUnet2d::Convolve(const Conv& conv, const Map& x, const Map* x2, int stride,
                                     bool upsample2x) {
  const int kernel = static_cast<int>(conv.weight.shape[2]);
  const DeviceConv packed = loader_.Conv2d(conv, stride, kernel / 2);
  ConvArgs a;
  a.shape = packed.shape;
  a.shape.batch = rows_;
  a.shape.upsample2x = upsample2x;
  a.shape.in_h = a.shape.in_w = upsample2x ? 2 * x.size : x.size;
  a.shape.out_h = a.shape.out_w = (a.shape.in_h - 1) / stride + 1;
  a.x = x.data;
  a.weight = packed.weight;
  a.bias = packed.bias;
  if (x2 != nullptr) {
    a.x2 = x2->data;
    a.shape.first_c = x.channels;
  }
  const Map y = Take(a.shape.out_h, a.shape.out_c);
  a.y = y.data;
  ops_.push_back(a);
  return y;
}

void CudaUnet2d::Normalise(const GroupNorm& norm, const Map& map, const FilmArgs& film,
                           const Map* residual) {
  const DeviceNorm packed = loader_.Norm(norm);
  GroupNormArgs a;
  a.rows = rows_;
  a.positions = map.size * map.size;
  a.channels = map.channels;
  a.groups = packed.groups;
  a.x = a.y = map.data;
  a.weight = packed.weight;
  a.bias = packed.bias;
  a.activation = Activation::kMish;
  a.film = film;
  a.residual = residual ? residual->data : nullptr;
  ops_.push_back(a);
}

CudaUnet2d::Map CudaUnet2d::Block(const ResidualBlock1d& block, const Map& x, const Map* skip) {
  const int channels = static_cast<int>(block.norm1.weight.shape[0]);
  const int offset = table_.offsets[blocks_++];
  const bool scale = block.film.bias.shape[0] == 2 * channels;
  const FilmArgs film = {.step_table = step_table_,
                         .cond = no_condition_,
                         .row_step = row_step_,
                         .rows_per_env = rows_,
                         .width = table_.width,
                         .scale_offset = scale ? offset : -1,
                         .bias_offset = scale ? offset + channels : offset};
  const Map middle = Convolve(block.conv1, x, skip, 1, false);
  Normalise(block.norm1, middle, film, nullptr);
  const Map y = Convolve(block.conv2, middle, nullptr, 1, false);
  GiveBack(middle);
  const Map side = block.residual ? Convolve(*block.residual, x, skip, 1, false) : x;
  Normalise(block.norm2, y, {}, &side);
  if (block.residual) GiveBack(side);
  return y;
}

void CudaUnet2d::Run(cudaStream_t stream) const {
  for (const Op& op : ops_) LaunchOp(format_, op, stream);
}

}  // namespace mjp
