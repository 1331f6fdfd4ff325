#ifndef BASE_COMMAND_LINE_MAN_PAGE_H_
#define BASE_COMMAND_LINE_MAN_PAGE_H_

#include <CLI/CLI.hpp>
#include <string>

namespace mjp::app {

// The manual page of `program` (roff, section 1) with all its commands. `version` stands in its
// footer.
std::string ManPage(const CLI::App& program, const std::string& version);

}  // namespace mjp::app

#endif  // BASE_COMMAND_LINE_MAN_PAGE_H_
