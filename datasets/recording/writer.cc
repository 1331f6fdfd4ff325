#include "datasets/recording/writer.h"

#include <filesystem>

#include "base/error.h"

namespace mjp::datasets {
namespace {

namespace fs = std::filesystem;

void RemoveFolder(const std::string& folder) {
  std::error_code none;
  // first what makes it count
  fs::remove(folder + "/episode.json", none);
  fs::remove_all(folder, none);
}

}  // namespace

DatasetWriter::DatasetWriter(const std::string& folder, const Info& wanted,
                             const CheckDataset& check)
    : store_(folder, wanted, check), info_(store_.info()) {
  next_ = saved_ = info_.episodes;
  TakeUpSpool();
  thread_ = std::thread([this] { Work(); });
}

DatasetWriter::~DatasetWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::string DatasetWriter::SpoolFolder(int64_t episode) const {
  return store_.workplace() + "/episode-" + std::to_string(episode);
}

void DatasetWriter::TakeUpSpool() {
  while (IsSpooled(SpoolFolder(next_))) ++next_;
  ended_ = next_;
  // episodes that are in the data set already, and one that was not ended
  for (const auto& entry : fs::directory_iterator(store_.workplace())) {
    bool wanted = !entry.is_directory();
    for (int64_t episode = saved_; episode < next_ && !wanted; ++episode) {
      wanted = entry.path() == fs::path(SpoolFolder(episode));
    }
    if (!wanted) RemoveFolder(entry.path());
  }
}

void DatasetWriter::ThrowFailure() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void DatasetWriter::AddFrame(const Frame& frame) {
  ThrowFailure();
  if (!current_) current_ = std::make_unique<SpoolWriter>(SpoolFolder(next_), info_);
  current_->Add(frame);
}

void DatasetWriter::EndEpisode() {
  ThrowFailure();
  if (frames() == 0) return DropEpisode();
  try {
    current_->Close();
  } catch (...) {
    DropEpisode();
    throw;
  }
  current_.reset();
  ++next_;
  {
    const std::lock_guard lock(mutex_);
    ended_ = next_;
  }
  changed_.notify_all();
}

void DatasetWriter::DropEpisode() {
  if (!current_) return;
  current_.reset();
  RemoveFolder(SpoolFolder(next_));
}

int64_t DatasetWriter::saved() const {
  const std::lock_guard lock(mutex_);
  return saved_;
}

void DatasetWriter::Finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || saved_ == ended_; });
  if (failure_) std::rethrow_exception(failure_);
}

void DatasetWriter::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || saved_ < ended_; });
    if (stop_) return;
    const std::string folder = SpoolFolder(saved_);
    lock.unlock();
    bool added = false;
    std::exception_ptr failure;
    try {
      added = AddSpooled(folder, store_, stop_);
      if (added) RemoveFolder(folder);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (added) ++saved_;
    failure_ = failure;
    changed_.notify_all();
    if (failure_ || !added) return;
  }
}

}  // namespace mjp::datasets
