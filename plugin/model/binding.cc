#include "plugin/model/binding.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"

namespace mjp {
namespace {

// `width` numbers for all, or as many each
std::vector<double> Spread(const std::string& attribute, const std::vector<double>& numbers,
                           int size, int width = 1) {
  std::vector<double> all = numbers;
  if (static_cast<int>(numbers.size()) == width) {
    while (std::ssize(all) < width * size) all.insert(all.end(), numbers.begin(), numbers.end());
  }
  if (static_cast<int>(all.size()) == width * size) return all;
  throw BadInput("attribute " + attribute + " has " + std::to_string(numbers.size()) +
                 " numbers: expected " + std::to_string(width) + " or " +
                 std::to_string(width * size));
}

// keeps the sign of a 0
mjtNum Mapped(mjtNum value, mjtNum gain, mjtNum offset) {
  return offset == 0 ? value * gain : value * gain + offset;
}

// "state_offset" beside "state_gain" or "state_scale"
std::string OffsetAttribute(const LinearMap& map) {
  return map.attribute.substr(0, map.attribute.rfind('_')) + "_offset";
}

struct Kind {
  const char* word;
  mjtObj type;
};
constexpr Kind kKinds[] = {
    {"joint", mjOBJ_JOINT}, {"sensor", mjOBJ_SENSOR}, {"site", mjOBJ_SITE}, {"body", mjOBJ_BODY}};

Unit UnitOfJoint(int joint_type) {
  if (joint_type == mjJNT_SLIDE) return Unit::kLength;
  return joint_type == mjJNT_HINGE ? Unit::kAngle : Unit::kOther;
}

// What actuator `id` makes of its control: the unit of the joint that it drives as a position
// servo, and how far that goes for a control of 1.
std::pair<Unit, double> ServoOf(const mjModel* model, int id) {
  const int joint = model->actuator_trnid[2 * id];
  if (model->actuator_trntype[id] != mjTRN_JOINT || model->actuator_ctrlnum[id] != 1 ||
      model->actuator_gaintype[id] != mjGAIN_FIXED ||
      model->actuator_biastype[id] != mjBIAS_AFFINE) {
    return {Unit::kOther, 1};
  }
  const double gain = model->actuator_gainprm[mjNGAIN * id];
  const double pull = -model->actuator_biasprm[mjNBIAS * id + 1] * model->actuator_gear[6 * id];
  if (pull == 0 || gain == 0) return {Unit::kOther, 1};
  return {UnitOfJoint(model->jnt_type[joint]), std::abs(gain / pull)};
}

int QposSize(int joint_type) {
  switch (joint_type) {
    case mjJNT_FREE:
      return 7;
    case mjJNT_BALL:
      return 4;
    default:
      return 1;
  }
}

}  // namespace

std::optional<Components> CutComponents(std::string& name) {
  const size_t open = name.find('[');
  if (open == std::string::npos) return Components{};
  Components c;
  const char* end = name.data() + name.size();
  auto [at, error] = std::from_chars(name.data() + open + 1, end, c.begin);
  if (error != std::errc()) return {};
  c.end = c.begin + 1;
  if (at != end && *at == ':') {
    const auto upper = std::from_chars(at + 1, end, c.end);
    if (upper.ec != std::errc()) return {};
    at = upper.ptr;
  }
  if (at + 1 != end || *at != ']' || c.begin < 0 || c.end <= c.begin) return {};
  name.resize(open);
  return c;
}

ObservationBinding::Range ObservationBinding::Resolve(const mjModel* model, const char* attribute,
                                                      const std::string& text) {
  const auto refuse = [&](const std::string& why) {
    return BadInput("attribute " + std::string(attribute) + " names \"" + text + "\": " + why);
  };
  std::string name = text, kind;
  const std::optional<Components> components = CutComponents(name);
  if (!components) throw refuse("components are chosen as name[1] or name[0:2]");
  if (const size_t colon = name.find(':'); colon != std::string::npos) {
    kind = name.substr(0, colon);
    name = name.substr(colon + 1);
  }

  const Kind* found = nullptr;
  int id = -1;
  for (const Kind& each : kKinds) {
    if (!kind.empty() && kind != each.word) continue;
    const int match = mj_name2id(model, each.type, name.c_str());
    if (match < 0) continue;
    if (found) {
      throw refuse("both a " + std::string(found->word) + " and a " + each.word +
                   " have that name; write " + found->word + ":" + name + " or " + each.word + ":" +
                   name);
    }
    found = &each;
    id = match;
  }
  if (!found) {
    throw refuse("the model has no " + (kind.empty() ? "joint, sensor, site or body" : kind) +
                 " of that name");
  }

  Range range{};
  switch (found->type) {
    case mjOBJ_JOINT:
      range = {&mjData::qpos, model->jnt_qposadr[id], QposSize(model->jnt_type[id]),
               UnitOfJoint(model->jnt_type[id])};
      break;
    case mjOBJ_SENSOR:
      if (model->sensor_needstage[id] > mjSTAGE_POS || model->sensor_type[id] == mjSENS_PLUGIN ||
          model->sensor_type[id] == mjSENS_USER) {
        throw refuse("a policy acts before that sensor is computed; only sensors of positions " +
                     std::string("can be observed"));
      }
      range = {&mjData::sensordata, model->sensor_adr[id], model->sensor_dim[id], Unit::kOther};
      break;
    case mjOBJ_SITE:
      range = {&mjData::site_xpos, 3 * id, 3, Unit::kLength};
      break;
    default:
      range = {&mjData::xpos, 3 * id, 3, Unit::kLength};
  }
  const int end = components->end < 0 ? range.count : components->end;
  if (end > range.count) {
    throw refuse("it has only " + std::to_string(range.count) + " components");
  }
  return {range.field, range.begin + components->begin, end - components->begin, range.unit};
}

ObservationBinding::ObservationBinding(const mjModel* model, const char* attribute,
                                       const std::vector<std::string>& names,
                                       const LinearMap& map) {
  for (const std::string& name : names) {
    ranges_.push_back(Resolve(model, attribute, name));
    size_ += ranges_.back().count;
    quantities_.resize(size_, {name, ranges_.back().unit});
  }
  if (size_ == 0) return;
  gain_ = Spread(map.attribute, map.gain, size_);
  offset_ = Spread(OffsetAttribute(map), map.offset, size_);
  for (int i = 0; i < size_; ++i) {
    quantities_[i].scale = gain_[i];
    quantities_[i].offset = offset_[i];
  }
}

void ObservationBinding::Read(const mjData* data, std::span<mjtNum> out) const {
  int i = 0;
  for (const Range& range : ranges_) {
    const mjtNum* values = data->*range.field + range.begin;
    for (int k = 0; k < range.count; ++k, ++i) out[i] = Mapped(values[k], gain_[i], offset_[i]);
  }
}

void CheckCamera(const mjModel* model, const std::string& camera) {
  if (mj_name2id(model, mjOBJ_CAMERA, camera.c_str()) >= 0) return;
  throw BadInput("attribute camera names \"" + camera + "\": the model has no camera of that name");
}

int FindActuator(const mjModel* model, const std::string& name) {
  const int id = mj_name2id(model, mjOBJ_ACTUATOR, name.c_str());
  const int joint = mj_name2id(model, mjOBJ_JOINT, name.c_str());
  if (id >= 0 || joint < 0) return id;
  int found = -1;
  for (int each = 0; each < model->nactuator; ++each) {
    const int kind = model->actuator_trntype[each];
    if (kind != mjTRN_JOINT && kind != mjTRN_JOINTINPARENT) continue;
    if (model->actuator_trnid[2 * each] != joint) continue;
    if (found >= 0) return -1;
    found = each;
  }
  return found;
}

ControlBinding::ControlBinding(const mjModel* model, const Config& config) {
  for (const std::string& name : config.actuators) {
    const int id = FindActuator(model, name);
    if (id < 0) {
      throw BadInput("attribute actuators names \"" + name +
                     "\": the model has no actuator of that name, nor a single one that drives a "
                     "joint of that name");
    }
    for (int k = 0; k < model->actuator_ctrlnum[id]; ++k) {
      const int address = model->actuator_ctrladr[id] + k;
      if (std::ranges::find(addresses_, address) != addresses_.end()) {
        throw BadInput("attribute actuators names \"" + name + "\" twice");
      }
      addresses_.push_back(address);
      const auto [unit, slope] = ServoOf(model, id);
      quantities_.push_back({name, unit, 1 / slope});
    }
  }
  scale_ = Spread("action_scale", config.action_scale, size());
  gain_ = Spread(config.action_map.attribute, config.action_map.gain, size());
  offset_ = Spread(OffsetAttribute(config.action_map), config.action_map.offset, size());
  if (!config.action_clip.empty()) clip_ = Spread("action_clip", config.action_clip, size(), 2);
  indices_ = config.action_index;
  if (indices_.empty()) {
    for (int i = 0; i < size(); ++i) indices_.push_back(i);
  }
  CheckIndices();
  action_size_ = 1 + std::ranges::max(indices_);
  for (int i = 0; i < size(); ++i) {
    const double factor = scale_[i] / gain_[i];
    quantities_[i].scale *= factor;
    quantities_[i].offset = -offset_[i] * factor;
  }
}

void ControlBinding::CheckIndices() const {
  if (std::ssize(indices_) != size()) {
    throw BadInput("attribute action_index has " + std::to_string(indices_.size()) +
                   " numbers: expected one for each of the " + std::to_string(size()) +
                   " controls of attribute actuators");
  }
  const int last = std::ranges::max(indices_);
  for (int i = 0; i < last; ++i) {
    if (std::ranges::find(indices_, i) != indices_.end()) continue;
    throw BadInput("attribute action_index leaves out number " + std::to_string(i) +
                   " of the action: it has " + std::to_string(last) + ", and counts from 0");
  }
}

mjtNum ControlBinding::ToControl(int i, mjtNum value) const {
  if (!clip_.empty()) value = std::clamp(value, clip_[2 * i], clip_[2 * i + 1]);
  return ToUnclippedControl(i, value);
}

mjtNum ControlBinding::ToUnclippedControl(int i, mjtNum value) const {
  const mjtNum control = value / scale_[i];
  return Mapped(control, gain_[i], offset_[i]);
}

bool ControlBinding::Clips(int i, mjtNum value) const {
  constexpr double kMargin = 0.01;
  if (clip_.empty()) return false;
  const mjtNum low = clip_[2 * i], high = clip_[2 * i + 1], margin = kMargin * (high - low);
  return value < low - margin || value > high + margin;
}

mjtNum ControlBinding::ToAction(int i, mjtNum control) const {
  return (control - offset_[i]) / gain_[i] * scale_[i];
}

std::optional<std::pair<mjtNum, mjtNum>> ControlBinding::Clip(int i) const {
  if (clip_.empty()) return {};
  return {{clip_[2 * i], clip_[2 * i + 1]}};
}

std::string ControlBinding::SharedWith(const mjModel* model, const ControlBinding& other) const {
  for (int id = 0; id < model->nactuator; ++id) {
    const int begin = model->actuator_ctrladr[id], end = begin + model->actuator_ctrlnum[id];
    const auto drives = [=](int address) { return address >= begin && address < end; };
    if (std::ranges::any_of(addresses_, drives) && std::ranges::any_of(other.addresses_, drives)) {
      const char* name = mj_id2name(model, mjOBJ_ACTUATOR, id);
      return name ? name : "actuator " + std::to_string(id);
    }
  }
  return "";
}

void ControlBinding::Write(std::span<const mjtNum> action, mjData* data) const {
  for (int i = 0; i < size(); ++i) data->ctrl[addresses_[i]] = ToControl(i, action[indices_[i]]);
}

}  // namespace mjp
