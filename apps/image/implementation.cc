#include <charconv>
#include <string_view>
#include <utility>

#include "apps/image/commands.h"
#include "apps/image/reference.h"
#include "kernels/error.h"

namespace pusht {
namespace {

constexpr int kMaxWindow = 256;

}  // namespace

std::string ImplementationWords() {
  return "reference, reference-graph, reference-graph-contiguous, cpu, cuda, graph, "
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
  constexpr std::string_view kWindow = "graph:";
  const bool window = word.starts_with(kWindow);
  options.graph = word == "graph" || window;
  options.window = 0;
  if (window) {
    const char *first = word.data() + kWindow.size(), *last = word.data() + word.size();
    const auto [end, error] = std::from_chars(first, last, options.window);
    if (error != std::errc() || end != last || options.window < 2 || options.window > kMaxWindow) {
      throw dp::Error(dp::ExitCode::kUsage,
                      "--implementation " + word + ": a window is 2 to 256 steps");
    }
  }
  if (options.precision == dp::Precision::kAuto) {
    options.precision = options.graph ? dp::Precision::kFp16 : dp::Precision::kTf32;
  }
  if (word == "cuda" || options.graph) {
    return dp::MakeCudaImageSampler(std::move(model), options);
  }
  throw dp::Error(dp::ExitCode::kUsage,
                  "--implementation " + word + ": there are " + ImplementationWords());
}

}  // namespace pusht
