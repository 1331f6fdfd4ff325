// Decisions where memory runs out, and checkpoints that change on the disk.

#include "plugin/policies/shared_policy.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <new>
#include <thread>

#include "base/error.h"
#include "plugin/policies/cache.h"
#include "tests/support/fake_policy.h"
#include "tests/support/mujoco_fixture.h"
#include "tests/support/temp_dir.h"

namespace {
// Allocations of this thread until the one that fails; negative: none does.
thread_local int allocations_left = -1;
}  // namespace

[[gnu::noinline]] void* operator new(size_t bytes) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace mjp_test {
namespace {

TEST(SharedPolicyTest, ADecisionThatFindsNoMemoryKeepsNobodyWaiting) {
  const TempDir folder;
  FakePolicyLog log;
  log.remembered = 8;
  log.Install();
  const auto policy = mjp::GetSharedPolicy(folder.path(), {}, {}, 0);
  int failures = 0;
  for (bool failed = true; failed; ++failures) {
    ASSERT_LT(failures, 1000);
    const std::vector<float> state = {1, static_cast<float>(failures)};
    const mjp::NoiseKey key;
    mjp::PolicyInput input;
    input.count = 1;
    input.state = state;
    input.keys = {&key, 1};
    mjp::UnderWay under_way;
    allocations_left = failures;
    try {
      under_way = policy->Prefetch(input);
    } catch (const std::bad_alloc&) {
    }
    failed = allocations_left < 0;
    allocations_left = -1;
    const auto decision = std::make_shared<mjp::Decision>(input);
    std::promise<void> made;
    std::future<void> end = made.get_future();
    std::thread([policy, decision, made = std::move(made)]() mutable {
      mjp::PolicyOutput output;
      try {
        policy->Infer(decision->input(), output);
      } catch (const std::bad_alloc&) {
      }
      made.set_value();
    }).detach();
    ASSERT_EQ(end.wait_for(std::chrono::seconds(20)), std::future_status::ready)
        << "allocation " << failures;
  }
  EXPECT_GT(failures, 5);
  mjp::SetPolicyMakers({});
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Checkpoints that are written while a process runs them.
class ChangedCheckpointTest : public MujocoTest {
 protected:
  ChangedCheckpointTest() { log_.Install(); }
  ~ChangedCheckpointTest() override { mjp::SetPolicyMakers({}); }

  static void Write(const std::filesystem::path& file, const std::string& text) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  // What the engine warns of as the policy is given out.
  static std::vector<std::string> Get(const std::string& directory) {
    mjp::GetSharedPolicy(directory, {}, {}, 0);
    return TakeWarnings();
  }

  const TempDir folder_;
  FakePolicyLog log_;
};

TEST_F(ChangedCheckpointTest, FilesInItsFoldersAreReadAgain) {
  Get(folder_.path());
  Write(folder_ / "openai/clip/vocab.json", "{}");  // the tokenizer that was missing
  Get(folder_.path());
  EXPECT_EQ(log_.loads, 2);
  Write(folder_ / "openai/clip/vocab.json", "{ }");
  Get(folder_.path());
  EXPECT_EQ(log_.loads, 3);
  Write(folder_ / ".cache/other.json", "{}");
  Write(folder_ / "openai/clip/notes.log", "no part of a checkpoint");
  Write(folder_ / "logs/info.json", "{}");
  Write(folder_ / "checkpoint-1000/config.json", "of a training beside it");
  Write(folder_ / "checkpoints/last/pretrained_model/config.json", "of another");
  Get(folder_.path());
  EXPECT_EQ(log_.loads, 3);
}

TEST_F(ChangedCheckpointTest, OtherStatisticsAreNamedOnce) {
  log_.files["stats.json"] = "a";
  EXPECT_THAT(Get(folder_.path()), IsEmpty());
  Write(folder_ / "stats.json", "others");
  log_.files["stats.json"] = "b";
  EXPECT_THAT(Get(folder_.path()), ElementsAre(HasSubstr(folder_.path() + " has changed on")));
  EXPECT_THAT(Get(folder_.path()), IsEmpty());
}

// as a training writes it: "last" leads to the newest
TEST_F(ChangedCheckpointTest, AMovedLinkIsNamedOnce) {
  const std::string last = folder_ / "last";
  const auto lead_to = [&](const char* name) {
    std::filesystem::create_directories(folder_ / name);
    std::filesystem::remove(last);
    std::filesystem::create_directory_symlink(name, last);
    log_.sha256 = name;
  };
  lead_to("001");
  EXPECT_THAT(Get(last), IsEmpty());
  lead_to("002");
  EXPECT_THAT(Get(last), ElementsAre(HasSubstr(last + " has changed on the disk")));
  EXPECT_THAT(Get(last), IsEmpty());
}

}  // namespace
}  // namespace mjp_test
