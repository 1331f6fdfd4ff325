#include "apps/train/run_folder.h"

#include <cstdio>
#include <filesystem>
#include <utility>

#include "apps/train/run_state.h"
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

// Removes what rounds left in `out`, and nothing that only has such a name: rows with their log,
// and numbered students.
void RemoveRounds(const fs::path& out) {
  const std::pair<const char*, const char*> signs[] = {
      {"rounds", "streams.jsonl"}, {"late", "streams.jsonl"}, {"students", "1/config.json"}};
  for (const auto& [name, sign] : signs) {
    const fs::path folder = out / name;
    std::error_code error;
    if (!fs::exists(folder / sign, error)) continue;
    fs::remove_all(folder, error);
    if (error) throw BadInput(folder.string() + ": cannot be removed: " + error.message());
    std::fprintf(stderr, "mjpolicy-train: %s: removed, for the state of its run is gone\n",
                 folder.c_str());
  }
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
  for (const std::string& folder : {out, out + "/checkpoint"}) RemoveLeftovers(folder);
  if (!HasRunState(out + "/state.safetensors")) RemoveRounds(out);
  return lock;
}

void CheckBegun(const std::string& out, Json now, const std::vector<std::string>& newer) {
  const std::string path = out + "/data.json";
  if (!HasRunState(out + "/state.safetensors")) {
    return WriteFileAtomically(path, JsonText(now, 2) + "\n");
  }
  if (!fs::exists(path)) {
    throw BadInput(path + ": is not there, so that nobody knows what the run was begun with; " +
                   "give another --out");
  }
  const Json before = ReadJson(path);
  for (const std::string& key : newer) {
    if (!before.contains(key)) now.erase(key);
  }
  if (before == now) return;
  throw BadInput(path + ": the run was begun with other data, " + JsonText(before) +
                 ", now it is " + JsonText(now) + "; go on with that, or give another --out");
}

}  // namespace mjp::app
