#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>

#include "apps/image_diffusion/commands.h"
#include "apps/image_diffusion/pusht_pictures.h"
#include "apps/image_diffusion/reference.h"
#include "apps/image_diffusion/training_folder.h"
#include "base/command_line/number_range.h"
#include "base/error.h"
#include "base/folders.h"
#include "base/json.h"
#include "policy/option_names.h"
#include "tasks/results/statistics.h"

namespace mjp::app {
namespace {

struct EvaluateOptions {
  std::string run, sampler = "ddpm", out;
  std::vector<std::string> implementations = {"reference", "cuda", "graph"};
  mjp::PictureOptions data;
  int count = 256, steps = 0, batch = 64;
  float tolerance = mjp::kWindowTolerance;
  uint64_t seed = 1;
};

struct Drawn {
  std::vector<float> x;  // (count, size, size, channels)
  int passes = 0;        // of the network, for the last batch
};

std::unique_ptr<mjp::ImageSampler> Make(const EvaluateOptions& options,
                                        const std::string& implementation,
                                        const std::shared_ptr<const mjp::ImageModel>& model) {
  return MakeImplementation(implementation, model,
                            {.sampler = mjp::ParseSampler("--sampler", options.sampler),
                             .steps = options.steps,
                             .batch = std::min(options.batch, options.count),
                             .threads = static_cast<int>(std::thread::hardware_concurrency()),
                             .precision = mjp::Precision::kAuto,
                             .tolerance = options.tolerance});
}

Drawn Draw(const EvaluateOptions& options, const std::string& implementation,
           const std::shared_ptr<const mjp::ImageModel>& model) {
  const auto sampler = Make(options, implementation, model);
  Drawn drawn;
  for (int first = 0; first < options.count; first += options.batch) {
    const auto part =
        sampler->Sample(options.seed, first, std::min(options.batch, options.count - first));
    mjp::CheckFinite(part, *sampler);
    drawn.x.insert(drawn.x.end(), part.begin(), part.end());
    drawn.passes = sampler->passes();
  }
  return drawn;
}

// How far pictures lie apart: of each the mean over its values, in levels of 255.
struct Difference {
  double median = 0, p99 = 0, largest = 0;  // over the pictures
};

Difference Compare(const std::vector<float>& a, const std::vector<float>& b, int elements) {
  std::vector<double> pictures(a.size() / elements);
  for (size_t i = 0; i < a.size(); ++i) {
    const float distance = std::abs(std::clamp(a[i], -1.0f, 1.0f) - std::clamp(b[i], -1.0f, 1.0f));
    pictures[i / elements] += 127.5 * distance / elements;
  }
  return {Quantile(pictures, 0.5), Quantile(pictures, 0.99), Quantile(pictures, 1)};
}

double MeanConfidence(const Judgement& judged) {
  double sum = 0;
  for (size_t c = 0; c < judged.per_class.size(); ++c) {
    sum += judged.confidence[c] * static_cast<double>(judged.per_class[c]);
  }
  return sum / static_cast<double>(std::max<int64_t>(judged.recognised, 1));
}

void PrintRow(const std::string& implementation, int passes, const Judgement& judged,
              const Difference& difference, const std::vector<std::string>& classes) {
  const double share = static_cast<double>(judged.recognised) / static_cast<double>(judged.count);
  std::printf("%-28s %7d %9.1f%% %10.4f %9.2f  %.3f, %.3f, %.3f\n ", implementation.c_str(), passes,
              100 * share, MeanConfidence(judged), judged.nearest, difference.median,
              difference.p99, difference.largest);
  for (size_t c = 0; c < classes.size(); ++c) {
    std::printf(" %s:%d", classes[c].c_str(), static_cast<int>(judged.per_class[c]));
  }
  std::printf("\n");
}

int Evaluate(const EvaluateOptions& options) {
  const auto model = mjp::LoadImageModel(options.run + "/checkpoint");
  mjp::PictureOptions data = options.data;
  data.dataset = model->config.dataset;
  data.size = model->config.size;
  data.channels = model->config.channels;
  if (!options.out.empty()) CheckWritable(options.out);
  const mjp::PictureSet training = mjp::LoadPictures(data);
  CheckSamePictures(options.run, training);
  // each may take hours: what the last one lacks is said before the first begins
  for (const std::string& implementation : options.implementations) {
    Make(options, implementation, model);
  }
  mjp::Json results = mjp::Json::array();
  std::vector<float> first;
  std::printf("%-28s %7s %10s %10s %9s  %s\n", "implementation", "passes", "recognised",
              "confidence", "nearest", "difference in levels: median, 99 %, largest picture");
  Judgement judged;
  for (const std::string& implementation : options.implementations) {
    const Drawn drawn = Draw(options, implementation, model);
    if (first.empty()) first = drawn.x;
    const Difference difference = Compare(drawn.x, first, model->config.Elements());
    judged = JudgePictures(options.run, training, drawn.x);
    PrintRow(implementation, drawn.passes, judged, difference, training.classes);
    results.push_back({{"implementation", implementation},
                       {"pictures", judged.count},
                       {"passes", drawn.passes},
                       {"recognised", judged.recognised},
                       {"per_class", judged.per_class},
                       {"confidence", judged.confidence},
                       {"nearest", judged.nearest},
                       {"recognised_held_out", judged.recognised_held_out},
                       {"nearest_held_out", judged.nearest_held_out},
                       {"difference_median", difference.median},
                       {"difference_p99", difference.p99},
                       {"difference_largest", difference.largest}});
    if (!options.out.empty()) WriteFileAtomically(options.out, results.dump(2) + "\n");
  }
  std::printf("%-28s %7s %9.1f%% %10s %9.2f\n", "held-out pictures", "",
              100 * judged.recognised_held_out, "", judged.nearest_held_out);
  return 0;
}

}  // namespace

std::function<int()> AddImageEvaluate(CLI::App& app) {
  auto options = std::make_shared<EvaluateOptions>();
  options->data.drawn = {PushtPictures()};
  CLI::App* command = app.add_subcommand(
      "evaluate", "Judges samples: recognised by the judge, distance to the training pictures");
  command->add_option("--run", options->run, "Folder of the training")
      ->required()
      ->type_name("DIR");
  command->add_option("--data", options->data.directory, "Folder of the data set's files")
      ->type_name("DIR");
  command->add_option("--pictures", options->data.digits, "As in the training")
      ->check(CLI::Range(2, 10000000));
  command
      ->add_option("--implementations", options->implementations,
                   "Compared with the first one; of " + ImplementationWords())
      ->type_name("NAME")
      ->delimiter(',');
  command->add_option("--n", options->count, "Samples of each")->check(CLI::Range(1, 1 << 20));
  command->add_option("--batch", options->batch, "At a time")->check(CLI::Range(1, 4096));
  command->add_option("--sampler", options->sampler, "Kind of sampler")
      ->type_name("")
      ->check(OneOf(mjp::ImageSamplerWords()));
  command->add_option("--steps", options->steps, "Of the sampler; 0: as the model says")
      ->check(CLI::Range(0, 10000));
  command->add_option("--seed", options->seed, "Of the noise")->check(WholeSeed());
  command->add_option("--tolerance", options->tolerance, "Of windows")
      ->check(NumberRange(1e-9, 10));
  command->add_option("--out", options->out, "JSON file")->type_name("FILE");
  return [options] { return Evaluate(*options); };
}

}  // namespace mjp::app
