#ifndef PLUGIN_MODEL_MODEL_FOLDER_H_
#define PLUGIN_MODEL_MODEL_FOLDER_H_

#include <mujoco/mujoco.h>

#include <filesystem>
#include <vector>

namespace mjp {

// Names the folder of the MJCF file that this process is about to open, for hosts that link to the
// plugin: the engine tells a plugin nothing of it. Empty: unknown again.
void SetModelFolder(const std::filesystem::path& folder);

// Folders in which the MJCF of `model` may lie, best first: the one that the host named, then the
// nearest with an .xml file at or above an asset of the model, whose paths the engine keeps. Empty
// where neither is known: a model without files, in a host that knows nothing of this plugin.
std::vector<std::filesystem::path> ModelFolders(const mjModel* model);

}  // namespace mjp

#endif  // PLUGIN_MODEL_MODEL_FOLDER_H_
