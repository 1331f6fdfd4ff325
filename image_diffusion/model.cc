#include "image_diffusion/model.h"

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "policy/checkpoint/checkpoint_source.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/checkpoint/safetensors_writer.h"
#include "policy/unet/unet_config.h"

namespace mjp {
namespace {

constexpr char kType[] = "image_diffusion";
constexpr int kMaxSize = 512;

Tensor Shaped(std::vector<int64_t> shape) { return {std::move(shape), {}}; }

Conv OutlineConv(int64_t out, int64_t in, int64_t kernel) {
  return {Shaped({out, in, kernel, kernel}), Shaped({out})};
}

GroupNorm OutlineNorm(int64_t channels, int groups) {
  return {groups, Shaped({channels}), Shaped({channels})};
}

ResidualBlock1d OutlineBlock(const UnetConfig& unet, int64_t in, int64_t out) {
  ResidualBlock1d block;
  block.conv1 = OutlineConv(out, in, unet.kernel_size);
  block.conv2 = OutlineConv(out, out, unet.kernel_size);
  block.norm1 = block.norm2 = OutlineNorm(out, unet.groups);
  const int64_t terms = unet.film_scale ? 2 * out : out;
  block.film = {Shaped({terms, unet.step_embed_dim}), Shaped({terms})};
  if (in != out) block.residual = OutlineConv(out, in, 1);
  return block;
}

UnetWeights Outline(const ImageConfig& config) {
  const std::vector<int>& dims = config.unet.down_dims;
  const int64_t embed = config.unet.step_embed_dim;
  const size_t levels = dims.size();
  UnetWeights unet;
  unet.time1 = {Shaped({4 * embed, embed}), Shaped({4 * embed})};
  unet.time2 = {Shaped({embed, 4 * embed}), Shaped({embed})};
  const auto block = [&](int64_t in, int64_t out) { return OutlineBlock(config.unet, in, out); };
  for (size_t i = 0; i < levels; ++i) {
    UnetLevel level{block(i == 0 ? config.channels : dims[i - 1], dims[i]), block(dims[i], dims[i]),
                    std::nullopt};
    if (i + 1 < levels) level.resample = OutlineConv(dims[i], dims[i], 3);
    unet.down.push_back(std::move(level));
  }
  unet.mid1 = unet.mid2 = block(dims.back(), dims.back());
  for (size_t i = levels; i-- > 0;) {
    const int64_t out = dims[i > 0 ? i - 1 : 0];
    UnetLevel level{block(2 * int64_t{dims[i]}, out), block(out, out), std::nullopt};
    if (i > 0) level.resample = OutlineConv(out, out, 3);
    unet.up.push_back(std::move(level));
  }
  unet.final_conv = OutlineConv(dims[0], dims[0], config.unet.kernel_size);
  unet.final_norm = OutlineNorm(dims[0], config.unet.groups);
  unet.out = OutlineConv(config.channels, dims[0], 1);
  return unet;
}

ImageConfig ParseImageConfig(const Json& json, const std::string& origin) {
  KeyReader keys(json, origin);
  ImageConfig config;
  keys.Choice<int>("type", {{kType, 0}});
  config.size = keys.Int("image_size", 1, kMaxSize);
  config.channels = keys.Choice<int>("color", {{"grey", 1}, {"rgb", 3}});
  config.dataset = keys.Text("dataset", "");
  if (const Json* classes = keys.Find("classes")) {
    if (!classes->is_array()) throw keys.Bad("classes", "must be an array of names");
    for (const Json& name : *classes) {
      if (!name.is_string()) throw keys.Bad("classes", "must be an array of names");
      config.classes.push_back(name.get<std::string>());
    }
  }
  config.unet = ParseUnet(keys);
  config.scheduler = ParseScheduler(keys);
  keys.RejectRest();
  CheckImageConfig(config);
  return config;
}

}  // namespace

void CheckImageConfig(const ImageConfig& config) {
  const std::vector<int>& dims = config.unet.down_dims;
  const int levels = static_cast<int>(dims.size());
  for (const int channels : dims) {
    if (channels % config.unet.groups == 0) continue;
    throw Unsupported(std::to_string(channels) + " channels: a level needs a multiple of " +
                      std::to_string(config.unet.groups) + ", the groups of its norms");
  }
  for (int i = 1; i < levels; ++i) {
    if (dims[i - 1] == 2 * dims[i]) {
      throw Unsupported("channels " + std::to_string(dims[i - 1]) + ", " + std::to_string(dims[i]) +
                        ": a level must not have half of the one above; choose other channels");
    }
  }
  if (config.size % (1 << (levels - 1)) != 0) {
    throw Unsupported("pictures of " + std::to_string(config.size) + " pixels: " +
                      std::to_string(levels) + " levels of the U-Net need a multiple of " +
                      std::to_string(1 << (levels - 1)) + "; choose another --image-size");
  }
}

TensorNames ImageNames() { return {.unet = ""}; }

std::shared_ptr<const ImageModel> BuildImageModel(const ImageConfig& config, TensorSource& source) {
  CheckImageConfig(config);
  auto model = std::make_shared<ImageModel>();
  model->config = config;
  model->unet = Outline(config);
  model->parameter_count = FillUnet(ImageNames(), source, model->unet);
  return model;
}

std::shared_ptr<const ImageModel> RandomImageModel(const ImageConfig& config, uint64_t seed) {
  return BuildImageModel(config, *MakeRandomSource(seed));
}

std::shared_ptr<const ImageModel> LoadImageModel(const std::string& directory) {
  const std::string config_path = directory + "/config.json";
  const ImageConfig config = ParseImageConfig(ReadJson(config_path), config_path);
  const SafetensorsFile file = SafetensorsFile::Read(directory + "/model.safetensors");
  CheckpointSource source(file);
  auto model = BuildImageModel(config, source);
  source.CheckAllTaken();
  return model;
}

void WriteImageModel(const std::string& directory, const ImageModel& model) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw BadInput(directory + ": cannot create: " + error.message());
  SafetensorsWriter writer;
  VisitUnet(ImageNames(), model.unet, [&](const std::string& name, const Tensor& tensor) {
    writer.AddFloats(name, tensor.shape, tensor.data);
  });
  writer.Write(directory + "/model.safetensors");
  const ImageConfig& config = model.config;
  Json json = {{"type", kType},
               {"image_size", config.size},
               {"color", config.channels == 1 ? "grey" : "rgb"},
               {"dataset", config.dataset},
               {"classes", config.classes}};
  AddUnet(config.unet, json);
  AddScheduler(config.scheduler, json);
  const std::string text = json.dump(2) + "\n";
  WriteFileAtomically(directory + "/config.json",
                      {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

}  // namespace mjp
