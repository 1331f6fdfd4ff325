#ifndef APPS_PROFILE_TIMELINE_H_
#define APPS_PROFILE_TIMELINE_H_

#include <string>
#include <vector>

#include "base/json.h"

namespace mjp::app {

// Where a span belongs; a line of the timeline each, kernels that overlap several.
enum class Track { kControl, kStages, kSteps, kKernels };

// What happened when, in seconds of mjp::Now().
struct TimelineSpan {
  Track track;
  std::string name;
  double begin, end;
};

// Statistics of all spans of one name, milliseconds; `share` of the timeline's length.
struct SpanSummary {
  Track track;
  std::string name;
  int n;
  double median, p99, share;
};

// A run as spans: to a file that Perfetto and chrome://tracing open, and to a table.
class Timeline {
 public:
  void Add(Track track, const std::string& name, double begin, double end) {
    spans_.push_back({track, name, begin, end});
  }

  // Of the control track: its first begin, and from there to its last end, seconds.
  double Begin() const;
  double Length() const;
  // Per track and name, in the order of the tracks and there by time spent.
  std::vector<SpanSummary> Summary() const;
  // The Trace Event Format: complete events in microseconds from the first span; `facts` say where
  // and how the trace was made.
  mjp::Json ToTrace(const mjp::Json& facts) const;

 private:
  std::vector<TimelineSpan> spans_;
};

// How a track is called.
const char* TrackName(Track track);

}  // namespace mjp::app

#endif  // APPS_PROFILE_TIMELINE_H_
