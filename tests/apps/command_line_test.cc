// The command line itself: what is misspelt, shown, completed, printed as a manual, and coloured.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "apps/evaluate/progress.h"
#include "apps/stop_signal.h"
#include "base/command_line/duration.h"
#include "base/command_line/number_range.h"
#include "base/command_line/parse.h"
#include "base/command_line/suggest.h"
#include "base/error.h"
#include "tests/support/program.h"

namespace mjp::app {
namespace {

using mjp_test::Outcome;
using mjp_test::RunMjpolicy;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class CommandLineTest : public mjp_test::ProgramTest {
 protected:
  // The commands that the help lists.
  static std::vector<std::string> Commands() {
    std::istringstream help(RunMjpolicy("--help").text);
    std::vector<std::string> commands;
    bool listed = false;
    for (std::string line; std::getline(help, line);) {
      if (listed && line.starts_with("  "))
        commands.push_back(line.substr(2, line.find(' ', 2) - 2));
      listed = listed || line.ends_with("ommands:");
    }
    return commands;
  }
  // Runs the program on a terminal of its own.
  Outcome OnTerminal(const std::string& arguments, const std::string& before = "") const {
    const std::string run = folder_ / "run.sh";
    std::ofstream(run) << before << " " MJPOLICY_BINARY_DIR "/bin/mjpolicy " << arguments << "\n";
    return mjp_test::Run("TERM=xterm script -qec 'sh " + run + "' /dev/null");
  }
};

TEST(SuggestTest, NearWordsAloneAreSuggested) {
  const std::vector<std::string> words = {"--checkpoint", "--episodes", "--seed", "--steps"};
  EXPECT_EQ(NearestWord("--checkpont", words), "--checkpoint");
  EXPECT_EQ(NearestWord("--epsiodes", words), "--episodes");
  EXPECT_EQ(NearestWord("--sede", words), "--seed");
  EXPECT_EQ(NearestWord("--ep", words), "--episodes");
  EXPECT_EQ(NearestWord("--banana", words), "");
  EXPECT_EQ(NearestWord("", words), "");
  EXPECT_EQ(NearestWord("-", words), "");
}

TEST(DurationTest, NumbersCountUnitsAndSuffixesAreTimes) {
  EXPECT_EQ(mjp::ParseDuration("100ms", 1), 0.1);
  EXPECT_EQ(mjp::ParseDuration("2 s", 1e-3), 2);
  EXPECT_EQ(mjp::ParseDuration("1.5min", 1), 90);
  EXPECT_EQ(mjp::ParseDuration("250", 1e-3), 0.25);
  for (const char* odd : {"", "s", "2 parsecs", "nan", "inf", "1e999", "2s2", "2  s"})
    EXPECT_FALSE(mjp::ParseDuration(odd, 1)) << odd;
  EXPECT_EQ(mjp::DurationText(0.25), "250 ms");
  EXPECT_EQ(mjp::DurationText(59.7), "1 min 0 s");
  EXPECT_EQ(mjp::DurationText(7500), "2 h 5 min");
}

TEST(ProgressTest, ShowsRateAndTimeThatIsLeft) {
  const std::string text = ProgressText(20, 50, 18, 10, 5);
  EXPECT_THAT(text, HasSubstr("20/50  success 90.0 %"));
  EXPECT_THAT(text, HasSubstr("2 episodes/s, 15 s left"));
  EXPECT_THAT(ProgressText(50, 50, 50, 40, 5), Not(HasSubstr("left")));
}

TEST_F(CommandLineTest, NamesTheMisspeltWordFirst) {
  struct Row {
    const char *arguments, *said;
  };
  for (const Row& row : {
           Row{"evaluate --checkpont x",
               "there is no option --checkpont; did you mean --checkpoint?"},
           Row{"evaluate --epsiodes 5", "there is no option --epsiodes; did you mean --episodes?"},
           Row{"evaluate --epsiodes=5 --out x", "did you mean --episodes?"},
           Row{"evalute --checkpoint x", "there is no command 'evalute'; did you mean evaluate?"},
           Row{"evaluate --checkpoint x --out y --sampler dpm", "did you mean ddpm?"},
           Row{"evaluate x z --checkpoint x --out y", "'z' was not expected"},
           Row{"--verzion", "did you mean --version?"},
           Row{"bench --seconds 2parsecs", "or a time such as 100ms, 2s or 5min"},
       }) {
    const Outcome outcome = RunMjpolicy(row.arguments);
    EXPECT_EQ(outcome.code, 1) << row.arguments;
    EXPECT_THAT(outcome.text, StartsWith("mjpolicy: error: ")) << row.arguments;
    EXPECT_THAT(outcome.text, HasSubstr(row.said)) << row.arguments;
    EXPECT_THAT(outcome.text, HasSubstr("--help lists")) << row.arguments;
  }
}

TEST_F(CommandLineTest, ATimeThatIsNoNumberOfControlStepsIsRefused) {
  const Outcome outcome = RunMjpolicy("evaluate --checkpoint x --out y --latency 150ms");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text,
              HasSubstr("'150ms' is no number from 0 to 8 of control steps of 100 ms"));
}

// Of a program's own options and of a command's: of 64 bits and fewer, with a range, in a list.
class WholeNumbersTest : public testing::Test {
 protected:
  // The exit code; what is refused is in `said_`.
  int Parse(const std::vector<std::string>& arguments) {
    CLI::App app("", "program");
    AddCommonOptions(app, "program 1");
    app.add_option("--count", count_)->check(CLI::Range(0, 100));
    CLI::App* command = app.add_subcommand("command", "");
    command->add_option("--seed", seed_)->check(WholeSeed());
    command->add_option("--size", size_);
    command->add_option("--salt", salt_);
    command->add_option("--port", port_)->check(CLI::Range(0u, 65535u));
    command->add_option("--shift", shift_)->type_name("PIXELS")->check(CLI::Range(-100, 100));
    command->add_option("--list", list_)->delimiter(',');
    std::vector<const char*> words = {"program"};
    for (const std::string& argument : arguments) words.push_back(argument.c_str());
    try {
      return ParseCommandLine(app, static_cast<int>(words.size()), words.data()).value_or(0);
    } catch (const mjp::Error& error) {
      said_ = error.what();
      return static_cast<int>(error.code());
    }
  }

