#include "apps/evaluate/progress.h"

#include <unistd.h>

#include <cstdio>

#include "base/command_line/duration.h"
#include "tasks/results/statistics.h"

namespace mjp::app {

std::string ProgressText(size_t done, size_t total, int successes, size_t now, double seconds) {
  constexpr size_t kCells = 30;
  const size_t filled = kCells * done / total;
  const Interval interval = Wilson95(successes, static_cast<int>(done));
  char text[192];
  std::snprintf(text, sizeof(text), "%zu/%zu  success %.1f %% (%.1f to %.1f)", done, total,
                100.0 * successes / static_cast<double>(done), 100 * interval.low,
                100 * interval.high);
  std::string line =
      "[" + std::string(filled, '#') + std::string(kCells - filled, ' ') + "] " + text;
  if (now == 0 || seconds <= 0) return line;
  const double rate = static_cast<double>(now) / seconds;
  std::snprintf(text, sizeof(text), "  %.3g episodes/s", rate);
  line += text;
  if (done < total) line += ", " + DurationText(static_cast<double>(total - done) / rate) + " left";
  return line;
}

Progress::Progress(size_t total, const std::map<int, EpisodeResult>& finished)
    : total_(total), before_(finished.size()), done_(before_) {
  for (const auto& [index, episode] : finished) successes_ += episode.success();
}

void Progress::Add(const EpisodeResult& episode) {
  ++done_;
  successes_ += episode.success();
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  if (!terminal && done_ != total_ && done_ * 10 / total_ == (done_ - 1) * 10 / total_) return;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
  const std::string line =
      ProgressText(done_, total_, successes_, done_ - before_, elapsed.count());
  // a line that is rewritten leaves nothing of a longer one
  std::fprintf(stderr, "%s%s%s%s", terminal ? "\r" : "", line.c_str(), terminal ? "\033[K" : "",
               !terminal || done_ == total_ ? "\n" : "");
  std::fflush(stderr);
}

}  // namespace mjp::app
