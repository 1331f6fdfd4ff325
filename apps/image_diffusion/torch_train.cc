#include <ATen/Context.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <optional>
#include <thread>

#include "apps/image_diffusion/grid.h"
#include "apps/image_diffusion/reference.h"
#include "apps/image_diffusion/torch_judge.h"
#include "apps/image_diffusion/torch_unet.h"
#include "apps/image_diffusion/training_folder.h"
#include "apps/train/optimisation/captured_step.h"
#include "apps/train/optimisation/optimizer.h"
#include "apps/train/run_state.h"
#include "base/error.h"
#include "base/json.h"
#include "policy/scheduler.h"
#include "policy/timing.h"
#include "tasks/recording/png.h"
#if MJPOLICY_HAVE_CUDA
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace mjp::app {
namespace {

constexpr char kPrediction[] = "v";  // what ConfigOf asks for

// Throws Error for a network that cannot be.
mjp::ImageConfig ConfigOf(const ImageTrainOptions& options) {
  mjp::ImageConfig config;
  config.size = options.data.size;
  config.channels = options.data.channels;
  config.dataset = options.data.dataset;
  config.unet.down_dims = options.unet_channels;
  // predicted noise says nothing of x0, and so of a picture's colours, where there is little but
  // noise
  config.scheduler.prediction = mjp::PredictionType::kVPrediction;
  mjp::CheckImageConfig(config);
  return config;
}

class Run {
 public:
  Run(const ImageTrainOptions& options, TrainingFolder& folder, mjp::ImageConfig config,
      const mjp::PictureSet& pictures, const at::Device& device)
      : options_(options),
        folder_(folder),
        device_(device),
        config_(std::move(config)),
        parameters_(TensorsOf(*mjp::BuildImageModel(config_, *MakeInitialWeights(options.seed))),
                    device,
                    device.is_cuda() && !options.full_precision ? at::kBFloat16 : at::kFloat),
        network_(config_, parameters_, /*fused=*/true),
        optimizer_(parameters_,
                   {.learning_rate = options.learning_rate,
                    .warmup_steps = options.warmup,
                    .average_decay = options.average_decay},
                   ranks_),
        training_(Split(pictures, device).training),
        sums_(at::zeros({2}, parameters_.master().options())),
        step_(device, [this] { Step(); }),
        epoch_steps_(static_cast<double>(training_.size(0)) / static_cast<double>(options.batch)) {
    at::globalContext().setBenchmarkCuDNN(true);  // shapes never change
    const at::Tensor alphas = at::tensor(mjp::AlphasCumprod(config_.scheduler)).to(device);
    signal_ = alphas.sqrt();
    sigma_ = (1 - alphas).sqrt();
    SeedGenerator(device, options.seed);
    if (HasRunState(StatePath())) {
      done_ = LoadRunState(StatePath(), optimizer_, device, kPrediction);
    }
    folder_.OpenLog(done_.step);
  }

  bool Train(std::ostream& progress, const std::atomic<bool>& stop) {
    progress << parameters_.size() << " parameters, " << training_.size(0) << " pictures, on "
             << device_ << ", from step " << done_.step << std::endl;
    begin_ = mjp::Now() - done_.seconds;
    double sampled = Epochs(), saved = mjp::Now();
    while (Progress() < 1 && !stop) {
      optimizer_.SetStep(done_.step, Progress());
      step_.Run();
      ++done_.step;
      ++summed_;
      if (done_.step % options_.log_every == 0) Log(progress);
      done_.seconds = mjp::Now() - begin_;
      const bool draws = options_.sample_every > 0 && Epochs() - sampled >= options_.sample_every;
      if (draws || mjp::Now() - saved > options_.save_every) {
        Save();
        saved = mjp::Now();
      }
      if (!draws) continue;
      DrawSamples(progress);
      sampled = Epochs();
    }
    Save();
    if (Progress() >= 1) DrawSamples(progress);
    return Progress() >= 1;
  }

 private:
  std::string StatePath() const { return options_.out + "/state.safetensors"; }
  double Epochs() const { return static_cast<double>(done_.step) / epoch_steps_; }
  double Progress() const {
    return options_.epochs > 0 ? Epochs() / options_.epochs : done_.seconds / options_.seconds;
  }

  void Step() {
    at::Tensor noisy, target, t;
    {
      const c10::NoGradGuard no_grad;
      const auto longs = at::TensorOptions().device(device_).dtype(at::kLong);
      const at::Tensor rows = at::randint(training_.size(0), {options_.batch}, longs);
      const at::Tensor clean = Normalised(training_.index_select(0, rows), at::kFloat);
      const at::Tensor noise = at::randn_like(clean);
      t = at::randint(config_.scheduler.train_steps, {options_.batch}, longs);
      const auto at_t = [&](const at::Tensor& table) {
        return table.index_select(0, t).view({-1, 1, 1, 1});
      };
      noisy = at_t(signal_) * clean + at_t(sigma_) * noise;
      target = at_t(signal_) * noise - at_t(sigma_) * clean;
    }
    const at::Tensor predicted =
        network_.Denoise(noisy.to(parameters_.gradient().scalar_type()), t);
    const at::Tensor loss = at::mse_loss(predicted.to(at::kFloat), target);
    loss.backward();
    optimizer_.Update();
    const c10::NoGradGuard no_grad;
    sums_[0].add_(loss);
    sums_[1].add_(optimizer_.gradient_norm());
  }

  void Log(std::ostream& progress) {
    const at::Tensor means = sums_.to(at::kCPU, at::kDouble) / std::max<int64_t>(summed_, 1);
    sums_.zero_();
    const double loss = means[0].item<double>(), now = mjp::Now();
    const double rate = static_cast<double>(summed_) / (now - logged_);
    summed_ = 0;
    logged_ = now;
    const mjp::Json line = {{"step", done_.step},
                            {"epoch", Epochs()},
                            {"seconds", done_.seconds},
                            {"loss", loss},
                            {"gradient_norm", means[1].item<double>()},
                            {"learning_rate", optimizer_.learning_rate()},
                            {"pictures_per_second", rate * static_cast<double>(options_.batch)}};
    folder_.Log(line);
    progress << "step " << done_.step << std::fixed << std::setprecision(1) << "  epoch "
             << Epochs() << "  " << 100 * std::min(Progress(), 1.0) << " %  loss "
             << std::setprecision(5) << loss << std::setprecision(0) << "  "
             << rate * static_cast<double>(options_.batch) << " pictures/s" << std::defaultfloat
             << std::endl;
    CheckFinite(std::isfinite(loss), "the loss is");
  }

  // What is not finite is not saved: the last state before stays.
  void CheckFinite(bool finite, const std::string& what) const {
    if (finite) return;
    throw mjp::Error(mjp::ExitCode::kRetryable,
                     what + " not finite at step " + std::to_string(done_.step) +
                         "; start the same command again, or with a lower --learning-rate and "
                         "another --out");
  }

  void Save() {
    for (const at::Tensor& each : {parameters_.master(), optimizer_.average()})
      CheckFinite(at::isfinite(each).all().item<bool>(), "the weights are");
    SaveRunState(StatePath(), optimizer_, done_, device_, kPrediction);
    model_ = mjp::BuildImageModel(config_, *parameters_.Source(optimizer_.average()));
    mjp::WriteImageModel(options_.out + "/checkpoint", *model_);
  }

  // A grid drawn by the project's own engine.
  void DrawSamples(std::ostream& progress) {
    constexpr int kOnGpu = 64, kOnCpu = 4;
    const bool gpu = device_.is_cuda();
    const mjp::ImageSamplerOptions options = {
        .sampler = mjp::SamplerKind::kDdim,
        .steps = std::min(gpu ? 50 : 10, config_.scheduler.train_steps),
        .batch = gpu ? kOnGpu : kOnCpu,
        .threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency())),
        .precision = mjp::Precision::kFp16,
        .graph = true};
    const auto sampler = gpu ? mjp::MakeCudaImageSampler(model_, options)
                             : mjp::MakeCpuImageSampler(model_, options);
    const std::vector<float> x = sampler->Sample(options_.seed, 0, options.batch);
    mjp::CheckFinite(x, *sampler);
    const std::string path = options_.out + "/samples_" + std::to_string(done_.step) + ".png";
    WritePng(path, MakeGrid(x, config_.size, config_.channels));
    progress << "samples " << path << std::endl;
  }

  ImageTrainOptions options_;
  TrainingFolder& folder_;
  at::Device device_;
  mjp::ImageConfig config_;
  const Ranks ranks_{1};
  Parameters parameters_;
  TorchUnet network_;
  Optimizer optimizer_;
  at::Tensor training_, signal_, sigma_;
  at::Tensor sums_;  // (2): loss, gradient norm
  CapturedStep step_;
  double epoch_steps_;
  RunProgress done_;
  std::shared_ptr<const mjp::ImageModel> model_;
  int64_t summed_ = 0;
  double logged_ = mjp::Now(), begin_ = 0;
};

}  // namespace

