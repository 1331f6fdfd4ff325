#ifndef PLUGIN_REGISTER_H_
#define PLUGIN_REGISTER_H_

namespace mjp {

// The plugin's name in MJCF.
inline constexpr const char* kPluginName = "mjpolicy.policy";

// Registers the plugin with the engine of this process. False, with a warning, where the engine is
// of another version than the one this was compiled for, or knows the name already from another
// library.
bool RegisterPlugin();

}  // namespace mjp

#endif  // PLUGIN_REGISTER_H_
