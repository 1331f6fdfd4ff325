#include <utility>

#include "policy/option_names.h"
#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"

namespace mjp::app {

void Pin(const SimSnapshot& snapshot, UiState& ui) {
  const mjp::PolicyOptions& options = snapshot.policy->options;
  const int window = options.sampler.parallel_window;
  const std::string sampler =
      snapshot.policy->samplers.empty()
          ? "one pass"
          : Format("%s %d", mjp::SamplerName(options.sampler.kind), options.sampler.steps);
  const std::string label = Format(
      "%s%s, %s %s", sampler.c_str(), window > 0 ? Format(", window %d", window).c_str() : "",
      mjp::BackendName(options.backend), mjp::PrecisionName(options.precision));
  ui.pinned = {label, snapshot.policy->description, Summarise(*snapshot.log)};
}

void DrawComparison(const SimSnapshot& snapshot, UiState& ui) {
  if (ImGui::SmallButton(ui.pinned ? "Unpin" : "Pin as A")) {
    if (ui.pinned) {
      ui.pinned.reset();
    } else {
      Pin(snapshot, ui);
    }
  }
  ImGui::SameLine();
  if (!ui.pinned) {
    for (const auto& [name, format] :
         {std::pair("CSV", ExportFormat::kCsv), std::pair("JSON", ExportFormat::kJson),
          std::pair("Trace", ExportFormat::kTrace)}) {
      if (ImGui::SmallButton(name)) ui.export_format = format;
      ImGui::SameLine();
    }
    const auto [first, last] = VisibleRange(*snapshot.log, ui);
    const std::string what = Format("export %d shown", last - first);
    if (ImGui::CalcTextSize(what.c_str()).x <= ImGui::GetContentRegionAvail().x) {
      ImGui::TextDisabled("%s", what.c_str());
    } else {
      ImGui::NewLine();
    }
  } else {
    const double a = ui.pinned->summary[kDecisionRow].median;
    const double b = Summarise(*snapshot.log)[kDecisionRow].median;
    const std::string what =
        (a > 0 && b > 0 ? Format("now %.2f x ", b / a) : "") + "A: " + ui.pinned->label;
    ImGui::TextDisabled("%s", Shorten(what, ImGui::GetContentRegionAvail().x).c_str());
    if (ImGui::IsItemHovered()) {
      ImGui::SetTooltip("A: %s\n%s", ui.pinned->label.c_str(), ui.pinned->description.c_str());
    }
  }
}

}  // namespace mjp::app
