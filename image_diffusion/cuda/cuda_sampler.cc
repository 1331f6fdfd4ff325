#include <algorithm>
#include <utility>

#include "image_diffusion/cuda/unet2d.h"
#include "image_diffusion/sampler.h"
#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/cuda_raii.h"
#include "kernels/cuda/primitives/graph_capture.h"
#include "kernels/cuda/sampler/image_picard.cuh"
#include "kernels/cuda/sampler/image_step.cuh"
#include "policy/cuda/cuda_policy.h"
#include "policy/cuda/format_of.h"
#include "policy/option_names.h"

namespace mjp {
namespace {

class CudaImageSampler : public ImageSampler {
 public:
  CudaImageSampler(std::shared_ptr<const ImageModel> model, const ImageSamplerOptions& options)
      : model_(std::move(model)),
        options_(options),
        format_(FormatOf(options.precision)),
        schedule_(ImageSchedule(*model_, options)),
        table_(MakeStepTable(model_->unet, Timesteps(schedule_))) {
    Plan();
    arena_.Seal();
    Plan();
    arena_.Upload(device_schedule_, schedule_.data(), schedule_.size() * sizeof(DenoiseStep));
    if (options.graph) Capture();
  }

  std::vector<float> Sample(uint64_t seed, int first, int count, const ImageObserver& observer,
                            int observe_every) override {
    std::vector<NoiseAddress> keys(options_.batch);
    for (int i = 0; i < options_.batch; ++i) keys[i] = {seed, static_cast<uint32_t>(first + i), 0};
    CheckCuda(cudaMemcpyAsync(keys_, keys.data(), keys.size() * sizeof(NoiseAddress),
                              cudaMemcpyHostToDevice, stream()),
              "copy of the noise's addresses");
    CheckCuda(cudaMemsetAsync(unet_->row_step(), 0xFF, sizeof(int) * options_.batch, stream()),
              "start of the chain");  // -1
    if (graph_ != nullptr && !observer) {
      CheckCuda(cudaGraphLaunch(graph_.get(), stream()), "launch of the chain");
    } else if (options_.window > 0 && !observer) {
      RunWindows();
    } else {
      RunSteps(count, observer, observe_every);
    }
    std::vector<float> x = Fetch(count);
    FetchPasses();
    if (observer) observer(steps(), x);
    return x;
  }

  std::string Description() const override {
    return std::string(options_.graph ? "graph" : "cuda") + " (" +
           PrecisionName(options_.precision) +
           (options_.window > 0 ? ", window " + std::to_string(options_.window) : "") + ")";
  }
  int steps() const override { return static_cast<int>(schedule_.size()); }
  int passes() const override { return passes_; }

 private:
  cudaStream_t stream() const { return stream_.get(); }

  void Plan() {
    const int rows = options_.batch * std::max(options_.window, 1);
    unet_ = std::make_unique<CudaUnet2d>(*model_, table_, format_, rows, arena_);
    const ImageConfig& config = model_->config;
    device_schedule_ = arena_.Take<DenoiseStep>(schedule_.size());
    keys_ = arena_.Take<NoiseAddress>(options_.batch);
    step_.rows = options_.batch;  // with a window, the first of the network's rows
    step_.positions = config.size * config.size;
    step_.channels = config.channels;
    step_.pitch = unet_->input_pitch();
    step_.steps = steps();
    step_.schedule = device_schedule_;
    step_.keys = keys_;
    step_.row_step = unet_->row_step();
    step_.arrivals = arena_.Take<int>(1);
    step_.output = unet_->output();
    step_.x = arena_.Take<float>(size_t{1} * options_.batch * config.Elements());
    step_.input = unet_->input();
    if (options_.window > 0) PlanWindow();
  }

