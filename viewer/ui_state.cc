#include "viewer/ui_state.h"

#include <utility>

namespace pusht {

void UiState::Ask(Command command) { commands.push_back(std::move(command)); }

}  // namespace pusht
