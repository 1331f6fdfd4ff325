#ifndef DATASETS_RECORDING_WRITER_H_
#define DATASETS_RECORDING_WRITER_H_

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "datasets/format/info.h"
#include "datasets/recording/spool.h"
#include "datasets/store.h"

namespace mjp::datasets {

// Records a data set frame by frame, as fast as frames come: they go to a spool in the data set's
// folder (.spool), and a thread behind makes PNG files or AV1 of them, episode after episode.
//
// An episode for which EndEpisode has returned is not lost, whatever is killed: it is in the data
// set, or whole in the spool, from where the next writer on the folder puts it. One that saved()
// counts is in the data set, readable by all. One that was not ended leaves nothing.
class DatasetWriter {
 public:
  // Creates a data set or goes on with one, as Store does, and takes up what an earlier writer's
  // spool holds.
  DatasetWriter(const std::string& folder, const Info& wanted, const CheckDataset& check = {});
  // Does not wait for the spool to become empty: Finish does.
  ~DatasetWriter();
  DatasetWriter(const DatasetWriter&) = delete;
  DatasetWriter& operator=(const DatasetWriter&) = delete;

  const Info& info() const { return info_; }

  // Adds a frame to the episode that is being recorded, or starts one. Throws Error naming the
  // feature that is not as info() says, and adds nothing then; or why the thread behind failed.
  // Where the frames cannot be written, the episode takes no further ones: drop it.
  void AddFrame(const Frame& frame);
  // Ends the episode, durably; without a frame there is none. Returns at once. Throws Error where
  // it cannot be written: it is dropped then, and what follows is another one.
  void EndEpisode();
  // Forgets the frames since the last EndEpisode.
  void DropEpisode();

  // Frames of the episode that is being recorded.
  int64_t frames() const { return current_ ? current_->frames() : 0; }
  // Episodes that were ended: in the data set or in the spool.
  int64_t episodes() const { return next_; }
  // Episodes in the data set.
  int64_t saved() const;
  // Waits until all ended episodes are in the data set. Throws Error if one cannot be put there; it
  // stays in the spool.
  void Finish();

 private:
  std::string SpoolFolder(int64_t episode) const;
  void TakeUpSpool();
  void Work();
  void ThrowFailure();

  Store store_;
  const Info info_;
  std::unique_ptr<SpoolWriter> current_;
  int64_t next_ = 0;  // the number of the episode that is being recorded

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int64_t ended_ = 0, saved_ = 0;
  std::exception_ptr failure_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace mjp::datasets

#endif  // DATASETS_RECORDING_WRITER_H_
