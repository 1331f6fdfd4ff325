#include "viewer/simulation/open_simulation.h"

#include <mujoco/mujoco.h>

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "plugin/model/model_folder.h"
#include "plugin/register.h"
#include "plugin/state.h"
#include "tasks/pusht/physics/scene.h"
#include "viewer/simulation/episode_simulation.h"
#include "viewer/simulation/model_simulation.h"
#include "viewer/simulation/recording_simulation.h"

namespace mjp::app {
namespace {

// Whether a model file has the policy as a plugin. False too for one that is no model at all.
bool NamesPolicy(const std::string& file) {
  char reason[1000] = "";
  mjSpec* spec = mj_parseXML(file.c_str(), nullptr, reason, sizeof(reason));
  if (spec == nullptr) return false;
  bool found = false;
  for (mjsElement* e = mjs_firstElement(spec, mjOBJ_PLUGIN); e; e = mjs_nextElement(spec, e)) {
    found |= std::string(mjs_getString(mjs_asPlugin(e)->plugin_name)) == mjp::kPluginName;
  }
  mj_deleteSpec(spec);
  return found;
}

bool IsPusht(const mjModel* model) {
  try {
    const Scene scene(model);
    return true;
  } catch (const mjp::Error&) {
    return false;
  }
}

}  // namespace

std::unique_ptr<Simulation> OpenSimulation(const SimulationRequest& request) {
  if (!mjp::RegisterPlugin()) throw mjp::EnvironmentError("the engine refused the plugin");
  const std::string file = request.model.empty() ? ModelPath("pusht.xml") : request.model;
  mjp::SetModelFolder(std::filesystem::absolute(file).parent_path());
  if (!request.record.empty()) return std::make_unique<RecordingSimulation>(file, request);
  // decided without making a policy: a model that names a missing checkpoint can be given another
  if (!NamesPolicy(file)) {
    ModelPtr model = LoadModel(file);
    if (IsPusht(model.get())) {
      const std::shared_ptr<const mjp::Checkpoint> checkpoint = OpenCheckpoint(request.checkpoint);
      mjp::PolicyOptions options;
      request.overrule(options);
      return std::make_unique<EpisodeSimulation>(std::move(model), checkpoint, options,
                                                 request.seed);
    }
  }
  return std::make_unique<ModelSimulation>(file, request);
}

}  // namespace mjp::app
