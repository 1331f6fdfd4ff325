#include <iostream>

#include "apps/image_diffusion/commands.h"
#include "apps/image_diffusion/pusht_pictures.h"
#include "apps/image_diffusion/reference.h"
#include "apps/stop_signal.h"
#include "base/command_line/number_range.h"

namespace mjp::app {

std::function<int()> AddImageTrain(CLI::App& app) {
  auto options = std::make_shared<ImageTrainOptions>();
  options->data.drawn = {PushtPictures()};
  CLI::App* command = app.add_subcommand("train", "Trains a model, and a judge of its pictures");
  command->add_option("--dataset", options->data.dataset, "Name of the data set")
      ->required()
      ->type_name("")
      ->check(OneOf(mjp::DatasetNames()));
  command->add_option("--data", options->data.directory, "Folder of its files")->type_name("DIR");
  command->add_option("--image-size", options->data.size, "Pixels both ways")
      ->check(CLI::Range(2, 512));
  command->add_option("--channels", options->data.channels, "1: grey, 3: RGB")
      ->type_name("")
      ->check(OneOf({"1", "3"}));
  command->add_option("--pictures", options->data.digits, "How many pictures `digits` draws")
      ->check(CLI::Range(2, 10000000));
  command->add_option("--out", options->out, "Folder of the run; one that exists is continued")
      ->required()
      ->type_name("DIR");
  command->add_option("--epochs", options->epochs, "Length of the training")
      ->check(NumberRange(0, 1e9));
  command->add_option("--seconds", options->seconds, "Length of the training instead")
      ->type_name("SECONDS")
      ->transform(TimeIn(mjp::kSecond, 0, 1e9));
  command->add_option("--batch-size", options->batch, "Pictures per step")
      ->check(CLI::Range(1, 65536));
  command->add_option("--unet-channels", options->unet_channels, "Of the U-Net, per level")
      ->check(CLI::Range(8, 8192));
  command->add_option("--learning-rate", options->learning_rate, "At its peak")
      ->check(NumberRange(1e-12, 10));
  command->add_option("--warmup", options->warmup, "Steps up to the full learning rate")
      ->check(CLI::Range(0, 1000000000));
  command->add_option("--average-decay", options->average_decay, "Of the moving average")
      ->check(NumberRange(0, 1));
  command->add_option("--sample-every", options->sample_every, "Epochs between grids; 0: none")
      ->check(NumberRange(0, 1e9));
  command->add_option("--save-every", options->save_every, "Between saved states")
      ->type_name("SECONDS")
      ->transform(TimeIn(mjp::kSecond, 0, 1e9));
  command->add_option("--log-every", options->log_every, "Steps between lines of the log")
      ->check(CLI::Range(1, 1000000000));
  command->add_flag("--full-precision", options->full_precision, "float32 instead of bfloat16");
  command->add_option("--seed", options->seed, "Of weights, batches and noise")->check(WholeSeed());
  return [options] {
    const std::atomic<bool>& stop = StopOnSignal();
    if (TrainImageModel(*options, std::cout, stop)) return 0;
    std::fprintf(stderr, "image-diffusion: stopped; start the same command again to go on\n");
    return StoppedExitCode();
  };
}

}  // namespace mjp::app
