// A writer is killed at its writes, fsyncs and renames, one after the other. What it had said to be
// saved is readable, what it had ended is not lost, and the next writer goes on as if nothing were.
// The same where such a call fails, and the writer itself goes on.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "tests/datasets/recorded_set.h"
#include "tests/support/temp_dir.h"

namespace {

std::atomic<long> calls_left{-1};  // until this process is killed; negative: never
std::atomic<bool> fail{false};     // the call fails instead

// Whether this call fails; errno is set then.
bool CountCall() {
  if (calls_left.load() < 0 || calls_left.fetch_sub(1) != 0) return false;
  if (!fail) kill(getpid(), SIGKILL);
  errno = ENOSPC;
  return true;
}

template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// instead of the C library's, for this program
extern "C" {
int fsync(int fd) {
  if (CountCall()) return -1;
  return Next<int(int)>("fsync")(fd);
}
int rename(const char* from, const char* to) noexcept {
  if (CountCall()) return -1;
  return Next<int(const char*, const char*)>("rename")(from, to);
}
ssize_t write(int fd, const void* bytes, size_t size) {
  const bool fails = CountCall();
  const ssize_t put = Next<ssize_t(int, const void*, size_t)>("write")(
      fd, bytes, fails ? size / 2 : size);  // a part of it is there
  if (fails) errno = ENOSPC;
  return fails ? -1 : put;
}
}

namespace mjp::datasets {
namespace {

constexpr int64_t kEpisodes = 3;

struct Said {
  int64_t ended = 0, saved = 0;
  bool killed = false;
};

// Records episodes in a child that is killed at its n-th call; what it said until then.
Said RecordUntilKilled(const std::string& folder, const std::string& pictures, long n) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    calls_left = n;
    DatasetWriter writer(folder, mjp_test::RecordedInfo(pictures));
    for (int64_t episode = 0; episode < kEpisodes; ++episode) {
      mjp_test::RecordEpisode(writer, episode);
      syscall(SYS_write, ends[1], "e", 1);
      if (episode == 1) continue;  // two at once in the spool
      writer.Finish();
      for (int64_t i = episode == 0 ? 0 : 1; i <= episode; ++i) syscall(SYS_write, ends[1], "s", 1);
    }
    _exit(0);
  }
  close(ends[1]);
  Said said;
  for (char c; read(ends[0], &c, 1) == 1;) ++(c == 'e' ? said.ended : said.saved);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  said.killed = WIFSIGNALED(status);
  EXPECT_TRUE(said.killed || WEXITSTATUS(status) == 0);
  return said;
}

// At each `step`-th call; at each one where the variable MJPOLICY_TEST_FAULTS is set.
void KillAtCalls(const std::string& pictures, long step) {
  if (std::getenv("MJPOLICY_TEST_FAULTS") != nullptr) step = 1;
  int killed = 0;
  for (long n = 0;; n += step) {
    SCOPED_TRACE(n);
    const mjp_test::TempDir parent;
    const std::string folder = parent / "set";
    const Said said = RecordUntilKilled(folder, pictures, n);
    if (std::filesystem::exists(folder + "/meta/info.json")) {
      const int64_t there = Dataset(folder).info().episodes;
      EXPECT_GE(there, said.saved);
      mjp_test::ExpectRecorded(folder, there);
    } else {
      EXPECT_EQ(said.ended, 0);
    }
    DatasetWriter writer(folder, mjp_test::RecordedInfo(pictures));
    EXPECT_GE(writer.episodes(), said.ended);
    for (int64_t episode = writer.episodes(); episode < kEpisodes; ++episode) {
      mjp_test::RecordEpisode(writer, episode);
    }
    writer.Finish();
    mjp_test::ExpectRecorded(folder, kEpisodes);
    Dataset dataset(folder);
    for (const std::string& note : Check(dataset, {}).notes) ADD_FAILURE() << note;
    if (!said.killed || testing::Test::HasFailure()) break;
    ++killed;
  }
  EXPECT_GT(killed, 10);
}

TEST(KilledWriterTest, LosesNothingOfImages) { KillAtCalls("image", 9); }

TEST(KilledWriterTest, LosesNothingOfVideos) { KillAtCalls("video", 7); }

// Records what is missing. Returns false where something failed.
bool RecordMissing(DatasetWriter& writer) {
  try {
    for (int64_t episode = writer.episodes(); episode < kEpisodes; ++episode) {
      mjp_test::RecordEpisode(writer, episode);
    }
    writer.Finish();
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(KilledWriterTest, AnEpisodeThatCannotBeWrittenIsRecordedAgain) {
  fail = true;
  const long step = std::getenv("MJPOLICY_TEST_FAULTS") != nullptr ? 1 : 3;
  int again = 0;
  for (long n = 0;; n += step) {
    SCOPED_TRACE(n);
    const mjp_test::TempDir parent;
    const std::string folder = parent / "set";
    DatasetWriter(folder, mjp_test::RecordedInfo("image")).Finish();
    auto writer = std::make_unique<DatasetWriter>(folder, mjp_test::RecordedInfo("image"));
    calls_left = n;
    const bool whole = RecordMissing(*writer);
    const bool failed = calls_left.exchange(-1) < 0;
    if (!whole && RecordMissing(*writer)) ++again;
    writer.reset();  // one whose thread failed does not go on
    DatasetWriter last(folder, mjp_test::RecordedInfo("image"));
    EXPECT_TRUE(RecordMissing(last));
    mjp_test::ExpectRecorded(folder, kEpisodes);
    if (!failed || testing::Test::HasFailure()) break;
  }
  EXPECT_GT(again, 1);
  fail = false;
}

}  // namespace
}  // namespace mjp::datasets
