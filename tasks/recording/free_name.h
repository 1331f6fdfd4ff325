#ifndef TASKS_RECORDING_FREE_NAME_H_
#define TASKS_RECORDING_FREE_NAME_H_

#include <cstdint>
#include <span>
#include <string>

// Files that never take the place of others: <stem><suffix>, or where something has that name
// <stem>-2<suffix>, <stem>-3<suffix>, the first one that is free.

namespace mjp::app {

// Gives a file that is on the disk whole the first free name, in its own folder, and returns that
// name. Waits for the content first. Nothing is replaced, whoever takes names there meanwhile.
// Throws Error if that fails; `from` is removed then.
std::string RenameToFreeName(const std::string& from, const std::string& stem,
                             const std::string& suffix);

// Writes `bytes` whole under the first free name and returns that. Throws Error if that fails;
// nothing is left then.
std::string WriteToFreeName(const std::string& stem, const std::string& suffix,
                            std::span<const uint8_t> bytes);

}  // namespace mjp::app

#endif  // TASKS_RECORDING_FREE_NAME_H_
