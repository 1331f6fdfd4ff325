#ifndef BASE_COMMAND_LINE_COMPLETION_H_
#define BASE_COMMAND_LINE_COMPLETION_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace mjp::app {

// The shells that CompletionScript knows.
const std::vector<std::string>& CompletionShells();

// A script for `shell` that completes the commands, options and values of `program`.
std::string CompletionScript(const CLI::App& program, const std::string& shell);

}  // namespace mjp::app

#endif  // BASE_COMMAND_LINE_COMPLETION_H_
