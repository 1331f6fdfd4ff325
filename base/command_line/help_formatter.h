#ifndef BASE_COMMAND_LINE_HELP_FORMATTER_H_
#define BASE_COMMAND_LINE_HELP_FORMATTER_H_

#include <CLI/CLI.hpp>
#include <string>

namespace mjp::app {

// Help with values by their meaning (DIR, FILE, N, {ddpm,ddim}) and the default of each option
// behind its description.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace mjp::app

#endif  // BASE_COMMAND_LINE_HELP_FORMATTER_H_
