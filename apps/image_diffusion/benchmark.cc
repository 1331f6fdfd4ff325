#include <algorithm>
#include <cstdio>
#include <thread>

#include "apps/image_diffusion/commands.h"
#include "apps/image_diffusion/plot.h"
#include "apps/image_diffusion/reference.h"
#include "base/command_line/number_range.h"
#include "base/error.h"
#include "base/folders.h"
#include "base/json.h"
#include "policy/option_names.h"
#include "policy/timing.h"
#include "tasks/evaluation/version.h"
#include "tasks/results/statistics.h"
#if MJPOLICY_HAVE_CUDA
#include <cuda_runtime_api.h>

#include "kernels/cuda/primitives/gpu_traits.h"
#include "policy/cuda/cuda_policy.h"
#endif

namespace mjp::app {
namespace {

struct BenchmarkOptions {
  mjp::ImageConfig config;
  std::string checkpoint, json, plot;
  std::vector<std::string> implementations = {
      "reference", "reference-graph", "reference-graph-contiguous", "cuda", "cuda-tf32", "graph"};
  std::vector<int> batches = {1, 8, 64, 512};
  std::string precision = "auto";
  int steps = 1000, measured_steps = 0, repeats = 5;
  float tolerance = mjp::kWindowTolerance;
  int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
};

struct Row {
  std::string implementation, description = {};
  int batch = 0, measured_steps = 0, passes = 0;
  double step = 0, step_p99 = 0;  // milliseconds, median and 99th percentile of the repeats
  double megabytes = 0;           // of device memory, more than before it was made
};

double FreeDeviceMegabytes() {
#if MJPOLICY_HAVE_CUDA
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) return static_cast<double>(free) / (1 << 20);
#endif
  return 0;
}

std::string DeviceName() {
#if MJPOLICY_HAVE_CUDA
  std::string why;
  if (mjp::CudaUsable(&why)) return mjp::GpuTraits::Current().name;
#endif
  return "no GPU";
}

Row Measure(const BenchmarkOptions& options, const std::shared_ptr<const mjp::ImageModel>& model,
            const std::string& implementation, int batch) {
  constexpr int kFewPictures = 8, kStepsOfFew = 100, kStepsOfMany = 20;
  Row row{.implementation = implementation, .batch = batch};
  // what a window gains depends on the schedule: always the whole chain
  const bool window =
      WindowOf(implementation, *model, {.steps = options.steps, .batch = batch}) > 0;
  row.measured_steps = window                       ? options.steps
                       : options.measured_steps > 0 ? options.measured_steps
                       : batch <= kFewPictures      ? kStepsOfFew
                                                    : kStepsOfMany;
  row.measured_steps = std::min(row.measured_steps, options.steps);
  ReleaseReferenceMemory();
  const double before = FreeDeviceMegabytes();
  const auto sampler =
      MakeImplementation(implementation, model,
                         {.steps = row.measured_steps,
                          .batch = batch,
                          .threads = options.threads,
                          .precision = mjp::ParsePrecision("--precision", options.precision),
                          .tolerance = options.tolerance});
  sampler->Sample(0, 0, batch);
  std::vector<double> times;
  for (int i = 0; i < options.repeats; ++i) {
    const double begin = mjp::Now();
    sampler->Sample(0, 0, batch);
    times.push_back(1e3 * (mjp::Now() - begin) / row.measured_steps);
  }
  row.description = sampler->Description();
  row.passes = sampler->passes();
  row.step = Quantile(times, 0.5);
  row.step_p99 = Quantile(times, 0.99);
  row.megabytes = before - FreeDeviceMegabytes();
  return row;
}

// The same row of the first implementation.
const Row& Baseline(const std::vector<Row>& rows, const Row& row) {
  return *std::find_if(rows.begin(), rows.end(),
                       [&](const Row& other) { return other.batch == row.batch; });
}

void PrintTable(const BenchmarkOptions& options, const std::vector<Row>& rows) {
  std::printf("%-6s %-62s %7s %10s %10s %12s %9s %9s %8s\n", "batch", "implementation", "passes",
              "ms/step", "p99", "ms/picture", "speed-up", "MiB", "memory");
  for (const Row& row : rows) {
    const Row& base = Baseline(rows, row);
    std::printf("%-6d %-62s %7d %10.4f %10.4f %12.2f %8.2fx %9.0f %7.2fx\n", row.batch,
                row.description.c_str(), row.passes, row.step, row.step_p99,
                row.step * options.steps / row.batch, base.step / row.step, row.megabytes,
                base.megabytes > 0 ? row.megabytes / base.megabytes : 0.0);
  }
  std::printf("a picture takes %d steps; TensorRT: " MJPOLICY_TENSORRT "\n", options.steps);
}

void WriteJson(const BenchmarkOptions& options, const mjp::ImageModel& model,
               const std::vector<Row>& rows) {
  mjp::Json json = {{"version", ProjectVersion()},         {"device", DeviceName()},
                    {"image_size", model.config.size},     {"channels", model.config.channels},
                    {"parameters", model.parameter_count}, {"steps", options.steps},
                    {"tensorrt", MJPOLICY_TENSORRT},       {"rows", mjp::Json::array()}};
  for (const Row& row : rows) {
    json["rows"].push_back({{"implementation", row.implementation},
                            {"description", row.description},
                            {"batch", row.batch},
                            {"measured_steps", row.measured_steps},
                            {"passes", row.passes},
                            {"step_ms", row.step},
                            {"step_p99_ms", row.step_p99},
                            {"picture_ms", row.step * options.steps / row.batch},
                            {"speed_up", Baseline(rows, row).step / row.step},
                            {"device_mib", row.megabytes}});
  }
  WriteFileAtomically(options.json, json.dump(2) + "\n");
}

void WritePlot(const BenchmarkOptions& options, const std::vector<Row>& rows) {
  std::vector<BarGroup> groups;
  for (const Row& row : rows) {
    const std::string title =
        std::to_string(row.batch) + (row.batch == 1 ? " picture" : " pictures");
    if (groups.empty() || groups.back().title != title) groups.push_back({title, {}});
    groups.back().bars.push_back({row.implementation, row.step * options.steps / row.batch});
  }
  WriteBars(options.plot, "ms per picture on one " + DeviceName(), groups);
}

int Benchmark(const BenchmarkOptions& options) {
  for (const std::string& file : {options.json, options.plot})
    if (!file.empty()) CheckWritable(file);
  const auto model = options.checkpoint.empty() ? mjp::RandomImageModel(options.config, 0)
                                                : mjp::LoadImageModel(options.checkpoint);
  std::printf("%s, %dx%dx%d, %.1f M parameters\n", DeviceName().c_str(), model->config.size,
              model->config.size, model->config.channels,
              static_cast<double>(model->parameter_count) * 1e-6);
  std::vector<Row> rows;
  // libraries and kernels load at their first use: that is no implementation's memory
  BenchmarkOptions first = options;
  first.measured_steps = first.repeats = 1;
  for (const std::string& implementation : options.implementations) {
    Measure(first, model, implementation, 1);
  }
  for (const int batch : options.batches) {
    for (const std::string& implementation : options.implementations) {
      rows.push_back(Measure(options, model, implementation, batch));
    }
  }
  PrintTable(options, rows);
  if (!options.json.empty()) WriteJson(options, *model, rows);
  if (!options.plot.empty()) WritePlot(options, rows);
  return 0;
}

}  // namespace

