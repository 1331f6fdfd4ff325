// Every rung of the ladder to the megakernel computes the chain of layers that the definition in
// double precision says, launch after launch on the same memory.

#include <gtest/gtest.h>

#include <random>

#include "kernels/cuda/norm_conv/norm_conv.cuh"
#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/ladder/megakernel.cuh"
#include "kernels/reference/conv_reference.h"
#include "kernels/reference/group_norm_reference.h"
#include "policy/checkpoint/half.h"
#include "tests/support/check_close.h"
#include "tests/support/gpu/device_buffer.h"

namespace {

using mjp_test::DeviceBuffer;
namespace ladder = mjp::ladder;

constexpr int kLayers = 6, kBatches = 2, kRows = kBatches * ladder::kChainRows;
constexpr int kChannels = ladder::kChainChannels, kLength = ladder::kChainLength;
constexpr size_t kRowValues = size_t{1} * kChannels * kLength;
// fp16 values and partial sums: 5e-4 of numbers near 1 in each of 6 layers, the largest of 20,000
constexpr double kTolerance = 0.02;

float Rounded(float x) { return mjp::HalfToFloat(mjp::FloatToHalf(x)); }

std::vector<float> Normals(size_t count, float deviation, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> out(count);
  for (float& v : out) v = Rounded(normal(random));
  return out;
}

struct Chain {
  std::vector<float> x = Normals(kRows * kRowValues, 1, 1);
  std::vector<float> weight = Normals(size_t{kLayers} * kChannels * kChannels * 5, 0.02f, 2);
  std::vector<float> bias = Normals(size_t{kLayers} * kChannels, 0.5f, 3);
  std::vector<float> scale = Normals(size_t{kLayers} * kChannels, 1, 4);
  std::vector<float> shift = Normals(size_t{kLayers} * kChannels, 0.5f, 5);

  // Row `row` of the result, (channels, positions).
  std::vector<double> Expected(int row) const {
    mjp::reference::ConvShape shape;
    shape.in = shape.out = kChannels, shape.width = kLength;
    shape.kernel_w = ladder::kChainTaps, shape.pad_w = ladder::kChainTaps / 2;
    std::vector<double> values(x.begin() + row * kRowValues, x.begin() + (row + 1) * kRowValues);
    for (int layer = 0; layer < kLayers; ++layer) {
      const auto sums = mjp::reference::Conv(
          shape, values.data(), weight.data() + size_t{1} * layer * kChannels * kChannels * 5,
          bias.data() + layer * kChannels);
      std::vector<double> last(kRowValues);  // channels last, as the norm's definition has them
      for (size_t i = 0; i < kRowValues; ++i) last[i % kLength * kChannels + i / kLength] = sums[i];
      const auto norm = mjp::reference::GroupNorm(last, 1, kLength, kChannels, ladder::kChainGroups,
                                                  scale.data() + layer * kChannels,
                                                  shift.data() + layer * kChannels);
      for (size_t i = 0; i < kRowValues; ++i)
        values[i] = mjp::reference::Activate(mjp::Activation::kMish,
                                             norm[i % kLength * kChannels + i / kLength]);
    }
    return values;
  }
};

// A chain on the device.
class DeviceChain {
 public:
  explicit DeviceChain(const Chain& chain)
      : x_(chain.x.size() * 2),
        weights_(chain.weight.size() * 2),
        bias_(chain.bias.size() * 4),
        scale_(chain.scale.size() * 4),
        shift_(chain.shift.size() * 4),
        y_(chain.x.size() * 2),
        activations_(chain.x.size() * 2 * 2),
        mail_(chain.x.size() * 2 * 4),
        sums_(chain.x.size() * 2 * 4 * ladder::kChainSlices),
        timed_out_(4) {
    std::vector<uint16_t> x;
    for (const float v : chain.x) x.push_back(mjp::FloatToHalf(v));
    x_.Upload(x.data());
    std::vector<uint8_t> packed;
    mjp::NormConvShape shape;
    shape.in_c = shape.out_c = kChannels, shape.taps = ladder::kChainTaps;
    for (int layer = 0; layer < kLayers; ++layer) {
      const auto fragments = mjp::PackWeightFragments(
          mjp::Format::kFp16, shape,
          chain.weight.data() + size_t{1} * layer * kChannels * kChannels * 5, nullptr);
      packed.insert(packed.end(), fragments.begin(), fragments.end());
    }
    weights_.Upload(packed.data());
    bias_.Upload(chain.bias.data()), scale_.Upload(chain.scale.data());
    shift_.Upload(chain.shift.data());
    mjp::CheckCuda(cudaMemset(mail_.data(), 0, chain.x.size() * 8), "mail");
    mjp::CheckCuda(cudaMemset(sums_.data(), 0, chain.x.size() * 8 * ladder::kChainSlices), "mail");
    mjp::CheckCuda(cudaMemset(timed_out_.data(), 0, 4), "flag");
  }

