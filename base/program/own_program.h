#ifndef BASE_PROGRAM_OWN_PROGRAM_H_
#define BASE_PROGRAM_OWN_PROGRAM_H_

#include <filesystem>

namespace mjp {

// The file of the program that runs, links followed, also where /proc is not mounted; "" if the
// system does not tell.
std::filesystem::path FindOwnProgram();

// The program or library that this code is linked into, links followed; "" if the system does not
// tell.
std::filesystem::path FindOwnBinary();

// The program; throws Error rather than "".
std::filesystem::path OwnProgram();

}  // namespace mjp

#endif  // BASE_PROGRAM_OWN_PROGRAM_H_
