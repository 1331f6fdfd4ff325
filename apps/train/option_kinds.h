#ifndef APPS_TRAIN_OPTION_KINDS_H_
#define APPS_TRAIN_OPTION_KINDS_H_

#include <CLI/CLI.hpp>

namespace mjp::app {

// Throws Error for an option on the parsed command line that its kind of training does not read:
// Push-T's own, --dataset, --expert or --distill.
void CheckOptionKinds(const CLI::App& app);

}  // namespace mjp::app

#endif  // APPS_TRAIN_OPTION_KINDS_H_
