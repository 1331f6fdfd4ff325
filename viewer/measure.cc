#include <GL/gl.h>

#include <cstdio>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "tasks/results/statistics.h"
#include "viewer/viewer.h"

namespace mjp::app {
namespace {

void PrintRow(const char* name, const std::vector<double>& milliseconds, const char* what) {
  std::printf("%-10s %8.3f %8.3f   %s\n", name, Quantile(milliseconds, 0.5),
              Quantile(milliseconds, 0.99), what);
}

// Milliseconds of the decisions in a log that were made with a trace, or without one.
std::vector<double> Decisions(const DecisionLog& log, bool traced) {
  std::vector<double> all;
  for (const auto& decision : log) {
    if (decision->denoising.empty() == traced) continue;
    all.push_back(RowMilliseconds(decision->times, kDecisionRow));
  }
  return all;
}

// Milliseconds that it took to keep the records of decisions.
std::vector<double> Records(const DecisionLog& log) {
  std::vector<double> all;
  for (const auto& decision : log) {
    if (decision->looking > 0) all.push_back(1e3 * decision->looking);
  }
  return all;
}

}  // namespace

void MeasureFrames(Viewer& viewer, int width, int height, int frames) {
  constexpr int kWarm = 10;  // frames
  SimulationThread& simulation = viewer.simulation();
  std::vector<double> panels, scene, both, submit, whole;
  simulation.Send(PlayCommand{true});
  for (int i = 0; i < frames; ++i) {
    simulation.Send(TraceCommand{i * 4 / frames % 2 == 1});
    const double begin = mjp::Now();
    const bool drawn = viewer.OffscreenFrame(width, height);
    glFinish();
    const FrameTimes& times = viewer.times();
    if (i >= kWarm && drawn) {
      panels.push_back(times.panels);
      scene.push_back(times.scene);
      both.push_back(times.panels + times.scene);
      submit.push_back(times.submit);
      whole.push_back(1e3 * (mjp::Now() - begin));
    }
    const std::shared_ptr<const SimSnapshot> snapshot = simulation.snapshot();
    if (!snapshot->message.empty()) throw mjp::BadInput(snapshot->message);
    if (snapshot->finished) simulation.Send(RestartCommand{snapshot->seed + 1});
  }
  const double spent = std::accumulate(whole.begin(), whole.end(), 0.0);
  simulation.Send(PlayCommand{false});
  simulation.Flush();
  const DecisionLog& log = *simulation.snapshot()->log;
  std::printf("%d x %d pixels, %.1f frames/s, %s\n", width, height,
              spent > 0 ? 1e3 * static_cast<double>(whole.size()) / spent : 0,
              simulation.snapshot()->policy->description.c_str());
  std::printf("%-10s %8s %8s   ms\n", "", "median", "p99");
  PrintRow("panels", panels, "");
  PrintRow("scene", scene, "its abstract form");
  PrintRow("frame", both, "all but OpenGL");
  PrintRow("OpenGL", submit, "submitted, without the swap");
  PrintRow("all", whole, "until it is drawn; frames that nothing changed in are left out");
  PrintRow("decision", Decisions(log, false), "without a trace");
  PrintRow("traced", Decisions(log, true), "with one");
  PrintRow("record", Records(log), "to keep what is shown, after the decision");
}

}  // namespace mjp::app
