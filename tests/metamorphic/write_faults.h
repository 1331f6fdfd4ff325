#ifndef TESTS_METAMORPHIC_WRITE_FAULTS_H_
#define TESTS_METAMORPHIC_WRITE_FAULTS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "tasks/recording/video_container.h"
#include "tests/support/program.h"

// Commands whose writes fail, for files_test.cc.

namespace mjp_test {

namespace fs = std::filesystem;
using mjp::Json;
using Files = std::map<std::string, std::string>;  // name -> hash, or content

// A command, what it wrote, and how one goes on after an error.
struct Command {
  const char* name;
  std::string arguments, again;
  std::function<Files()> written;
  std::function<void()> check = [] {};
  std::function<void()> prepare = [] {};  // makes anew, from nothing, what is written to
};

class WriteFaultTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    for (const char* shard : {"0", "1"}) {
      ASSERT_EQ(
          RunMjpolicy(Evaluate(shard) + "--episodes 3 --videos 2 --shard " + shard + "/2").code, 0);
    }
  }

  // Settings under which some write of a command fails: small disks, and the n-th call of a kind.
  std::vector<std::string> WriteFaults() const {
    std::vector<std::string> faults;
    for (const int blocks : {0, 1, 4, 16, 64, 512}) {
      faults.push_back("ulimit -f " + std::to_string(blocks) + ";");
    }
#ifdef FAULT_SHIM
    for (const char* kind : {"write", "open"}) {
      for (const int n : {1, 2, 4, 8, 13, 21}) {
        faults.push_back("LD_PRELOAD=" FAULT_SHIM " MJPOLICY_FAULT_MARK=" + Path("mark") +
                         " MJPOLICY_FAULT='" + kind + " " + std::to_string(n) + "'");
      }
    }
#endif
    return faults;
  }

  // Every file below `folder` but logs with times: name -> content.
  Files Content(const std::string& folder) const {
    Files files;
    std::error_code none;
    for (const auto& entry : fs::recursive_directory_iterator(Path(folder), none)) {
      const std::string name = fs::relative(entry.path(), Path(folder)).string();
      if (!entry.is_regular_file() || name == ".lock") continue;
      const std::vector<uint8_t> bytes = mjp::ReadFile(entry.path().string(), 1 << 26);
      files[name] = {bytes.begin(), bytes.end()};
    }
    return files;
  }

  // Videos are whole, and nothing unfinished lies beside them, but of an encoder that outlived a
  // kill.
  void ExpectWholeVideos(const std::string& out, bool killed = false) const {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(Path(out) + "/videos", none)) {
      const std::string name = entry.path().filename().string();
      if (killed && mjp::app::IsUnfinishedVideo(name)) continue;
      EXPECT_FALSE(mjp::app::IsUnfinishedVideo(name)) << name;
      EXPECT_EQ(mjp::app::VideoFault(entry.path().string()), "") << name;
    }
  }

  // Runs a command under each fault: an error or whole files, and the way on leads to them.
  void Try(const Command& command) const {
    const auto prepare = [&] {
      fs::remove_all(Path("out"));
      command.prepare();
    };
    prepare();
    const Outcome unharmed = RunMjpolicy(command.arguments);
    ASSERT_EQ(unharmed.code, 0) << command.name << unharmed.text;
    const Files whole = command.written();
    int failed = 0;
    for (const std::string& fault : WriteFaults()) {
      SCOPED_TRACE(std::string(command.name) + ", " + fault);
      prepare();
      const Outcome outcome = RunMjpolicy(command.arguments, fault);
      EXPECT_THAT(outcome.code, testing::AnyOf(0, 2, 3)) << outcome.text;
      failed += outcome.code != 0;
      command.check();
      if (outcome.code != 0) {
        const Outcome again = RunMjpolicy(command.again);
        ASSERT_EQ(again.code, 0) << outcome.text << again.text;
      }
      EXPECT_TRUE(command.written() == whole) << outcome.text;
      if (HasFailure()) return;
    }
    EXPECT_GT(failed, 3) << command.name;
  }

  // Everything of an evaluation but times, with the videos.
  Files Evaluated(const std::string& out) const {
    Files files = Content(out);
    for (auto it = files.begin(); it != files.end();) {
      it = it->first.ends_with(".json") || it->first.ends_with(".jsonl") ? files.erase(it) : ++it;
    }
    files["results"] = Results(out);
    return files;
  }
};

}  // namespace mjp_test

#endif  // TESTS_METAMORPHIC_WRITE_FAULTS_H_
