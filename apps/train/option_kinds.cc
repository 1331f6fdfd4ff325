#include "apps/train/option_kinds.h"

#include <string>

#include "base/error.h"

namespace mjp::app {
namespace {

enum Kind { kPushT = 1, kDataset = 2, kExpert = 4, kDistill = 8 };

constexpr int kImitation = kDataset | kExpert, kNetworks = kPushT | kImitation;

// Options that not every kind reads.
struct Row {
  const char* option;
  int kinds;
};
constexpr Row kRows[] = {
    {"--planner-samples", kPushT},
    {"--planner-rounds", kPushT},
    {"--speed-limit", kPushT},
    {"--auxiliary-weight", kPushT},
    {"--reflect", kPushT | kDistill},
    {"--rounds", kPushT | kExpert | kDistill},
    {"--episodes", kPushT | kExpert | kDistill},
    {"--disturbed-episodes", kPushT | kDistill},
    {"--original-episodes", kPushT | kDistill},
    {"--late-episodes", kPushT},
    {"--teacher-steps", kDistill},
    {"--prefix-share", kPushT},
    {"--camera", kDataset},
    {"--validation", kImitation},
    {"--observation-steps", kImitation},
    {"--horizon", kImitation},
    {"--resize", kDataset},
    {"--crop", kImitation},
    {"--lessons", kExpert},
    {"--lesson-noise", kExpert},
    {"--lesson-style", kExpert},
    {"--picture-every", kExpert},
    {"--picture", kExpert},
    {"--network", kNetworks},
    {"--objective", kPushT},
    {"--dit-hidden", kPushT},
    {"--dit-layers", kPushT},
    {"--dit-heads", kPushT},
    {"--unet-channels", kNetworks},
    {"--stage-channels", kNetworks},
    {"--stem-channels", kNetworks},
    {"--prediction", kNetworks},
    {"--action-steps", kNetworks},
};

struct Named {
  Kind kind;
  const char* option;  // that asks for it
};
constexpr Named kKinds[] = {
    {kDataset, "--dataset"}, {kExpert, "--expert"}, {kDistill, "--distill"}};

// "--dataset or --expert": what to ask for so that an option is read.
std::string Needed(int kinds) {
  std::string text;
  for (const Named& named : kKinds) {
    if ((kinds & named.kind) != 0) text += (text.empty() ? "" : " or ") + std::string(named.option);
  }
  return text;
}

// What one of the networks alone reads.
void CheckNetworkOptions(const CLI::App& app) {
  const auto given = [&](const char* option, const char* value) {
    return app.count(option) > 0 && app.get_option(option)->results().front() == value;
  };
  const bool dit = given("--network", "dit"), flow = given("--objective", "flow");
  for (const char* option : {"--objective", "--dit-hidden", "--dit-layers", "--dit-heads"}) {
    if (app.count(option) == 0 || dit) continue;
    throw Error(ExitCode::kUsage,
                std::string(option) + ": is read with --network dit alone; leave it out");
  }
  if (flow && app.count("--prediction") > 0)
    throw Error(ExitCode::kUsage, "--prediction: is not read with --objective flow; leave it out");
}

}  // namespace

void CheckOptionKinds(const CLI::App& app) {
  CheckNetworkOptions(app);
  Named asked = {kPushT, ""};
  for (const Named& named : kKinds) {
    if (app.count(named.option) > 0) asked = named;
  }
  for (const Row& row : kRows) {
    if (app.count(row.option) == 0 || (row.kinds & asked.kind) != 0) continue;
    throw Error(ExitCode::kUsage,
                std::string(row.option) +
                    (asked.kind == kPushT
                         ? ": is read with " + Needed(row.kinds) + " alone; leave it out"
                         : ": is not read with " + std::string(asked.option) + "; leave it out"));
  }
}

}  // namespace mjp::app
