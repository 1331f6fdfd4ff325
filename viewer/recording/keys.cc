#include "viewer/recording/keys.h"

#include <cmath>
#include <utility>

#include "viewer/recording/cue.h"

namespace mjp::app {
namespace {

// What a held key adds to one axis: 0 to 2 to the right, away, up; 3 squeezes.
struct Axis {
  int key, axis;
  double share;
};
constexpr Axis kAxes[] = {
    {GLFW_KEY_RIGHT, 0, 1}, {GLFW_KEY_LEFT, 0, -1},   {GLFW_KEY_UP, 1, 1},
    {GLFW_KEY_DOWN, 1, -1}, {GLFW_KEY_PAGE_UP, 2, 1}, {GLFW_KEY_PAGE_DOWN, 2, -1},
    {GLFW_KEY_E, 2, 1},     {GLFW_KEY_Q, 2, -1},      {GLFW_KEY_K, 3, 1},
    {GLFW_KEY_J, 3, -1},
};

bool IsHeldKey(int key) {
  for (const Axis& axis : kAxes) {
    if (axis.key == key) return true;
  }
  return key == GLFW_KEY_LEFT_SHIFT || key == GLFW_KEY_RIGHT_SHIFT;
}

void StartEpisode(UiState& ui) {
  ui.Ask(EpisodeCommand::kStart);
  ui.Ask(PlayCommand{true});
}

void EnterPressed(const SimSnapshot& snapshot, UiState& ui) {
  if (snapshot.recording->phase == RecordingState::Phase::kReady) return StartEpisode(ui);
  ui.Ask(EpisodeCommand::kKeep);
}

// A stick near its middle rests.
double Stick(float value) {
  constexpr double kRest = 0.15;
  return std::abs(value) < kRest ? 0 : value;
}

}  // namespace

DriveInput RecordingKeys::Held(double heading) const {
  DriveInput input;
  input.heading = heading;
  input.number = number_;
  const bool turn = held_.contains(GLFW_KEY_LEFT_SHIFT) || held_.contains(GLFW_KEY_RIGHT_SHIFT);
  for (const auto& [key, axis, share] : kAxes) {
    if (!held_.contains(key)) continue;
    if (axis == 3) {
      input.squeeze += share;
    } else {
      (turn ? input.turn : input.move)[axis] += share;
    }
  }
  // to the right turns the hand to the right: about the way away from the person
  if (turn) input.turn = {-input.turn[1], input.turn[0], -input.turn[2]};
  return input;
}

bool RecordingKeys::OnEpisodeKey(int key, const SimSnapshot& snapshot, UiState& ui) const {
  const bool ready = snapshot.recording->phase == RecordingState::Phase::kReady;
  switch (key) {
    case GLFW_KEY_ENTER:
    case GLFW_KEY_KP_ENTER:
      EnterPressed(snapshot, ui);
      return true;
    case GLFW_KEY_BACKSPACE:
      ui.Ask(EpisodeCommand::kDiscard);
      return true;
    case GLFW_KEY_N:
      ui.Ask(EpisodeCommand::kSkip);
      return true;
    case GLFW_KEY_M:
      ui.Ask(EpisodeCommand::kNextTarget);
      return true;
    case GLFW_KEY_R:
      if (!ready) ui.Ask(SeekCommand{SecondBefore(snapshot)});
      return true;
    case GLFW_KEY_SPACE:
      if (ready) {
        StartEpisode(ui);
      } else {
        ui.Ask(PlayCommand{!snapshot.playing});
      }
      return true;
    case GLFW_KEY_P:
      return true;
    default:
      return false;
  }
}

bool RecordingKeys::OnKey(int key, int action, const SimSnapshot& snapshot, double heading,
                          UiState& ui) {
  if (IsHeldKey(key)) {
    if (action == GLFW_REPEAT) return true;
    if (action == GLFW_PRESS) {
      held_.insert(key);
    } else {
      held_.erase(key);
    }
    ui.Ask(DriveCommand{Held(heading)});
    return true;
  }
  if (action != GLFW_PRESS) return false;
  if (key >= GLFW_KEY_0 && key <= GLFW_KEY_9) {
    number_ = key - GLFW_KEY_1;  // 0: the gripper's again
    return true;
  }
  return OnEpisodeKey(key, snapshot, ui);
}

void RecordingKeys::OnGamepad(const GLFWgamepadstate& pad, const SimSnapshot& snapshot,
                              double heading, UiState& ui) {
  const GLFWgamepadstate before = std::exchange(pad_, pad);
  const auto pressed = [&](int button) {
    return pad.buttons[button] == GLFW_PRESS && before.buttons[button] != GLFW_PRESS;
  };
  if (pressed(GLFW_GAMEPAD_BUTTON_A)) EnterPressed(snapshot, ui);
  if (pressed(GLFW_GAMEPAD_BUTTON_B)) ui.Ask(EpisodeCommand::kDiscard);
  if (pressed(GLFW_GAMEPAD_BUTTON_X)) ui.Ask(SeekCommand{SecondBefore(snapshot)});
  if (pressed(GLFW_GAMEPAD_BUTTON_Y)) ui.Ask(EpisodeCommand::kSkip);
  if (pressed(GLFW_GAMEPAD_BUTTON_START)) ui.Ask(PlayCommand{!snapshot.playing});
  DriveInput input = Held(heading);
  const double x = Stick(pad.axes[GLFW_GAMEPAD_AXIS_LEFT_X]);
  const double y = -Stick(pad.axes[GLFW_GAMEPAD_AXIS_LEFT_Y]);
  const double up = -Stick(pad.axes[GLFW_GAMEPAD_AXIS_RIGHT_Y]);
  const double round = -Stick(pad.axes[GLFW_GAMEPAD_AXIS_RIGHT_X]);
  // triggers rest at -1
  const double squeeze =
      (pad.axes[GLFW_GAMEPAD_AXIS_LEFT_TRIGGER] - pad.axes[GLFW_GAMEPAD_AXIS_RIGHT_TRIGGER]) / 2;
  const bool moved = x != 0 || y != 0 || up != 0 || round != 0 || std::abs(squeeze) > 0.1;
  if (!moved && !pad_moved_) return;
  pad_moved_ = moved;
  input.move = {input.move[0] + x, input.move[1] + y, input.move[2] + up};
  input.turn[2] += round;
  input.squeeze += squeeze;
  ui.Ask(DriveCommand{input});
}

}  // namespace mjp::app
