#ifndef VIEWER_UI_STATE_H_
#define VIEWER_UI_STATE_H_

#include <imgui.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "viewer/layout.h"
#include "viewer/snapshot.h"
#include "viewer/stage_summary.h"

namespace mjp::app {

enum class ExportFormat { kNone, kCsv, kJson, kTrace };

// What the person at the window has chosen. The window's thread owns it; panels edit it.
struct UiState {
  std::shared_ptr<const DecisionRecord> selected;  // null: the newest
  int denoising_step = -1;                         // of the chain; -1: the last
  bool show_chunk = true, show_denoising = false, show_help = false, tracing = true;
  bool keypoints = false, attention = false;
  int attention_action = -1;    // of the chunk, whose attention is shown; -1: the mean of all
  bool large_pictures = false;  // over the scene
  bool show_windows = false;    // of denoising steps, in the place of the chunk
  bool show_hidden = false;     // geoms of the groups that MuJoCo hides
  PanelGroup group = PanelGroup::kTiming;  // shown where there are tabs
  bool next_group = false;                 // the one after it is asked for
  double budget_ms = 100;                  // the control period
  int histogram_row = kDecisionRow;
  int visible = 64;        // decisions that the strip shows
  int first_visible = -1;  // index into the log of the first of them; -1: the newest ones
  struct Pinned {
    std::string label, description;  // in short, and of where it ran
    LogSummary summary;
  };
  std::optional<Pinned> pinned;  // the A of A/B
  mjp::PolicyOptions edited;     // shown in the controls
  std::shared_ptr<const PolicyInfo> edited_from;
  int seed = 0;
  std::vector<EpisodeRow> episodes;   // of an evaluation's folder; empty: none is open
  std::vector<ImTextureID> pictures;  // (To, cameras) of the decision shown, oldest first
  std::shared_ptr<const Attention> found_attention;  // of it, or of one before; or null

  // Sends a command to the simulation at the end of the frame.
  void Ask(Command command);

  // what panels ask of the window
  std::vector<Command> commands;
  ExportFormat export_format = ExportFormat::kNone;
  // what the window tells
  bool recording = false;
  std::string notice;
  double ui_ms = 0, frames_per_second = 0;
};

// The decision that panels show: the chosen one, else the newest; null before the first.
inline std::shared_ptr<const DecisionRecord> ShownDecision(const SimSnapshot& snapshot,
                                                           const UiState& ui) {
  if (ui.selected) return ui.selected;
  return snapshot.log->empty() ? nullptr : snapshot.log->back();
}

// The decisions of the log that the strip shows, and that are exported: [first, second).
std::pair<int, int> VisibleRange(const DecisionLog& log, const UiState& ui);

}  // namespace mjp::app

#endif  // VIEWER_UI_STATE_H_
