// The row kernel by itself, in each of its configurations: passes against their definition, chains
// against passes, and a row's bits, which no other row changes.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/shared/stored_element.h"
#include "policy/cuda/cuda_policy.h"
#include "policy/cuda/device_weights.h"
#include "policy/cuda/unet/row_kernel_unet.h"
#include "policy/cuda/unet/unet_shapes.h"
#include "policy/scheduler.h"
#include "tests/support/gpu/unet_pass_check.h"

namespace {

using mjp::Format;

constexpr int kRows = 3;
constexpr int kSteps[kRows] = {90, 40, 3};

// Across clusters there is one.
int RowsOf(const mjp::RowKernelPlan& plan) { return plan.config.clusters > 1 ? 1 : kRows; }

double ValueAt(size_t i) { return std::sin(1.3 * static_cast<double>(i)); }

// A network with the row kernel's pass over kRows rows.
class RowKernelRun {
 public:
  RowKernelRun(const mjp_test::UnetShape& shape, Format format, const mjp::RowKernelPlan& plan,
               int rows)
      : checkpoint_(mjp_test::UnetCheckpoint(shape)),
        config_(mjp::UnetOf(*checkpoint_).config),
        format_(format),
        rows_(rows),
        weights_(mjp::DeviceWeights::Get(checkpoint_, format, true)) {
    Place(plan);
    arena_.Seal();
    Place(plan);
    mjp::CheckCuda(cudaStreamCreate(&stream_), "stream");
  }
  ~RowKernelRun() { static_cast<void>(cudaStreamDestroy(stream_)); }

  // The network's outputs at x (rows, horizon, action_dim) and conditioning vectors, which are as
  // the format stores them.
  std::vector<float> Pass(const std::vector<float>& x, const std::vector<float>& mish_cond) {
    std::vector<uint8_t> input(size_t{2} * rows_ * config_.horizon * unet_->input_pitch());
    for (int p = 0; p < rows_ * config_.horizon; ++p)
      for (int c = 0; c < config_.action_dim; ++c)
        mjp::StoreElement(format_, x[p * config_.action_dim + c],
                          &input[size_t{2} * (p * unet_->input_pitch() + c)]);
    arena_.Upload(unet_->input(), input.data(), input.size());
    Condition(mish_cond);
    unet_->RunPass(row_step_, stream_);
    return Fetch(unet_->output());
  }
  // x after the steps [begin, end) of a schedule of four.
  std::vector<float> Steps(const std::vector<float>& x, const std::vector<float>& mish_cond,
                           int begin, int end) {
    arena_.Upload(x_, x.data(), x.size() * sizeof(float));
    Condition(mish_cond);
    unet_->RunSteps(schedule_, noise_, x_, begin, end, {}, stream_);
    return Fetch(x_);
  }
  const mjp::UnetPolicyConfig& config() const { return config_; }
  const mjp::UnetWeights& weights() const { return mjp::UnetOf(*checkpoint_).unet; }
  int padded_cond() const { return weights_->norm_conv_unet().film.cond.shape.in_c; }
  // Lets layer `i` wait for so many more bytes of partial sums.
  void ExpectMoreSums(int i, int bytes) {
    auto* layer = const_cast<mjp::row_kernel::Layer*>(unet_->args().layers) + i;
    mjp::row_kernel::Layer changed;
    mjp::CheckCuda(cudaMemcpy(&changed, layer, sizeof(changed), cudaMemcpyDeviceToHost), "layer");
    changed.sums_bytes += bytes;
    mjp::CheckCuda(cudaMemcpy(layer, &changed, sizeof(changed), cudaMemcpyHostToDevice), "layer");
  }

 private:
  static constexpr int kScheduleSteps = 4;

  void Place(const mjp::RowKernelPlan& plan) {
    const size_t elements = size_t{1} * rows_ * config_.horizon * config_.action_dim;
    unet_ = std::make_unique<mjp::RowKernelUnet>(weights_->norm_conv_unet(), format_,
                                                 config_.horizon, plan, rows_, 1, arena_);
    row_step_ = arena_.Take<int>(rows_);
    x_ = arena_.Take<float>(elements);
    noise_ = arena_.Take<float>(elements * kScheduleSteps);
    schedule_ = arena_.Take<mjp::DenoiseStep>(kScheduleSteps);
    std::vector<int> steps;
    for (int r = 0; r < rows_; ++r) steps.push_back(kSteps[r % kRows]);
    const auto schedule =
        mjp::MakeSchedule(config_.scheduler, mjp::SamplerKind::kDdpm, kScheduleSteps);
    std::vector<float> noise;
    for (size_t i = 0; i < elements * kScheduleSteps; ++i)
      noise.push_back(static_cast<float>(ValueAt(7 * i)));
    arena_.Upload(row_step_, steps.data(), steps.size() * sizeof(int));
    arena_.Upload(schedule_, schedule.data(), schedule.size() * sizeof(mjp::DenoiseStep));
    arena_.Upload(noise_, noise.data(), noise.size() * sizeof(float));
  }
  void Condition(const std::vector<float>& mish_cond) {
    std::vector<uint8_t> stored(2 * mish_cond.size());
    for (size_t i = 0; i < mish_cond.size(); ++i)
      mjp::StoreElement(format_, mish_cond[i], &stored[2 * i]);
    arena_.Upload(unet_->conditioning().input(), stored.data(), stored.size());
    unet_->conditioning().Run(stream_);
  }
  std::vector<float> Fetch(const float* device) {
    std::vector<float> values(size_t{1} * rows_ * config_.horizon * config_.action_dim);
    mjp::CheckCuda(cudaStreamSynchronize(stream_), "the row kernel");
    mjp::CheckCuda(
        cudaMemcpy(values.data(), device, values.size() * sizeof(float), cudaMemcpyDeviceToHost),
        "its output");
    return values;
  }

