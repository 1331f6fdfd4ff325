#ifndef TESTS_SUPPORT_MUJOCO_FIXTURE_H_
#define TESTS_SUPPORT_MUJOCO_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mujoco/mujoco.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace mjp_test {

struct ModelDeleter {
  void operator()(mjModel* model) const { mj_deleteModel(model); }
};
struct DataDeleter {
  void operator()(mjData* data) const { mj_deleteData(data); }
};
using ModelPtr = std::unique_ptr<mjModel, ModelDeleter>;
using DataPtr = std::unique_ptr<mjData, DataDeleter>;

// A test in which every warning of the engine is a failure unless the test takes it. An error of
// the engine outside the compiler ends the process, so it fails the test by itself.
class MujocoTest : public ::testing::Test {
 protected:
  MujocoTest() {
    warnings_.clear();
    previous_ = std::exchange(mju_user_warning, Collect);
  }
  ~MujocoTest() override {
    mju_user_warning = previous_;
    EXPECT_THAT(TakeWarnings(), ::testing::IsEmpty()) << "warnings that no test asked for";
  }

  // The warnings since the last call.
  static std::vector<std::string> TakeWarnings() {
    std::lock_guard lock(mutex_);
    return std::exchange(warnings_, {});
  }

  // Compiles MJCF text; `error` (if given) gets the compiler's message where that fails.
  static ModelPtr Compile(const std::string& xml, std::string* error = nullptr) {
    char message[4000] = "";
    mjSpec* spec = mj_parseXMLString(xml.c_str(), nullptr, message, sizeof(message));
    ModelPtr model;
    if (spec) {
      model.reset(mj_compile(spec, nullptr));
      if (!model && error) *error = mjs_getError(spec);
      if (!model && !error) ADD_FAILURE() << mjs_getError(spec);
      mj_deleteSpec(spec);
    } else if (error) {
      *error = message;
    } else {
      ADD_FAILURE() << message;
    }
    return model;
  }

 private:
  static void Collect(const char* text) {
    std::lock_guard lock(mutex_);
    warnings_.push_back(text);
  }

  static inline std::mutex mutex_;
  static inline std::vector<std::string> warnings_;
  void (*previous_)(const char*);
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_MUJOCO_FIXTURE_H_
