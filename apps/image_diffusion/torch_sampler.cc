// The reference: the same model, schedule and noise on libtorch's own operators.

#include <ATen/Context.h>
#include <c10/core/InferenceMode.h>

#include <utility>

#include "apps/image_diffusion/reference.h"
#include "apps/image_diffusion/torch_unet.h"
#include "base/error.h"
#include "kernels/shared/philox.h"
#if MJPOLICY_HAVE_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "kernels/cuda/sampler/image_step.cuh"
#endif

namespace mjp::app {
namespace {

// x in memory is (count, size, size, channels), as everywhere in the project.
at::Tensor AsMaps(const at::Tensor& x) { return x.permute({0, 3, 1, 2}); }

std::vector<float> ToVector(const at::Tensor& x) {
  const at::Tensor dense = x.to(at::kCPU, at::kFloat).contiguous();
  const float* data = dense.const_data_ptr<float>();
  return {data, data + dense.numel()};
}

#if MJPOLICY_HAVE_CUDA
// The pictures' noise addresses (mjp::NoiseAddress) as words (count, 4), on the CPU.
at::Tensor NoiseKeys(uint64_t seed, int first, int count) {
  std::vector<int> words;
  for (int i = 0; i < count; ++i) {
    words.insert(words.end(), {static_cast<int>(seed), static_cast<int>(seed >> 32), first + i, 0});
  }
  return at::tensor(words, at::kInt).view({count, 4});
}
#endif

class TorchSampler : public mjp::ImageSampler {
 public:
  TorchSampler(std::shared_ptr<const mjp::ImageModel> model,
               const mjp::ImageSamplerOptions& options, at::ScalarType type,
               at::MemoryFormat layout)
      : model_(std::move(model)),
        options_(options),
        schedule_(mjp::ImageSchedule(*model_, options)),
        device_(DefaultDevice()),
        parameters_(TensorsOf(*model_), device_, type, layout),
        unet_(model_->config, parameters_, /*fused=*/false) {}

  int steps() const override { return static_cast<int>(schedule_.size()); }

 protected:
  at::Tensor Zeros(at::ScalarType type, int64_t channels) const {
    const int64_t size = model_->config.size;
    return at::zeros({options_.batch, size, size, channels},
                     at::TensorOptions().device(device_).dtype(type));
  }

  std::shared_ptr<const mjp::ImageModel> model_;
  mjp::ImageSamplerOptions options_;
  std::vector<mjp::DenoiseStep> schedule_;
  at::Device device_;
  Parameters parameters_;
  TorchUnet unet_;
};

// One operator after the other, float32, PyTorch's ordinary layout.
class EagerSampler : public TorchSampler {
 public:
  EagerSampler(std::shared_ptr<const mjp::ImageModel> model,
               const mjp::ImageSamplerOptions& options)
      : TorchSampler(std::move(model), options, at::kFloat, at::MemoryFormat::Contiguous) {
#if MJPOLICY_HAVE_CUDA
    keys_ = at::zeros({options.batch, 4}, at::TensorOptions().device(device_).dtype(at::kInt));
    timesteps_ = at::tensor(mjp::Timesteps(schedule_), at::kInt).to(device_);
    keep_ = at::tensor({0, 1, 1, 0}, at::kInt).to(device_);
#endif
  }

  std::vector<float> Sample(uint64_t seed, int first, int count, const mjp::ImageObserver& observer,
                            int observe_every) override {
    const c10::InferenceMode inference;
    SetKeys(seed, first);
    at::Tensor x = AsMaps(Noise(-1)).contiguous();
    const auto show = [&] { return ToVector(x.narrow(0, 0, count).permute({0, 2, 3, 1})); };
    for (int k = 0; k < steps(); ++k) {
      if (observer && k % observe_every == 0) observer(k, show());
      const at::Tensor t =
          at::full({options_.batch}, schedule_[k].timestep, x.options().dtype(at::kLong));
      x = Step(schedule_[k], x, unet_.Denoise(x, t), k);
    }
    std::vector<float> pictures = show();
    if (observer) observer(steps(), pictures);
    return pictures;
  }

