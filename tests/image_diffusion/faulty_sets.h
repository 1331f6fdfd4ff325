#ifndef TESTS_IMAGE_DIFFUSION_FAULTY_SETS_H_
#define TESTS_IMAGE_DIFFUSION_FAULTY_SETS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "image_diffusion/data/pictures.h"
#include "tests/support/child.h"
#include "tests/support/picture_files.h"
#include "tests/support/temp_dir.h"

// Data sets that are damaged on purpose: a row says how, and what the refusal has to name.

namespace mjp_test {

namespace fs = std::filesystem;

// A fault of a data set, which lies in `folder` whole before it is damaged.
struct Fault {
  std::string name;
  std::function<void(const std::string& folder)> damage;
  std::vector<std::string> said = {};  // what the refusal names; empty: no more than every one
  bool as_nobody = false;              // is read without root's rights
};
inline void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

inline size_t MemoryNow(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    size_t kilobytes = 0;
    if (word == key && status >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

// How `load` ends in a process of its own: "loaded", or exit code and text of its Error. Its clock
// and its memory are limited: "signal 14" for one that hangs, "memory ..." for one that takes much.
inline std::string Ending(const std::function<void()>& load, bool as_nobody = false) {
  constexpr size_t kMemory = size_t{64} << 20;
  constexpr unsigned kSeconds = 20;
  const auto in_child = [&]() -> std::string {
    std::ofstream("/proc/self/clear_refs") << 5 << std::flush;  // the peak begins anew
    const size_t before = MemoryNow("VmRSS:");
    constexpr uid_t kNobody = 65534;
    if (as_nobody && geteuid() == 0 &&
        (setresgid(kNobody, kNobody, kNobody) != 0 || setresuid(kNobody, kNobody, kNobody) != 0)) {
      return "cannot become nobody";
    }
    std::string end = "loaded";
    try {
      load();
    } catch (const mjp::Error& error) {
      end = "code " + std::to_string(static_cast<int>(error.code())) + ": " + error.what();
    } catch (const std::exception& error) {
      end = std::string("exception: ") + error.what();
    }
    const size_t peak = MemoryNow("VmHWM:");
    return peak > before + kMemory ? "memory " + std::to_string((peak - before) >> 20) + " MiB"
                                   : end;
  };
  return InChild(in_child, kSeconds);
}

// Every refusal names the place, and after it what to do.
inline void ExpectRefusal(const std::string& end, const Fault& fault, const std::string& folder) {
  EXPECT_THAT(end, ::testing::StartsWith("code 2: "));
  EXPECT_THAT(end, ::testing::HasSubstr(folder));
  EXPECT_THAT(end, ::testing::HasSubstr("; "));
  for (const std::string& text : fault.said) EXPECT_THAT(end, ::testing::HasSubstr(text));
}

// A file of `size` bytes, of which only the beginning takes room on the disk.
inline void WriteSparse(const std::string& path, const Bytes& beginning, uint64_t size) {
  WriteBytes(path, beginning);
  fs::resize_file(path, size);
}

inline void Edit(const std::string& path, const std::function<void(Bytes&)>& edit) {
  Bytes bytes = ReadBytes(path);
  ASSERT_FALSE(bytes.empty()) << path;
  edit(bytes);
  WriteBytes(path, bytes);
}

// Faults that any file can have, in the place of `file`.
inline std::vector<Fault> FaultsOfAnyFile(const std::string& file) {
  const auto replace = [file](const std::string& name, std::function<void(std::string)> make,
                              bool as_nobody = false) {
    return Fault{file + " " + name,
                 [file, make](const std::string& folder) {
                   fs::remove(folder + "/" + file);
                   make(folder + "/" + file);
                 },
                 {file.substr(file.rfind('/') + 1)},
                 as_nobody};
  };
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  return {
      replace("is a directory", [](const std::string& path) { fs::create_directory(path); }),
      replace("is a FIFO", [](const std::string& path) { mkfifo(path.c_str(), 0644); }),
      replace("is a link to nothing",
              [](const std::string& path) { fs::create_symlink(path + ".absent", path); }),
      replace("is a link to itself",
              [](const std::string& path) { fs::create_symlink(path, path); }),
      replace("is a link to zeros",
              [](const std::string& path) { fs::create_symlink("/dev/zero", path); }),
      replace("is empty", [](const std::string& path) { WriteBytes(path, {}); }),
      replace("has 40 GiB of holes",
              [](const std::string& path) { WriteSparse(path, {}, 40 * kGiB); }),
      replace(
          "may not be read",
          [](const std::string& path) {
            WriteBytes(path, {1});
            fs::permissions(path, fs::perms::none);
          },
          true),
  };
}

}  // namespace mjp_test

#endif  // TESTS_IMAGE_DIFFUSION_FAULTY_SETS_H_
