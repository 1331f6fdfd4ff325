#ifndef APPS_IMAGE_DIFFUSION_PUSHT_PICTURES_H_
#define APPS_IMAGE_DIFFUSION_PUSHT_PICTURES_H_

#include "image_diffusion/data/pictures.h"

namespace mjp::app {

// Pictures of Push-T's table at random poses, the class that the data set `digits` has beside its
// digits.
mjp::DrawnClass PushtPictures();

}  // namespace mjp::app

#endif  // APPS_IMAGE_DIFFUSION_PUSHT_PICTURES_H_
