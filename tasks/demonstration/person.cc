#include "tasks/demonstration/person.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <string_view>

#include "base/error.h"

namespace mjp::app {
namespace {

constexpr double kHandSpeed = 0.35;    // reaches of the arm a second
constexpr double kTurnSpeed = 1.2;     // radians a second
constexpr double kRangeSeconds = 1.5;  // for a number to go through its range
constexpr int kIterations = 30;
constexpr mjtNum kDamping = 0.02;     // of the arm's reach
constexpr mjtNum kLongestStep = 0.2;  // of a joint in an iteration, radians or metres
constexpr size_t kLeastTurn = 6;      // joints of an arm that can keep a direction

// Whether a joint is called after what grips. A body of such a name may be the hand.
bool NamesGripper(const char* name) {
  std::string lower = name ? name : "";
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::string_view kWords[] = {"grip", "finger", "jaw", "claw", "knuckle"};
  return std::ranges::any_of(
      kWords, [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

// The body that an actuator's joint moves.
int BodyOf(const mjModel* model, int joint) { return model->jnt_bodyid[joint]; }

}  // namespace

Person::Person(const TaskFile& file, const std::string& hand)
    : file_(file),
      ranges_(ActionRanges(file)),
      servos_(FindServos()),
      keeps_(ranges_.size()),
      scratch_(MakeData(file.model())),
      rest_(ranges_.size()),
      action_(ranges_.size()) {
  for (const Servo& servo : servos_) keeps_[servo.number] = true;
  FindHand(hand);
  std::set<int> of_arm;
  for (const Servo& servo : arm_) of_arm.insert(servo.number);
  for (int i = numbers() - 1; i >= 0; --i) {
    if (!of_arm.contains(i)) gripper_ = i;
  }
}

std::vector<Person::Servo> Person::FindServos() const {
  const mjModel* model = file_.model();
  const ControlBinding& controls = file_.policy().controls;
  std::vector<Servo> servos;
  for (int i = 0; i < controls.size(); ++i) {
    const int control = controls.addresses()[i];
    for (int id = 0; id < model->nactuator; ++id) {
      const mjtNum* gain = model->actuator_gainprm + mjNGAIN * id;
      const mjtNum* bias = model->actuator_biasprm + mjNBIAS * id;
      const mjtNum stiffness = bias[1] * model->actuator_gear[6 * id];
      const int joint = model->actuator_trnid[2 * id];
      if (model->actuator_ctrladr[id] != control || model->actuator_ctrlnum[id] != 1 ||
          model->actuator_trntype[id] != mjTRN_JOINT || model->jnt_type[joint] < mjJNT_SLIDE ||
          model->actuator_gaintype[id] != mjGAIN_FIXED ||
          model->actuator_biastype[id] != mjBIAS_AFFINE || stiffness == 0 || gain[0] == 0) {
        continue;
      }
      // at rest gain x control + bias[0] + stiffness x qpos = 0
      servos.push_back(
          {i, controls.indices()[i], joint, -gain[0] / stiffness, -bias[0] / stiffness});
    }
  }
  return servos;
}

bool Person::Moves(const Servo& servo, int body) const {
  const int own = BodyOf(file_.model(), servo.joint);
  for (; body > 0; body = file_.model()->body_parentid[body]) {
    if (body == own) return true;
  }
  return false;
}

// The last link that servos move, before the fingers: those are links that slide, several of one
// link, or one that is called so.
int Person::DefaultHand() const {
  const mjModel* model = file_.model();
  const auto depth = [this](int body) {
    return std::ranges::count_if(servos_, [&](const Servo& s) { return Moves(s, body); });
  };
  int best = -1;
  for (const Servo& servo : servos_) {
    const int body = BodyOf(model, servo.joint);
    if (best < 0 || depth(body) > depth(best)) best = body;
  }
  const auto is_finger = [&](int body) {
    int last = -1, twins = 0;
    for (const Servo& servo : servos_) {
      const int own = BodyOf(model, servo.joint);
      if (own == body) last = servo.joint;
      twins += own != body && depth(own) == depth(body) &&
               model->body_parentid[own] == model->body_parentid[body];
    }
    return last >= 0 && (twins > 0 || model->jnt_type[last] == mjJNT_SLIDE ||
                         NamesGripper(mj_id2name(model, mjOBJ_JOINT, last)));
  };
  if (best > 0 && depth(best) > 2 && is_finger(best)) best = model->body_parentid[best];
  return best;
}

void Person::FindHand(const std::string& given) {
  const mjModel* model = file_.model();
  const std::string& name = given.empty() ? file_.policy().config.trail : given;
  int body = name.empty() ? DefaultHand() : -1;
  if (!name.empty()) {
    hand_ = mj_name2id(model, mjOBJ_SITE, name.c_str());
    hand_is_site_ = hand_ >= 0;
    body = hand_is_site_ ? model->site_bodyid[hand_] : mj_name2id(model, mjOBJ_BODY, name.c_str());
    if (body < 0) throw BadInput("--hand " + name + ": the model has no site or body of that name");
  }
  const ControlBinding& controls = file_.policy().controls;
  for (const Servo& servo : servos_) {
    // a number that drives several controls opens and closes something
    const bool alone = std::ranges::count(controls.indices(), servo.number) == 1;
    if (body > 0 && alone && Moves(servo, body)) arm_.push_back(servo);
  }
  if (arm_.size() < 2) {
    if (!given.empty()) {
      throw BadInput("--hand " + given + ": fewer than two position servos of the policy move it");
    }
    arm_.clear();
    hand_ = -1;
    return;
  }
  if (!hand_is_site_) hand_ = body;
  const char* own = mj_id2name(model, hand_is_site_ ? mjOBJ_SITE : mjOBJ_BODY, hand_);
  hand_name_ = own ? own : "hand";
}

mjtNum Person::Reach(const mjData* data) const {
  const mjtNum* end = (hand_is_site_ ? data->site_xpos : data->xpos) + 3 * hand_;
  mjtNum reach = 0;
  for (const Servo& servo : arm_) {
    reach = std::max(reach, mju_dist3(data->xanchor + 3 * servo.joint, end));
  }
  return std::max(reach, mjtNum{1e-3});
}

void Person::TakeHandPose(const mjData* data) {
  std::copy_n((hand_is_site_ ? data->site_xpos : data->xpos) + 3 * hand_, 3, target_.begin());
  mju_mat2Quat(target_turn_.data(), (hand_is_site_ ? data->site_xmat : data->xmat) + 9 * hand_);
}

void Person::Begin(uint32_t, const mjModel*, const mjData* data) {
  ActionOf(file_.policy().controls, data, rest_);
  Resume(data);
}

void Person::Resume(const mjData* data) {
  ActionOf(file_.policy().controls, data, action_);
  input_ = {};
  if (!has_hand()) return;
  std::copy_n(data->qpos, file_.model()->nq, scratch_->qpos);
  SetNumbers();
  TakeHandPose(scratch_.get());
  reach_ = Reach(scratch_.get());
}

// Gives the arm's joints of scratch_ what their numbers say.
void Person::SetNumbers() {
  const ControlBinding& controls = file_.policy().controls;
  for (const Servo& servo : arm_) {
    scratch_->qpos[file_.model()->jnt_qposadr[servo.joint]] =
        servo.slope * controls.ToControl(servo.control, action_[servo.number]) + servo.offset;
  }
  mj_kinematics(file_.model(), scratch_.get());
  mj_comPos(file_.model(), scratch_.get());
}

void Person::Drag(const std::array<double, 3>& by) {
  for (int k = 0; k < 3; ++k) target_[k] += by[k];
}

void Person::MoveTarget() {
  const double c = std::cos(input_.heading), s = std::sin(input_.heading);
  const auto to_world = [c, s](const std::array<double, 3>& seen) {
    return std::array<mjtNum, 3>{c * seen[0] - s * seen[1], s * seen[0] + c * seen[1], seen[2]};
  };
  const double period = file_.period();
  const std::array<mjtNum, 3> move = to_world(input_.move), turn = to_world(input_.turn);
  for (int k = 0; k < 3; ++k) target_[k] += kHandSpeed * reach_ * period * move[k];
  // mju_quatIntegrate turns about the body's own axes
  mjtNum inverse[4], local[3];
  mju_negQuat(inverse, target_turn_.data());
  mju_rotVecQuat(local, turn.data(), inverse);
  mju_quatIntegrate(target_turn_.data(), local, kTurnSpeed * period);
}

// From the hand to the target: place, then direction times the weight of a radian.
void Person::Error(std::span<mjtNum> error) const {
  const mjtNum* place = (hand_is_site_ ? scratch_->site_xpos : scratch_->xpos) + 3 * hand_;
  mjtNum turn[4];
  mju_mat2Quat(turn, (hand_is_site_ ? scratch_->site_xmat : scratch_->xmat) + 9 * hand_);
  mju_sub3(error.data(), target_.data(), place);
  mjtNum local[3];
  mju_subQuat(local, target_turn_.data(), turn);
  mju_rotVecQuat(error.data() + 3, local, turn);
  // an arm of few joints keeps its place before its direction
  const mjtNum weight = (arm_.size() >= kLeastTurn ? 0.3 : 0.02) * reach_;
  mju_scl3(error.data() + 3, error.data() + 3, weight);
}

// One step of damped least squares. False: it moves nothing any more.
bool Person::Improve(std::span<const mjtNum> error) {
  const mjModel* model = file_.model();
  const ControlBinding& controls = file_.policy().controls;
  std::vector<mjtNum> whole(static_cast<size_t>(6 * model->nv));
  mjtNum* rotation = whole.data() + 3 * model->nv;
  (hand_is_site_ ? mj_jacSite : mj_jacBody)(model, scratch_.get(), whole.data(), rotation, hand_);
  const mjtNum weight = (arm_.size() >= kLeastTurn ? 0.3 : 0.02) * reach_;
  mju_scl(rotation, rotation, weight, 3 * model->nv);
  const int n = static_cast<int>(arm_.size());
  std::vector<mjtNum> jacobian(static_cast<size_t>(6 * n));  // (6, n)
  for (int row = 0; row < 6; ++row) {
    for (int i = 0; i < n; ++i) {
      jacobian[row * n + i] = whole[row * model->nv + model->jnt_dofadr[arm_[i].joint]];
    }
  }
  mjtNum square[36], solved[6];
  mju_mulMatMatT(square, jacobian.data(), jacobian.data(), 6, n, 6);
  for (int k = 0; k < 6; ++k) square[7 * k] += mju_pow(kDamping * reach_, 2);
  mju_cholFactor(square, 6, 0);
  mju_cholSolve(solved, square, error.data(), 6);
  std::vector<mjtNum> step(static_cast<size_t>(n));
  mju_mulMatTVec(step.data(), jacobian.data(), solved, 6, n);
  mjtNum moved = 0;
  for (int i = 0; i < n; ++i) {
    const Servo& servo = arm_[i];
    const mjtNum by = std::clamp(step[i], -kLongestStep, kLongestStep);
    const mjtNum at = scratch_->qpos[model->jnt_qposadr[servo.joint]] + by;
    const mjtNum number =
        std::clamp<mjtNum>(controls.ToAction(servo.control, (at - servo.offset) / servo.slope),
                           ranges_[servo.number].low, ranges_[servo.number].high);
    moved = std::max(moved, std::abs(by));
    action_[servo.number] = number;
  }
  SetNumbers();
  return moved > 1e-6;
}

void Person::Follow(const mjData* data) {
  std::copy_n(data->qpos, file_.model()->nq, scratch_->qpos);
  SetNumbers();
  mjtNum error[6];
  for (int i = 0; i < kIterations; ++i) {
    Error(error);
    if (mju_norm(error, 6) < 1e-5 * reach_ || !Improve(error)) break;
  }
  Error(error);
  // a target out of reach waits where the hand came to
  const mjtNum weight = (arm_.size() >= kLeastTurn ? 0.3 : 0.02) * reach_;
  const bool far = mju_norm3(error) > 0.02 * reach_;
  const bool turned = mju_norm3(error + 3) > 0.1 * weight;
  if (!far && !turned) return;
  const std::array<mjtNum, 3> target = target_;
  TakeHandPose(scratch_.get());
  if (!far) target_ = target;
}

void Person::Act(const mjModel*, const mjData* data, std::span<mjtNum> action) {
  if (has_hand()) {
    MoveTarget();
    Follow(data);
  }
  const auto drive = [this](int number, double share) {
    const ActionRange& range = ranges_[number];
    if (keeps_[number]) {
      action_[number] += share * (range.high - range.low) * file_.period() / kRangeSeconds;
    } else {
      action_[number] = rest_[number] + share * (share > 0 ? range.high - rest_[number]
                                                           : rest_[number] - range.low);
    }
    action_[number] = std::clamp<mjtNum>(action_[number], range.low, range.high);
  };
  if (!has_hand()) {
    for (int i = 0; i < std::min(3, numbers()); ++i) drive(i, input_.move[i]);
  }
  const int number = input_.number < 0 ? gripper_ : input_.number;
  if (number >= 0 && number < numbers() && (has_hand() || input_.squeeze != 0)) {
    drive(number, input_.squeeze);
    if (has_hand() && input_.squeeze != 0 && number != gripper_) {
      std::copy_n(data->qpos, file_.model()->nq, scratch_->qpos);
      SetNumbers();
      TakeHandPose(scratch_.get());
    }
  }
  std::ranges::copy(action_, action.begin());
}

}  // namespace mjp::app
