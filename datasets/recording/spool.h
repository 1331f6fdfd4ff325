#ifndef DATASETS_RECORDING_SPOOL_H_
#define DATASETS_RECORDING_SPOOL_H_

#include <atomic>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "datasets/format/info.h"
#include "datasets/pictures/picture.h"
#include "datasets/store.h"

// Frames as they came, in a file, until somebody has the time to encode them: a row of 8-byte
// numbers, texts and raw pictures per frame.

namespace mjp::datasets {

// What is known at one time. All features of the data set but the default five are there, each in
// the member of its kind.
struct Frame {
  std::string task;                                    // what is being done, in words
  std::map<std::string, std::vector<double>> numbers;  // as many as the feature's elements
  std::map<std::string, std::string> texts;
  std::map<std::string, Picture> pictures;
};

// Writes an episode's frames to a folder. Until Close has returned the folder counts for nothing.
class SpoolWriter {
 public:
  // Creates `folder`. `info` must outlive the writer.
  SpoolWriter(std::string folder, const Info& info);

  // Throws Error naming the feature that is missing, not finite, outside of its type (of int64,
  // beyond 2^53 - 1) or of another shape; nothing is added then. Once frames could not be written,
  // nobody knows what of them the file has: each further call throws.
  void Add(const Frame& frame);
  // Makes the episode durable. Throws Error as Add does.
  void Close();
  int64_t frames() const { return frames_; }

 private:
  using WriteFunction = void(int fd, std::span<const uint8_t> bytes, const std::string& path);
  void CheckWritten() const;
  void Write(WriteFunction* write);

  std::string folder_;
  const Info& info_;
  FileDescriptor file_;
  std::vector<uint8_t> buffer_;
  std::vector<std::string> tasks_;
  std::vector<int64_t> task_;
  int64_t frames_ = 0;
  bool torn_ = false;  // frames could not be written
};

// Whether an episode in `folder` is whole.
bool IsSpooled(const std::string& folder);
// The folders of whole episodes that wait to be put into the data set `dataset`.
std::vector<std::string> SpooledEpisodes(const std::string& dataset);

// Reads a spooled episode, encodes its videos to files in its folder, and adds it to `store`.
// Returns false, having added nothing, once `stop` is true. Throws Error for a spool whose frames
// are not what it says it has.
bool AddSpooled(const std::string& folder, Store& store, const std::atomic<bool>& stop);

}  // namespace mjp::datasets

#endif  // DATASETS_RECORDING_SPOOL_H_
