#include "apps/train/data/data_source.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stop_token>

#include "apps/train/data/recordings.h"
#include "apps/train/run_length.h"
#include "base/error.h"
#include "policy/timing.h"
#include "tasks/pusht/planner/demonstrations.h"

namespace mjp::app {
namespace {

std::vector<DemonstrationRow> LoadExisting(const DataOptions& options) {
  std::vector<DemonstrationRow> rows;
  const auto add = [&](const std::vector<DemonstrationRow>& more) {
    rows.insert(rows.end(), more.begin(), more.end());
  };
  for (const std::string& folder : options.folders) add(LoadDemonstrations(folder));
  for (const std::string& prefix : options.recordings) add(LoadRecordings(prefix));
  return rows;
}

// Rows that DemonstrateOptions{rows} makes: whole streams.
int64_t WholeStreams(int64_t rows) {
  const int64_t stream = StreamOptions().rows;
  return (rows + stream - 1) / stream * stream;
}

}  // namespace

DataSource::DataSource(const DataOptions& options, const at::Device& device,
                       const std::atomic<bool>& stop)
    : options_(options),
      rows_(LoadExisting(options)),
      dataset_(static_cast<int64_t>(rows_.size()) + WholeStreams(options.rows) +
                   options.round_rows + options.late_rows,
               device) {
  if (rows_.empty() && options.rows == 0) {
    throw mjp::Error(mjp::ExitCode::kUsage,
                     "nothing to train on: give --data, --demonstrate or --recording");
  }
  dataset_.Append(rows_);
  rows_ = {};
  LoadNew();
  if (options.rows == 0) return;
  if (options.produce) {
    std::filesystem::create_directories(options.own_folder);
    planner_ = std::jthread([this](const std::stop_token& end) {
      const std::stop_callback ends(end, [this] { stop_ = true; });
      Demonstrate();
    });
  }
  while (!finished_ && dataset_.size() < std::min(options.first_rows, options.rows)) {
    if (stop) throw Stopped();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    LoadNew();
  }
  LoadNew();
}

void DataSource::Refresh() {
  if (mjp::Now() - looked_ < options_.refresh_every) return;
  LoadNew();
}

void DataSource::EndPlanner() {
  planner_ = {};
  if (failure_) std::rethrow_exception(failure_);
}

void DataSource::Demonstrate() {
  try {
    DemonstrateOptions options;
    options.out = options_.own_folder;
    options.rows = options_.rows;
    options.stream.planner = options_.planner;
    options.stream.seed += options_.seed;
    options.threads = options_.threads;
    std::ofstream log(options_.own_folder + "/progress.txt");
    RunDemonstrate(options, log, stop_);
  } catch (...) {
    failure_ = std::current_exception();
  }
  finished_ = true;
}

void DataSource::LoadNew() {
  if (finished_ && failure_) std::rethrow_exception(failure_);
  looked_ = mjp::Now();
  if (options_.rows > 0) {
    dataset_.Append(LoadNewDemonstrations(options_.own_folder, demonstrated_));
  }
  if (options_.round_rows > 0) {
    dataset_.Append(LoadNewDemonstrations(options_.rounds_folder, rounds_));
  }
  if (options_.late_rows > 0) {
    dataset_.Append(LoadNewDemonstrations(options_.late_folder, late_), /*late=*/true);
  }
}

}  // namespace mjp::app
