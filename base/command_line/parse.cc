#include "base/command_line/parse.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/command_line/command_table.h"
#include "base/command_line/completion.h"
#include "base/command_line/help_formatter.h"
#include "base/command_line/man_page.h"
#include "base/command_line/number_range.h"
#include "base/command_line/suggest.h"
#include "base/error.h"

namespace mjp::app {
namespace {

// Thrown within the parse by options that print something and end the program.
class Printed : public CLI::Success {
 public:
  explicit Printed(std::string text)
      : CLI::Success("Printed", std::move(text), CLI::ExitCodes::Success) {}
};

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  const CommandTable own = TablesOf(app).front();
  for (const OptionRow& row : own.options) {
    if (!row.positional) names.insert(names.end(), row.names.begin(), row.names.end());
  }
  return names;
}

// "mjpolicy evaluate"
std::string FullName(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return (parent ? FullName(*parent) + " " : "") + app.get_name();
}

[[noreturn]] void Refuse(const CLI::App& command, const std::string& text,
                         const std::string& what) {
  const std::string stop = text.ends_with('?') ? " " : "; ";
  throw Error(ExitCode::kUsage, text + stop + FullName(command) + " --help lists " + what);
}

// Has the whole numbers of `app` and its commands read as people write them. CLI11 names their
// types INT and UINT, by themselves or in the description of a range.
void ReadWholeNumbersAsDecimal(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = ":" + option->get_type_name();
    if (type.find(":INT") != type.npos) option->transform(WholeNumber<int64_t>());
    if (type.find(":UINT") != type.npos) {
      option->transform(WholeNumber<uint64_t>())->check(WholeSeed());  // after the range's check
    }
  }
  for (CLI::App* command : app.get_subcommands({})) ReadWholeNumbersAsDecimal(*command);
}

// An option with an empty value: most often a variable of a script that was never set.
void RefuseEmptyValues(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& value : option->results()) {
      if (value.empty()) throw CLI::ValidationError(option->get_name(), "is empty");
    }
  }
}

// Names what the parse could not place: it comes before what is missing for want of it.
void RefuseUnknown(const CLI::App& program, const CLI::App& command) {
  const std::vector<std::string> rest = command.remaining();
  if (&command == &program && !rest.empty() && !rest.front().starts_with('-') &&
      !CommandNames(program).empty()) {
    Refuse(program,
           "there is no command '" + rest.front() + "'" +
               DidYouMean(rest.front(), CommandNames(program)),
           "the commands");
  }
  for (const std::string& word : rest) {
    if (!word.starts_with('-') || word == "-" || word == "--") continue;
    const std::string name = word.substr(0, word.find('='));
    Refuse(command, "there is no option " + name + DidYouMean(name, OptionNames(command)),
           "the options");
  }
  if (!rest.empty()) Refuse(command, "'" + rest.front() + "' was not expected", "what is");
}

// "mjpolicy help evaluate" is "mjpolicy evaluate --help".
std::vector<std::string> WordsOf(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (!CommandNames(app).empty() && !words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  return {words.rbegin(), words.rend()};  // as CLI11 takes them
}

}  // namespace

void AddCommonOptions(CLI::App& app, const std::string& version) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.option_defaults()->always_capture_default();
  app.set_help_flag("-h,--help", "Print this help and end");
  app.set_version_flag("-v,-V,--version", version, "Print the version and end");
  app.add_option_function<std::string>(
         "--completion",
         [&app](const std::string& shell) { throw Printed(CompletionScript(app, shell)); },
         "Print the completion script of this shell and end")
      ->type_name("SHELL")
      ->trigger_on_parse()
      ->check(OneOf(CompletionShells()));
  const std::string line = version.substr(0, version.find('\n'));
  app.add_flag_callback(
         "--man", [&app, line] { throw Printed(ManPage(app, line)); },
         "Print the manual page and end (| man -l -)")
      ->trigger_on_parse();
}

std::optional<int> ParseCommandLine(CLI::App& app, int argc, const char* const* argv) {
  try {
    std::vector<std::string> words = WordsOf(app, argc, argv);
    if (words.empty() && !CommandNames(app).empty()) {
      std::fputs(app.help().c_str(), stderr);
      return static_cast<int>(ExitCode::kUsage);
    }
    ReadWholeNumbersAsDecimal(app);
    app.parse(words);
    RefuseEmptyValues(app);
    for (const CLI::App* command : app.get_subcommands()) RefuseEmptyValues(*command);
  } catch (const Printed& printed) {
    std::fputs(printed.what(), stdout);
    return 0;
  } catch (const CLI::Success& success) {
    return app.exit(success);  // help or version
  } catch (const CLI::ParseError& error) {
    const std::vector<CLI::App*> parsed = app.get_subcommands();
    const CLI::App& command = parsed.empty() ? app : *parsed.back();
    RefuseUnknown(app, command);
    Refuse(command, error.what(), "the options");
  }
  return std::nullopt;
}

}  // namespace mjp::app
