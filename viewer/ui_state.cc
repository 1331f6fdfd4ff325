#include "viewer/ui_state.h"

#include <algorithm>
#include <utility>

namespace mjp::app {

void UiState::Ask(Command command) { commands.push_back(std::move(command)); }

std::pair<int, int> VisibleRange(const DecisionLog& log, const UiState& ui) {
  const int size = static_cast<int>(log.size()), newest = std::max(0, size - ui.visible);
  const int first = ui.first_visible < 0 ? newest : std::min(ui.first_visible, newest);
  return {first, std::min(size, first + ui.visible)};
}

}  // namespace mjp::app