  // Of batch `first_batch` on; `epoch`: of the mail so far.
  ladder::ChainArgs Args(int first_batch, int batches, uint32_t epoch) const {
    const size_t at = first_batch * ladder::kChainRows * kRowValues / 2;
    ladder::ChainArgs a;
    a.layers = kLayers, a.batches = batches;
    a.x = x_.as<uint32_t>() + at;
    a.weights = weights_.as<uint4>();
    a.bias = bias_.as<float>(), a.scale = scale_.as<float>(), a.shift = shift_.as<float>();
    a.y = y_.as<uint32_t>() + at;
    a.activations = activations_.as<uint32_t>();
    a.mail = mail_.as<uint64_t>(), a.sums = sums_.as<uint64_t>();
    a.epoch = epoch;
    a.timed_out = timed_out_.as<int>();
    return a;
  }

  // Row `row` of the result.
  std::vector<float> Row(int row) const {
    mjp::CheckCuda(cudaDeviceSynchronize(), "a rung");
    const auto all = mjp_test::Floats(mjp::Format::kFp16, y_.Download());
    return {all.begin() + row * kRowValues, all.begin() + (row + 1) * kRowValues};
  }
  void ClearResult() const {
    mjp::CheckCuda(cudaMemset(y_.data(), 0xff, kRows * kRowValues * 2), "result");  // NaN
  }
  bool TimedOut() const {
    int timed_out = 1;
    mjp::CheckCuda(cudaMemcpy(&timed_out, timed_out_.data(), 4, cudaMemcpyDefault), "flag");
    return timed_out != 0;
  }

 private:
  DeviceBuffer x_, weights_, bias_, scale_, shift_, y_, activations_, mail_, sums_, timed_out_;
};

using Launcher = void (*)(const ladder::ChainArgs&, cudaStream_t);

void LaunchGraph(const ladder::ChainArgs& args, cudaStream_t stream) {
  const mjp::CudaGraphExec graph = ladder::GraphOfLaunches(args);
  mjp::CheckCuda(cudaGraphLaunch(graph.get(), stream), "graph");
  mjp::CheckCuda(cudaStreamSynchronize(stream), "graph");
}

TEST(LadderMegakernelGpu, EveryRungAgreesWithTheDefinition) {
  DEVICE_OR_SKIP();
  const mjp::GpuTraits& gpu = mjp::GpuTraits::Current();
  const bool resident = gpu.cooperative && gpu.multiprocessors >= ladder::kChainRows * 8 &&
                        gpu.shared_bytes >= 110 * 1024;
  const Chain chain;
  constexpr int kCheckedRows[] = {0, 9, 15, 16, 31};
  std::vector<std::vector<double>> expected;
  for (const int row : kCheckedRows) expected.push_back(chain.Expected(row));
  const std::tuple<const char*, Launcher, int> rungs[] = {
      {"1 launches", ladder::ChainOfLaunches, 1},
      {"2 graph", LaunchGraph, 1},
      {"3 grid barrier", ladder::ChainByGridBarrier, 1},
      {"4 mail", ladder::ChainByMail, 1},
      {"5 split-K", ladder::ChainBySplitK, 1},
      {"6 prefetch", ladder::ChainByPrefetch, 1},
      {"7 roles", ladder::ChainByRoles, 1},
      {"8 row batches", ladder::ChainByRowBatches, 1},
      {"8 row batches, both at once", ladder::ChainByRowBatches, kBatches}};
  for (const auto& [name, launch, batches] : rungs) {
    if (!resident && launch != ladder::ChainOfLaunches && launch != LaunchGraph) continue;
    const DeviceChain device(chain);
    uint32_t epoch = 0;
    for (int repetition = 0; repetition < 3; ++repetition) {
      device.ClearResult();
      for (int batch = 0; batch < kBatches; batch += batches, epoch += kLayers)
        launch(device.Args(batch, batches, epoch), nullptr);
      for (size_t i = 0; i < std::size(kCheckedRows); ++i)
        EXPECT_TRUE(mjp_test::CheckClose(device.Row(kCheckedRows[i]), expected[i], kTolerance))
            << name << ", row " << kCheckedRows[i] << ", launch " << repetition;
    }
    EXPECT_FALSE(device.TimedOut()) << name;
  }
  if (!resident) GTEST_SKIP() << "rungs from 3 on: this GPU does not hold 128 blocks at once";
}

}  // namespace
