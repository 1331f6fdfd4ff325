#ifndef APPS_TRAIN_DATA_DATA_SOURCE_H_
#define APPS_TRAIN_DATA_DATA_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <exception>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "apps/train/data/dataset.h"
#include "tasks/pusht/planner/planner.h"

namespace mjp::app {

struct DataOptions {
  std::vector<std::string> folders;     // of demonstrations that exist
  std::vector<std::string> recordings;  // prefixes of recorded episodes, see recordings.h
  int64_t rows = 0;                     // to be made beside, by the planner on all cores
  std::string own_folder;               // where those go; one that holds some is continued
  int64_t first_rows = 16384;           // made before the training begins
  double refresh_every = 15;            // seconds between looks at what was made meanwhile
  PlannerOptions planner;
  uint64_t seed = 0;          // added to that of the planner's rows
  int threads = 0;            // of the planner; 0: one per core
  std::string rounds_folder;  // rows that others add to it are trained on too,
  int64_t round_rows = 0;     // up to so many
  std::string late_folder;    // the same of late decisions
  int64_t late_rows = 0;
  bool produce = true;  // false: another process makes the rows
};

// Rows to train on: those of folders, and those that the planner goes on making in the background
// while the training runs.
class DataSource {
 public:
  // Loads the folders, starts the planner and waits for its first rows. Throws Error if there is
  // nothing to train on, or soon after `stop` becomes true while waiting.
  DataSource(const DataOptions& options, const at::Device& device, const std::atomic<bool>& stop);
  DataSource(const DataSource&) = delete;
  DataSource& operator=(const DataSource&) = delete;

  const Dataset& dataset() const { return dataset_; }

  // Adds what the planner made since the last look, if it is time. Throws Error if it failed.
  void Refresh();
  // Ends the planner, also amid its rows. Throws Error if it failed.
  void EndPlanner();

 private:
  void Demonstrate();
  void LoadNew();

  DataOptions options_;
  std::vector<DemonstrationRow> rows_;  // that exist; empty once they are in the data set
  std::set<int64_t> demonstrated_, rounds_, late_;  // streams that are in the data set
  Dataset dataset_;
  double looked_ = 0;
  std::atomic<bool> stop_ = false, finished_ = false;
  std::exception_ptr failure_;  // of the planner; read once finished_ is true
  std::jthread planner_;        // the last: it ends before what it works with
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_DATA_DATA_SOURCE_H_
