#include "apps/train/run_state.h"

#include <ATen/Context.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <span>
#include <vector>

#include "base/error.h"
#include "policy/checkpoint/safetensors.h"
#include "policy/checkpoint/safetensors_writer.h"

namespace mjp::app {
namespace {

// names of Optimizer::State(), in its order
constexpr std::array kVectors = {"weights", "average", "first_moment", "second_moment", "updates"};
constexpr char kPrediction[] = "prediction";

}  // namespace

void SaveRunState(const std::string& path, const Optimizer& optimizer, const RunProgress& progress,
                  const at::Device& device, const std::string& prediction) {
  mjp::SafetensorsWriter writer;
  const std::vector<at::Tensor> state = optimizer.State();
  for (size_t i = 0; i < state.size(); ++i) {
    const at::Tensor host = state[i].to(at::kCPU).contiguous();
    writer.AddFloats(kVectors[i], {host.numel()},
                     {host.const_data_ptr<float>(), static_cast<size_t>(host.numel())});
  }
  const std::array<int64_t, 3> counters = {progress.step, std::llround(progress.seconds * 1e6),
                                           progress.best};
  writer.AddIntegers("progress", {3}, counters);
  writer.AddBytes(kPrediction, {static_cast<int64_t>(prediction.size())},
                  {reinterpret_cast<const uint8_t*>(prediction.data()), prediction.size()});
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  const at::Tensor random = generator.get_state();
  writer.AddBytes("generator", {random.numel()},
                  {random.const_data_ptr<uint8_t>(), static_cast<size_t>(random.numel())});
  writer.Write(path);
}

RunProgress LoadRunState(const std::string& path, Optimizer& optimizer, const at::Device& device,
                         const std::string& prediction) {
  const mjp::SafetensorsFile file = mjp::SafetensorsFile::Read(path);
  const std::vector<uint8_t> bytes = file.Bytes(kPrediction);
  const std::string begun(bytes.begin(), bytes.end());
  if (begun != prediction) {
    throw mjp::BadInput(path + ": the run began with --prediction " + begun + ", not " +
                        prediction + "; go on with that, or give another --out");
  }
  std::vector<at::Tensor> state = optimizer.State();
  for (size_t i = 0; i < state.size(); ++i) {
    const mjp::Tensor values = file.Floats(kVectors[i]);
    if (static_cast<int64_t>(values.data.size()) != state[i].numel()) {
      throw mjp::BadInput(path + ": " + kVectors[i] + " has " + std::to_string(values.data.size()) +
                          " values, this network has " + std::to_string(state[i].numel()) +
                          "; resume with the architecture the run began with, or delete the file");
    }
    if (!std::ranges::all_of(values.data, [](float value) { return std::isfinite(value); })) {
      throw mjp::BadInput(path + ": " + kVectors[i] + " holds a number that is not finite: the " +
                          "file is damaged; delete it to start anew, or give another --out");
    }
    state[i] = at::tensor(values.data).view(state[i].sizes());
  }
  optimizer.Restore(state);
  const std::vector<int64_t> counters = file.Integers("progress");
  std::vector<uint8_t> random = file.Bytes("generator");
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  const bool counts = counters.size() == 3 &&
                      std::ranges::all_of(counters, [](int64_t count) { return count >= 0; });
  if (!counts || static_cast<int64_t>(random.size()) != generator.get_state().numel()) {
    throw mjp::BadInput(path +
                        ": is not the state of a training on this kind of device; go on there, or "
                        "delete the file");
  }
  generator.set_state(at::tensor(random, at::kByte));
  return {counters[0], static_cast<double>(counters[1]) * 1e-6, counters[2]};
}

void SeedGenerator(const at::Device& device, uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  generator.set_current_seed(seed);
}

}  // namespace mjp::app
