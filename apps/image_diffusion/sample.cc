#include <algorithm>
#include <cstdio>
#include <thread>

#include "apps/image_diffusion/commands.h"
#include "apps/image_diffusion/grid.h"
#include "base/command_line/number_range.h"
#include "base/folders.h"
#include "policy/option_names.h"
#include "policy/timing.h"
#include "tasks/recording/png.h"

namespace mjp::app {
namespace {

struct SampleOptions {
  std::string checkpoint, implementation = "cpu", sampler = "ddpm", precision = "auto";
  std::string out = "samples.png", film;
  int count = 16, steps = 0, batch = 64;
  uint64_t seed = 0;
  int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
};

// Shows the denoising of one batch: a few seconds, then its end for one more.
class Film {
 public:
  static constexpr int kFrames = 120, kRate = 30;

  Film(const std::string& stem, const mjp::ImageConfig& config) : stem_(stem), config_(config) {}

  void Add(std::span<const float> x) {
    const Picture picture = MakeGrid(x, config_.size, config_.channels);
    if (!writer_) writer_ = VideoWriter::Open(stem_, picture.width, picture.height, kRate);
    writer_->Add(picture);
    last_ = picture;
  }
  std::string Close() {
    for (int i = 0; i < kRate; ++i) writer_->Add(last_);
    writer_->Close();
    return writer_->file();
  }

 private:
  std::string stem_;
  const mjp::ImageConfig& config_;
  std::unique_ptr<VideoWriter> writer_;
  Picture last_;
};

int Sample(const SampleOptions& options) {
  const auto model = mjp::LoadImageModel(options.checkpoint);
  const auto sampler =
      MakeImplementation(options.implementation, model,
                         {.sampler = mjp::ParseSampler("--sampler", options.sampler),
                          .steps = options.steps,
                          .batch = std::min(options.batch, options.count),
                          .threads = options.threads,
                          .precision = mjp::ParsePrecision("--precision", options.precision)});
  CheckGrid(options.count, model->config.size);
  CheckWritable(options.out);
  Film film(options.film, model->config);
  const int every = std::max(1, sampler->steps() / Film::kFrames);
  std::vector<float> pictures;
  const double begin = mjp::Now();
  for (int first = 0; first < options.count; first += options.batch) {
    mjp::ImageObserver observer;
    if (!options.film.empty() && first == 0) {
      observer = [&](int, std::span<const float> x) { film.Add(x); };
    }
    const int count = std::min(options.batch, options.count - first);
    const std::vector<float> x = sampler->Sample(options.seed, first, count, observer, every);
    mjp::CheckFinite(x, *sampler);
    pictures.insert(pictures.end(), x.begin(), x.end());
  }
  const double seconds = mjp::Now() - begin;
  WritePng(options.out, MakeGrid(pictures, model->config.size, model->config.channels));
  std::printf("implementation  %s\n", sampler->Description().c_str());
  std::printf("pictures        %d in %.3f s, %d steps each\n", options.count, seconds,
              sampler->steps());
  std::printf("grid            %s\n", options.out.c_str());
  if (!options.film.empty()) std::printf("film            %s\n", film.Close().c_str());
  return 0;
}

}  // namespace

std::function<int()> AddImageSample(CLI::App& app) {
  auto options = std::make_shared<SampleOptions>();
  CLI::App* command = app.add_subcommand("sample", "Draws pictures with a trained model");
  command->add_option("--checkpoint", options->checkpoint, "Folder of the model")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--implementation", options->implementation,
                   "What runs it: " + ImplementationWords())
      ->type_name("NAME");
  command->add_option("--n", options->count, "Pictures")->check(CLI::Range(1, 1 << 20));
  command->add_option("--batch", options->batch, "Pictures at a time")->check(CLI::Range(1, 4096));
  command->add_option("--sampler", options->sampler, "Kind of sampler")
      ->type_name("")
      ->check(OneOf(mjp::ImageSamplerWords()));
  command->add_option("--steps", options->steps, "Of the sampler; 0: as the model says")
      ->check(CLI::Range(0, 10000));
  command->add_option("--seed", options->seed, "Of the noise")->check(WholeSeed());
  command->add_option("--precision", options->precision, "Number format of the products")
      ->type_name("")
      ->check(OneOf(mjp::PrecisionWords()));
  command->add_option("--threads", options->threads, "Of cpu")->check(CLI::Range(1, 1024));
  command->add_option("--out", options->out, "PNG of all pictures")->type_name("FILE");
  command->add_option("--film", options->film, "Video of the denoising, without its suffix")
      ->type_name("FILE");
  return [options] { return Sample(*options); };
}

}  // namespace mjp::app