  void PlanWindow() {
    window_.chains = options_.batch;
    window_.window = options_.window;
    window_.steps = steps();
    window_.positions = step_.positions;
    window_.channels = step_.channels;
    window_.pitch = step_.pitch;
    window_.tolerance = options_.tolerance;
    if (!ImagePicardSupports(window_)) {
      throw Unsupported(
          "a window of steps needs pictures of a multiple of four values; use "
          "--window 0");
    }
    const size_t elements = model_->config.Elements();
    const size_t rows = size_t{1} * options_.batch * options_.window;
    window_.schedule = device_schedule_;
    window_.keys = keys_;
    window_.begin = arena_.Take<int>(options_.batch);
    window_.passes = arena_.Take<int>(options_.batch);
    window_.moved = arena_.Take<unsigned long long>(rows);
    window_.arrivals = step_.arrivals;
    window_.row_step = unet_->row_step();
    window_.output = unet_->output();
    window_.evaluated = arena_.Take<float>(rows * elements);
    window_.ahead = arena_.Take<float>(2 * rows * elements);
    window_.input = unet_->input();
    window_.x = step_.x;
  }

  void Capture() {
    const bool window = options_.window > 0;
    const CudaGraph graph = CaptureGraph(stream(), [&] {
      if (window) {
        LaunchImagePicardStart(format_, window_, stream());
      } else {
        LaunchImageStep(format_, step_, nullptr, stream());
      }
      CaptureLoop(stream(), loop_stream_.get(), [&](const cudaGraphConditionalHandle& loop) {
        unet_->Run(loop_stream_.get());
        if (window) {
          LaunchImagePicard(format_, window_, &loop, loop_stream_.get());
        } else {
          LaunchImageStep(format_, step_, &loop, loop_stream_.get());
        }
      });
    });
    graph_ = InstantiateGraph(graph);
  }

  void RunSteps(int count, const ImageObserver& observer, int observe_every) {
    LaunchImageStep(format_, step_, nullptr, stream());
    for (int k = 0; k < steps(); ++k) {
      if (observer && k % observe_every == 0) observer(k, Fetch(count));
      unet_->Run(stream());
      LaunchImageStep(format_, step_, nullptr, stream());
    }
  }

  // The window of every chain moves by at least one step a pass; the fastest may be done early.
  void RunWindows() {
    LaunchImagePicardStart(format_, window_, stream());
    std::vector<int> begin(options_.batch);
    do {
      unet_->Run(stream());
      LaunchImagePicard(format_, window_, nullptr, stream());
      CheckCuda(cudaMemcpyAsync(begin.data(), window_.begin, begin.size() * sizeof(int),
                                cudaMemcpyDeviceToHost, stream()),
                "copy of the chains' states");
      CheckCuda(cudaStreamSynchronize(stream()), "a denoising pass");
    } while (*std::min_element(begin.begin(), begin.end()) < steps());
  }

  void FetchPasses() {
    passes_ = steps();
    if (options_.window == 0) return;
    std::vector<int> passes(options_.batch);
    CheckCuda(cudaMemcpy(passes.data(), window_.passes, passes.size() * sizeof(int),
                         cudaMemcpyDeviceToHost),
              "copy of the chains' states");
    passes_ = *std::max_element(passes.begin(), passes.end());
  }

  std::vector<float> Fetch(int count) {
    std::vector<float> x(size_t{1} * count * model_->config.Elements());
    CheckCuda(cudaMemcpyAsync(x.data(), step_.x, x.size() * sizeof(float), cudaMemcpyDeviceToHost,
                              stream()),
              "copy of the pictures");
    CheckCuda(cudaStreamSynchronize(stream()), "drawing of the pictures");
    return x;
  }

  std::shared_ptr<const ImageModel> model_;
  ImageSamplerOptions options_;
  Format format_;
  std::vector<DenoiseStep> schedule_;
  StepTable table_;
  DeviceArena arena_;
  std::unique_ptr<CudaUnet2d> unet_;
  DenoiseStep* device_schedule_ = nullptr;
  NoiseAddress* keys_ = nullptr;
  ImageStepArgs step_;
  ImagePicardArgs window_;  // where the chains are time-parallel
  int passes_ = 0;
  CudaStream stream_ = MakeCudaStream(), loop_stream_ = MakeCudaStream();
  CudaGraphExec graph_;
};

}  // namespace

std::unique_ptr<ImageSampler> MakeCudaImageSampler(std::shared_ptr<const ImageModel> model,
                                                   const ImageSamplerOptions& options) {
  RequireCuda(std::string("implementation ") + (options.graph ? "graph" : "cuda"),
              "use --implementation cpu");
  return std::make_unique<CudaImageSampler>(std::move(model), options);
}

}  // namespace mjp
