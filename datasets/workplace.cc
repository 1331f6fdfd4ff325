#include "datasets/workplace.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "datasets/data_file.h"

namespace mjp::datasets {

Workplace::Workplace(const std::string& dataset) : folder_(In(dataset)), file_(folder_ + "/lock") {
  constexpr int kTries = 100;  // one fails only in the moment in which an owner ends
  for (int i = 0; !Lock(dataset); ++i)
    if (i == kTries) throw FileError("cannot lock", file_);
}

bool Workplace::Lock(const std::string& dataset) {
  MakeFolders(folder_);
  lock_ = FileDescriptor(open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock_.get() < 0 && errno == ENOENT) return false;
  if (lock_.get() < 0) throw FileError("cannot create", file_);
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw FileError("cannot lock", file_);
    throw BadInput(dataset + ": another process writes this data set; wait for it, or end it");
  }
  struct stat status {};
  return fstat(lock_.get(), &status) == 0 && status.st_nlink > 0;
}

Workplace::~Workplace() {
  unlink(file_.c_str());  // while it is locked: who opens it now sees that it has no name
  rmdir(folder_.c_str());
}

}  // namespace mjp::datasets
