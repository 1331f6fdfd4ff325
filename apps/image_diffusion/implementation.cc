#include <charconv>
#include <string_view>
#include <utility>

#include "apps/image_diffusion/commands.h"
#include "apps/image_diffusion/reference.h"
#include "base/error.h"

namespace mjp::app {

int WindowOf(const std::string& word, const mjp::ImageModel& model,
             const mjp::ImageSamplerOptions& options) {
  constexpr std::string_view kPrefix = "graph:";
  constexpr int kMost = 256;
  if (word == "graph") return mjp::ImageWindow(model, options);
  if (!word.starts_with(kPrefix)) return 0;
  int window = 0;
  const char *first = word.data() + kPrefix.size(), *last = word.data() + word.size();
  const auto [end, error] = std::from_chars(first, last, window);
  if (error == std::errc() && end == last && window >= 1 && window <= kMost) {
    return window == 1 ? 0 : window;
  }
  throw mjp::Error(mjp::ExitCode::kUsage,
                   "--implementation " + word + ": a window is 1 to 256 steps");
}

std::string ImplementationWords() {
  return "reference, reference-graph, reference-graph-contiguous, cpu, cuda, cuda-tf32, graph, "
         "graph:<window>";
}

std::unique_ptr<mjp::ImageSampler> MakeImplementation(const std::string& word,
                                                      std::shared_ptr<const mjp::ImageModel> model,
                                                      mjp::ImageSamplerOptions options) {
  if (word == "reference") {
    return MakeReferenceSampler(std::move(model), options, ReferenceKind::kEager);
  }
  if (word == "reference-graph") {
    return MakeReferenceSampler(std::move(model), options, ReferenceKind::kCapturedChannelsLast);
  }
  if (word == "reference-graph-contiguous") {
    return MakeReferenceSampler(std::move(model), options, ReferenceKind::kCapturedContiguous);
  }
  if (word == "cpu") return mjp::MakeCpuImageSampler(std::move(model), options);
  options.window = WindowOf(word, *model, options);
  options.graph = word == "graph" || word.starts_with("graph:");
  const bool tf32 = word == "cuda-tf32";
  if (tf32 || options.precision == mjp::Precision::kAuto) {
    options.precision = options.graph ? mjp::Precision::kFp16
                        : tf32        ? mjp::Precision::kTf32
                                      : mjp::Precision::kFp32;
  }
  if (word == "cuda" || tf32 || options.graph) {
    return mjp::MakeCudaImageSampler(std::move(model), options);
  }
  throw mjp::Error(mjp::ExitCode::kUsage,
                   "--implementation " + word + ": there are " + ImplementationWords());
}

}  // namespace mjp::app
