#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "apps/commands.h"
#include "base/error.h"
#include "base/folders.h"
#include "base/program/own_program.h"
#include "base/text_stream.h"

// A host loads every library of one folder as it starts. One that does not fit its engine makes
// hosts up to MuJoCo 4.0.0 end there, and makes Python's `import mujoco` fail.

namespace mjp::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libmjpolicy.so";
constexpr const char* kNote = "mjpolicy.txt";
constexpr const char* kEngine = "libmujoco.so.4.0.1";
constexpr size_t kMostBytes = size_t{1} << 30;  // of the library

// The plugin that was built or installed together with this program.
fs::path BuiltLibrary() {
  const fs::path root = mjp::OwnProgram().parent_path().parent_path();
  fs::path library;
  for (const char* folder : {MJPOLICY_LIBRARY_FOLDER, "lib"}) {
    library = root / folder / "mujoco_plugin" / kLibrary;
    if (fs::exists(library)) return library;
  }
  throw mjp::EnvironmentError("there is no " + library.string() +
                              "; build or install the target mjpolicy");
}

// The folder of `simulate` on PATH, links followed as the program itself does.
fs::path FindSimulate() {
  const char* path = std::getenv("PATH");
  mjp::TextReader folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path program = fs::path(folder) / "simulate";
    std::error_code error;
    if (fs::is_regular_file(program, error)) return fs::canonical(program).parent_path();
  }
  throw mjp::Error(mjp::ExitCode::kUsage,
                   "no simulate on PATH; name its folder with --into, or load the library by "
                   "mj_loadPluginLibrary(\"" +
                       BuiltLibrary().string() + "\")");
}

struct Place {
  fs::path folder;               // where the library goes
  std::vector<fs::path> engine;  // where the host's engine may lie
  bool python = false;
};

// Throws Error for what is no folder: a name with a typo must not become one that no host reads.
void CheckFolder(const fs::path& given) {
  std::error_code error;
  if (fs::is_directory(given, error)) return;
  // what `simulate` reads, and its archive lacks
  const fs::path host = given.parent_path();
  if (given.filename() == "mujoco_plugin" && fs::is_directory(host, error)) return;
  throw mjp::BadInput("nothing was installed: there is no folder " + given.string() +
                      "; --into names MuJoCo's folder, that of simulate, a plugin folder, or "
                      "Python's package mujoco");
}

// What `given` is: a MuJoCo folder, that of simulate, a plugin folder, Python's package.
Place Recognise(const fs::path& given) {
  if (fs::exists(given / "__init__.py") && fs::exists(given / "plugin")) {
    return {given / "plugin", {given}, true};
  }
  if (given.filename() == "plugin" && fs::exists(given.parent_path() / "__init__.py")) {
    return {given, {given.parent_path()}, true};
  }
  if (fs::exists(given / "bin" / "simulate")) return Recognise(given / "bin");
  if (fs::exists(given / "simulate")) {
    return {given / "mujoco_plugin", {given, given.parent_path() / "lib"}};
  }
  const fs::path host = given.parent_path();
  return {given, {host, host.parent_path() / "lib"}};
}

// Throws Error where an engine lies beside the host and it is another one.
void CheckEngine(const Place& place) {
  std::string other;
  for (const fs::path& folder : place.engine) {
    std::error_code error;
    if (fs::exists(folder / kEngine, error)) return;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("libmujoco.so.")) other = entry.path().string();
    }
  }
  if (!other.empty()) {
    throw mjp::BadInput("nothing was installed: the host's engine is " + other +
                        ", the plugin is for " + kEngine +
                        " and would keep the host from starting; use MuJoCo 4.0.1");
  }
  if (place.python) {
    throw mjp::BadInput("nothing was installed: there is no " + std::string(kEngine) + " in " +
                        place.engine[0].string() +
                        ", and a library that does not fit makes \"import mujoco\" fail");
  }
  std::printf("could not see which engine the host has: the plugin is for MuJoCo 4.0.1 only\n");
}

int Install(const std::string& into) {
  const fs::path library = BuiltLibrary();
  const fs::path given = into.empty() ? FindSimulate() : fs::absolute(into).lexically_normal();
  CheckFolder(given);
  const Place place = Recognise(given);
  CheckEngine(place);
  fs::create_directories(place.folder);
  const fs::path target = place.folder / kLibrary;
  // not written in place: a host that has the old one open keeps it
  WriteFileAtomically(target, ReadFile(library, kMostBytes));
  std::printf("installed %s\n", target.c_str());
  if (place.python) {
    std::printf(
        "Python loads it at \"import mujoco\". Remove it before another version of MuJoCo is "
        "installed there, or the import fails:\n  rm %s\n",
        target.c_str());
    return 0;
  }
  const fs::path note = place.folder / kNote;
  WriteFileAtomically(note,
                      std::string(kLibrary) +
                          ": a diffusion policy as a MuJoCo plugin (mjpolicy.policy).\n"
                          "For MuJoCo 4.0.1 only: remove it before you put another engine here.\n");
  std::printf("installed %s\nopen models/pusht_policy.xml in that host to see it run\n",
              note.c_str());
  return 0;
}

}  // namespace

Action AddInstallPlugin(CLI::App& app) {
  auto into = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("install-plugin", "Put the plugin where a MuJoCo host loads it from");
  command
      ->add_option("--into", *into,
                   "MuJoCo's folder, that of simulate, a plugin folder, or Python's package "
                   "mujoco")
      ->type_name("DIR")
      ->default_str("the simulate on PATH");
  return [into] {
    try {
      return Install(*into);
    } catch (const fs::filesystem_error& error) {
      throw mjp::BadInput("the plugin was not installed: " + std::string(error.what()));
    }
  };
}

}  // namespace mjp::app
