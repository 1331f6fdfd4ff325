#include "plugin/model/binding.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"

namespace mjp {
namespace {

// one scale for all, or one each
std::vector<double> Spread(const std::string& attribute, const std::vector<double>& scale,
                           int size) {
  if (scale.size() == 1) return std::vector<double>(size, scale[0]);
  if (static_cast<int>(scale.size()) == size) return scale;
  throw BadInput("attribute " + attribute + " has " + std::to_string(scale.size()) +
                 " numbers: expected 1 or " + std::to_string(size));
}

struct Components {
  int begin = 0, end = -1;  // end < 0: all
};

// "name[1]" or "name[0:2]": cuts the brackets off `name`
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
                                       const std::vector<double>& scale) {
  for (const std::string& name : names) {
    ranges_.push_back(Resolve(model, attribute, name));
    size_ += ranges_.back().count;
    quantities_.resize(size_, {name, ranges_.back().unit, 1});
  }
  if (size_ > 0) scale_ = Spread(std::string(attribute) + "_scale", scale, size_);
  for (int i = 0; i < size_; ++i) quantities_[i].scale = scale_[i];
}

void ObservationBinding::Read(const mjData* data, std::span<mjtNum> out) const {
  int i = 0;
  for (const Range& range : ranges_) {
    const mjtNum* values = data->*range.field + range.begin;
    for (int k = 0; k < range.count; ++k, ++i) out[i] = values[k] * scale_[i];
  }
}

ControlBinding::ControlBinding(const mjModel* model, const std::vector<std::string>& actuators,
                               const std::vector<double>& scale) {
  for (const std::string& name : actuators) {
    const int id = mj_name2id(model, mjOBJ_ACTUATOR, name.c_str());
    if (id < 0) {
      throw BadInput("attribute actuators names \"" + name +
                     "\": the model has no actuator of that name");
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
  scale_ = Spread("action_scale", scale, size());
  for (int i = 0; i < size(); ++i) quantities_[i].scale *= scale_[i];
}

std::string ControlBinding::SharedWith(const mjModel* model, const ControlBinding& other) const {
  for (int id = 0; id < model->nactuator; ++id) {
    const int begin = model->actuator_ctrladr[id], end = begin + model->actuator_ctrlnum[id];
    const auto drives = [=](int address) { return address >= begin && address < end; };
    if (std::ranges::any_of(addresses_, drives) && std::ranges::any_of(other.addresses_, drives)) {
      return mj_id2name(model, mjOBJ_ACTUATOR, id);
    }
  }
  return "";
}

void ControlBinding::Write(std::span<const mjtNum> action, mjData* data) const {
  for (int i = 0; i < size(); ++i) data->ctrl[addresses_[i]] = ToControl(i, action[i]);
}

}  // namespace mjp