  std::shared_ptr<const mjp::Checkpoint> checkpoint_;
  const mjp::UnetPolicyConfig& config_;
  Format format_;
  int rows_;
  std::shared_ptr<const mjp::DeviceWeights> weights_;
  mjp::DeviceArena arena_;
  std::unique_ptr<mjp::RowKernelUnet> unet_;
  int* row_step_ = nullptr;
  float *x_ = nullptr, *noise_ = nullptr;
  mjp::DenoiseStep* schedule_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

// Values that the format stores exactly.
std::vector<float> Values(Format format, size_t count, double scale) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(mjp::RoundedOperand(format, static_cast<float>(scale * ValueAt(i))));
  return values;
}

const std::vector<mjp_test::UnetShape>& Shapes() {
  static const std::vector<mjp_test::UnetShape> shapes = {
      {"shipped", {32, 64, 128}, 16, 5, 8, 1},   {"horizon_8", {32, 64, 128}, 8, 5, 8, 1},
      {"horizon_32", {32, 64}, 32, 5, 8, 1, 3},  {"kernel_3", {64, 128}, 16, 3, 8, 1},
      {"wide", {64, 128, 256}, 16, 5, 8, 1},     {"128", {128, 256, 512}, 16, 5, 8, 1},
      {"one_level", {256}, 8, 3, 8, 1},          {"256", {256, 512, 1024}, 16, 5, 8, 1},
      {"actions", {512, 1024}, 32, 5, 8, 1, 7},  {"two_arms", {64, 128, 256}, 32, 5, 8, 1, 14},
      {"hand", {32, 64}, 8, 3, 8, 1, 100},       {"most", {32, 64}, 16, 3, 8, 1, 64},
      {"128_most", {128, 256}, 32, 3, 8, 1, 32}, {"128_hand", {128}, 8, 3, 8, 1, 128},
      {"short", {128}, 4, 3, 8, 1, 100}};
  return shapes;
}

std::vector<mjp::row_kernel::Config> Configs() {
  using namespace mjp::row_kernel;
  std::vector<Config> configs = {{kMaxCtas, kClustersRing, kClusters}};
  for (const int ctas : {1, 2, 4, 8})
    for (const int ring : {kDeepRing, kShallowRing}) configs.push_back({ctas, ring});
  return configs;
}
// Large networks are for clusters.
bool IsSlow(const mjp_test::UnetShape& shape, const mjp::row_kernel::Config& config) {
  return config.clusters == 1 && shape.down_dims.back() > 256;
}

// Calls check(shape, format, plan) for every configuration that runs here.
using Check = std::function<void(const mjp_test::UnetShape&, Format, const mjp::RowKernelPlan&)>;
void ForEach(const Check& check) {
  std::string why;
  if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  int runs = 0;
  for (const mjp_test::UnetShape& shape : Shapes()) {
    const mjp::UnetPolicyConfig config = mjp::UnetOf(*mjp_test::UnetCheckpoint(shape)).config;
    for (const Format format : {Format::kFp16, Format::kBf16})
      for (const mjp::row_kernel::Config& each : Configs()) {
        const auto plan = mjp::PlanRowKernel(mjp::UnetShapes(config), format, config.horizon, each,
                                             mjp::GpuTraits::Current());
        if (!plan || IsSlow(shape, each)) continue;
        SCOPED_TRACE(std::string(shape.name) + (format == Format::kFp16 ? ", fp16, " : ", bf16, ") +
                     std::to_string(each.ctas) + " CTAs, ring of " +
                     std::to_string(each.ring_chunks) + ", clusters " +
                     std::to_string(each.clusters));
        check(shape, format, *plan), ++runs;
      }
  }
  EXPECT_GE(runs, 10);
}

TEST(RowKernel, AgreesWithTheDefinitionOfAPass) {
  ForEach([](const mjp_test::UnetShape& shape, Format format, const mjp::RowKernelPlan& plan) {
    const int rows = RowsOf(plan);
    RowKernelRun run(shape, format, plan, rows);
    const int horizon = run.config().horizon, actions = run.config().action_dim;
    const auto x = Values(format, size_t{1} * rows * horizon * actions, 1);
    const auto cond = Values(format, size_t{1} * rows * run.padded_cond(), 0.7);
    const std::vector<float> output = run.Pass(x, cond);
    for (int row = 0; row < rows; ++row) {
      mjp::reference::Signal signal = {actions, horizon, {}};
      for (int c = 0; c < actions; ++c)
        for (int l = 0; l < horizon; ++l)
          signal.values.push_back(x[(row * horizon + l) * actions + c]);
      std::vector<double> mish_cond =
          mjp::reference::MishOf(mjp::reference::StepEmbedding(run.weights(), kSteps[row]));
      const auto begin = cond.begin() + row * run.padded_cond();
      mish_cond.insert(mish_cond.end(), begin, begin + run.config().CondDim());
      const mjp::reference::Signal expected =
          mjp::reference::UnetPass(run.weights(), signal, mish_cond);
      std::vector<double> by_position;
      for (int l = 0; l < horizon; ++l)
        for (int c = 0; c < actions; ++c) by_position.push_back(expected.values[c * horizon + l]);
      const auto at = output.begin() + row * horizon * actions;
      EXPECT_TRUE(mjp_test::CheckClose(std::vector<float>(at, at + horizon * actions), by_position,
                                       format == Format::kFp16 ? 5e-3 : 3e-2))
          << "row " << row;
    }
  });
}

TEST(RowKernel, AChainIsItsSteps) {
  ForEach([](const mjp_test::UnetShape& shape, Format format, const mjp::RowKernelPlan& plan) {
    const int rows = RowsOf(plan);
    RowKernelRun run(shape, format, plan, rows);
    const size_t elements = size_t{1} * rows * run.config().horizon * run.config().action_dim;
    const auto cond = Values(format, size_t{1} * rows * run.padded_cond(), 0.7);
    std::vector<float> x = Values(format, elements, 1);
    const std::vector<float> chain = run.Steps(x, cond, 0, 4);
    for (int k = 0; k < 4; ++k) x = run.Steps(x, cond, k, k + 1);
    EXPECT_EQ(std::memcmp(chain.data(), x.data(), elements * sizeof(float)), 0);
    for (const float v : chain) ASSERT_TRUE(std::isfinite(v));
  });
}

// Sums that never arrive: the launch ends as a fault, in a process of its own.
TEST(RowKernelDeathTest, AWaitAcrossClustersEndsAfterATimeout) {
  std::string why;
  if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const mjp_test::UnetShape shape = {"128", {128, 256, 512}, 16, 5, 8, 1};
  const mjp::UnetPolicyConfig config = mjp::UnetOf(*mjp_test::UnetCheckpoint(shape)).config;
  const auto plan = mjp::PlanRowKernel(mjp::UnetShapes(config), Format::kFp16, config.horizon,
                                       Configs()[0], mjp::GpuTraits::Current());
  if (!plan) GTEST_SKIP() << "no eight clusters here";
  const auto wait_in_vain = [&](int layer) {
    RowKernelRun run(shape, Format::kFp16, *plan, 1);
    const auto x = Values(Format::kFp16, size_t{1} * config.horizon * config.action_dim, 1);
    const auto cond = Values(Format::kFp16, run.padded_cond(), 0.7);
    run.Steps(x, cond, 0, 4);
    run.ExpectMoreSums(layer, 4);  // every store has a multiple of eight bytes
    try {
      run.Steps(x, cond, 0, 4);
    } catch (const mjp::Error& e) {
      std::fprintf(stderr, "%s", e.what());
      std::_Exit(3);
    }
    std::_Exit(4);
  };
  for (const int layer : {2, 3})  // the other half of the epilogue warps watches
    EXPECT_EXIT(wait_in_vain(layer), testing::ExitedWithCode(3),
                "the row kernel: unspecified launch");
}

TEST(RowKernel, ARowHasTheSameBitsAmongOthers) {
  ForEach([](const mjp_test::UnetShape& shape, Format format, const mjp::RowKernelPlan& plan) {
    if (plan.config.clusters > 1) return;
    constexpr int kMany = 150;  // more than run at once
    RowKernelRun many(shape, format, plan, kMany), one(shape, format, plan, 1);
    const size_t elements = size_t{1} * many.config().horizon * many.config().action_dim;
    const auto cond = Values(format, size_t{kMany} * many.padded_cond(), 0.7);
    const auto x = Values(format, kMany * elements, 1);
    const std::vector<float> all = many.Pass(x, cond);
    for (const int row : {0, 3, kMany - kMany % 3 - 3}) {  // whose step is the first one's
      const auto of_row = x.begin() + static_cast<ptrdiff_t>(row * elements);
      const auto cond_of_row = cond.begin() + row * one.padded_cond();
      const std::vector<float> alone = one.Pass({of_row, of_row + static_cast<ptrdiff_t>(elements)},
                                                {cond_of_row, cond_of_row + one.padded_cond()});
      EXPECT_EQ(std::memcmp(alone.data(), &all[row * elements], elements * sizeof(float)), 0)
          << row;
    }
  });
}

}  // namespace