  std::string Description() const override {
    const bool tf32 = device_.is_cuda() && at::globalContext().allowTF32CuDNN();
    return "reference (libtorch eager, fp32" + std::string(tf32 ? ", TF32 convolutions)" : ")");
  }

 private:
  at::Tensor Step(const mjp::DenoiseStep& s, const at::Tensor& x, const at::Tensor& output, int k) {
    at::Tensor x0 = output, eps = output;
    if (s.prediction == mjp::Prediction::kEpsilon) x0 = (x - s.sqrt_1ma * output) / s.sqrt_a;
    if (s.prediction == mjp::Prediction::kSample) eps = (x - s.sqrt_a * output) / s.sqrt_1ma;
    if (s.prediction == mjp::Prediction::kV) {
      x0 = s.sqrt_a * x - s.sqrt_1ma * output;
      eps = s.sqrt_a * output + s.sqrt_1ma * x;
    }
    if (s.clip > 0) x0 = x0.clamp(-s.clip, s.clip);
    if (s.ddim) return s.x0_scale * x0 + s.eps_scale * eps;
    const at::Tensor next = s.x0_scale * x0 + s.x_scale * x;
    return s.sigma > 0 ? next + s.sigma * AsMaps(Noise(k)) : next;
  }

  void SetKeys(uint64_t seed, int first) {
    seed_ = seed;
    first_ = first;
#if MJPOLICY_HAVE_CUDA
    if (device_.is_cuda()) keys_.copy_(NoiseKeys(seed, first, options_.batch));
#endif
  }

  // Noise of step `k`, -1 for the start: (batch, size, size, channels).
  at::Tensor Noise(int k) {
    at::Tensor noise = Zeros(at::kFloat, model_->config.channels);
#if MJPOLICY_HAVE_CUDA
    if (device_.is_cuda()) {
      mjp::NoiseArgs args;
      args.environments = options_.batch;
      args.elements = model_->config.Elements();
      args.steps = 1;
      args.timesteps = timesteps_.const_data_ptr<int>() + std::max(k, 0);
      args.keys = reinterpret_cast<const mjp::NoiseAddress*>(keys_.const_data_ptr<int>());
      args.keep = keep_.const_data_ptr<int>() + (k < 0 ? 0 : 2);
      args.start = args.noise = noise.mutable_data_ptr<float>();
      mjp::LaunchNoise(args, c10::cuda::getCurrentCUDAStream());
      return noise;
    }
#endif
    mjp::FillNoise(seed_, first_,
                   k < 0 ? mjp::kStartStep : static_cast<uint32_t>(schedule_[k].timestep),
                   model_->config.Elements(),
                   {noise.mutable_data_ptr<float>(), static_cast<size_t>(noise.numel())});
    return noise;
  }

  uint64_t seed_ = 0;
  int first_ = 0;
#if MJPOLICY_HAVE_CUDA
  at::Tensor keys_, timesteps_, keep_;
#endif
};

#if MJPOLICY_HAVE_CUDA
// One step, network and update, as a CUDA graph in fp16.
class CapturedSampler : public TorchSampler {
 public:
  CapturedSampler(std::shared_ptr<const mjp::ImageModel> model,
                  const mjp::ImageSamplerOptions& options, at::MemoryFormat layout)
      : TorchSampler(std::move(model), options, at::kHalf, layout),
        stream_(c10::cuda::getStreamFromPool(true, device_.index())),
        layout_(layout) {
    const c10::InferenceMode inference;
    const c10::cuda::CUDAStreamGuard guard(stream_);
    const mjp::ImageConfig& config = model_->config;
    const auto bytes = [&](const void* data, size_t size) {
      return at::from_blob(const_cast<void*>(data), {static_cast<int64_t>(size)}, at::kByte)
          .to(device_);
    };
    device_schedule_ = bytes(schedule_.data(), schedule_.size() * sizeof(schedule_[0]));
    timesteps_ = at::tensor(mjp::Timesteps(schedule_), at::kInt).to(device_, at::kLong);
    x_ = Zeros(at::kFloat, config.channels);
    input_ = Zeros(at::kHalf, config.channels);
    output_ = Zeros(at::kFloat, config.channels);
    counters_ = at::zeros({options_.batch + 1}, timesteps_.options().dtype(at::kInt));
    keys_ = at::zeros({options_.batch, 4}, counters_.options());
    step_.rows = options_.batch;
    step_.positions = config.size * config.size;
    step_.channels = step_.pitch = config.channels;
    step_.steps = steps();
    step_.schedule =
        static_cast<const mjp::DenoiseStep*>(static_cast<const void*>(device_schedule_.data_ptr()));
    step_.keys = reinterpret_cast<const mjp::NoiseAddress*>(keys_.const_data_ptr<int>());
    step_.row_step = counters_.mutable_data_ptr<int>();
    step_.arrivals = step_.row_step + options_.batch;
    step_.output = output_.const_data_ptr<float>();
    step_.x = x_.mutable_data_ptr<float>();
    step_.input = input_.data_ptr();
    constexpr int kPlainRuns = 3;  // cuDNN chooses its algorithms
    for (int i = 0; i < kPlainRuns; ++i) Step();
    graph_.capture_begin();
    Step();
    graph_.capture_end();
  }

