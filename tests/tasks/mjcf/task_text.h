#ifndef TESTS_TASKS_MJCF_TASK_TEXT_H_
#define TESTS_TASKS_MJCF_TASK_TEXT_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/error.h"
#include "tasks/mjcf/task_file.h"
#include "tasks/mjcf/world.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {

// Task files made of a small world: a ball that falls onto a floor, a slider with a servo, a hand
// that is moved (mocap), two lights, two cameras.
class TaskTextTest : public ::testing::Test {
 protected:
  // Elements of <custom> by name; "task.steps" and "task.run_on" are numbers.
  using Elements = std::map<std::string, std::string>;

  static Elements Basic() {
    return {{"task.steps", "20"}, {"task.start", "key up"}, {"task.success", "touch"}};
  }
  static Elements With(const std::string& name, const std::string& value) {
    Elements elements = Basic();
    elements[name] = value;
    return elements;
  }

  static std::string Xml(const Elements& elements, const std::string& config = "") {
    std::string custom;
    for (const auto& [name, value] : elements) {
      const bool number = name == "task.steps" || name == "task.run_on";
      custom += std::string(number ? "<numeric" : "<text") + " name=\"" + name + "\" data=\"" +
                value + "\"/>";
    }
    return R"(<mujoco model="small"><option timestep="0.01"/>
      <worldbody>
        <light name="lamp" pos="0 0 3" diffuse="0.5 0.5 0.5"/>
        <camera name="front" pos="0 -3 0.5" xyaxes="1 0 0 0 0 1"/>
        <geom name="floor" type="plane" size="2 2 0.1"/>
        <body name="ball" pos="0 0 1"><freejoint name="ball"/><geom name="ball" size="0.1"/>
          <camera name="chase" mode="track" pos="0 -1 0"/><light name="spot" mode="trackcom" pos="0 0 1"/></body>
        <body name="slider" pos="1 0 0.5"><joint name="slide" type="slide" axis="1 0 0" damping="1"/>
          <geom name="brick" type="box" size="0.1 0.1 0.1" mass="1" contype="0" conaffinity="0"/></body>
        <body name="hand" mocap="true" pos="0 1 1"><geom name="palm" size="0.05" contype="0" conaffinity="0"/></body>
      </worldbody>
      <actuator><position joint="slide" kp="50" ctrlrange="-1 1"/></actuator>
      <keyframe>
        <key name="up" qpos="0 0 0.5 1 0 0 0 0.25" ctrl="0.5"/>
        <key name="down" qpos="0 0 0.1 1 0 0 0 0"/>
      </keyframe>
      <extension><plugin plugin="mjpolicy.policy"><instance name="policy">
        <config key="checkpoint" value="nowhere"/><config key="state" value="joint:slide"/>
        <config key="actuators" value="slide"/>)" +
           config + R"(</instance></plugin></extension>
      <sensor>
        <contact name="touch" geom1="ball" geom2="floor" data="found"/>
        <framepos name="place" objtype="body" objname="ball"/>
        <framelinvel name="speed" objtype="body" objname="ball"/>
        <framelinacc name="push" objtype="body" objname="slider"/>
        <jointpos name="slide" joint="slide"/>
        <user name="shown" dim="1" needstage="pos"/>
      </sensor>
      <custom>)" +
           custom + "</custom></mujoco>";
  }

  mjp::app::TaskFile Load(const Elements& elements, const std::string& config = "") const {
    return mjp::app::TaskFile(folder_.Write("task.xml", Xml(elements, config)));
  }
  // Why such a file is none.
  std::string Refusal(const Elements& elements, const std::string& config = "") const {
    try {
      Load(elements, config);
    } catch (const mjp::Error& error) {
      EXPECT_EQ(error.code(), mjp::ExitCode::kBadInput);
      return error.what();
    }
    return "it was read";
  }
  std::string Refusal(const std::string& name, const std::string& value) const {
    return Refusal(With(name, value));
  }

  TempDir folder_;
};

}  // namespace mjp_test

#endif  // TESTS_TASKS_MJCF_TASK_TEXT_H_
