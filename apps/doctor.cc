#include <mujoco/mujoco.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

#include "apps/commands.h"
#include "apps/doctor/finding.h"
#include "base/command_line/terminal.h"
#include "base/data_folders.h"
#include "base/error.h"
#include "base/json.h"
#include "base/program/own_program.h"
#include "kernels/cpu/isa.h"
#include "plugin/pictures/egl_context.h"
#include "plugin/pictures/shared_pictures.h"
#include "tasks/evaluation/version.h"
#include "tasks/recording/video.h"

// One page on what this machine offers the program: engine, processor, GPUs, pictures, videos.

namespace mjp::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHealthWords[] = {"ok", "absent", "ill"};

Finding Engine() {
  const std::string version = mj_versionString();
  const int header = mjVERSION_HEADER;
  if (mj_version() == header) return {"engine", Health::kWell, "MuJoCo " + version, ""};
  return {"engine", Health::kIll, "MuJoCo " + version + ", and this build needs 4.0.1",
          "put the library of 4.0.1 first: pip install mujoco-core==4.0.1 has it"};
}

Finding Plugin() {
  const fs::path root = mjp::OwnProgram().parent_path().parent_path();
  for (const char* folder : {MJPOLICY_LIBRARY_FOLDER, "lib"}) {
    const fs::path library = root / folder / "mujoco_plugin" / "libmjpolicy.so";
    if (fs::exists(library)) return {"plugin", Health::kWell, library.string(), ""};
  }
  return {"plugin", Health::kIll, "libmjpolicy.so is not beside this program",
          "scripts/build dev mjpolicy_plugin, or install all components"};
}

Finding Processor() {
  return {"processor", Health::kWell,
          std::string(mjp::IsaName(mjp::ActiveIsa())) + " kernels, " +
              std::to_string(std::thread::hardware_concurrency()) + " threads",
          ""};
}

Finding Data(const std::string& kind, const std::string& file) {
  for (const fs::path& folder : mjp::DataFolders(kind))
    if (fs::exists(folder / file)) return {kind, Health::kWell, (folder / file).string(), ""};
  return {kind, Health::kIll, kind + "/" + file + " was not found",
          std::string("name its folder by the variable MJPOLICY_") +
              (kind == "models" ? "MODELS" : "ASSETS")};
}

// A context stays current on its thread, so it gets one of its own.
Finding Pictures() {
  Finding finding = {"EGL", Health::kWell, "", ""};
  std::jthread([&finding] {
    try {
      const mjp::EglContext context(-1);
      finding.text = context.description();
      if (!context.software()) {
        finding.text += "; " + mjp::SharedPicturesText(context);
        return;
      }
      finding.health = Health::kAbsent;
      finding.text += ": MuJoCo's renderer draws on the CPU";
      finding.remedy =
          "on a machine with a GPU: install its driver's EGL library (libnvidia-egl, or "
          "Mesa's for others)";
    } catch (const mjp::Error& error) {
      finding = {"EGL", Health::kIll, error.what(),
                 "apt-get install libegl1 libegl-mesa0 libgl1-mesa-dri; Push-T's own rasteriser "
                 "needs none"};
    }
  }).join();
  return finding;
}

Finding Videos() {
  const std::string ffmpeg = FindProgram("ffmpeg");
  if (!ffmpeg.empty()) return {"videos", Health::kWell, ffmpeg, ""};
  return {"videos", Health::kAbsent, "no ffmpeg on PATH: videos are written as .avi",
          "apt-get install ffmpeg"};
}

Findings Examine() {
  Findings findings = {Engine(), Plugin(), Processor(), Data("assets", "pusht_image"),
                       Data("models", "pusht.xml")};
  for (Finding& finding : ExamineGpus()) findings.push_back(std::move(finding));
  findings.push_back(Pictures());
  findings.push_back(Videos());
  return findings;
}

Colour ColourOf(Health health) {
  if (health == Health::kWell) return Colour::kGreen;
  return health == Health::kAbsent ? Colour::kYellow : Colour::kRed;
}

void PrintPage(const Findings& findings) {
  std::printf("%s\n\n", VersionText().c_str());
  for (const Finding& finding : findings) {
    char health[16];
    std::snprintf(health, sizeof(health), "%-7s", kHealthWords[static_cast<int>(finding.health)]);
    const std::string shown = Coloured(stdout, ColourOf(finding.health), health);
    std::printf("%s %-10s %s\n", shown.c_str(), finding.name.c_str(), finding.text.c_str());
    if (!finding.remedy.empty()) std::printf("%-18s -> %s\n", "", finding.remedy.c_str());
  }
}

void PrintJson(const Findings& findings) {
  mjp::Json json = {{"version", ProjectVersion()}, {"findings", mjp::Json::array()}};
  for (const Finding& finding : findings)
    json["findings"].push_back({{"name", finding.name},
                                {"health", kHealthWords[static_cast<int>(finding.health)]},
                                {"text", finding.text},
                                {"remedy", finding.remedy}});
  std::printf("%s\n", JsonText(json, 1).c_str());
}

int Run(bool json) {
  const Findings findings = Examine();
  json ? PrintJson(findings) : PrintPage(findings);
  for (const Finding& finding : findings)
    if (finding.health == Health::kIll) return static_cast<int>(mjp::ExitCode::kEnvironment);
  return 0;
}

}  // namespace

Action AddDoctor(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what this machine offers: engine, processor, GPUs, pictures, videos");
  command->add_flag("--json", *json, "Print JSON");
  command->footer("Exit code 3 if a line is ill: what was built for does not work.");
  return [json] { return Run(*json); };
}

}  // namespace mjp::app
