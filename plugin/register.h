#ifndef PLUGIN_REGISTER_H_
#define PLUGIN_REGISTER_H_

namespace dp {

// The plugin's name in MJCF.
inline constexpr const char* kPluginName = "pusht.policy.diffusion";

// Registers the plugin with the engine of this process. False, with a warning, where the engine is
// of another version than the one this was compiled for, or knows the name already from another
// library.
bool RegisterPlugin();

}  // namespace dp

#endif  // PLUGIN_REGISTER_H_
