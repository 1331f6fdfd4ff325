#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace pusht {

void DrawPicturePanel(const SimSnapshot& snapshot, UiState& ui) {
  const std::shared_ptr<const DecisionRecord> shown = ShownDecision(snapshot, ui);
  PanelTitle("What the policy sees",
             shown ? Format("step %d", shown->step) : std::string("no decision yet"));
  const PolicyInfo& info = *snapshot.policy;
  const int count = static_cast<int>(ui.pictures.size());
  if (!shown || count == 0) return;
  const float gap = ImGui::GetStyle().ItemSpacing.x;
  const float edge = (ImGui::GetContentRegionAvail().x - gap * (count - 1)) / count;
  for (int i = 0; i < count; ++i) {
    if (i > 0) ImGui::SameLine();
    ImGui::BeginGroup();
    ImGui::Image(ui.pictures[i], ImVec2(edge, edge));
    const int age = count - 1 - i;
    ImGui::TextDisabled(
        "%s", age == 0 ? Format("now, %d x %d px", info.picture_width, info.picture_height).c_str()
                       : Format("-%.0f ms", 1e3 * snapshot.period * age).c_str());
    ImGui::EndGroup();
  }
}

}  // namespace pusht
