#ifndef DATASETS_WORKPLACE_H_
#define DATASETS_WORKPLACE_H_

#include <string>

#include "base/file.h"

namespace mjp::datasets {

// The folder in a data set's for files that are not yet part of it. Who has one is the data set's
// only writer. It goes with its owner where nothing waits in it.
class Workplace {
 public:
  // Throws Error where another process, or this one, has the data set's already.
  explicit Workplace(const std::string& dataset);
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  static std::string In(const std::string& dataset) { return dataset + "/.spool"; }
  const std::string& folder() const { return folder_; }

 private:
  // Whether the lock is the caller's now; false: its last owner took it away meanwhile.
  bool Lock(const std::string& dataset);

  const std::string folder_, file_;
  FileDescriptor lock_;
};

}  // namespace mjp::datasets

#endif  // DATASETS_WORKPLACE_H_
