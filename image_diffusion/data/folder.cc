#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "image_diffusion/data/pictures.h"

namespace mjp {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kFileLimit = uint64_t{64} << 20;
constexpr char kLayout[] = "; a folder of pictures is laid out as DIR/<class>/<picture>.png";

// What is in `folder`, sorted, without what begins with a dot. Throws Error for anything but
// `wanted`, which `what` names.
std::vector<fs::path> Entries(const fs::path& folder, fs::file_type wanted,
                              const std::string& what) {
  std::error_code error;
  std::vector<fs::path> out;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const fs::path& path = entries->path();
    if (path.filename().native().starts_with('.')) continue;
    std::error_code unknown;
    if (fs::status(path, unknown).type() != wanted) {
      throw BadInput(path.string() + ": is not " + what + kLayout);
    }
    out.push_back(path);
  }
  if (error) throw BadInput(folder.string() + ": cannot be listed: " + error.message() + kLayout);
  std::sort(out.begin(), out.end());
  return out;
}

// Names of classes are written into checkpoints and tables.
void CheckName(const fs::path& folder) {
  const std::string name = folder.filename().string();
  const bool printable = std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == 127;
  });
  try {
    if (printable && !Json(name).dump().empty()) return;
  } catch (const Json::exception&) {
  }
  throw BadInput(folder.string() + ": the name of a class is one line of UTF-8; rename the folder");
}

std::vector<uint8_t> ReadPicture(const std::string& path) {
  try {
    return ReadFile(path, kFileLimit);
  } catch (const Error& error) {
    throw BadInput(std::string(error.what()) + "; remove or replace it");
  }
}

}  // namespace

PictureSet LoadFolder(const PictureOptions& options) {
  constexpr size_t kMaxClasses = 256;
  PictureSet set{.size = options.size, .channels = options.channels};
  const std::string folder = options.directory.empty() ? "--data" : options.directory;
  std::error_code error;
  const bool there = fs::is_directory(options.directory, error);
  if (error && !options.directory.empty())
    throw BadInput(folder + ": " + error.message() + kLayout);
  if (!there) throw BadInput(folder + ": is not a folder" + kLayout);
  std::vector<fs::path> files;
  std::vector<uint8_t> labels;
  for (const fs::path& of_class :
       Entries(options.directory, fs::file_type::directory, "the folder of a class")) {
    if (set.classes.size() == kMaxClasses) {
      throw BadInput(folder + ": has more than 256 sub-folders" + kLayout);
    }
    CheckName(of_class);
    const auto pictures = Entries(of_class, fs::file_type::regular, "the file of a picture");
    if (pictures.empty()) throw BadInput(of_class.string() + ": holds no pictures" + kLayout);
    files.insert(files.end(), pictures.begin(), pictures.end());
    labels.resize(files.size(), static_cast<uint8_t>(set.classes.size()));
    set.classes.push_back(of_class.filename().string());
  }
  if (files.empty()) throw BadInput(folder + ": holds no pictures" + kLayout);
  CheckRoom(static_cast<int64_t>(files.size()), set, folder);
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string path = files[i].string();
    set.Add(ParsePicture(ReadPicture(path), path, set.size, set.channels), labels[i]);
  }
  return set;
}

}  // namespace mjp
