#ifndef APPS_IMAGE_DIFFUSION_TRAINING_FOLDER_H_
#define APPS_IMAGE_DIFFUSION_TRAINING_FOLDER_H_

#include <cstdint>
#include <string>

#include "apps/image_diffusion/reference.h"
#include "base/file.h"
#include "base/json.h"
#include "image_diffusion/data/pictures.h"

namespace mjp::app {

// Everything that a training's weights depend on but how long it takes: the pictures by their hash,
// the network, the optimiser's options, the seed, the kind of device.
mjp::Json DescribeTraining(const ImageTrainOptions& options, const mjp::PictureSet& pictures,
                           const std::string& device);

// The folder of one training: run.json says what is trained on what, log.jsonl is its curve. One
// writer at a time.
class TrainingFolder {
 public:
  // Creates or opens `path`. `run` is of DescribeTraining. Throws Error if another process writes
  // there, or if what began there is another training: the text says what differs.
  TrainingFolder(const std::string& path, const mjp::Json& run);

  const std::string& path() const { return path_; }
  // Goes on with the log after `step`: what a killed process wrote of later steps is dropped.
  void OpenLog(int64_t step);
  // Appends a line, durably. Throws Error if it cannot be written.
  void Log(const mjp::Json& line);

 private:
  std::string path_;
  mjp::FileDescriptor lock_, log_;
};

// Throws Error if a training in `out` would write into `data`, whose folders are all classes.
void CheckOutsideOfData(const std::string& out, const std::string& data);

// Throws Error if `pictures` are not those that the training in `folder` had.
void CheckSamePictures(const std::string& folder, const mjp::PictureSet& pictures);

}  // namespace mjp::app

#endif  // APPS_IMAGE_DIFFUSION_TRAINING_FOLDER_H_