  int count_ = 0, shift_ = 0;
  uint32_t port_ = 0;
  uint64_t seed_ = 0, salt_ = 0;
  int64_t size_ = 0;
  std::vector<int> list_;
  std::string said_;
};

TEST_F(WholeNumbersTest, AreDecimal) {
  ASSERT_EQ(Parse({"--count", "010", "command", "--seed", "0100000", "--size", "-08", "--shift",
                   "-012", "--list", "07,08,010"}),
            0)
      << said_;
  EXPECT_EQ(count_, 10);
  EXPECT_EQ(seed_, 100000u);
  EXPECT_EQ(size_, -8);
  EXPECT_EQ(shift_, -12);
  EXPECT_EQ(list_, (std::vector<int>{7, 8, 10}));
  for (const char* text : {"0x8", "1e3", "8.", "0b1", "eight", " 8", "--8"}) {
    for (const std::string option : {"--seed", "--size", "--shift", "--list"}) {
      EXPECT_EQ(Parse({"command", option + "=" + text}), 1) << option << " " << text;
      EXPECT_THAT(said_, StartsWith(option + ": '" + text + "' is not a whole number from "));
    }
  }
}

TEST_F(WholeNumbersTest, FitTheirTypeOrAreRefused) {
  ASSERT_EQ(Parse({"command", "--seed", "18446744073709551615", "--size", "-9223372036854775808"}),
            0)
      << said_;
  EXPECT_EQ(seed_, UINT64_MAX);
  EXPECT_EQ(size_, INT64_MIN);
  for (const char* word : {"--seed=18446744073709551616", "--seed=-1", "--size=9223372036854775808",
                           "--shift=9223372036854775808", "--list=1,2147483648", "--salt=-1",
                           "--port=-1", "--port=65536"}) {
    EXPECT_EQ(Parse({"command", word}), 1) << word;
    EXPECT_THAT(said_, HasSubstr(std::string(word, 6))) << word;
  }
  EXPECT_THAT(said_, HasSubstr("not in range 0 to 65535"));
}

TEST_F(CommandLineTest, SeedsAndCountsAreDecimal) {
  for (const char* word : {"--seed 18446744073709551616", "--seed 0x8", "--episodes 0x8"}) {
    const Outcome outcome = RunMjpolicy(Evaluate("a") + word);
    EXPECT_EQ(outcome.code, 1) << word;
    EXPECT_THAT(outcome.text, HasSubstr("is not a whole number from ")) << word;
  }
  ASSERT_EQ(RunMjpolicy(Evaluate("b") + "--episodes 02 --seed 010").code, 0);
  EXPECT_THAT(mjp_test::ReadText(folder_ / "b/episodes.jsonl"), HasSubstr("\"seed\":10"));
}

TEST_F(CommandLineTest, HelpIsWhereItIsLookedFor) {
  const std::string help = RunMjpolicy("--help").text;
  EXPECT_EQ(RunMjpolicy("help").text, help);
  EXPECT_EQ(RunMjpolicy("").text, help);  // with exit code 1
  EXPECT_EQ(RunMjpolicy("help evaluate").text, RunMjpolicy("evaluate --help").text);
  for (const char* version : {"--version", "-v", "-V"})
    EXPECT_THAT(RunMjpolicy(version).text, StartsWith("mjpolicy 0."));
}

// Every option says what its value is and what holds without it.
TEST_F(CommandLineTest, HelpHasMetavarsAndDefaults) {
  const std::vector<std::string> commands = Commands();
  EXPECT_GT(commands.size(), 10u);
  for (const std::string& command : commands) {
    const Outcome outcome = RunMjpolicy(command + " --help");
    EXPECT_EQ(outcome.code, 0);
    for (const char* raw : {" TEXT", "INT:", "UINT", "FLOAT", "REQUIRED", ":{"})
      EXPECT_THAT(outcome.text, Not(HasSubstr(raw)))
          << "mjpolicy " << command << ": give type_name()";
  }
  const std::string evaluate = RunMjpolicy("evaluate --help").text;
  for (const char* part : {"--episodes N", "(1 to 10000000; default: 50)", "--checkpoint DIR",
                           "--latency STEPS", "(default: auto)", "(default: as the checkpoint)",
                           "(1 to 1024; default: all cores)", "--renderer {mujoco,raster}"})
    EXPECT_THAT(evaluate, HasSubstr(part));
  EXPECT_THAT(RunMjpolicy("bench --help").text, HasSubstr("--seconds SECONDS"));
}

TEST_F(CommandLineTest, BashCompletesCommandsOptionsAndValues) {
  const std::string script = folder_ / "completion";
  std::ofstream(script) << RunMjpolicy("--completion bash").text;
  const auto complete = [&](const std::string& words, int at) {
    return mjp_test::Run("bash -c 'source " + script + "; COMP_WORDS=(" + words + "); COMP_CWORD=" +
                         std::to_string(at) + "; _mjpolicy; echo \"${COMPREPLY[@]}\"'")
        .text;
  };
  std::string all;
  for (const std::string& command : Commands()) all += command + " ";
  EXPECT_THAT(complete("mjpolicy \"\"", 1), HasSubstr(all.substr(0, all.size() - 1)));
  EXPECT_EQ(complete("mjpolicy evalu", 1), "evaluate\n");
  EXPECT_EQ(complete("mjpolicy evaluate --sam", 2), "--sampler\n");
  EXPECT_EQ(complete("mjpolicy evaluate --sampler dd", 3), "ddpm ddim\n");
  EXPECT_EQ(complete("mjpolicy inspect " + (folder_ / "pol"), 2), checkpoint_ + "\n");
}

TEST_F(CommandLineTest, OtherShellsAndTheManualHaveEveryCommandAndOption) {
  const std::string zsh = RunMjpolicy("--completion zsh").text,
                    fish = RunMjpolicy("--completion fish").text;
  const std::string manual = RunMjpolicy("--man").text;
  EXPECT_THAT(zsh, StartsWith("#compdef mjpolicy\n"));
  for (const std::string& command : Commands()) {
    EXPECT_THAT(zsh, HasSubstr("    " + command + ") _arguments"));
    EXPECT_THAT(fish, HasSubstr("-n __fish_use_subcommand -a " + command + " "));
  }
  EXPECT_THAT(zsh, HasSubstr(":(ddpm ddim euler rk4 onestep)"));
  EXPECT_THAT(fish, HasSubstr("-l sampler -x -a 'ddpm ddim euler rk4 onestep'"));
  EXPECT_THAT(manual, HasSubstr(".SS mjpolicy evaluate\n"));
  EXPECT_THAT(manual, HasSubstr("\\fB\\-\\-checkpoint\\fR \\fIDIR\\fR"));
  for (const auto& [shell, text] : {std::pair{"zsh", zsh}, {"fish", fish}}) {
    if (mjp_test::Run(std::string("command -v ") + shell).code != 0) continue;
    const std::string file = folder_ / shell;
    std::ofstream(file) << text;
    EXPECT_EQ(mjp_test::Run(std::string(shell) + " -n " + file).text, "") << shell;
  }
  EXPECT_EQ(RunMjpolicy("--completion csh").code, 1);
}

TEST_F(CommandLineTest, ColoursAreForTerminalsThatWantThem) {
  const std::string red = "\033[31merror:";
  if (mjp_test::Run("command -v script").code != 0) GTEST_SKIP() << "no program `script` here";
  EXPECT_THAT(OnTerminal("evalute").text, HasSubstr(red));
  EXPECT_THAT(OnTerminal("evalute", "NO_COLOR=1").text, Not(HasSubstr("\033[")));
  EXPECT_THAT(OnTerminal("evalute", "NO_COLOR=").text, HasSubstr(red));
  EXPECT_THAT(OnTerminal("evalute", "TERM=dumb").text, Not(HasSubstr("\033[")));
  EXPECT_THAT(RunMjpolicy("evalute").text, Not(HasSubstr("\033[")));
}

TEST_F(CommandLineTest, EvaluatePrintsItsResultsAsJson) {
  const std::string run = Evaluate("a") + "--episodes 2 --json --latency ";
  const Outcome outcome = RunMjpolicy(run + "200ms");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  // what goes before is progress, on the other stream
  const std::string printed = outcome.text.substr(outcome.text.find('{'));
  const auto json = nlohmann::json::parse(printed);
  EXPECT_EQ(json["overall"]["n_episodes"], 2);
  // 200 ms are two control steps: the same evaluation
  EXPECT_EQ(RunMjpolicy(run + "2 --resume").text, printed);
}

TEST_F(CommandLineTest, DefaultsLieWithinTheirRanges) {
  const std::string help = mjp_test::ReadText(MJPOLICY_SOURCE_DIR "/docs/reference/cli.md");
  const std::regex range(R"(\(([-+.e\d]+) to ([-+.e\d]+); default: ([-+.e\d]+)\))");
  int found = 0;
  for (std::sregex_iterator each(help.begin(), help.end(), range), end; each != end; ++each) {
    const auto number = [&](int i) { return std::stod((*each)[i]); };
    EXPECT_LE(number(1), number(3)) << each->str();
    EXPECT_LE(number(3), number(2)) << each->str();
    ++found;
  }
  EXPECT_GT(found, 20);
}

TEST_F(CommandLineTest, ObserveWritesWhatInferReads) {
  const std::string file = folder_ / "in.safetensors";
  for (const char* what : {"--count 3 --seed 7", "--blank --count 2"}) {
    ASSERT_EQ(
        RunMjpolicy("observe --checkpoint " + checkpoint_ + " --out " + file + " " + what).code, 0);
    const Outcome outcome =
        RunMjpolicy("infer --backend cpu --sampler ddim --steps 2 --checkpoint " + checkpoint_ +
                    " --input " + file + " --out " + (folder_ / "out"));
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_THAT(outcome.text, Not(HasSubstr("not read")));
  }
  const std::string other = folder_ / "other";
  ASSERT_EQ(RunMjpolicy("random-checkpoint --state 5 " + other).code, 0);
  const Outcome refused = RunMjpolicy("observe --checkpoint " + other + " --out " + file);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.text, HasSubstr("--blank"));
  EXPECT_EQ(RunMjpolicy("observe --blank --checkpoint " + other + " --out " + file).code, 0);
}

