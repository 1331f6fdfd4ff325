#include "apps/train/run_state.h"

#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "policy/checkpoint/safetensors.h"
#include "policy/checkpoint/safetensors_writer.h"

namespace mjp::app {
namespace {

// names of Optimizer::State(), in its order
constexpr std::array kVectors = {"weights", "average", "first_moment", "second_moment", "updates"};
constexpr char kPrediction[] = "prediction", kProgress[] = "progress", kGenerator[] = "generator";
// of kProgress: step, microseconds, best successes, of episodes, rounds; earlier builds lack the
// last, or the last two
constexpr int64_t kCounters = 5, kWithEpisodes = 4;
constexpr std::string_view kPrefix = " and --prefix-share";  // ends the prediction, where given
// in the header; a file of an earlier build has neither
constexpr char kChecksum[] = "crc32", kLayout[] = "layout";

bool AllFinite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

template <class T>
std::span<const uint8_t> BytesOf(std::span<const T> values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
}

// The CRC-32 of a file's tensors, one after the other.
class Checksum {
 public:
  template <class T>
  void Add(std::span<const T> values) {
    const std::span<const uint8_t> bytes = BytesOf(values);
    sum_ = crc32_z(sum_, bytes.data(), bytes.size());
  }
  std::string text() const { return std::to_string(sum_); }

 private:
  uLong sum_ = crc32_z(0, nullptr, 0);
};

// Throws Error unless the file holds what was written, for the parameters of this network.
void CheckContent(const mjp::SafetensorsFile& file, const std::string& layout) {
  const auto& said = file.metadata();
  if (!said.contains(kChecksum) && !said.contains(kLayout)) return;
  Checksum sum;
  std::vector<std::string> names(kVectors.begin(), kVectors.end());
  names.insert(names.end(), {kProgress, kPrediction, kGenerator});
  for (const std::string& name : names) {
    const mjp::TensorEntry* entry = file.Find(name);
    if (entry == nullptr) throw mjp::BadInput(file.origin() + ": has no tensor \"" + name + "\"");
    sum.Add(file.Data(*entry));
  }
  const auto is = [&](const char* key, const std::string& value) {
    return said.contains(key) && said.at(key) == value;
  };
  if (!is(kChecksum, sum.text())) {
    throw mjp::BadInput(file.origin() +
                        ": its content is not what its checksum says: the file is damaged; delete "
                        "it to start anew, or give another --out");
  }
  if (is(kLayout, layout)) return;
  throw mjp::BadInput(file.origin() +
                      ": is of another network; resume with the architecture the run began with, "
                      "or give another --out");
}

// Whether these are the counters of a run.
bool AreProgress(const std::vector<int64_t>& counters) {
  if (counters.size() < kWithEpisodes - 1 || counters.size() > kCounters) return false;
  if (std::ranges::any_of(counters, [](int64_t count) { return count < 0; })) return false;
  if (counters.size() >= kWithEpisodes && counters[2] > counters[3]) return false;
  return std::all_of(counters.begin() + 2, counters.end(), std::in_range<int, int64_t>);
}

// Whether the checkpoint beside a state is of a training with --prefix-share; none: there is no
// checkpoint.
std::optional<bool> CheckpointHasPrefix(const std::string& state) {
  const auto config = std::filesystem::path(state).parent_path() / "checkpoint/config.json";
  if (!std::filesystem::exists(config)) return std::nullopt;
  const mjp::Json json = mjp::ReadJson(config);
  return json.contains("trained_prefix") && json.at("trained_prefix") == true;
}

// Throws Error unless the run of the state trains a network to tell `prediction`, with
// --prefix-share as `prefix` says.
void CheckTraining(const mjp::SafetensorsFile& file, const std::string& prediction,
                   std::optional<bool> prefix) {
  const std::string& path = file.origin();
  const std::vector<uint8_t> bytes = file.Bytes(kPrediction);
  std::string begun(bytes.begin(), bytes.end());
  std::optional<bool> had = begun.ends_with(kPrefix);
  if (*had) begun.resize(begun.size() - kPrefix.size());
  if (begun != prediction) {
    const std::string option = begun.starts_with("flow") ? "--objective " : "--prediction ";
    throw mjp::BadInput(path + ": the run began with " + option + begun + ", not " + prediction +
                        "; go on with that, or give another --out");
  }
  if (!prefix) return;
  if (file.Integers(kProgress).size() < kWithEpisodes) had = CheckpointHasPrefix(path);
  if (!had) {
    std::fprintf(stderr,
                 "mjpolicy-train: %s: is of an earlier build and does not say whether "
                 "--prefix-share was given; the run goes on %s it\n",
                 path.c_str(), *prefix ? "with" : "without");
  }
  if (had.value_or(*prefix) == *prefix) return;
  throw mjp::BadInput(path + ": the run began " + (*had ? "with" : "without") +
                      " --prefix-share; go on " + (*had ? "with" : "without") +
                      " it, or give another --out");
}

// Throws Error for a generator that is not of this kind of device.
void RestoreGenerator(const at::Device& device, const std::vector<uint8_t>& random,
                      const mjp::Error& foreign) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  if (static_cast<int64_t>(random.size()) != generator.get_state().numel()) throw foreign;
  try {
    generator.set_state(at::tensor(random, at::kByte));
  } catch (const c10::Error&) {
    throw foreign;
  }
}

}  // namespace

