#include "apps/train/data_source.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include "kernels/error.h"
#include "policy/timing.h"
#include "task/demonstrations.h"

namespace pusht {
namespace {

std::vector<DemonstrationRow> LoadFolders(const std::vector<std::string>& folders) {
  std::vector<DemonstrationRow> rows;
  for (const std::string& folder : folders) {
    const std::vector<DemonstrationRow> more = LoadDemonstrations(folder);
    rows.insert(rows.end(), more.begin(), more.end());
  }
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
      rows_(LoadFolders(options.folders)),
      folder_rows_(static_cast<int64_t>(rows_.size())),
      dataset_(folder_rows_ + WholeStreams(options.rows), device) {
  if (folder_rows_ + options.rows == 0) {
    throw dp::Error(dp::ExitCode::kUsage,
                    "nothing to train on: give --data FOLDER, or --demonstrate ROWS");
  }
  dataset_.Append(rows_);
  rows_ = {};
  if (options.rows == 0) return;
  std::filesystem::create_directories(options.own_folder);
  planner_ = std::thread([this] { Demonstrate(); });
  while (!finished_ && dataset_.size() < std::min(options.first_rows, options.rows)) {
    if (stop) {
      stop_ = true;
      planner_.join();
      throw dp::Error(dp::ExitCode::kRetryable, "stopped; start the same command again to go on");
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
    LoadOwn();
  }
  LoadOwn();
}

DataSource::~DataSource() {
  stop_ = true;
  if (planner_.joinable()) planner_.join();
}

void DataSource::Refresh() {
  if (options_.rows == 0 || dp::Now() - looked_ < options_.refresh_every) return;
  LoadOwn();
}

void DataSource::Demonstrate() {
  try {
    DemonstrateOptions options;
    options.out = options_.own_folder;
    options.rows = options_.rows;
    std::ofstream log(options_.own_folder + "/progress.txt");
    RunDemonstrate(options, log, stop_);
  } catch (...) {
    failure_ = std::current_exception();
  }
  finished_ = true;
}

void DataSource::LoadOwn() {
  const bool complete = finished_;
  if (complete && failure_) std::rethrow_exception(failure_);
  looked_ = dp::Now();
  std::error_code absent;
  const auto logged = std::filesystem::file_size(options_.own_folder + "/streams.jsonl", absent);
  if (absent || logged == 0) return;  // no stream is finished
  const std::vector<DemonstrationRow> rows = LoadDemonstrations(options_.own_folder);
  dataset_.Truncate(folder_rows_);
  dataset_.Append(rows);
  if (complete) options_.rows = 0;
}

}  // namespace pusht
