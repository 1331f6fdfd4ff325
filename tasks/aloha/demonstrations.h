#ifndef TASKS_ALOHA_DEMONSTRATIONS_H_
#define TASKS_ALOHA_DEMONSTRATIONS_H_

#include <atomic>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "tasks/aloha/transfer_cube.h"

namespace mjp::app {

struct TransferOptions {
  int episodes = 50;
  uint32_t seed = 0;         // episode i starts from seed + i
  int threads = 0;           // 0: one per core
  double noise = 0;          // radians by which the arms stray from the actions that are recorded
  bool variety = true;       // each episode in a style of its own
  bool mishaps = false;      // the expert takes over where something has gone wrong
  std::string out = {};      // folder of the recordings; "": none
  std::string version = {};  // of the program: kept episodes of another one are refused
};

// One episode of the expert.
struct TransferEpisode {
  uint32_t seed = 0;
  bool counts = true;        // false: the cube was handed over before the mishap
  int first_success = -1;    // control step of the first reward 4; -1: none
  bool handed_over = false;  // at the end: the left hand alone holds the cube above the table
  std::vector<AlohaNumbers> states, actions;  // before each control step; the expert's answer
};

// Plays one episode: a function of options and seed alone.
TransferEpisode PlayTransfer(const TransferOptions& options, uint32_t seed,
                             TransferCube& simulation);

// Plays options.episodes episodes on all threads, prints how many succeed to `report`, and writes
// the successful ones that end with the cube handed over to options.out, if given: state.npy (N,
// 14) and action.npy (N, 14), float64, and episode_ends.npy (E), seed.npy (E), whose start each is.
// The folder is new or empty before and whole afterwards; until then finished episodes are kept
// beside it (recording_folder.h). Returns false where `stop` ended it early: the same call then
// goes on. Throws Error, before the work, for another folder, one that cannot be made, and a seed
// of 2^32 or more.
bool RunTransfers(const TransferOptions& options, std::ostream& report,
                  const std::atomic<bool>& stop);

}  // namespace mjp::app

#endif  // TASKS_ALOHA_DEMONSTRATIONS_H_