std::function<int()> AddImageBenchmark(CLI::App& app) {
  auto options = std::make_shared<BenchmarkOptions>();
  CLI::App* command =
      app.add_subcommand("benchmark", "Times the implementations beside each other, in one run");
  command->add_option("--checkpoint", options->checkpoint, "Model; else random weights")
      ->type_name("DIR");
  command->add_option("--image-size", options->config.size, "Of the random model")
      ->check(CLI::Range(1, 512));
  command->add_option("--channels", options->config.channels, "Of the random model")
      ->type_name("")
      ->check(OneOf({"1", "3"}));
  command->add_option("--unet-channels", options->config.unet.down_dims, "Of the random model")
      ->check(CLI::Range(8, 8192));
  command
      ->add_option("--implementations", options->implementations,
                   "Compared with the first one; of " + ImplementationWords())
      ->type_name("NAME")
      ->delimiter(',');
  command->add_option("--n", options->batches, "Pictures at a time; several may be given")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  command->add_option("--precision", options->precision, "Of cuda and graph")
      ->type_name("")
      ->check(OneOf(mjp::PrecisionWords()));
  command->add_option("--steps", options->steps, "Of one picture, for the time per picture")
      ->check(CLI::Range(1, 10000));
  command
      ->add_option("--measured-steps", options->measured_steps,
                   "Of one repeat; 0: 100 up to 8 pictures, else 20")
      ->check(CLI::Range(0, 10000));
  command->add_option("--repeats", options->repeats, "Of each measurement")
      ->check(CLI::Range(1, 1000000));
  command->add_option("--tolerance", options->tolerance, "Of the window")
      ->check(NumberRange(1e-9, 10));
  command->add_option("--threads", options->threads, "Of cpu")->check(CLI::Range(1, 1024));
  command->add_option("--json", options->json, "File for the results")->type_name("FILE");
  command->add_option("--plot", options->plot, "SVG file of the results")->type_name("FILE");
  return [options] { return Benchmark(*options); };
}

}  // namespace mjp::app