bool TrainImageModel(const ImageTrainOptions& options, std::ostream& progress,
                     const std::atomic<bool>& stop) {
  if ((options.epochs > 0) == (options.seconds > 0)) {
    throw mjp::Error(mjp::ExitCode::kUsage, "give either --epochs or --seconds");
  }
  if (options.data.dataset == "folder") CheckOutsideOfData(options.out, options.data.directory);
  const at::Device device = DefaultDevice();
#if MJPOLICY_HAVE_CUDA
  // a CUDA graph cannot be captured on the default stream
  std::optional<c10::cuda::CUDAStreamGuard> own_stream;
  if (device.is_cuda()) own_stream.emplace(c10::cuda::getStreamFromPool(true, device.index()));
#endif
  mjp::ImageConfig config = ConfigOf(options);
  const mjp::PictureSet pictures = mjp::LoadPictures(options.data);
  if (pictures.count() < 2) {
    throw mjp::BadInput(options.data.directory +
                        ": holds one picture; some are held out, so there must be two at least");
  }
  config.classes = pictures.classes;
  TrainingFolder folder(options.out, DescribeTraining(options, pictures, device.str()));
  const std::string judge = options.out + "/judge.safetensors";
  if (!std::filesystem::exists(judge)) {
    const std::optional<double> right = TrainJudge(pictures, options.seed, judge, stop);
    if (!right) return false;
    progress << "judge: " << std::fixed << std::setprecision(2) << 100 * *right << std::defaultfloat
             << " % of held-out pictures right" << std::endl;
  }
  return Run(options, folder, std::move(config), pictures, device).Train(progress, stop);
}

}  // namespace mjp::app
