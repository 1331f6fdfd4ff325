#include "tasks/mjcf/scaffold/scaffold.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text_stream.h"
#include "plugin/model/binding.h"
#include "tasks/evaluation/plugin_attributes.h"
#include "tasks/mjcf/words.h"

namespace mjp::app {
namespace {

constexpr double kPeriod = 0.1, kEpisode = 20;  // seconds

// What one actuator contributes.
struct Drive {
  std::string name;  // as attribute actuators has it
  int actuator;
  std::string joint;  // "" where it drives none that has a name
  int joint_id = -1;
};

std::string NameOf(const mjModel* model, mjtObj type, int id) {
  const char* name = mj_id2name(model, type, id);
  return name ? name : "";
}

void CheckWord(const std::string& name) {
  if (name.find_first_of(" \t\n;[") == std::string::npos) return;
  throw BadInput("the name \"" + name +
                 "\" has a blank, ';' or '[', which lists of names cannot have: "
                 "give it another in the model");
}

// Its position is one number, as a sensor measures it.
bool IsScalar(int joint_type) { return joint_type == mjJNT_SLIDE || joint_type == mjJNT_HINGE; }

std::string UnitText(int joint_type) {
  if (joint_type == mjJNT_SLIDE) return " m";
  return joint_type == mjJNT_FREE ? ", m and a quaternion" : " rad";
}

std::string JointOf(const mjModel* model, int actuator, int& joint) {
  const int kind = model->actuator_trntype[actuator];
  if (kind != mjTRN_JOINT && kind != mjTRN_JOINTINPARENT) return "";
  joint = model->actuator_trnid[2 * actuator];
  return NameOf(model, mjOBJ_JOINT, joint);
}

std::vector<std::string> AllActuators(const mjModel* model) {
  std::vector<std::string> names;
  for (int id = 0; id < model->nactuator; ++id) {
    int joint = -1;
    std::string name = NameOf(model, mjOBJ_ACTUATOR, id);
    if (name.empty()) name = JointOf(model, id, joint);
    if (name.empty()) {
      throw BadInput("actuator " + std::to_string(id) +
                     " of the model has no name, nor has a joint that it drives: give it one");
    }
    names.push_back(name);
  }
  return names;
}

std::vector<Drive> FindDrives(const mjModel* model, const ScaffoldOptions& options) {
  const std::vector<std::string> known = AllActuators(model);
  if (known.empty())
    throw BadInput("the model has no actuators: a policy would have nothing to do");
  std::vector<Drive> drives;
  for (const std::string& name : options.actuators.empty() ? known : options.actuators) {
    CheckWord(name);
    Drive drive;
    drive.name = name;
    drive.actuator = FindActuator(model, name);
    if (drive.actuator < 0) throw BadInput(NoSuch("actuator of the model", name, known));
    drive.joint = JointOf(model, drive.actuator, drive.joint_id);
    drives.push_back(drive);
  }
  return drives;
}

std::string RangeText(bool limited, const mjtNum* range) {
  if (!limited) return "no range";
  TextWriter text;
  text << range[0] << " to " << range[1];
  return text.str();
}

class Writer {
 public:
  Writer(const mjModel* model, const ScaffoldOptions& options)
      : model_(model), options_(options), drives_(FindDrives(model, options)) {
    xml_.precision(10);
    for (const Drive& drive : drives_) {
      const bool before = std::ranges::find(joints_, drive.joint) != joints_.end();
      if (drive.joint.empty() || before) continue;
      CheckWord(drive.joint);
      if (measured_ < 0 && IsScalar(model->jnt_type[drive.joint_id])) measured_ = drive.joint_id;
      joints_.push_back(drive.joint);
      joint_ids_.push_back(drive.joint_id);
    }
  }

  std::string Write() {
    xml_ << "<!-- A task for " << XmlText(options_.include)
         << ", as mjpolicy scaffold proposes it. docs/tasks.md explains each element; lines with\n"
         << "     EDIT want a decision of yours. -->\n"
         << "<mujoco model=\"" << XmlText(RobotName()) << "_task\">\n"
         << "  <include file=\"" << XmlText(options_.include) << "\"/>\n\n";
    WritePolicy();
    WriteSensors();
    WriteTask();
    xml_ << "</mujoco>\n";
    return xml_.str();
  }

 private:
  // That of its file where the model has none, which the compiler calls so.
  std::string RobotName() const {
    const std::string name = model_->names;
    return name == "MuJoCo Model" ? options_.include.substr(0, options_.include.rfind('.')) : name;
  }

  void Config(const char* key, const std::string& value) {
    xml_ << "        <config key=\"" << key << "\" value=\"" << XmlText(value) << "\"/>\n";
  }

  double Period() const {
    const double timestep = model_->opt.timestep;
    return std::max(1.0, std::round(kPeriod / timestep)) * timestep;
  }

