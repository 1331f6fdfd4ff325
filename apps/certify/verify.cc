#include "apps/certify/verify.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "apps/certify/checksums.h"
#include "tasks/results/statistics.h"

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

// A value that must be `expected`, which says what it was derived from.
void AddDerived(const std::string& what, const Json& was, const Json& expected,
                const std::string& from, Comparisons& lines) {
  const bool equal = was == expected;
  lines.push_back({what, equal ? Verdict::kEqual : Verdict::kDiffers,
                   equal ? TextOf(was) + ", " + from
                         : "says " + TextOf(was) + ", " + from + " is " + TextOf(expected)});
}

// With `same_bits` the errors are equal up to last digits of the reference in double precision.
void AddError(const Json& stored, const Json& now, bool same_bits, Comparisons& lines) {
  const Json &was = stored.at("error"), &is = now.at("error");
  if (was.contains("absent") || is.contains("absent")) {
    lines.push_back({"error", was == is ? Verdict::kEqual : Verdict::kDiffers,
                     was == is ? "absent" : WasIs(was, is)});
    return;
  }
  AddDerived("error of", was.at("of"), is.at("of"), "which this program measures", lines);
  const double limit = ErrorLimit(now.at("settings").at("precision").get<std::string>());
  for (const char* key : {"p50", "p99", "max"}) {
    const double before = was.at(key), after = is.at(key);
    const bool within = same_bits ? std::abs(before - after) <= 1e-6 * after
                                  : before >= 0 && before <= limit && after <= limit;
    lines.push_back({std::string("error ") + key,
                     before == after ? Verdict::kEqual
                     : within        ? Verdict::kWithin
                                     : Verdict::kDiffers,
                     WasIs(was.at(key), is.at(key))});
  }
}

// What follows from the settings and the stored episodes alone, whether they are repeated or not.
void AddDerivedEpisodes(const Json& stored, Comparisons& lines) {
  const Json &episodes = stored.at("episodes"), &each = episodes.at("each");
  const Json& settings = stored.at("settings");
  AddDerived("settings episodes", settings.at("episodes"), each.size(), "the length of the list",
             lines);
  const auto seed = settings.at("seed").get<uint64_t>();
  int successes = 0;
  size_t following = 0;
  for (size_t i = 0; i < each.size(); ++i) {
    successes += each.at(i).at("success").get<bool>();
    following += each.at(i).at("seed") == seed + i;
  }
  AddDerived("episodes seed", following, each.size(), "seeds that follow each other", lines);
  const auto count = static_cast<int>(each.size());
  const Interval interval = Wilson95(successes, count);
  AddDerived("episodes success", episodes.at("success"), successes / static_cast<double>(count),
             std::to_string(successes) + " of " + std::to_string(count), lines);
  AddDerived("episodes interval_95", episodes.at("interval_95"), {interval.low, interval.high},
             "Wilson's of these", lines);
}

// A member of each repeated episode.
void AddEach(const char* member, const Json& was, const Json& is, Verdict otherwise,
             Comparisons& lines) {
  AddHashes(std::string("episodes each ") + member, Texts(was, member), Texts(is, member),
            otherwise, lines);
}

void AddEpisodes(const Json& stored, const Json& now, Verdict otherwise, Comparisons& lines) {
  const Json &was = stored.at("episodes"), &is = now.at("episodes");
  if (was.contains("absent") || is.contains("absent")) {
    lines.push_back({"episodes", was == is ? Verdict::kEqual : Verdict::kDiffers,
                     was == is ? "absent" : WasIs(was, is)});
    return;
  }
  AddDerived("episodes task", was.at("task"), is.at("task"), "the task that was repeated", lines);
  AddDerivedEpisodes(stored, lines);
  const Json &before = was.at("each"), &after = is.at("each");
  for (const char* member : {"hash", "score", "success"})
    AddEach(member, before, after, otherwise, lines);
  if (after.size() < before.size())
    lines.push_back({"episodes each", Verdict::kNotRepeated,
                     std::to_string(before.size() - after.size()) + " of " +
                         std::to_string(before.size()) + " episodes, by --episodes"});
}

// Its file is the same everywhere; what else differs is as `otherwise` says.
void AddModel(const Json& stored, const Json& now, Verdict otherwise, Comparisons& lines) {
  Json was = stored.value("model", Json::object()), is = now.value("model", Json::object());
  if (was.empty() && is.empty()) return;
  constexpr char kFile[] = "sha256";
  const auto file = [&](const Json& part) {
    return Json{{kFile, part.value(kFile, Json("absent"))}};
  };
  AddMembers("model", file(was), file(is), Verdict::kDiffers, lines);
  was.erase(kFile), is.erase(kFile);
  AddMembers("model", was, is, otherwise, lines);
}

void AddLatency(const Json& stored, const Json& now, Comparisons& lines) {
  const Json &was = stored.at("latency"), &is = now.at("latency");
  AddMembers("latency", was, is, Verdict::kNotRepeated, lines);
  AddDerived("settings timed", stored.at("settings").at("timed"), was.at("decisions"),
             "latency decisions", lines);
}

// Whether a certificate says with which batch, and so with which window, its episodes ran. On a GPU
// each part of earlier builds' ran with the window that was faster for its own batch, and their
// model's part ran as the model says, not with the settings.
bool SaysBatch(const Json& certificate) { return certificate.at("settings").contains("batch"); }

