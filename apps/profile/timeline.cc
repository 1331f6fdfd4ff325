#include "apps/profile/timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "tasks/results/statistics.h"

namespace mjp::app {

const char* TrackName(Track track) {
  constexpr const char* kNames[] = {"control loop", "stages", "denoising steps", "kernels"};
  return kNames[static_cast<int>(track)];
}

double Timeline::Begin() const {
  double first = INFINITY;
  for (const TimelineSpan& span : spans_)
    if (span.track == Track::kControl) first = std::min(first, span.begin);
  return first;
}

double Timeline::Length() const {
  double last = Begin();
  for (const TimelineSpan& span : spans_)
    if (span.track == Track::kControl) last = std::max(last, span.end);
  return spans_.empty() ? 0 : last - Begin();
}

std::vector<SpanSummary> Timeline::Summary() const {
  std::map<std::pair<Track, std::string>, std::vector<double>> times;
  for (const TimelineSpan& span : spans_)
    times[{span.track, span.name}].push_back(1e3 * (span.end - span.begin));
  const double length = 1e3 * Length();
  std::vector<SpanSummary> rows;
  for (const auto& [key, milliseconds] : times) {
    double total = 0;
    for (const double ms : milliseconds) total += ms;
    rows.push_back({key.first, key.second, static_cast<int>(milliseconds.size()),
                    Quantile(milliseconds, 0.5), Quantile(milliseconds, 0.99), total / length});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const SpanSummary& a, const SpanSummary& b) {
    return a.track != b.track ? a.track < b.track : a.share > b.share;
  });
  return rows;
}

mjp::Json Timeline::ToTrace(const mjp::Json& facts) const {
  constexpr int kProcess = 1, kLanes = 16;  // lines per track
  std::vector<TimelineSpan> spans = spans_;
  std::stable_sort(spans.begin(), spans.end(),
                   [](const TimelineSpan& a, const TimelineSpan& b) { return a.begin < b.begin; });
  const double origin = spans.empty() ? 0 : spans.front().begin;
  const auto nanoseconds = [origin](double t) { return std::llround(1e9 * (t - origin)); };
  mjp::Json events = mjp::Json::array();
  std::map<int, int64_t> busy_until;  // of a line
  for (const TimelineSpan& span : spans) {
    const int64_t begin = nanoseconds(span.begin), end = nanoseconds(span.end);
    // spans of a line must not cross: the next free line of the track
    const int first = static_cast<int>(span.track) * kLanes;
    int line = first;
    while (line + 1 < first + kLanes && busy_until.contains(line) && busy_until[line] > begin)
      ++line;
    busy_until[line] = end;
    events.push_back({{"name", span.name},
                      {"cat", TrackName(span.track)},
                      {"ph", "X"},
                      {"ts", static_cast<double>(begin) * 1e-3},
                      {"dur", static_cast<double>(end - begin) * 1e-3},
                      {"pid", kProcess},
                      {"tid", line}});
  }
  for (const auto& [line, end] : busy_until) {
    const mjp::Json name = {{"name", TrackName(static_cast<Track>(line / kLanes))}};
    events.push_back(
        {{"name", "thread_name"}, {"ph", "M"}, {"pid", kProcess}, {"tid", line}, {"args", name}});
    events.push_back({{"name", "thread_sort_index"},
                      {"ph", "M"},
                      {"pid", kProcess},
                      {"tid", line},
                      {"args", {{"sort_index", line}}}});
  }
  return {{"traceEvents", events}, {"displayTimeUnit", "ms"}, {"otherData", facts}};
}

}  // namespace mjp::app
