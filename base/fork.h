#ifndef BASE_FORK_H_
#define BASE_FORK_H_

#include <cstdint>

namespace mjp {

// A number that grows with every fork() between this code's first call and this process. A child
// has the memory of its parent but none of its threads, so whoever keeps a thread, a lock that one
// may hold, or a driver that counts on them, keeps this number beside it: where it has changed,
// they are of another process and must be neither waited for nor destroyed.
uint64_t ForkGeneration();

}  // namespace mjp

#endif  // BASE_FORK_H_
