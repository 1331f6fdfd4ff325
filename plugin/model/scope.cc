#include "plugin/model/scope.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "plugin/notices.h"

namespace mjp {
namespace {

struct Affixes {
  std::string_view prefix, suffix;
};

// "site:tip[0:2]" in three parts: what stands before the name "tip", it, and what stands after it.
struct Parts {
  explicit Parts(const std::string& text) {
    const size_t open = std::min(text.find('['), text.size()), colon = text.find(':');
    const size_t begin = colon < open ? colon + 1 : 0;
    before = text.substr(0, begin);
    name = text.substr(begin, open - begin);
    after = text.substr(open);
  }
  std::string before, name, after;
};

std::string Qualified(const Affixes& affixes, const std::string& name) {
  return std::string(affixes.prefix) + name + std::string(affixes.suffix);
}

// A name in the attributes, and what it may be the name of.
struct Reference {
  std::string* text;
  std::vector<mjtObj> kinds;
};

std::vector<Reference> References(Config& config) {
  std::vector<Reference> references;
  const auto add = [&](std::vector<std::string>& names, std::initializer_list<mjtObj> kinds) {
    for (std::string& name : names) references.push_back({&name, kinds});
  };
  add(config.actuators, {mjOBJ_ACTUATOR, mjOBJ_JOINT});
  add(config.cameras, {mjOBJ_CAMERA});
  add(config.state, {mjOBJ_JOINT, mjOBJ_SENSOR, mjOBJ_SITE, mjOBJ_BODY});
  add(config.environment, {mjOBJ_JOINT, mjOBJ_SENSOR, mjOBJ_SITE, mjOBJ_BODY});
  if (!config.trail.empty()) references.push_back({&config.trail, {mjOBJ_SITE, mjOBJ_BODY}});
  if (!config.label.empty()) references.push_back({&config.label, {mjOBJ_SITE}});
  return references;
}

bool InModel(const mjModel* model, const Reference& reference, const Affixes& affixes) {
  const std::string name = Qualified(affixes, Parts(*reference.text).name);
  return std::ranges::any_of(
      reference.kinds, [&](mjtObj kind) { return mj_name2id(model, kind, name.c_str()) >= 0; });
}

int CountInModel(const mjModel* model, const std::vector<Reference>& references,
                 const Affixes& affixes) {
  return static_cast<int>(std::ranges::count_if(
      references, [&](const Reference& each) { return InModel(model, each, affixes); }));
}

// "L_", not the "p" that "policy" and "px" begin with as well.
bool Separated(const Affixes& affixes) {
  const auto separator = [](unsigned char c) { return !std::isalnum(c); };
  return (affixes.prefix.empty() || separator(affixes.prefix.back())) &&
         (affixes.suffix.empty() || separator(affixes.suffix.front()));
}

// What the instance's name begins and ends with, and most references have in the model; empty where
// none is there so.
Affixes FindAffixes(const mjModel* model, std::string_view name,
                    const std::vector<Reference>& references, bool separated) {
  Affixes best;
  int most = 0;
  for (size_t length = name.size() - 1; length > 0; --length) {  // the longest first
    for (size_t prefix = 0; prefix <= length; ++prefix) {
      const Affixes affixes{name.substr(0, prefix), name.substr(name.size() - (length - prefix))};
      if (separated && !Separated(affixes)) continue;
      const int count = CountInModel(model, references, affixes);
      if (count > most) best = affixes;
      most = std::max(most, count);
    }
  }
  return best;
}

[[noreturn]] void ThrowAmbiguous(const mjModel* model, int instance, const Affixes& affixes,
                                 const std::vector<Reference>& references) {
  std::string there, missing;
  for (const Reference& each : references) {
    (InModel(model, each, affixes) ? there : missing) = Qualified(affixes, Parts(*each.text).name);
  }
  throw BadInput("the attributes of " + InstanceName(model, instance) +
                 " have two meanings: the model has the names as they stand, and also \"" + there +
                 "\", but no \"" + missing + "\"; write each name in full in the attributes");
}

}  // namespace

Config InOwnScope(const mjModel* model, int instance, Config config) {
  const char* name = mj_id2name(model, mjOBJ_PLUGIN, instance);
  if (!name || !*name) return config;
  const std::vector<Reference> references = References(config);
  const int all = static_cast<int>(references.size());
  const int plain = CountInModel(model, references, {});
  const Affixes affixes = FindAffixes(model, name, references, plain == all);
  const int own = CountInModel(model, references, affixes);
  if (affixes.prefix.empty() && affixes.suffix.empty()) return config;
  if (plain == all && own < all) ThrowAmbiguous(model, instance, affixes, references);
  if (own < plain) return config;
  for (const Reference& each : references) {
    const Parts parts(*each.text);
    *each.text = parts.before + Qualified(affixes, parts.name) + parts.after;
  }
  config.prefix = affixes.prefix;
  config.suffix = affixes.suffix;
  return config;
}

}  // namespace mjp
