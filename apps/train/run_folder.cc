#include "apps/train/run_folder.h"

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/folders.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;

// What `out` holds of another program or run; "" where it holds nothing or a run.
std::string Foreign(const fs::path& out) {
  if (fs::exists(out / "state.safetensors") || fs::exists(out / "log.jsonl")) return "";
  const std::pair<const char*, const char*> signs[] = {{"meta/info.json", "a data set"},
                                                       {"config.json", "a checkpoint"},
                                                       {"run.json", "an evaluation"},
                                                       {"checkpoint", "a checkpoint"}};
  for (const auto& [file, what] : signs) {
    if (fs::exists(out / file)) return what;
  }
  return "";
}

}  // namespace

FileDescriptor OpenRunFolder(const std::string& out) {
  std::error_code code;
  fs::create_directories(out, code);
  if (code) throw BadInput(out + ": cannot create the folder: " + code.message());
  if (const std::string what = Foreign(out); !what.empty()) {
    throw Error(ExitCode::kUsage,
                out + ": holds " + what + " that no run here made; give another --out");
  }
  FileDescriptor lock = LockFolder(out, "training");
  for (const auto& entry : fs::directory_iterator(out, code)) {
    if (entry.path().filename().string().starts_with("state.safetensors.tmp")) {
      fs::remove(entry.path(), code);
    }
  }
  return lock;
}

}  // namespace mjp::app
