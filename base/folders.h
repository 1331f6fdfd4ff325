#ifndef BASE_FOLDERS_H_
#define BASE_FOLDERS_H_

#include <string>

#include "base/file.h"

// base/file.h for text.

namespace mjp::app {

// Writes all of `text` to an open file and waits until it is on the disk. `file` names it in
// errors.
void WriteDurably(int fd, const std::string& text, const std::string& file);

// Replaces a file as a whole or not at all.
void WriteFileAtomically(const std::string& file, const std::string& text);

// Reads a regular file of at most `limit` bytes.
std::string ReadFile(const std::string& file, size_t limit);

// Throws Error if WriteFileAtomically could not even begin to write `file`: to be asked before the
// work whose result goes there.
void CheckWritable(const std::string& file);

// Removes what killed processes left half written in `folder`: files of WriteFileAtomically and
// folders `.unfinished<process>`. For the only writer there.
void RemoveLeftovers(const std::string& folder);

// Makes this process the only writer of `folder` as long as the result lives. Throws Error if
// another one is: "another <work> is writing here", or if the file system has no locks.
mjp::FileDescriptor LockFolder(const std::string& folder, const std::string& work);

}  // namespace mjp::app

#endif  // BASE_FOLDERS_H_
