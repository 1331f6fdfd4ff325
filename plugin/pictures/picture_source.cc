#include "plugin/pictures/picture_source.h"

#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/fork.h"
#include "plugin/pictures/mujoco_renderer.h"

namespace mjp {
namespace {

constexpr char kMujoco[] = "mujoco";

thread_local int policy_picture_depth = 0;

struct Registry {
  ForkMutex mutex;
  struct Entry {
    PictureSourceFactory factory;
    const SceneDrawer* drawer = nullptr;
  };
  std::map<std::string, Entry> sources{{kMujoco, {MakeMujocoPictureSource}}};
};

// made at first use, so that static constructors of any file may register
Registry& GetRegistry() {
  static Registry& registry = *new Registry;  // never destroyed, as its lock wants it
  return registry;
}

}  // namespace

void RegisterPictureSource(const std::string& name, PictureSourceFactory factory,
                           const SceneDrawer* drawer) {
  Registry& registry = GetRegistry();
  std::lock_guard lock(registry.mutex);
  registry.sources.emplace(name, Registry::Entry{std::move(factory), drawer});
}

const SceneDrawer* SceneDrawerOf(const std::string& name) {
  Registry& registry = GetRegistry();
  std::lock_guard lock(registry.mutex);
  for (const auto& [each, source] : registry.sources) {
    if ((name == "auto" || name == each) && source.drawer != nullptr) return source.drawer;
  }
  return nullptr;
}

std::vector<std::string> PictureSourceNames() {
  Registry& registry = GetRegistry();
  std::lock_guard lock(registry.mutex);
  std::vector<std::string> names;
  for (const auto& [name, source] : registry.sources) names.push_back(name);
  return names;
}

std::unique_ptr<PictureSource> CreatePictureSource(const std::string& name, const mjModel* model,
                                                   const PictureRequest& request) {
  PictureSourceFactory factory;
  {
    Registry& registry = GetRegistry();
    std::lock_guard lock(registry.mutex);
    const auto found = registry.sources.find(name);
    if (found != registry.sources.end()) factory = found->second.factory;
  }
  if (factory) return factory(model, request);
  std::string known;
  for (const std::string& each : PictureSourceNames()) known += (known.empty() ? "" : ", ") + each;
  throw BadInput("renderer \"" + name + "\" is unknown; choose one of: " + known);
}

std::vector<std::string> RenderersOf(const std::string& renderer) {
  if (renderer != "auto") return {renderer};
  std::vector<std::string> names = PictureSourceNames();
  std::erase(names, kMujoco);
  names.push_back(kMujoco);
  return names;
}

std::vector<PictureLook> LooksBy(const std::string& renderer, const mjModel* model,
                                 const PictureRequest& request) {
  for (const std::string& name : RenderersOf(renderer)) {
    if (name == kMujoco) return MujocoLooks(model, request);
    try {
      return CreatePictureSource(name, model, request)->Looks();
    } catch (const Error&) {  // the next one then, or none: whoever draws says why
    }
  }
  return {};
}

bool RenderingPolicyPicture() { return policy_picture_depth > 0; }

PolicyPictureScope::PolicyPictureScope() { ++policy_picture_depth; }
PolicyPictureScope::~PolicyPictureScope() { --policy_picture_depth; }

}  // namespace mjp
