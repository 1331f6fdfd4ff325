#ifndef TASKS_MJCF_PICTURES_REQUESTED_PICTURES_H_
#define TASKS_MJCF_PICTURES_REQUESTED_PICTURES_H_

#include <vector>

#include "plugin/pictures/picture_source.h"
#include "policy/checkpoint/config.h"
#include "tasks/mjcf/task_file.h"

namespace mjp::app {

// The pictures of the file's cameras that a policy of `config`, which has cameras, sees.
// `cuda_device` as PictureRequest has it. Throws Error where their sizes differ.
PictureRequest PicturesFor(const TaskFile& file, const PolicyConfig& config, int cuda_device);

// How the file's renderer draws them, as PictureSource::Looks; empty for a policy without cameras.
std::vector<PictureLook> LooksOf(const TaskFile& file, const PolicyConfig& config);

}  // namespace mjp::app

#endif  // TASKS_MJCF_PICTURES_REQUESTED_PICTURES_H_
