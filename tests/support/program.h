#ifndef TESTS_SUPPORT_PROGRAM_H_
#define TESTS_SUPPORT_PROGRAM_H_

#include <gtest/gtest.h>
#include <sys/types.h>

#include <string>

#include "tests/support/temp_dir.h"

namespace mjp_test {

struct Outcome {
  int code = -1;     // exit code; 128 + the signal that ended it
  std::string text;  // what it printed on both streams
};

// What a file holds; nothing where there is none.
std::string ReadText(const std::string& file);

// Runs a command line through a shell, without input.
Outcome Run(const std::string& command_line);

// Runs the built `mjpolicy` through a shell: `before` are settings such as "PATH=/x" or "ulimit;".
Outcome RunMjpolicy(const std::string& arguments, const std::string& before = "");

// Starts the built `mjpolicy`, silent, and returns its process. Arguments hold no blanks.
pid_t StartMjpolicy(const std::string& arguments);

// Waits for a process of StartMjpolicy: its exit code, or 128 + the signal that ended it.
int Wait(pid_t child);

// A folder with a small checkpoint, and evaluations of it.
class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override;
  // Arguments of a short evaluation that writes the folder `out`.
  std::string Evaluate(const std::string& out) const;
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  // Everything an evaluation wrote to `out` but timings: run.json, episodes.jsonl, eval_info.json.
  std::string Results(const std::string& out) const;

  TempDir folder_;
  std::string checkpoint_;
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_PROGRAM_H_
