#include "apps/train/recipe.h"

#include <ATen/Context.h>
#include <torch/cuda.h>

#include <filesystem>
#include <fstream>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/train/run_state.h"
#include "kernels/error.h"
#include "policy/checkpoint_writer.h"
#include "policy/timing.h"
#if PUSHT_HAVE_CUDA
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace pusht {
namespace {

at::Device ChooseDevice(const std::string& name) {
  const bool available = PUSHT_HAVE_CUDA && torch::cuda::is_available();
  if (name == "auto") return available ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  const at::Device device(name == "cuda" ? "cuda:0" : name);
  if (device.is_cuda() && !available) {
    throw dp::EnvironmentError("--device " + name +
                               ": no usable GPU here; use --device cpu, or look at nvidia-smi");
  }
  return device;
}

// All work of a training run goes to one stream of its own: a CUDA graph cannot be captured on the
// default one.
class OwnStream {
 public:
#if PUSHT_HAVE_CUDA
  explicit OwnStream(const at::Device& device) {
    if (device.is_cuda()) guard_.emplace(c10::cuda::getStreamFromPool(true, device.index()));
  }

 private:
  std::optional<c10::cuda::CUDAStreamGuard> guard_;
#else
  explicit OwnStream(const at::Device&) {}
#endif
};

// A training run: what it consists of, in the order in which one part needs another.
class Run {
 public:
  Run(const TrainOptions& options, const std::atomic<bool>& stop)
      : options_(options),
        device_(ChooseDevice(options.device)),
        stream_(device_),
        policy_(MakeArchitecture(options.architecture)),
        parameters_(policy_, 2 * kBlockCorners, options.seed, device_,
                    device_.is_cuda() && !options.full_precision ? at::kBFloat16 : at::kFloat),
        network_(policy_.config, parameters_),
        optimizer_(parameters_, options.optimizer),
        data_(options.data, device_, stop),
        step_(policy_.config, network_, data_.dataset(), parameters_, optimizer_, options.step) {
    at::globalContext().setBenchmarkCuDNN(true);  // shapes never change
    std::filesystem::create_directories(options.out);
    SeedGenerator(device_, options.seed);
    if (std::filesystem::exists(StatePath())) {
      done_ = LoadRunState(StatePath(), optimizer_, device_);
    }
    log_.open(options.out + "/log.jsonl", std::ios::app);
  }

  bool Train(std::ostream& progress, const std::atomic<bool>& stop) {
    progress << parameters_.size() << " parameters, " << data_.dataset().size() << " rows, on "
             << device_ << ", from step " << done_.step << std::endl;
    double begin = dp::Now() - done_.seconds, saved = dp::Now();
    while (Progress() < 1 && !stop) {
      optimizer_.SetStep(done_.step, Progress());
      step_.Run();
      ++done_.step;
      // until the first line, cuDNN tries its algorithms: not counted against the time
      if (done_.step % options_.log_every == 0) {
        Log(progress);
        data_.Refresh();
        if (!measured_) begin = dp::Now() - done_.seconds;
        measured_ = true;
      }
      if (measured_) done_.seconds = dp::Now() - begin;
      if (dp::Now() - saved > options_.save_every) {
        SaveRunState(StatePath(), optimizer_, done_, device_);
        saved = dp::Now();
      }
    }
    SaveRunState(StatePath(), optimizer_, done_, device_);
    dp::WriteCheckpoint(options_.out + "/checkpoint",
                        parameters_.Export(policy_, optimizer_.average()), dp::WeightFormat::kF16);
    return Progress() >= 1;
  }

 private:
  std::string StatePath() const { return options_.out + "/state.safetensors"; }

  double Progress() const {
    if (options_.steps > 0) {
      return static_cast<double>(done_.step) / static_cast<double>(options_.steps);
    }
    return done_.seconds / options_.seconds;
  }

  void Log(std::ostream& progress) {
    const Losses losses = step_.TakeLosses();
    const double now = dp::Now();
    const double rate = static_cast<double>(options_.log_every) / (now - logged_);
    logged_ = now;
    const nlohmann::ordered_json line = {{"step", done_.step},
                                         {"seconds", done_.seconds},
                                         {"loss", losses.diffusion},
                                         {"corner_loss", losses.auxiliary},
                                         {"gradient_norm", losses.gradient_norm},
                                         {"learning_rate", optimizer_.learning_rate()},
                                         {"steps_per_second", rate},
                                         {"rows", data_.dataset().size()}};
    log_ << line.dump() << std::endl;
    progress << "step " << done_.step << std::fixed << std::setprecision(1) << "  "
             << 100 * Progress() << " %  loss " << std::setprecision(5) << losses.diffusion
             << "  corners " << losses.auxiliary << std::setprecision(1) << "  " << rate
             << " steps/s" << std::defaultfloat << std::endl;
    if (!std::isfinite(losses.diffusion)) {
      throw dp::Error(dp::ExitCode::kRetryable,
                      "the loss is not finite at step " + std::to_string(done_.step) +
                          "; start the same command again, or with a lower --learning-rate");
    }
  }

  TrainOptions options_;
  at::Device device_;
  OwnStream stream_;
  dp::Checkpoint policy_;
  Parameters parameters_;
  Network network_;
  Optimizer optimizer_;
  DataSource data_;
  TrainingStep step_;
  RunProgress done_;
  std::ofstream log_;
  double logged_ = dp::Now();
  bool measured_ = false;
};

}  // namespace

bool Train(const TrainOptions& options, std::ostream& progress, const std::atomic<bool>& stop) {
  if ((options.steps > 0) == (options.seconds > 0)) {
    throw dp::Error(dp::ExitCode::kUsage, "give either --steps or --seconds");
  }
  return Run(options, stop).Train(progress, stop);
}

}  // namespace pusht
