#include "apps/certify/verify.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/error.h"

namespace mjp::app {
namespace {

using Comparisons = std::vector<Comparison>;

std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string WasIs(const Json& was, const Json& is) {
  return "was " + TextOf(was) + ", is " + TextOf(is);
}

// Members of one object: equal, or not as `otherwise` says.
void AddMembers(const std::string& name, const Json& was, const Json& is, Verdict otherwise,
                Comparisons& lines) {
  std::set<std::string> keys;
  for (const Json* object : {&was, &is})
    for (const auto& [key, value] : object->items()) keys.insert(key);
  for (const std::string& key : keys) {
    const Json before = was.contains(key) ? was[key] : Json("absent");
    const Json after = is.contains(key) ? is[key] : Json("absent");
    const bool equal = before == after;
    lines.push_back({name + " " + key, equal ? Verdict::kEqual : otherwise,
                     equal ? TextOf(before) : WasIs(before, after)});
  }
}

// Hashes side by side, as many as both have.
void AddHashes(const std::string& name, const std::vector<std::string>& was,
               const std::vector<std::string>& is, Verdict otherwise, Comparisons& lines) {
  const size_t count = std::min(was.size(), is.size());
  size_t equal = 0;
  for (size_t i = 0; i < count; ++i) equal += was[i] == is[i];
  const std::string text = std::to_string(equal) + " of " + std::to_string(count) + " are equal";
  lines.push_back({name, equal == count && count > 0 ? Verdict::kEqual : otherwise, text});
}

std::vector<std::string> Texts(const Json& list, const char* member) {
  std::vector<std::string> texts;
  for (const Json& each : list)
    texts.push_back(TextOf(member == nullptr ? each : each.value(member, Json())));
  return texts;
}

// docs/NUMERICS.md, network output
double ErrorLimit(const std::string& precision) {
  if (precision == "fp32") return 1e-5;
  return precision == "bf16" ? 3e-2 : 5e-3;
}

void AddError(const Json& stored, const Json& now, Comparisons& lines) {
  const Json &was = stored.at("error"), &is = now.at("error");
  if (was.contains("absent") || is.contains("absent")) {
    lines.push_back({"error", was == is ? Verdict::kEqual : Verdict::kDiffers,
                     was == is ? "absent" : WasIs(was, is)});
    return;
  }
  const double limit = ErrorLimit(now.at("settings").at("precision").get<std::string>());
  for (const char* key : {"p50", "p99", "max"}) {
    const bool within = is.value(key, 1e300) <= limit && was.value(key, 1e300) <= limit;
    lines.push_back({std::string("error ") + key,
                     was.value(key, Json()) == is.value(key, Json()) ? Verdict::kEqual
                     : within                                        ? Verdict::kWithin
                                                                     : Verdict::kDiffers,
                     WasIs(was.value(key, Json()), is.value(key, Json()))});
  }
}

// Success in fewer episodes than were stored is that of the same ones.
void AddSuccess(const Json& was, const Json& is, Comparisons& lines) {
  const size_t count = is.at("each").size();
  int before = 0, after = 0;
  for (size_t i = 0; i < count && i < was.at("each").size(); ++i) {
    before += was.at("each").at(i).value("success", false);
    after += is.at("each").at(i).value("success", false);
  }
  const double share = static_cast<double>(after) / static_cast<double>(std::max<size_t>(count, 1));
  const bool inside = share >= was.at("interval_95").at(0) && share <= was.at("interval_95").at(1);
  lines.push_back({"success",
                   before == after ? Verdict::kEqual
                   : inside        ? Verdict::kWithin
                                   : Verdict::kDiffers,
                   "was " + std::to_string(before) + ", is " + std::to_string(after) + " of " +
                       std::to_string(count)});
}

void AddEpisodes(const Json& stored, const Json& now, Verdict otherwise, Comparisons& lines) {
  const Json &was = stored.at("episodes"), &is = now.at("episodes");
  if (was.contains("absent") || is.contains("absent")) {
    const bool both = was.contains("absent") && is.contains("absent");
    lines.push_back({"episodes", both ? Verdict::kEqual : Verdict::kDiffers, "absent"});
    return;
  }
  AddHashes("episodes", Texts(was.at("each"), "hash"), Texts(is.at("each"), "hash"), otherwise,
            lines);
  AddSuccess(was, is, lines);
}

}  // namespace

std::vector<Comparison> CompareCertificates(const Json& stored, const Json& now) {
  Comparisons lines;
  AddMembers("engine", stored.at("engine"), now.at("engine"), Verdict::kNotCompared, lines);
  AddMembers("checkpoint", stored.at("checkpoint"), now.at("checkpoint"), Verdict::kDiffers, lines);
  AddMembers("machine", stored.at("machine"), now.at("machine"), Verdict::kNotCompared, lines);
  // docs/NUMERICS.md, section 1: the CPU's decisions are the same everywhere, the physics on one
  // kind of processor, and all of it on one GPU's model
  const bool cpu = now.at("settings").at("backend") == "cpu";
  const bool same_device =
      cpu || stored.at("machine").value("runs_on", "") == now.at("machine").at("runs_on");
  const bool same_kind = same_device &&
                         stored.at("machine").value("kind", "") == now.at("machine").at("kind") &&
                         stored.at("engine").value("mujoco", "") == now.at("engine").at("mujoco");
  const auto promised = [](bool yes) { return yes ? Verdict::kDiffers : Verdict::kNotCompared; };
  AddHashes("decisions", Texts(stored.at("decisions"), nullptr),
            Texts(now.at("decisions"), nullptr), promised(same_device), lines);
  AddEpisodes(stored, now, promised(same_kind), lines);
  if (stored.contains("model") || now.contains("model"))
    AddMembers("model", stored.value("model", Json::object()), now.value("model", Json::object()),
               promised(same_kind), lines);
  AddError(stored, now, lines);
  AddHashes("refused", Texts(stored.at("refused"), "answer"), Texts(now.at("refused"), "answer"),
            Verdict::kDiffers, lines);
  AddMembers("latency", stored.at("latency"), now.at("latency"), Verdict::kNotCompared, lines);
  return lines;
}

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kEqual:
      return "equal";
    case Verdict::kWithin:
      return "within tolerance";
    case Verdict::kNotCompared:
      return "not compared";
    case Verdict::kDiffers:
      return "DIFFERS";
  }
  return "?";
}

}  // namespace mjp::app