// All settings but the two that may be lowered, and those that earlier builds did not write.
void AddSettings(Json was, Json is, Comparisons& lines) {
  for (const char* key : {"episodes", "timed"}) was.erase(key), is.erase(key);
  for (const char* key : {"temperature", "batch"}) {
    if (was.contains(key) || !is.contains(key)) continue;
    lines.push_back({std::string("settings ") + key, Verdict::kNotRepeated,
                     "the certificate does not say it, " + TextOf(is[key]) + " was taken"});
    is.erase(key);
  }
  AddMembers("settings", was, is, Verdict::kDiffers, lines);
}

// Values that only one of the two has, of the parts that are lists or have a fixed form.
void AddUnknown(const Json& stored, const Json& now, Comparisons& lines) {
  const auto fixed = [](Json part) {
    for (const char* key :
         {"engine", "checkpoint", "settings", "machine", "model", "latency", "fields", "checksum"})
      part.erase(key);
    return LeavesOf(part);
  };
  const auto was = fixed(stored), is = fixed(now);
  const size_t repeated =
      now.at("episodes").contains("each") ? now.at("episodes").at("each").size() : 0;
  const auto left_out = [&](const std::string& place) {
    constexpr std::string_view kEach = "episodes/each/";
    return place.starts_with(kEach) && std::stoul(place.substr(kEach.size())) >= repeated;
  };
  for (const auto& [place, value] : was)
    if (!is.contains(place) && !left_out(place))
      lines.push_back({place, Verdict::kDiffers, "nothing of that name was measured"});
  for (const auto& [place, value] : is)
    if (!was.contains(place)) lines.push_back({place, Verdict::kDiffers, "is missing"});
}

}  // namespace

std::vector<Comparison> CompareCertificates(const Json& stored, const Json& now) {
  Comparisons lines;
  AddMembers("engine", stored.at("engine"), now.at("engine"), Verdict::kNotRepeated, lines);
  AddMembers("checkpoint", stored.at("checkpoint"), now.at("checkpoint"), Verdict::kDiffers, lines);
  AddSettings(stored.at("settings"), now.at("settings"), lines);
  AddMembers("machine", stored.at("machine"), now.at("machine"), Verdict::kNotRepeated, lines);
  // docs/NUMERICS.md, section 1: the CPU's decisions are the same everywhere, the physics on one
  // kind of processor, and all of it on one GPU's model
  const bool cpu = now.at("settings").at("backend") == "cpu";
  const bool same_device =
      cpu || stored.at("machine").value("runs_on", "") == now.at("machine").at("runs_on");
  const bool same_kind = same_device &&
                         stored.at("machine").value("kind", "") == now.at("machine").at("kind") &&
                         stored.at("engine").value("mujoco", "") == now.at("engine").at("mujoco");
  const auto promised = [](bool yes) { return yes ? Verdict::kDiffers : Verdict::kNotPromised; };
  const bool same_window = cpu || SaysBatch(stored);
  AddHashes("decisions", Texts(stored.at("decisions"), nullptr),
            Texts(now.at("decisions"), nullptr), promised(same_device && same_window), lines);
  AddEpisodes(stored, now, promised(same_kind && same_window), lines);
  AddModel(stored, now, promised(same_kind && SaysBatch(stored)), lines);
  AddError(stored, now, same_device, lines);
  for (const char* member : {"asked", "answer"})
    AddHashes(std::string("refused ") + member, Texts(stored.at("refused"), member),
              Texts(now.at("refused"), member), Verdict::kDiffers, lines);
  AddLatency(stored, now, lines);
  AddHashes("not_established", Texts(stored.at("not_established"), nullptr),
            Texts(now.at("not_established"), nullptr), Verdict::kDiffers, lines);
  AddUnknown(stored, now, lines);
  return lines;
}

std::vector<Comparison> CompareWithoutRepeating(const Json& stored, const Json& files) {
  Comparisons lines;
  AddMembers("checkpoint", stored.at("checkpoint"), files, Verdict::kDiffers, lines);
  if (!stored.at("episodes").contains("absent")) AddDerivedEpisodes(stored, lines);
  return lines;
}

std::string TextWhereNothingDiffers(const Json& stored, const std::vector<Comparison>& lines) {
  const auto has = [&](Verdict verdict, std::string_view what) {
    return std::ranges::any_of(lines, [&](const Comparison& line) {
      return line.verdict == verdict && line.what.starts_with(what);
    });
  };
  if (has(Verdict::kNotRepeated, "episodes"))
    return "nothing differs; leave out --episodes to repeat all of them";
  if (!has(Verdict::kNotPromised, "")) return "verified";
  const bool cpu = stored.at("settings").at("backend") == "cpu";
  const bool on_no_machine = !SaysBatch(stored) && (!cpu || has(Verdict::kNotPromised, "model"));
  return std::string("nothing differs that was promised; ") +
         (on_no_machine ? "it does not say with which batch its parts ran: certify the policy anew"
                        : "repeat it on a machine as the one above");
}

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kEqual:
      return "equal";
    case Verdict::kWithin:
      return "within tolerance";
    case Verdict::kNotRepeated:
      return "not repeated";
    case Verdict::kNotPromised:
      return "not promised";
    case Verdict::kDiffers:
      return "DIFFERS";
  }
  return "?";
}

}  // namespace mjp::app
