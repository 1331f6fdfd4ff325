#ifndef TASKS_ALOHA_RECORDING_FOLDER_H_
#define TASKS_ALOHA_RECORDING_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "tasks/aloha/demonstrations.h"

namespace mjp::app {

// A folder of recordings that appears under its name when it is whole; nothing is replaced. Until
// then each finished episode is a file in the folder <name>.unfinished beside it, from where the
// next run with the same options takes it: a run that is stopped or killed loses none.
class RecordingFolder {
 public:
  // Throws Error where there is something at options.out already, where it cannot be made, where
  // another process records there, and where other options were used before.
  explicit RecordingFolder(const TransferOptions& options);

  // The episode of this seed, if it is finished. Throws Error naming a file that is damaged.
  std::optional<TransferEpisode> Find(uint32_t seed) const;
  // Keeps a finished episode, durably. For any thread, of different seeds.
  void Keep(const TransferEpisode& episode) const;
  // Writes the recordings, of the episodes that end with the cube handed over, under their name.
  void Finish(const std::vector<TransferEpisode>& episodes);

 private:
  std::string FileOf(uint32_t seed) const;

  std::filesystem::path path_, unfinished_;
  FileDescriptor lock_;
};

}  // namespace mjp::app

#endif  // TASKS_ALOHA_RECORDING_FOLDER_H_