  std::vector<float> Sample(uint64_t seed, int first, int count, const mjp::ImageObserver& observer,
                            int observe_every) override {
    const c10::InferenceMode inference;
    const c10::cuda::CUDAStreamGuard guard(stream_);
    keys_.copy_(NoiseKeys(seed, first, options_.batch));
    counters_.narrow(0, 0, options_.batch).fill_(-1);
    mjp::LaunchImageStep(mjp::Format::kFp16, step_, nullptr, stream_);
    for (int k = 0; k < steps(); ++k) {
      if (observer && k % observe_every == 0) observer(k, ToVector(x_.narrow(0, 0, count)));
      graph_.replay();
    }
    std::vector<float> pictures = ToVector(x_.narrow(0, 0, count));
    if (observer) observer(steps(), pictures);
    return pictures;
  }

  std::string Description() const override {
    return std::string("reference graph (libtorch in a CUDA graph, fp16, ") +
           (layout_ == at::MemoryFormat::ChannelsLast ? "channels-last)" : "contiguous)");
  }

 private:
  void Step() {
    const at::Tensor step =
        counters_.narrow(0, 0, options_.batch).clamp(0, steps() - 1).to(at::kLong);
    const at::Tensor maps = AsMaps(input_);
    const at::Tensor eps =
        unet_.Denoise(maps.contiguous(layout_), timesteps_.index_select(0, step));
    output_.copy_(eps.permute({0, 2, 3, 1}));
    mjp::LaunchImageStep(mjp::Format::kFp16, step_, nullptr, c10::cuda::getCurrentCUDAStream());
  }

  c10::cuda::CUDAStream stream_;
  at::MemoryFormat layout_;
  at::Tensor device_schedule_, timesteps_, x_, input_, output_, counters_, keys_;
  mjp::ImageStepArgs step_;
  at::cuda::CUDAGraph graph_;
};
#endif

}  // namespace

std::unique_ptr<mjp::ImageSampler> MakeReferenceSampler(
    std::shared_ptr<const mjp::ImageModel> model, const mjp::ImageSamplerOptions& options,
    ReferenceKind kind) {
  if (kind == ReferenceKind::kEager) {
    return std::make_unique<EagerSampler>(std::move(model), options);
  }
#if MJPOLICY_HAVE_CUDA
  if (DefaultDevice().is_cuda()) {
    return std::make_unique<CapturedSampler>(std::move(model), options,
                                             kind == ReferenceKind::kCapturedChannelsLast
                                                 ? at::MemoryFormat::ChannelsLast
                                                 : at::MemoryFormat::Contiguous);
  }
#endif
  throw mjp::EnvironmentError("implementation reference-graph: needs a GPU");
}

void ReleaseReferenceMemory() {
#if MJPOLICY_HAVE_CUDA
  if (DefaultDevice().is_cuda()) c10::cuda::CUDACachingAllocator::emptyCache();
#endif
}

}  // namespace mjp::app
