#ifndef APPS_IMAGE_DIFFUSION_COMMANDS_H_
#define APPS_IMAGE_DIFFUSION_COMMANDS_H_

#include <memory>
#include <string>
#include <vector>

#include "apps/command_line.h"
#include "image_diffusion/sampler.h"

namespace mjp::app {

// Each adds one subcommand of image-diffusion to `app` and returns its action.
Action AddImageTrain(CLI::App& app);
Action AddImageSample(CLI::App& app);
Action AddImageBenchmark(CLI::App& app);
Action AddImageEvaluate(CLI::App& app);

// The words of --implementation, for help texts. reference-graph is libtorch in a CUDA graph;
// graph:16 evaluates 16 steps of each picture in one pass, graph as many as pay.
std::string ImplementationWords();

// Steps of each picture that the implementation of that word evaluates in one pass; 0: one. Throws
// Error for a window that cannot be.
int WindowOf(const std::string& word, const mjp::ImageModel& model,
             const mjp::ImageSamplerOptions& options);

// Makes the implementation of that word. `options.graph` and `window` are set from it, and
// `precision` too where it is kAuto: fp32 for cuda, fp16 for graph.
// Throws Error for a word that is not known or an implementation that this machine or build lacks.
std::unique_ptr<mjp::ImageSampler> MakeImplementation(const std::string& word,
                                                      std::shared_ptr<const mjp::ImageModel> model,
                                                      mjp::ImageSamplerOptions options);

}  // namespace mjp::app

#endif  // APPS_IMAGE_DIFFUSION_COMMANDS_H_
