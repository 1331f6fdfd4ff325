#ifndef TESTS_SUPPORT_SMALL_CHECKPOINT_H_
#define TESTS_SUPPORT_SMALL_CHECKPOINT_H_

#include <string>

namespace pusht_test {

// Writes an image policy for Push-T with random weights, small enough to run whole episodes in
// milliseconds, into `directory`.
void WriteSmallCheckpoint(const std::string& directory);

// A folder that is removed with everything in it at the end of its life.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace pusht_test

#endif  // TESTS_SUPPORT_SMALL_CHECKPOINT_H_
