#include <cstdio>

#include "apps/certify/certificate.h"

namespace mjp::app {
namespace {

std::string TextOf(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump();
  char text[40];
  std::snprintf(text, sizeof(text), "%.4g", value.get<double>());
  return text;
}

// A table of an object's members; those that are objects themselves have a row for each of theirs.
std::string TableOf(const std::string& title, const Json& object) {
  std::string text = "\n## " + title + "\n\n| what | value |\n|---|---|\n";
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      for (const auto& [inner, inner_value] : value.items())
        text += "| " + key + ", " + inner + " | " + TextOf(inner_value) + " |\n";
    } else {
      text += "| " + key + " | " + TextOf(value) + " |\n";
    }
  }
  return text;
}

std::string EpisodesText(const Json& episodes) {
  if (episodes.contains("absent"))
    return "\n## Episodes\n\nNone: " + TextOf(episodes["absent"]) + "\n";
  char text[200];
  std::snprintf(
      text, sizeof(text), "\n## Episodes\n\n%zu of %s: success %.1f %% (95 %%: %.1f to %.1f).\n",
      episodes["each"].size(), TextOf(episodes["task"]).c_str(),
      100 * episodes["success"].get<double>(), 100 * episodes["interval_95"][0].get<double>(),
      100 * episodes["interval_95"][1].get<double>());
  return text;
}

}  // namespace

std::string PageOf(const Json& certificate, const std::string& name) {
  const Json& settings = certificate["settings"];
  std::string text =
      std::string(kPageTitle) + ": " + name + " on " + TextOf(settings["backend"]) + ", " +
      TextOf(settings["sampler"]) + " " + TextOf(settings["steps"]) +
      "\n\nWritten by `mjpolicy certify`; the JSON file with the same name has every hash, and\n"
      "`mjpolicy certify DIR --verify FILE.json` repeats it.\n";
  text += TableOf("Engine", certificate["engine"]);
  text += TableOf("Checkpoint, SHA-256", certificate["checkpoint"]);
  text += TableOf("Settings", certificate["settings"]);
  text += TableOf("Machine", certificate["machine"]);
  if (certificate.contains("model")) text += TableOf("Model", certificate["model"]);
  text += EpisodesText(certificate["episodes"]);
  text += TableOf("Error against double precision", certificate["error"]);
  text += TableOf("Latency and memory", certificate["latency"]);
  text += "\nThe fixed work has the same instructions each time: what spreads it is the machine.\n";
  text += "\n## Refused\n\n| asked | answer |\n|---|---|\n";
  for (const Json& each : certificate["refused"])
    text += "| " + TextOf(each["asked"]) + " | " + TextOf(each["answer"]) + " |\n";
  text += "\n## What this does not establish\n\n";
  for (const Json& each : certificate["not_established"]) text += "* " + TextOf(each) + ";\n";
  return text;
}

}  // namespace mjp::app
