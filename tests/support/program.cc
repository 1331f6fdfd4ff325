#include "tests/support/program.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "tests/support/goldens/small_checkpoint.h"

namespace mjp_test {
namespace {

// The program under test; MJPOLICY_PROGRAM names it where a build was moved to another machine.
std::string Program() {
  const char* moved = std::getenv("MJPOLICY_PROGRAM");
  return moved != nullptr ? moved : MJPOLICY_BINARY_DIR "/bin/mjpolicy";
}

int CodeOf(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

std::string ReadText(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

Outcome Run(const std::string& command_line) {
  const std::string command = command_line + " 2>&1 </dev/null";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> buffer;
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.text.append(buffer.data(), n);
  }
  outcome.code = CodeOf(::pclose(pipe));
  return outcome;
}

Outcome RunMjpolicy(const std::string& arguments, const std::string& before) {
  return Run(before + " " + Program() + " " + arguments);
}

pid_t StartMjpolicy(const std::string& arguments) {
  std::vector<std::string> words = {Program()};
  std::istringstream stream(arguments);
  for (std::string word; stream >> word;) words.push_back(word);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(99);
  if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(99);
  ::execv(pointers[0], pointers.data());
  ::_exit(99);
}

int Wait(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return CodeOf(status);
}

void ProgramTest::SetUp() {
  checkpoint_ = Path("policy");
  WriteSmallCheckpoint(checkpoint_);
}

std::string ProgramTest::Evaluate(const std::string& out) const {
  return "evaluate --checkpoint " + checkpoint_ +
         " --sampler ddim --steps 2 --max-steps 16 --backend cpu --out " + Path(out) + " ";
}

std::string ProgramTest::Results(const std::string& out) const {
  std::string text = ReadText(Path(out) + "/run.json");
  std::istringstream lines(ReadText(Path(out) + "/episodes.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    text += line.substr(0, line.find(",\"timing\"")) + "\n";
  }
  auto info = nlohmann::ordered_json::parse(ReadText(Path(out) + "/eval_info.json"));
  info.erase("timing");
  info["overall"].erase("eval_s");
  info["overall"].erase("eval_ep_s");
  return text + info.dump(1);
}

}  // namespace mjp_test
