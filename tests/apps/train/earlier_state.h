#ifndef TESTS_APPS_TRAIN_EARLIER_STATE_H_
#define TESTS_APPS_TRAIN_EARLIER_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "policy/checkpoint/safetensors.h"
#include "policy/checkpoint/safetensors_writer.h"

namespace mjp::app {

// Writes the state `from` to `to` as an earlier build did: without a checksum, the number of
// episodes of the best round, and whether --prefix-share was given. `best` of them succeeded.
inline void WriteAsEarlierBuild(const std::string& from, const std::string& to, int64_t best) {
  const SafetensorsFile file = SafetensorsFile::Read(from);
  SafetensorsWriter writer;
  for (const char* name : {"weights", "average", "first_moment", "second_moment", "updates"}) {
    const Tensor values = file.Floats(name);
    writer.AddFloats(name, {static_cast<int64_t>(values.data.size())}, values.data);
  }
  for (const char* name : {"prediction", "generator"}) {
    const std::vector<uint8_t> bytes = file.Bytes(name);
    writer.AddBytes(name, {static_cast<int64_t>(bytes.size())}, bytes);
  }
  const std::vector<int64_t> counters = file.Integers("progress");
  writer.AddIntegers("progress", {3}, std::vector<int64_t>{counters.at(0), counters.at(1), best});
  writer.Write(to);
}

}  // namespace mjp::app

#endif  // TESTS_APPS_TRAIN_EARLIER_STATE_H_
