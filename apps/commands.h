#ifndef APPS_COMMANDS_H_
#define APPS_COMMANDS_H_

#include "apps/command_line.h"

namespace mjp::app {

// Each adds one subcommand to `app` and returns its action. One file per subcommand.
Action AddBench(CLI::App& app);
Action AddCertify(CLI::App& app);
Action AddCheck(CLI::App& app);
Action AddCompare(CLI::App& app);
Action AddConvert(CLI::App& app);
Action AddDataset(CLI::App& app);
Action AddDemonstrate(CLI::App& app);
Action AddDoctor(CLI::App& app);
Action AddEvaluate(CLI::App& app);
Action AddInfer(CLI::App& app);
Action AddInspect(CLI::App& app);
Action AddInstallPlugin(CLI::App& app);
Action AddMerge(CLI::App& app);
Action AddObserve(CLI::App& app);
Action AddProfile(CLI::App& app);
Action AddRandomCheckpoint(CLI::App& app);
Action AddRecord(CLI::App& app);
Action AddRender(CLI::App& app);
Action AddReplay(CLI::App& app);
Action AddReport(CLI::App& app);
Action AddRun(CLI::App& app);
Action AddScaffold(CLI::App& app);

}  // namespace mjp::app

#endif  // APPS_COMMANDS_H_
