#ifndef TASK_FILES_H_
#define TASK_FILES_H_

#include <string>

#include "kernels/error.h"

namespace pusht {

// "<file>: <what>: <the system's reason>", from errno.
dp::Error FileError(const std::string& what, const std::string& file);

// Writes all of `text` to an open file and waits until it is on the disk. `file` names it in
// errors.
void WriteDurably(int fd, const std::string& text, const std::string& file);

// Writes a file as a whole or not at all: through a temporary name beside it, fsync and rename.
void WriteFileAtomically(const std::string& file, const std::string& text);

// Reads a whole regular file of at most `limit` bytes. Throws Error naming the file.
std::string ReadFile(const std::string& file, size_t limit);

}  // namespace pusht

#endif  // TASK_FILES_H_
