// NVIDIA's compute-sanitizer over whole decisions of a tiny network. Each tool must first find a
// bug that is planted for it; where the platform does not let it work (some virtual machines), the
// test is skipped. The program runs itself under the tool: what runs there are its disabled tests.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "policy/checkpoint/random_checkpoint.h"
#include "policy/cuda/cuda_policy.h"
#include "tests/support/gpu/device_buffer.h"
#include "tests/support/gpu/observations.h"

namespace {

// Planted bugs, one for each tool.
__global__ void WriteOutside(int* data) { data[1 << 20] = 1; }
__global__ void LeaveOutBarrier(int* data) {
  __shared__ int all[64];
  all[threadIdx.x] = static_cast<int>(threadIdx.x);
  data[threadIdx.x] = all[63 - threadIdx.x];
}
__global__ void ReadUnwritten(const int* data, int* out) { *out = data[5]; }
__global__ void DivergeAtBarrier(int* data) {
  if (threadIdx.x < 7) __syncthreads();
  data[threadIdx.x] = 1;
}

template <typename... Params, typename... Args>
void LaunchOnce(void (*kernel)(Params...), int threads, Args... args) {
  kernel<<<1, threads>>>(args...);
  static_cast<void>(cudaDeviceSynchronize());
}

struct Ints {
  Ints() { static_cast<void>(cudaMalloc(&data, 256)); }
  ~Ints() { static_cast<void>(cudaFree(data)); }
  int* data = nullptr;
};

TEST(Subject, DISABLED_memcheck) { LaunchOnce(WriteOutside, 1, Ints().data); }
TEST(Subject, DISABLED_racecheck) { LaunchOnce(LeaveOutBarrier, 64, Ints().data); }
TEST(Subject, DISABLED_initcheck) {
  const Ints unwritten, out;
  LaunchOnce(ReadUnwritten, 1, unwritten.data, out.data);
}
TEST(Subject, DISABLED_synccheck) { LaunchOnce(DivergeAtBarrier, 32, Ints().data); }

// Decisions of a network with every kind of layer, launched one by one and as a graph.
struct Case {
  mjp::Precision precision = mjp::Precision::kFp16;
  int batch = 1, window = 0;
  bool pictures = false;
  std::vector<int> levels = {64, 64};  // channels
};
// Chains in one launch of the megakernel; a launch per layer, since norm groups of 24 channels are
// no power of two.
const std::vector<int> kMegakernelLevels = {128, 256, 1024}, kLayerLevels = {192};

void Decide(const Case& c) {
  mjp::UnetPolicyConfig config = mjp::NamedConfig("compact");
  config.encoder.crop_height = config.encoder.crop_width = 32;
  config.encoder.stem_channels = 16;
  config.encoder.stem_groups = 2;
  config.encoder.channels_per_group = 8;
  config.encoder.stem_max_pool = true;
  config.encoder.stage_channels = {16, 64};
  config.encoder.stage_strides = {2, 2};
  config.encoder.blocks_per_stage = 1;
  config.unet.down_dims = c.levels;
  config.unet.step_embed_dim = 16;
  mjp::NormalizerStats stats;
  stats.cameras = {{mjp::Normalization::kMeanStd, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}}};
  stats.state = stats.action = {mjp::Normalization::kMinMax, {0, 0}, {512, 512}};
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCuda;
  options.precision = c.precision;
  options.sampler = {mjp::SamplerKind::kDdpm, 3, c.window};
  options.batch = c.batch;
  options.scene_drawer = &mjp::FlatSceneDrawer();
  const auto policy = mjp::Policy::Create(mjp::RandomCheckpoint(config, stats, 1), options);
  const std::vector<uint8_t> frames(size_t{2} * c.batch * mjp::kPictureBytes, 100);
  const mjp_test::Observations observations(c.batch);
  mjp::PolicyInput input = observations.input;
  if (c.pictures) input.frames = frames, input.scenes = {};
  mjp::PolicyTrace trace;
  mjp::PolicyOutput eager, graph;
  eager.trace = &trace;
  policy->Infer(input, eager);
  policy->Infer(input, graph);
  EXPECT_EQ(eager.actions, graph.actions);
}

TEST(Subject, DISABLED_row_kernel) { Decide({}); }
TEST(Subject, DISABLED_row_kernel_batch) { Decide({.batch = 4, .levels = {64, 128}}); }
TEST(Subject, DISABLED_row_kernel_clusters) { Decide({.levels = {128, 256}}); }
TEST(Subject, DISABLED_megakernel) { Decide({.batch = 3, .levels = kMegakernelLevels}); }
TEST(Subject, DISABLED_megakernel_windows) { Decide({.window = 2, .levels = kMegakernelLevels}); }
TEST(Subject, DISABLED_row_kernel_windows) { Decide({.window = 2, .pictures = true}); }
TEST(Subject, DISABLED_layers) { Decide({.window = 2, .levels = kLayerLevels}); }
TEST(Subject, DISABLED_layers_wgmma) { Decide({.batch = 40, .levels = kLayerLevels}); }
TEST(Subject, DISABLED_layers_fp32) {
  Decide({.precision = mjp::Precision::kFp32, .batch = 2, .pictures = true});
}
// synccheck (13.0) calls threads divergent that wait for one named barrier at two places of the
// code, which such barriers allow and the megakernel's do between the passes of a window. racecheck
// (13.0) dies of graphs with conditional nodes, which those of windows have. It does not know that
// bar.arrive orders, by which the row kernel's roles signal each other, and under it the CTAs of
// the megakernel wait for each other for longer than its watchdog.
std::vector<std::string> DecisionsFor(const std::string& tool) {
  if (tool == "racecheck") return {"layers_wgmma", "layers_fp32"};
  std::vector<std::string> all = {"row_kernel",          "row_kernel_batch", "row_kernel_windows",
                                  "row_kernel_clusters", "megakernel",       "layers",
                                  "layers_wgmma",        "layers_fp32"};
  if (tool != "synccheck") all.emplace_back("megakernel_windows");
  return all;
}

struct Outcome {
  int code = -1;
  std::string text;
};

// Runs a disabled test of this program under a tool; the code is 9 where the tool found something.
Outcome UnderTool(const std::string& tool, const std::string& subject) {
  const std::string command =
      "compute-sanitizer --error-exitcode 9 --tool " + tool + " /proc/" + std::to_string(getpid()) +
      "/exe --gtest_also_run_disabled_tests --gtest_filter=Subject.DISABLED_" + subject + " 2>&1";
  Outcome outcome;
  std::FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.text.append(buffer.data(), n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  return outcome;
}

class CudaSanitizer : public testing::TestWithParam<const char*> {};

TEST_P(CudaSanitizer, FindsThePlantedBugAndNoOther) {
  if (std::system("compute-sanitizer --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "no compute-sanitizer on the PATH";
  DEVICE_OR_SKIP();
  const std::string tool = GetParam();
  const Outcome planted = UnderTool(tool, tool);
  if (planted.text.find("Device not supported") != std::string::npos)
    GTEST_SKIP() << "compute-sanitizer cannot work on this platform";
  EXPECT_EQ(planted.code, 9) << "the planted bug was not found:\n" << planted.text;
  for (const std::string& decisions : DecisionsFor(tool)) {
    const Outcome outcome = UnderTool(tool, decisions);
    EXPECT_EQ(outcome.code, 0) << decisions << ": " << outcome.text.substr(0, 8000);
  }
}

INSTANTIATE_TEST_SUITE_P(Tools, CudaSanitizer,
                         testing::Values("memcheck", "racecheck", "initcheck", "synccheck"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
