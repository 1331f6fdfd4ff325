#include "tasks/recording/free_name.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/file.h"

namespace mjp::app {
namespace {

constexpr int kMostNames = 100000;

// 0, or -1 with errno: EEXIST where something has the name.
int RenameWithoutReplacing(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  // a file system that cannot: a second name instead, which is refused where there is one
  if (link(from.c_str(), to.c_str()) != 0) return -1;
  return unlink(from.c_str());
}

void SyncFolderOf(const std::string& file) {
  const std::filesystem::path parent = std::filesystem::path(file).parent_path();
  const mjp::FileDescriptor folder(
      open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) fsync(folder.get());
}

std::string TakeFreeName(const std::string& from, const std::string& stem,
                         const std::string& suffix) {
  {
    const mjp::FileDescriptor file(open(from.c_str(), O_RDWR | O_CLOEXEC));
    if (file.get() < 0) throw mjp::FileError("cannot open", from);
    mjp::WriteDurably(file.get(), {}, from);
  }
  for (int number = 1; number <= kMostNames; ++number) {
    const std::string name = stem + (number == 1 ? "" : "-" + std::to_string(number)) + suffix;
    if (RenameWithoutReplacing(from, name) == 0) {
      SyncFolderOf(name);
      return name;
    }
    if (errno != EEXIST) throw mjp::FileError("cannot give a file this name", name);
  }
  throw mjp::BadInput(stem + suffix + ": all names up to number " + std::to_string(kMostNames) +
                      " are taken; move some of these files away");
}

}  // namespace

std::string RenameToFreeName(const std::string& from, const std::string& stem,
                             const std::string& suffix) {
  try {
    return TakeFreeName(from, stem, suffix);
  } catch (...) {
    unlink(from.c_str());
    throw;
  }
}

std::string WriteToFreeName(const std::string& stem, const std::string& suffix,
                            std::span<const uint8_t> bytes) {
  const std::filesystem::path path(stem + suffix);
  const std::string unnamed = (path.parent_path() / ("." + path.filename().string() + "." +
                                                     std::to_string(getpid()) + ".part"))
                                  .string();
  mjp::WriteFileAtomically(unnamed, bytes);
  return RenameToFreeName(unnamed, stem, suffix);
}

}  // namespace mjp::app
