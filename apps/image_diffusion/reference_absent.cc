// Without libtorch there is no training, no reference and no judge; everything else works.

#include "apps/image_diffusion/reference.h"
#include "base/error.h"

namespace mjp::app {
namespace {

[[noreturn]] void Absent(const char* what) {
  throw mjp::EnvironmentError(std::string(what) +
                              " needs libtorch, which was not found when this program was "
                              "configured; see apps/train/README.md");
}

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): the declaration is that of the real one
std::unique_ptr<mjp::ImageSampler> MakeReferenceSampler(std::shared_ptr<const mjp::ImageModel>,
                                                        const mjp::ImageSamplerOptions&,
                                                        ReferenceKind) {
  Absent("the reference");
}

void ReleaseReferenceMemory() {}

bool TrainImageModel(const ImageTrainOptions&, std::ostream&, const std::atomic<bool>&) {
  Absent("training");
}

Judgement JudgePictures(const std::string&, const mjp::PictureSet&, const std::vector<float>&) {
  Absent("judging pictures");
}

}  // namespace mjp::app