  void WritePolicy() {
    xml_ << "  <extension>\n    <plugin plugin=\"mjpolicy.policy\">\n"
         << "      <instance name=\"policy\">\n";
    Config("checkpoint", options_.checkpoint);
    TextWriter period;
    period.precision(10);
    period << Period();
    Config("period", period.str());
    if (!options_.camera.empty()) Config("camera", options_.camera);
    std::string state, actuators;
    for (size_t i = 0; i < joints_.size(); ++i) {
      const int id = joint_ids_[i];
      xml_ << "        <!-- joint " << XmlText(joints_[i]) << ": "
           << RangeText(model_->jnt_limited[id], model_->jnt_range + 2 * id)
           << UnitText(model_->jnt_type[id]) << " -->\n";
      state += (i ? " " : "") + ("joint:" + joints_[i]);
    }
    if (!state.empty()) Config("state", state);
    bool limited = true;
    TextWriter clip;
    clip.precision(17);
    for (const Drive& drive : drives_) {
      actuators += (actuators.empty() ? "" : " ") + drive.name;
      for (int k = 0; k < model_->actuator_ctrlnum[drive.actuator]; ++k) {
        const int address = model_->actuator_ctrladr[drive.actuator] + k;
        const mjtNum* range = model_->actuator_ctrlrange + 2 * address;
        limited = limited && model_->actuator_ctrllimited[address];
        clip << (clip.str().empty() ? "" : "  ") << range[0] << " " << range[1];
        xml_ << "        <!-- control " << XmlText(drive.name) << ": "
             << RangeText(model_->actuator_ctrllimited[address], range) << " -->\n";
      }
    }
    Config("actuators", actuators);
    // elsewhere the engine cuts to the ranges, and says so
    if (limited && (model_->opt.disableflags & mjDSBL_CLAMPCTRL)) {
      Config("action_clip", clip.str());
    }
    xml_ << "      </instance>\n    </plugin>\n  </extension>\n\n";
  }

  void WriteSensors() {
    xml_ << "  <sensor>\n    <plugin name=\"policy\" plugin=\"mjpolicy.policy\" "
            "instance=\"policy\"/>\n";
    if (measured_ < 0) {
      xml_ << "    <clock name=\"task_measure\"/>\n";
    } else {
      xml_ << "    <!-- EDIT: measure what the task is about; contact, distance, framepos ... -->\n"
           << "    <jointpos name=\"task_measure\" joint=\""
           << XmlText(NameOf(model_, mjOBJ_JOINT, measured_)) << "\"/>\n";
    }
    xml_ << "  </sensor>\n\n";
  }

  void WriteTask() {
    std::string start;
    const std::string key = model_->nkey > 0 ? NameOf(model_, mjOBJ_KEY, 0) : "";
    if (!key.empty()) {
      CheckWord(key);
      start = "key " + key;
    }
    for (size_t i = 0; i < joints_.size(); ++i) {
      if (!IsScalar(model_->jnt_type[joint_ids_[i]])) continue;
      const mjtNum* range = model_->jnt_range + 2 * joint_ids_[i];
      const double width = model_->jnt_limited[joint_ids_[i]] ? 0.05 * (range[1] - range[0]) : 0.05;
      TextWriter draw;
      draw << (start.empty() ? "" : "; ") << "joint " << joints_[i] << " around " << width;
      start += draw.str();
    }
    const bool limited = measured_ >= 0 && model_->jnt_limited[measured_];
    const double low = limited ? model_->jnt_range[2 * measured_] : -1;
    const double high = limited ? model_->jnt_range[2 * measured_ + 1] : 1;
    xml_ << "  <custom>\n    <numeric name=\"task.steps\" data=\""
         << std::lround(kEpisode / Period()) << "\"/>\n";
    if (!start.empty()) {
      xml_ << "    <text name=\"task.start\" data=\"" << XmlText(start) << "\"/>\n";
    }
    xml_ << "    <!-- EDIT: what counts, and what success is -->\n"
         << "    <text name=\"task.measures\" data=\"progress: task_measure from " << low << " to "
         << high << "\"/>\n    <text name=\"task.score\" data=\"progress\"/>\n"
         << "    <text name=\"task.success\" data=\"task_measure > " << low + 0.9 * (high - low)
         << "\"/>\n  </custom>\n";
  }

  const mjModel* model_;
  const ScaffoldOptions& options_;
  std::vector<Drive> drives_;
  std::vector<std::string> joints_;
  std::vector<int> joint_ids_;
  int measured_ = -1;  // the joint of the sensor that is proposed
  TextWriter xml_;
};

}  // namespace

std::string ScaffoldText(const mjModel* model, const ScaffoldOptions& options) {
  if (!options.camera.empty()) {
    CheckWord(options.camera);
    if (mj_name2id(model, mjOBJ_CAMERA, options.camera.c_str()) < 0) {
      throw BadInput(NoSuch("camera of the model", options.camera, NamesOf(model, mjOBJ_CAMERA)));
    }
  }
  return Writer(model, options).Write();
}

}  // namespace mjp::app
