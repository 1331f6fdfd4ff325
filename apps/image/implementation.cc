#include <utility>

#include "apps/image/commands.h"
#include "apps/image/reference.h"
#include "kernels/error.h"

namespace pusht {

std::vector<std::string> ImplementationWords() {
  return {"reference", "reference-graph", "reference-graph-contiguous", "cpu", "cuda", "graph"};
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
  options.graph = word == "graph";
  if (!options.graph) options.window = 0;
  if (options.precision == dp::Precision::kAuto) {
    options.precision = options.graph ? dp::Precision::kFp16 : dp::Precision::kTf32;
  }
  if (word == "cuda" || word == "graph") {
    return dp::MakeCudaImageSampler(std::move(model), options);
  }
  std::string known;
  for (const std::string& each : ImplementationWords()) known += " " + each;
  throw dp::Error(dp::ExitCode::kUsage, "--implementation " + word + ": there are" + known);
}

}  // namespace pusht
