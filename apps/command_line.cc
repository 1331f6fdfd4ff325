#include "apps/command_line.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/command_line/parse.h"
#include "base/error.h"
#include "base/folders.h"
#include "tasks/evaluation/version.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;

// Options whose file a command writes, where their value is a FILE. All other files and folders of
// a command line are read.
constexpr const char* kWritten[] = {"--out", "--json", "--trace", "--plot"};

bool IsWritten(const CLI::Option& option) {
  return option.get_type_name() == "FILE" &&
         std::ranges::any_of(kWritten, [&](const char* name) { return option.check_name(name); });
}

bool IsRead(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return !IsWritten(option) &&
         (type == "FILE" || type == "DIR" || type == "PATH" || type.ends_with(".xml"));
}

// Whether `file` is `read`, or lies in the folder `read`.
bool IsPartOf(const fs::path& file, const fs::path& read) {
  std::error_code none;
  if (fs::equivalent(file, read, none)) return true;
  for (fs::path folder = fs::weakly_canonical(file, none).parent_path();;
       folder = folder.parent_path()) {
    if (fs::equivalent(folder, read, none)) return fs::is_directory(read, none);
    if (folder == folder.parent_path()) return false;
  }
}

// Throws Error, before the work, if a file that `command` writes cannot be written or would replace
// one that it reads.
void CheckWrittenFiles(const CLI::App& command) {
  const std::vector<const CLI::Option*> options = command.get_options();
  const bool forced =
      command.get_option_no_throw("--force") != nullptr && command.count("--force") > 0;
  for (const CLI::Option* written : options) {
    if (!IsWritten(*written) || written->empty()) continue;
    const std::string& file = written->results().back();
    std::error_code none;
    const bool there = fs::exists(file, none);
    if (there && !fs::is_regular_file(file, none) && !fs::is_directory(file, none)) continue;
    CheckWritable(file);
    if (!there) continue;
    for (const CLI::Option* read : options) {
      if (!IsRead(*read)) continue;
      for (const std::string& source : read->results()) {
        const bool itself = fs::equivalent(file, source, none);
        if (!itself && (forced || !IsPartOf(file, source))) continue;
        throw mjp::Error(mjp::ExitCode::kUsage,
                         written->get_name() + " " + file + ": would replace what " +
                             read->get_name() + " " + source + " is read from; name another file");
      }
    }
  }
}

}  // namespace

int RunSubcommand(CLI::App& app, std::initializer_list<Action (*)(CLI::App&)> adders, int argc,
                  char** argv) {
  AddCommonOptions(app, VersionText(app.get_name()));
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Action>> commands;
  for (auto* add : adders) {
    Action action = add(app);
    commands.emplace_back(app.get_subcommands({}).back(), std::move(action));
  }
  if (const std::optional<int> code = ParseCommandLine(app, argc, argv)) return *code;
  for (auto& [command, action] : commands) {
    if (!command->parsed()) continue;
    CheckWrittenFiles(*command);
    return action();
  }
  return static_cast<int>(mjp::ExitCode::kUsage);
}

}  // namespace mjp::app
