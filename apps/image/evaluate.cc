#include <algorithm>
#include <cstdio>
#include <thread>

#include "apps/image/commands.h"
#include "apps/image/reference.h"
#include "kernels/error.h"
#include "policy/json.h"
#include "policy/option_names.h"
#include "task/files.h"
#include "task/number_range.h"

namespace pusht {
namespace {

struct EvaluateOptions {
  std::string run, sampler = "ddpm", out;
  std::vector<std::string> implementations = {"reference", "cuda", "graph"};
  dp::PictureOptions data;
  int count = 256, steps = 0, batch = 64;
  float tolerance = dp::kWindowTolerance;
  uint64_t seed = 1;
};

std::vector<float> Draw(const EvaluateOptions& options, const std::string& implementation,
                        const std::shared_ptr<const dp::ImageModel>& model) {
  const auto sampler =
      MakeImplementation(implementation, model,
                         {.sampler = dp::ParseSampler("--sampler", options.sampler),
                          .steps = options.steps,
                          .batch = std::min(options.batch, options.count),
                          .threads = static_cast<int>(std::thread::hardware_concurrency()),
                          .precision = dp::Precision::kAuto,
                          .tolerance = options.tolerance});
  std::vector<float> x;
  for (int first = 0; first < options.count; first += options.batch) {
    const auto part =
        sampler->Sample(options.seed, first, std::min(options.batch, options.count - first));
    x.insert(x.end(), part.begin(), part.end());
  }
  return x;
}

// Mean absolute difference in levels.
double Difference(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += std::abs(std::clamp(a[i], -1.0f, 1.0f) - std::clamp(b[i], -1.0f, 1.0f));
  }
  return 127.5 * sum / static_cast<double>(a.size());
}

int Evaluate(const EvaluateOptions& options) {
  const auto model = dp::LoadImageModel(options.run + "/checkpoint");
  dp::PictureOptions data = options.data;
  data.dataset = model->config.dataset;
  data.size = model->config.size;
  data.channels = model->config.channels;
  const dp::PictureSet training = dp::LoadPictures(data);
  dp::Json results = dp::Json::array();
  std::vector<float> first;
  std::printf("%-28s %10s %10s %9s %9s %11s\n", "implementation", "recognised", "confidence",
              "nearest", "held out", "difference");
  for (const std::string& implementation : options.implementations) {
    const std::vector<float> x = Draw(options, implementation, model);
    if (first.empty()) first = x;
    const Judgement judged = JudgePictures(options.run, training, x);
    double confidence = 0;
    for (size_t c = 0; c < judged.per_class.size(); ++c) {
      confidence += judged.confidence[c] * static_cast<double>(judged.per_class[c]);
    }
    confidence /= static_cast<double>(std::max<int64_t>(judged.recognised, 1));
    const double share = static_cast<double>(judged.recognised) / static_cast<double>(judged.count);
    std::printf("%-28s %9.1f%% %10.4f %9.2f %9.2f %11.3f\n", implementation.c_str(), 100 * share,
                confidence, judged.nearest, judged.nearest_held_out, Difference(x, first));
    std::string classes = " ";
    for (size_t c = 0; c < judged.per_class.size(); ++c) {
      classes += " " + training.classes[c] + ":" + std::to_string(judged.per_class[c]);
    }
    std::printf("%s\n", classes.c_str());
    results.push_back({{"implementation", implementation},
                       {"pictures", judged.count},
                       {"recognised", judged.recognised},
                       {"per_class", judged.per_class},
                       {"confidence", judged.confidence},
                       {"nearest", judged.nearest},
                       {"nearest_held_out", judged.nearest_held_out},
                       {"difference", Difference(x, first)}});
  }
  if (!options.out.empty()) WriteFileAtomically(options.out, results.dump(2) + "\n");
  return 0;
}

}  // namespace

std::function<int()> AddImageEvaluate(CLI::App& app) {
  auto options = std::make_shared<EvaluateOptions>();
  CLI::App* command = app.add_subcommand(
      "evaluate", "Judges samples: recognised by the judge, distance to the training pictures");
  command->add_option("--run", options->run, "Folder of the training")->required();
  command->add_option("--data", options->data.directory, "Folder of the data set's files");
  command->add_option("--pictures", options->data.digits, "As in the training")
      ->check(CLI::Range(2, 10000000));
  command
      ->add_option("--implementations", options->implementations,
                   "Compared with the first one; of " + ImplementationWords())
      ->delimiter(',');
  command->add_option("--n", options->count, "Samples of each")->check(CLI::Range(1, 1 << 20));
  command->add_option("--batch", options->batch, "At a time")->check(CLI::Range(1, 4096));
  command->add_option("--sampler", options->sampler, "ddpm or ddim")
      ->check(CLI::IsMember(dp::SamplerWords()));
  command->add_option("--steps", options->steps, "Of the sampler; 0: as the model says")
      ->check(CLI::Range(0, 10000));
  command->add_option("--seed", options->seed, "Of the noise");
  command->add_option("--tolerance", options->tolerance, "Of windows")
      ->check(NumberRange(1e-9, 10));
  command->add_option("--out", options->out, "JSON file");
  return [options] { return Evaluate(*options); };
}

}  // namespace pusht
