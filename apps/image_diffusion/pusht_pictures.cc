#include "apps/image_diffusion/pusht_pictures.h"

#include "tasks/pusht/pictures/rasterise.h"

namespace mjp::app {
namespace {

std::vector<uint8_t> DrawPusht(mjp::PictureDraws& draws) {
  const mjp::FlatScene scene = {draws.Uniform(60, 450), draws.Uniform(60, 450),
                                draws.Uniform(120, 390), draws.Uniform(120, 390),
                                draws.Uniform(-3.14159f, 3.14159f)};
  std::vector<uint8_t> rgb(mjp::kPictureBytes);
  mjp::RasteriseCpu(&scene, 1, rgb.data());
  return rgb;
}

}  // namespace

mjp::DrawnClass PushtPictures() { return {"push-t", mjp::kPictureSize, DrawPusht}; }

}  // namespace mjp::app
