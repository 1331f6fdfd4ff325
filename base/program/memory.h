#ifndef BASE_PROGRAM_MEMORY_H_
#define BASE_PROGRAM_MEMORY_H_

#include <unistd.h>

namespace mjp {

// Bytes of memory that this machine has.
inline double PhysicalMemory() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace mjp

#endif  // BASE_PROGRAM_MEMORY_H_