// What cmake/install.cmake does after a build of some targets alone.
TEST_F(CommandLineTest, AnInstallationOfAPartialBuildSaysWhatToBuild) {
  std::ifstream built(MJPOLICY_BINARY_DIR "/check_built.cmake");
  std::stringstream text;
  text << built.rdbuf();
  std::string script = text.str();
  const std::string bin = MJPOLICY_BINARY_DIR "/bin/mjpolicy\"";
  const size_t at = script.find(bin);
  ASSERT_NE(at, std::string::npos);
  script.replace(at, bin.size(), "/nowhere/mjpolicy\"");
  std::ofstream(folder_ / "check.cmake") << script;
  const Outcome outcome =
      mjp_test::Run("cmake -DCMAKE_INSTALL_COMPONENT=tools -P " + (folder_ / "check.cmake"));
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("mjpolicy"));
  EXPECT_THAT(outcome.text, HasSubstr("cmake --build " MJPOLICY_BINARY_DIR " --target mjpolicy"));
}

// `timeout` signals its command and then its process group.
TEST(StopSignalTest, SignalsAtOnceAreOneWish) {
  const auto stop = [] {
    const std::atomic<bool>& stopped = StopOnSignal();
    const bool before = stopped;
    std::raise(SIGINT);
    std::raise(SIGINT);
    std::raise(SIGTERM);
    std::_Exit(!before && stopped ? StoppedExitCode() : 1);
  };
  EXPECT_EXIT(stop(), testing::ExitedWithCode(130), "");
}

TEST(StopSignalTest, ASecondWishEndsTheProgram) {
  const auto stop = [] {
    StopOnSignal();
    std::raise(SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(kSameSignal + 50));
    std::raise(SIGTERM);
    std::_Exit(0);
  };
  EXPECT_EXIT(stop(), testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace mjp::app
