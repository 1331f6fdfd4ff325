#include "policy/option_names.h"

#include <charconv>
#include <span>

#include "base/error.h"

namespace mjp {
namespace {

template <typename T>
struct Word {
  const char* word;
  T value;
};

constexpr Word<Backend> kBackends[] = {
    {"auto", Backend::kAuto}, {"cpu", Backend::kCpu}, {"cuda", Backend::kCuda}};
constexpr Word<Precision> kPrecisions[] = {{"auto", Precision::kAuto},
                                           {"fp32", Precision::kFp32},
                                           {"tf32", Precision::kTf32},
                                           {"fp16", Precision::kFp16},
                                           {"bf16", Precision::kBf16}};
constexpr Word<SamplerKind> kSamplers[] = {{"ddpm", SamplerKind::kDdpm},
                                           {"ddim", SamplerKind::kDdim},
                                           {"euler", SamplerKind::kEuler},
                                           {"rk4", SamplerKind::kRk4},
                                           {"onestep", SamplerKind::kOneStep}};

template <typename T>
T Parse(const std::string& option, const std::string& word, std::span<const Word<T>> words) {
  std::string known;
  for (const Word<T>& each : words) {
    if (word == each.word) return each.value;
    known += (known.empty() ? "" : ", ") + std::string(each.word);
  }
  throw Error(ExitCode::kUsage, option + " is \"" + word + "\": choose one of " + known);
}

template <typename T>
std::vector<std::string> Words(std::span<const Word<T>> words) {
  std::vector<std::string> all;
  for (const Word<T>& each : words) all.emplace_back(each.word);
  return all;
}

template <typename T>
const char* Name(T value, std::span<const Word<T>> words) {
  for (const Word<T>& each : words) {
    if (value == each.value) return each.word;
  }
  return "unknown";
}

}  // namespace

Backend ParseBackend(const std::string& option, const std::string& word) {
  return Parse<Backend>(option, word, kBackends);
}
Precision ParsePrecision(const std::string& option, const std::string& word) {
  return Parse<Precision>(option, word, kPrecisions);
}
SamplerKind ParseSampler(const std::string& option, const std::string& word) {
  return Parse<SamplerKind>(option, word, kSamplers);
}

void ParseParallel(const std::string& option, const std::string& text, SamplerOptions& sampler) {
  constexpr int kLargestWindow = 1000;
  const char *begin = text.data(), *end = begin + text.size();
  const auto window = std::from_chars(begin, end, sampler.parallel_window);
  bool good = window.ec == std::errc() && sampler.parallel_window >= 0 &&
              sampler.parallel_window <= kLargestWindow;
  if (good && window.ptr != end) {
    const auto tolerance = std::from_chars(window.ptr + 1, end, sampler.parallel_tolerance);
    good = *window.ptr == ',' && tolerance.ec == std::errc() && tolerance.ptr == end &&
           sampler.parallel_tolerance >= 0 && sampler.parallel_tolerance <= kMostParallelTolerance;
  }
  if (!good) {
    throw Error(ExitCode::kUsage, option + " is \"" + text +
                                      "\": expected a window of 0 to 1000 steps, or "
                                      "window,tolerance with a tolerance from 0 to 10");
  }
}

std::vector<std::string> BackendWords() { return Words<Backend>(kBackends); }
std::vector<std::string> PrecisionWords() { return Words<Precision>(kPrecisions); }
std::vector<std::string> SamplerWords() { return Words<SamplerKind>(kSamplers); }

const char* BackendName(Backend backend) { return Name<Backend>(backend, kBackends); }
const char* PrecisionName(Precision precision) { return Name<Precision>(precision, kPrecisions); }
const char* SamplerName(SamplerKind sampler) {
  return sampler == SamplerKind::kAuto ? "auto" : Name<SamplerKind>(sampler, kSamplers);
}

}  // namespace mjp
