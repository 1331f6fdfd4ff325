#include <algorithm>

#include "policy/option_names.h"
#include "viewer/panels/panels.h"
#include "viewer/panels/plot.h"
#include "viewer/theme.h"

namespace mjp::app {
namespace {

constexpr float kLabelShare = 0.36f;  // of the panel's width

// Names the next item at the left and gives it the rest of the line.
void Label(const char* text) {
  ImGui::AlignTextToFramePadding();
  ImGui::TextDisabled("%s", text);
  ImGui::SameLine(kLabelShare * ImGui::GetWindowWidth());
  ImGui::SetNextItemWidth(-1);
}

template <typename T>
void EnumCombo(const char* id, T& value, std::initializer_list<const char*> names) {
  int index = static_cast<int>(value);
  if (!ImGui::Combo(id, &index, names.begin(), static_cast<int>(names.size()))) return;
  value = static_cast<T>(index);
}

void DrawTransport(const SimSnapshot& snapshot, UiState& ui) {
  const float third = (ImGui::GetContentRegionAvail().x - 2 * ImGui::GetStyle().ItemSpacing.x) / 3;
  if (ImGui::Button(snapshot.playing ? "Pause" : "Play", ImVec2(third, 0))) {
    if (snapshot.finished) ui.Ask(RestartCommand{snapshot.seed});
    ui.Ask(PlayCommand{!snapshot.playing});
    ui.selected = nullptr;
  }
  ImGui::SameLine();
  if (ImGui::Button("Step", ImVec2(third, 0))) ui.Ask(RunCommand{snapshot.step + 1});
  ImGui::SameLine();
  if (ImGui::Button("Restart", ImVec2(third, 0))) {
    ui.selected = nullptr;
    ui.Ask(RestartCommand{snapshot.seed});
  }
}

void DrawEpisode(const SimSnapshot& snapshot, UiState& ui) {
  Label("Seed");
  if (!ImGui::IsAnyItemActive()) ui.seed = static_cast<int>(snapshot.seed);
  if (ImGui::InputInt("##seed", &ui.seed, 1, 100)) {
    ui.selected = nullptr;
    ui.Ask(RestartCommand{static_cast<uint32_t>(std::max(0, ui.seed))});
  }
  Label("Speed");
  constexpr double kSpeeds[] = {0.1, 0.25, 0.5, 1, 2, 4, 0};
  constexpr const char* kNames[] = {"0.1 x", "0.25 x",           "0.5 x", "1 x real time", "2 x",
                                    "4 x",   "as fast as it can"};
  int index = static_cast<int>(std::find(kSpeeds, kSpeeds + 6, snapshot.speed) - kSpeeds);
  if (ImGui::Combo("##speed", &index, kNames, IM_ARRAYSIZE(kNames))) {
    ui.Ask(SpeedCommand{kSpeeds[index]});
  }
}

// How a chunk is denoised, where it is.
void DrawSteps(const std::vector<mjp::SamplerKind>& kinds, mjp::SamplerOptions& sampler) {
  if (kinds.empty()) return;
  Label("Sampler");
  if (ImGui::BeginCombo("##sampler", mjp::SamplerName(sampler.kind))) {
    for (const mjp::SamplerKind kind : kinds) {
      if (ImGui::Selectable(mjp::SamplerName(kind), kind == sampler.kind)) sampler.kind = kind;
    }
    ImGui::EndCombo();
  }
  if (sampler.kind == mjp::SamplerKind::kOneStep) return;
  Label("Steps");
  ImGui::SliderInt("##steps", &sampler.steps, 1, 100);
  Label("Window");
  ImGui::SliderInt("##window", &sampler.parallel_window, 0, 32,
                   sampler.parallel_window == 0 ? "sequential" : "%d steps at once");
}

void DrawSampler(const SimSnapshot& snapshot, UiState& ui) {
  mjp::PolicyOptions& options = ui.edited;
  Label("Backend");
  EnumCombo("##backend", options.backend, {"auto", "CPU", "CUDA"});
  Label("Format");
  EnumCombo("##format", options.precision, {"auto", "fp32", "tf32", "fp16", "bf16"});
  DrawSteps(snapshot.policy->samplers, options.sampler);
  const bool changed = !(options == snapshot.policy->options);
  if (changed) ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(46, 98, 160, 255));
  if (ImGui::Button(changed ? "Apply to the policy" : "Applied", ImVec2(-1, 0)) && changed) {
    ui.selected = nullptr;
    ui.Ask(PolicyCommand{options});
  }
  if (changed) ImGui::PopStyleColor();
}

}  // namespace

void DrawControlPanel(const SimSnapshot& snapshot, UiState& ui) {
  const PolicyInfo& policy = *snapshot.policy;
  if (ui.edited_from != snapshot.policy) {
    ui.edited = policy.options;
    ui.edited_from = snapshot.policy;
  }
  PanelTitle("Episode", "F1: keys");
  DrawTransport(snapshot, ui);
  DrawEpisode(snapshot, ui);
  ImGui::Spacing();
  PanelTitle("Policy", policy.random ? "" : policy.checkpoint);
  if (policy.random) {
    ImGui::SameLine();
    ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(color::kWarn), "RANDOM WEIGHTS");
  }
  ImGui::PushTextWrapPos(0);
  ImGui::TextDisabled("%s", policy.description.c_str());
  ImGui::PopTextWrapPos();
  if (policy.horizon == 0) return;
  DrawSampler(snapshot, ui);
  ImGui::Checkbox("Chunk", &ui.show_chunk);
  if (policy.samplers.empty()) return;  // no chain to look at
  ImGui::SameLine();
  ImGui::Checkbox("Denoising", &ui.show_denoising);
  ImGui::SameLine();
  if (ImGui::Checkbox("Trace", &ui.tracing)) ui.Ask(TraceCommand{ui.tracing});
}

}  // namespace mjp::app
