#include <charconv>
#include <string_view>
#include <utility>

#include "apps/image/commands.h"
#include "apps/image/reference.h"
#include "kernels/error.h"

namespace pusht {

int WindowOf(const std::string& word, const dp::ImageModel& model,
             const dp::ImageSamplerOptions& options) {
  constexpr std::string_view kPrefix = "graph:";
  constexpr int kMost = 256;
  if (word == "graph") return dp::ImageWindow(model, options);
  if (!word.starts_with(kPrefix)) return 0;
  int window = 0;
  const char *first = word.data() + kPrefix.size(), *last = word.data() + word.size();
  const auto [end, error] = std::from_chars(first, last, window);
  if (error == std::errc() && end == last && window >= 1 && window <= kMost) {
    return window == 1 ? 0 : window;
  }
  throw dp::Error(dp::ExitCode::kUsage,
                  "--implementation " + word + ": a window is 1 to 256 steps");
}

std::string ImplementationWords() {
  return "reference, reference-graph, reference-graph-contiguous, cpu, cuda, cuda-tf32, graph, "
         "graph:<window>";
}

std::unique_ptr<dp::ImageSampler> MakeImplementation(const std::string& word,
                                                     std::shared_ptr<const dp::ImageModel> model,
                                                     dp::ImageSamplerOptions options) {
  if (word == "reference") {
    return MakeReferenceSampler(std::move(model), options, ReferenceKind::kEager);
  }
  if (word == "reference-graph") {
    return MakeReferenceSampler(std::move(model), options, ReferenceKind::kCapturedChannelsLast);
  }
  if (word == "reference-graph-contiguous") {
    return MakeReferenceSampler(std::move(model), options, ReferenceKind::kCapturedContiguous);
  }
  if (word == "cpu") return dp::MakeCpuImageSampler(std::move(model), options);
  options.window = WindowOf(word, *model, options);
  options.graph = word == "graph" || word.starts_with("graph:");
  const bool tf32 = word == "cuda-tf32";
  if (tf32 || options.precision == dp::Precision::kAuto) {
    options.precision = options.graph ? dp::Precision::kFp16
                        : tf32        ? dp::Precision::kTf32
                                      : dp::Precision::kFp32;
  }
  if (word == "cuda" || tf32 || options.graph) {
    return dp::MakeCudaImageSampler(std::move(model), options);
  }
  throw dp::Error(dp::ExitCode::kUsage,
                  "--implementation " + word + ": there are " + ImplementationWords());
}

}  // namespace pusht
