#include "tasks/results/shard.h"

#include <charconv>
#include <cstdlib>

#include "base/error.h"

namespace mjp::app {
namespace {

std::optional<int> ParseNumber(const std::string& text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [last, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || last != end || value < 0) return std::nullopt;
  return value;
}

// A number from the environment, or nothing where it is not set or empty.
std::optional<int> Variable(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const std::optional<int> value = ParseNumber(text);
  if (!value) {
    throw mjp::Error(mjp::ExitCode::kUsage, std::string(name) + " is '" + text +
                                                "', not a number; give --shard i/N, or --shard 0/1 "
                                                "for the whole evaluation");
  }
  return value;
}

Shard Checked(int index, int count, const std::string& origin) {
  if (count < 1 || index < 0 || index >= count) {
    throw mjp::Error(mjp::ExitCode::kUsage,
                     origin + ": there is no shard " + std::to_string(index) + " of " +
                         std::to_string(count) + "; shards are 0/N to N-1/N");
  }
  return {index, count};
}

}  // namespace

Shard ParseShard(const std::string& text) {
  const size_t slash = text.find('/');
  const auto index = ParseNumber(text.substr(0, slash));
  const auto count =
      slash == std::string::npos ? std::nullopt : ParseNumber(text.substr(slash + 1));
  if (!index || !count) {
    throw mjp::Error(mjp::ExitCode::kUsage, "shard '" + text + "': expected i/N, such as 0/4");
  }
  return Checked(*index, *count, "shard " + text);
}

std::string ToString(const Shard& shard) {
  return std::to_string(shard.index) + "/" + std::to_string(shard.count);
}

std::optional<Shard> ShardFromEnvironment() {
  const auto task = Variable("SLURM_ARRAY_TASK_ID"), tasks = Variable("SLURM_ARRAY_TASK_COUNT");
  if (task && tasks) {
    // an array may start anywhere and leave out numbers: --array=1-8, --array=0-14:2
    const int from = Variable("SLURM_ARRAY_TASK_MIN").value_or(0);
    const int step = Variable("SLURM_ARRAY_TASK_STEP").value_or(1);
    const std::string origin = "SLURM_ARRAY_TASK_ID " + std::to_string(*task);
    if (step < 1 || (*task - from) % step != 0) return Checked(-1, *tasks, origin);
    return Checked((*task - from) / step, *tasks, origin);
  }
  const auto index = Variable("JOB_COMPLETION_INDEX"), count = Variable("JOB_COMPLETION_COUNT");
  if (index && count) return Checked(*index, *count, "JOB_COMPLETION_INDEX");
  return std::nullopt;
}

}  // namespace mjp::app
