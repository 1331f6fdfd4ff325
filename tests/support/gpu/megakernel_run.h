#ifndef TESTS_SUPPORT_MEGAKERNEL_RUN_H_
#define TESTS_SUPPORT_MEGAKERNEL_RUN_H_

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "kernels/reference/residual_block.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/cuda/device_weights.h"
#include "policy/cuda/execution_plan.h"
#include "policy/cuda/unet/megakernel_launch.h"
#include "policy/cuda/unet/unet_shapes.h"
#include "tests/support/gpu/device_buffer.h"

// A U-Net with random weights that the megakernel takes through passes, and what its layers left in
// device memory.

namespace mjp_test {

class MegakernelRun {
 public:
  static constexpr int kTimestep = 37, kActions = 2;

  // portable: what the portable form is planned for; null: whichever form this GPU has, also where
  // the row kernel is faster.
  MegakernelRun(const std::vector<int>& down_dims, int horizon, int rows, mjp::Format format,
                const mjp::megakernel::Target* portable = nullptr)
      : rows(rows), horizon(horizon), format(format), random_(5) {
    mjp::UnetPolicyConfig config;
    config.type = "diffusion";
    config.state_dim = config.action_dim = kActions;
    config.environment_dim = 5;
    config.horizon = horizon;
    config.unet.down_dims = down_dims;
    config.unet.step_embed_dim = 16;
    checkpoint = mjp::RandomCheckpoint(config, {}, 7);
    const mjp::GpuTraits& gpu = mjp::GpuTraits::Current();
    const mjp::megakernel::Target target = portable ? *portable : mjp::megakernel::Target::On(gpu);
    plan_.form = mjp::UnetForm::kMegakernel;
    plan_.launch = std::make_shared<mjp::MegakernelPlan>(
        mjp::PlanMegakernel(mjp::UnetShapes(config), format, horizon, rows, 1, target));
    plan_.rows = plan_.rows_per_launch = rows;
    runs_ = plan_.launch->supported && gpu.cooperative &&
            (!target.portable || format == mjp::Format::kFp16);
    if (!runs_) return;
    weights_ = mjp::DeviceWeights::Get(checkpoint, format, true);
    Make();
    arena_.Seal();
    Make();
    mjp::DenoiseStep step;
    step.timestep = kTimestep, step.ddim = true;
    step_.Upload(&step);
    UploadCondition();
  }
  // Whether the megakernel takes these rows in one launch here; nothing else may be called if not.
  bool Runs() const { return runs_; }
  const std::vector<mjp::megakernel::Layer>& layers() const { return denoiser_->layers().layers(); }
  bool specialized() const { return plan_.launch->warp_specialized; }
  const mjp::NormConvUnet& unet() const { return weights_->norm_conv_unet(); }

  // Makes a pass of new x, in a launch of its own.
  void RunPass() {
    x = Draw(static_cast<size_t>(rows) * horizon * kActions, 1);
    const DeviceBuffer device(x.size() * sizeof(float));
    device.Upload(x.data());
    denoiser_->RunSteps(step_.as<mjp::DenoiseStep>(), nullptr, device.as<float>(), 0, 1, {},
                        nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), "a pass");
    ++passes_;
    EXPECT_EQ(Read<int>(denoiser_->timed_out(), 1)[0], 0) << "a spin timed out";
    output = Read<float>(denoiser_->output(), x.size());
    activations_.assign(layers().size(), {});
  }

  // A row of what layer `i` published in the last pass.
  mjp::reference::Signal Activations(int i, int row) {
    namespace mk = mjp::megakernel;
    const mk::Layer& l = layers()[i];
    const int channels = l.shape.out_c, length = l.shape.out_length * l.shape.phases;
    const int batches = rows > mk::kRowsPerBatch ? 2 : 1;
    const size_t buffer = size_t{mk::kRowsPerBatch} * channels * length;
    if (activations_[i].empty())
      activations_[i] =
          Floats(format, Read<uint8_t>(l.output, 2 * batches * buffer * sizeof(uint16_t)));
    const int batch = row / mk::kRowsPerBatch, slot = row % mk::kRowsPerBatch;
    const int set_rows = 1 << l.output_row_set_log2;
    mjp::reference::Signal signal = {channels, length, {}};
    for (int c = 0; c < channels; ++c) {
      for (int at = 0; at < length; ++at) {
        const size_t pack =
            (static_cast<size_t>(slot / set_rows) * (channels / 8) + c / 8) * length + at;
        signal.values.push_back(activations_[i][(2 * batch + passes_ % 2) * buffer +
                                                (pack * set_rows + slot % set_rows) * 8 + c % 8]);
      }
    }
    return signal;
  }
  // FiLM's terms [begin, end) of those of all blocks, of a row.
  std::vector<double> FilmTerms(int row, int begin, int end) const {
    const mjp::FilmArgs film = denoiser_->conditioning().Terms({});
    const auto step = Read<float>(film.step_table + size_t{kTimestep} * film.width, film.width);
    const auto cond = Read<float>(film.cond + static_cast<size_t>(row) * film.width, film.width);
    std::vector<double> terms;
    for (int i = begin; i < end; ++i) terms.push_back(double{step[i]} + cond[i]);
    return terms;
  }
  // The row of x, (actions, horizon).
  mjp::reference::Signal X(int row) const {
    mjp::reference::Signal signal = {kActions, horizon, {}};
    for (int c = 0; c < kActions; ++c)
      for (int at = 0; at < horizon; ++at)
        signal.values.push_back(x[(row * horizon + at) * kActions + c]);
    return signal;
  }
  // Weights as operands of products.
  std::vector<float> Operands(const std::vector<float>& values) const {
    return Floats(format, Stored(format, values));
  }

  const int rows, horizon;
  const mjp::Format format;
  std::shared_ptr<const mjp::Checkpoint> checkpoint;
  std::vector<float> x, output;  // (rows, horizon, actions) of the last pass

 private:
  void Make() {
    denoiser_.reset();
    denoiser_ = std::make_unique<mjp::MegakernelLaunch>(weights_->norm_conv_unet(), format, horizon,
                                                        plan_, arena_);
  }
  void UploadCondition() {
    const int cond = weights_->norm_conv_unet().film.cond.shape.in_c;
    const auto stored = Stored(format, Draw(static_cast<size_t>(rows) * cond, 0.7f));
    mjp::CheckCuda(cudaMemcpy(denoiser_->conditioning().input(), stored.data(), stored.size(),
                              cudaMemcpyHostToDevice),
                   "conditioning");
    denoiser_->conditioning().Run(nullptr);
    mjp::CheckCuda(cudaDeviceSynchronize(), "conditioning");
  }
  std::vector<float> Draw(size_t count, float deviation) {
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> v(count);
    for (float& e : v) e = normal(random_);
    return v;
  }
  template <typename T>
  static std::vector<T> Read(const void* device, size_t count) {
    std::vector<T> host(count);
    mjp::CheckCuda(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost),
                   "cudaMemcpy");
    return host;
  }

  std::mt19937 random_;
  bool runs_ = false;
  mjp::ExecutionPlan plan_;
  std::shared_ptr<const mjp::DeviceWeights> weights_;
  mjp::DeviceArena arena_;
  std::unique_ptr<mjp::MegakernelLaunch> denoiser_;
  DeviceBuffer step_{sizeof(mjp::DenoiseStep)};
  std::vector<std::vector<float>> activations_;  // of layers, as far as they were read
  int passes_ = 0;
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_MEGAKERNEL_RUN_H_
