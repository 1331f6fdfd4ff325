#include "plugin/score.h"

#include <map>
#include <mutex>

#include "base/fork.h"

namespace mjp {
namespace {

struct Registry {
  ForkMutex mutex;
  std::map<std::string, ScoreFactory> factories;
};

// made at first use, so that static constructors of any file may register
Registry& GetRegistry() {
  static Registry& registry = *new Registry;  // never destroyed, as its lock wants it
  return registry;
}

}  // namespace

void RegisterScore(const std::string& name, ScoreFactory factory) {
  Registry& registry = GetRegistry();
  std::lock_guard lock(registry.mutex);
  registry.factories.emplace(name, std::move(factory));
}

std::vector<std::pair<std::string, Score>> ScoresOf(const mjModel* model) {
  Registry& registry = GetRegistry();
  std::lock_guard lock(registry.mutex);
  std::vector<std::pair<std::string, Score>> scores;
  for (const auto& [name, factory] : registry.factories) {
    if (Score score = factory(model)) scores.emplace_back(name, std::move(score));
  }
  return scores;
}

std::vector<std::string> ScoreNames() {
  Registry& registry = GetRegistry();
  std::lock_guard lock(registry.mutex);
  std::vector<std::string> names;
  for (const auto& [name, factory] : registry.factories) names.push_back(name);
  return names;
}

}  // namespace mjp
