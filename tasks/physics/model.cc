#include "tasks/physics/model.h"

#include <filesystem>
#include <vector>

#include "base/data_folders.h"
#include "base/error.h"
#include "base/text_stream.h"

namespace mjp::app {
namespace {

// The engine's reason, in which what a plugin says stands twice, the second time cut off where the
// engine has no more room.
std::string WithoutRepeats(const std::string& reason) {
  mjp::TextReader lines(reason);
  std::string text, line, before;
  while (std::getline(lines, line)) {
    if (line.empty() || !before.starts_with(line)) text += (text.empty() ? "" : "\n") + line;
    before = line;
  }
  return text;
}

}  // namespace

ModelPtr LoadModel(const std::string& path) {
  // the engine takes a folder for a file of more than 2 GB
  if (std::error_code none; std::filesystem::is_directory(path, none)) {
    throw mjp::BadInput(path + ": is a folder; give the file of a model (.xml)");
  }
  char reason[1000] = "";
  ModelPtr model(mj_loadXML(path.c_str(), nullptr, reason, sizeof(reason)));
  if (!model) throw mjp::BadInput("cannot load the model " + path + ": " + WithoutRepeats(reason));
  return model;
}

DataPtr MakeData(const mjModel* model) {
  DataPtr data(mj_makeData(model));
  if (!data) throw mjp::EnvironmentError("MuJoCo cannot allocate the data of a simulation");
  return data;
}

std::string ModelPath(const std::string& file) {
  const std::vector<std::filesystem::path> folders = mjp::DataFolders("models");
  for (const auto& folder : folders) {
    if (std::filesystem::exists(folder / file)) return (folder / file).string();
  }
  std::string searched;
  for (const auto& folder : folders) searched += "\n  " + folder.string();
  throw mjp::BadInput("the model " + file + " is in none of" + searched +
                      "\nset MJPOLICY_MODELS to the folder that has it");
}

}  // namespace mjp::app