void SaveRunState(const std::string& path, const Optimizer& optimizer, const RunProgress& progress,
                  const at::Device& device, const std::string& prediction, bool prefix) {
  mjp::SafetensorsWriter writer;
  Checksum sum;
  const std::vector<at::Tensor> state = optimizer.State();
  for (size_t i = 0; i < state.size(); ++i) {
    const at::Tensor host = state[i].to(at::kCPU).contiguous();
    const std::span<const float> values(host.const_data_ptr<float>(),
                                        static_cast<size_t>(host.numel()));
    if (!AllFinite(values)) {
      throw mjp::Error(mjp::ExitCode::kRetryable,
                       path + ": is not written, for \"" + kVectors[i] +
                           "\" is not finite at step " + std::to_string(progress.step) +
                           "; start the same command again, or with a lower --learning-rate");
    }
    writer.AddFloats(kVectors[i], {host.numel()}, values);
    sum.Add(values);
  }
  const std::array<int64_t, kCounters> counters = {
      progress.step, std::llround(progress.seconds * 1e6), progress.best.successes, progress.best.n,
      progress.rounds};
  writer.AddIntegers(kProgress, {kCounters}, counters);
  sum.Add(std::span<const int64_t>(counters));
  const std::string training = prediction + std::string(prefix ? kPrefix : "");
  const std::span<const uint8_t> told = BytesOf(std::span<const char>(training));
  writer.AddBytes(kPrediction, {static_cast<int64_t>(told.size())}, told);
  sum.Add(told);
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  const at::Tensor random = generator.get_state();
  const std::span<const uint8_t> bytes(random.const_data_ptr<uint8_t>(),
                                       static_cast<size_t>(random.numel()));
  writer.AddBytes(kGenerator, {random.numel()}, bytes);
  sum.Add(bytes);
  writer.SetMetadata(kChecksum, sum.text());
  writer.SetMetadata(kLayout, optimizer.parameters().layout());
  writer.Write(path);
}

bool HasRunState(const std::string& path) {
  std::error_code none;
  const auto type = std::filesystem::symlink_status(path, none).type();
  return type != std::filesystem::file_type::not_found;
}

RunProgress LoadRunState(const std::string& path, Optimizer& optimizer, const at::Device& device,
                         const std::string& prediction, std::optional<bool> prefix) {
  const mjp::SafetensorsFile file = mjp::SafetensorsFile::Read(path);
  CheckTraining(file, prediction, prefix);
  std::vector<at::Tensor> state = optimizer.State();
  for (size_t i = 0; i < state.size(); ++i) {
    const mjp::Tensor values = file.Floats(kVectors[i]);
    if (static_cast<int64_t>(values.data.size()) != state[i].numel()) {
      throw mjp::BadInput(path + ": " + kVectors[i] + " has " + std::to_string(values.data.size()) +
                          " values, this network has " + std::to_string(state[i].numel()) +
                          "; resume with the architecture the run began with, or delete the file");
    }
    if (!AllFinite(values.data)) {
      throw mjp::BadInput(path + ": " + kVectors[i] + " holds a number that is not finite: the " +
                          "file is damaged; delete it to start anew, or give another --out");
    }
    state[i] = at::tensor(values.data).view(state[i].sizes());
  }
  CheckContent(file, optimizer.parameters().layout());
  const std::vector<int64_t> counters = file.Integers(kProgress);
  const mjp::Error foreign = mjp::BadInput(
      path +
      ": is not the state of a training on this kind of device; go on there, or delete the file");
  if (!AreProgress(counters)) throw foreign;
  RestoreGenerator(device, file.Bytes(kGenerator), foreign);
  optimizer.Restore(state);
  const auto told = [&](size_t i) {
    return i < counters.size() ? static_cast<int>(counters[i]) : 0;
  };
  return {counters[0], static_cast<double>(counters[1]) * 1e-6, {told(2), told(3)}, told(4)};
}

void SeedGenerator(const at::Device& device, uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  generator.set_current_seed(seed);
}

}  // namespace mjp::app
