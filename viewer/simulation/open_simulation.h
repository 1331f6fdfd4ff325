#ifndef VIEWER_SIMULATION_OPEN_SIMULATION_H_
#define VIEWER_SIMULATION_OPEN_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tasks/demonstration/frames.h"
#include "viewer/simulation/simulation.h"

namespace mjp::app {

// What is to be opened, and how its policy is to run.
struct SimulationRequest {
  std::string model;       // MJCF; empty: pusht.xml
  std::string checkpoint;  // directory; empty: the one that the model names, or the shipped one
  // changes what is not to be as the model's attributes, or the checkpoint and the defaults, say
  std::function<void(mjp::PolicyOptions&)> overrule = [](mjp::PolicyOptions&) {};
  uint32_t seed = 100000;
  std::string record;  // folder of a data set that a person records; empty: none
  std::string hand;    // that the person drives (tasks/demonstration/person.h)
  PictureOptions pictures;  // of the data set
};

// Opens a model: one that has the policy as a plugin runs it so, Push-T without it runs the
// episodes of an evaluation, and any other is physics alone. With `record` a person drives a task
// file instead. Throws Error for what cannot be
// opened.
std::unique_ptr<Simulation> OpenSimulation(const SimulationRequest& request);

}  // namespace mjp::app

#endif  // VIEWER_SIMULATION_OPEN_SIMULATION_H_
