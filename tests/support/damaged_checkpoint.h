#ifndef TESTS_SUPPORT_DAMAGED_CHECKPOINT_H_
#define TESTS_SUPPORT_DAMAGED_CHECKPOINT_H_

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/safetensors.h"
#include "policy/checkpoint/safetensors_writer.h"
#include "tests/support/goldens/golden_cases.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {

using Tensors = std::map<std::string, mjp::Tensor>;

inline constexpr char kModel[] = "model.safetensors";
inline constexpr char kPre[] = "policy_preprocessor.json";
inline constexpr char kPost[] = "policy_postprocessor.json";
inline constexpr char kPreStats[] = "policy_preprocessor_step_3_normalizer_processor.safetensors";
inline constexpr char kPostStats[] =
    "policy_postprocessor_step_0_unnormalizer_processor.safetensors";

// A small valid state policy on disk, to be damaged.
class DamagedCheckpoint : public testing::Test {
 protected:
  DamagedCheckpoint() {
    mjp::WriteCheckpoint(path(), *TinyStateCheckpoint(), mjp::WeightFormat::kF32);
  }

  std::string path() const { return dir_.path(); }

  void EditJson(const std::string& name, const std::function<void(mjp::Json&)>& edit) {
    mjp::Json json = mjp::ReadJson(dir_ / name);
    edit(json);
    dir_.Write(name, json.dump());
  }

  void EditTensors(const std::string& name, const std::function<void(Tensors&)>& edit) {
    Tensors tensors;
    const mjp::SafetensorsFile file = mjp::SafetensorsFile::Read(dir_ / name);
    for (const mjp::TensorEntry& entry : file.tensors()) {
      tensors[entry.name] = file.Floats(entry.name);
    }
    edit(tensors);
    mjp::SafetensorsWriter writer;
    for (const auto& [key, tensor] : tensors) writer.AddFloats(key, tensor.shape, tensor.data);
    writer.Write(dir_ / name);
  }

  // The text with which the directory is refused; "" if it loads.
  std::string Refusal() { return RefusalOf(path()); }

  static std::string RefusalOf(const std::string& directory) {
    try {
      mjp::LoadCheckpoint(directory);
    } catch (const mjp::Error& error) {
      EXPECT_EQ(error.code(), mjp::ExitCode::kBadInput);
      return error.what();
    }
    return "";
  }

  const TempDir dir_;
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_DAMAGED_CHECKPOINT_H_
