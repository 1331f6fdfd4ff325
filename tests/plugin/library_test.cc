// The library as a host meets it: what it needs, what it shows, and a plain C program around it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/unet/unet_model.h"
#include "tests/support/goldens/golden_cases.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct Result {
  int status = -1;
  std::string output;
};

Result RunCommand(const std::string& command) {
  Result result;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return result;
  std::array<char, 4096> buffer;
  while (size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) {
    result.output.append(buffer.data(), n);
  }
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class LibraryTest : public ::testing::Test {
 protected:
  // Writes Push-T with a policy; `attributes` are more <config> elements.
  std::string WriteModel(const std::string& checkpoint, const std::string& attributes = "") {
    std::ifstream file(MJPOLICY_SOURCE_DIR "/models/pusht_policy.xml");
    std::stringstream text;
    text << file.rdbuf();
    std::string xml = text.str();
    const auto replace = [&xml](const std::string& from, const std::string& to) {
      const size_t at = xml.find(from);
      ASSERT_NE(at, std::string::npos) << from;
      xml.replace(at, from.size(), to);
    };
    replace("pusht_image", checkpoint);
    replace("file=\"pusht.xml\"", "file=\"" MJPOLICY_SOURCE_DIR "/models/pusht.xml\"");
    replace("</instance>", attributes + "</instance>");
    return folder_.Write("model.xml", xml);
  }
  Result RunHost(const std::string& model, const std::string& environment = "") const {
    const std::string plugins = std::filesystem::path(PLUGIN_LIBRARY).parent_path().string();
    // the engine writes its warnings to a file where the host runs
    return RunCommand("cd " + folder_.path() + " && env " + environment + " " + PLUGIN_HOST + " " +
                      plugins + " " + model + " 1.5");
  }

  TempDir folder_;
};

TEST_F(LibraryTest, NeedsOnlyTheEngineAndTheCompilersLibraries) {
  const Result result = RunCommand("readelf -d " PLUGIN_LIBRARY);
  ASSERT_EQ(result.status, 0) << result.output;
  bool engine = false;
  for (const std::string& line : Lines(result.output)) {
    if (line.find("(NEEDED)") == std::string::npos) continue;
    const size_t open = line.find('[');
    const std::string name = line.substr(open + 1, line.find(']') - open - 1);
    const bool base = name == "libc.so.6" || name == "libm.so.6" || name == "libgcc_s.so.1" ||
                      name == "libstdc++.so.6" || name.starts_with("ld-linux");
    const bool sanitizer =
        name.starts_with("libasan") || name.starts_with("libubsan") || name.starts_with("libtsan");
    engine |= name == "libmujoco.so.4.0.1";
    EXPECT_TRUE(base || sanitizer || name == "libmujoco.so.4.0.1") << name;
  }
  EXPECT_TRUE(engine) << "Python hosts find the engine by this name";
}

TEST_F(LibraryTest, ExportsNothing) {
  const Result result = RunCommand("nm -D --defined-only " PLUGIN_LIBRARY);
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(Lines(result.output), Not(Contains(HasSubstr(" T "))));
}

TEST_F(LibraryTest, DrivesAPlainHost) {
  mjp::WriteCheckpoint(folder_ / "checkpoint", *CompactCheckpoint(), mjp::WeightFormat::kF16);
  const std::string cpu = "<config key=\"backend\" value=\"cpu\"/>";
  const Result result = RunHost(WriteModel(folder_ / "checkpoint", cpu));
  ASSERT_EQ(result.status, 0) << result.output;
  const std::vector<std::string> lines = Lines(result.output);
  ASSERT_EQ(lines.size(), 2u) << result.output;
  EXPECT_EQ(lines[0], "libmjpolicy.so: mjpolicy.policy");
  double time = 0, x = 0, y = 0;
  ASSERT_EQ(std::sscanf(lines[1].c_str(), "time %lf %lf %lf", &time, &x, &y), 3) << lines[1];
  EXPECT_NE(x, 0);
  EXPECT_GT(x, -5);  // within the range that the statistics allow, in units of the model
  EXPECT_LT(x, 11);
  EXPECT_EQ(RunHost(folder_ / "model.xml").output, result.output) << "twice the same";
  EXPECT_EQ(RunHost(WriteModel(folder_ / "checkpoint",
                               cpu + "<config key=\"renderer\" value=\"raster\"/>"))
                .output,
            result.output)
      << "Push-T is drawn without a GL driver unless asked otherwise";
}

// another robot, camera, state, environment and unit: all from attributes and checkpoint
TEST_F(LibraryTest, DrivesAnotherRobot) {
  mjp::UnetPolicyConfig config = mjp::UnetOf(*CompactCheckpoint()).config;
  mjp::NormalizerStats stats = CompactCheckpoint()->stats;
  config.environment_dim = 3;
  stats.environment = {mjp::Normalization::kMinMax, {-2, -2, -2}, {2, 2, 2}};
  stats.state = stats.action = {mjp::Normalization::kMinMax, {-1, -1}, {1, 1}};
  mjp::WriteCheckpoint(folder_ / "reach_random", *mjp::RandomCheckpoint(config, stats, 3),
                       mjp::WeightFormat::kF16);
  const std::string model = MJPOLICY_SOURCE_DIR "/models/reach_policy.xml";
  const Result result = RunHost(model, "MJPOLICY_ASSETS=" + folder_.path());
  ASSERT_EQ(result.status, 0) << result.output;
  double time = 0, shoulder = 0, elbow = 0;
  ASSERT_EQ(std::sscanf(Lines(result.output).back().c_str(), "time %lf %lf %lf", &time, &shoulder,
                        &elbow),
            3)
      << result.output;
  EXPECT_NE(shoulder, 0);
  EXPECT_NE(elbow, 0);
  EXPECT_TRUE(std::abs(shoulder) <= 1 && std::abs(elbow) <= 1) << "the statistics' range";
  EXPECT_EQ(RunHost(model, "MJPOLICY_ASSETS=" + folder_.path()).output, result.output);
}

// Push-T's policy speaks pixels, 100 per unit of the model: the example without its two scales
TEST_F(LibraryTest, ForgottenScalesAreSaid) {
  mjp::WriteCheckpoint(folder_ / "checkpoint", *CompactCheckpoint(), mjp::WeightFormat::kF16);
  const std::string model = WriteModel(folder_ / "checkpoint");
  std::ifstream file(model);
  std::stringstream text;
  for (std::string line; std::getline(file, line);) {
    if (line.find("_scale") == std::string::npos) text << line << "\n";
  }
  const Result result = RunHost(folder_.Write("unscaled.xml", text.str()));
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("is attribute state_scale right?"));
  EXPECT_THAT(result.output, HasSubstr("is attribute action_scale right?"));
  EXPECT_THAT(RunHost(model).output, Not(HasSubstr("_scale right?")));
}

// a host's engine of another version beside the one that this library is linked to
TEST_F(LibraryTest, SecondEngineInTheProcessIsSaid) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's library must be loaded first";
#endif
  const std::string other = folder_ / "libmujoco.so.4.0.0", model = WriteModel("no_such_policy");
  const Result copied = RunCommand("cp -L /lib/*-linux-gnu/libutil.so.1 " + other);
  ASSERT_EQ(copied.status, 0) << copied.output;
  const Result result = RunHost(model, "LD_PRELOAD=" + other);
  EXPECT_THAT(result.output, HasSubstr("two engines, "));
  EXPECT_THAT(result.output, HasSubstr(other));
  EXPECT_THAT(RunHost(model).output, Not(HasSubstr("two engines")));
}

TEST_F(LibraryTest, MissingCheckpointIsASentence) {
  const Result result = RunHost(WriteModel("no_such_policy"), "MJPOLICY_ASSETS=/nowhere");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output, HasSubstr("there is no checkpoint directory no_such_policy, "
                                       "/nowhere/no_such_policy"));
}

TEST_F(LibraryTest, AssetsAreFoundByTheirFolder) {
  mjp::WriteCheckpoint(folder_ / "some_policy", *CompactCheckpoint(), mjp::WeightFormat::kF16);
  const Result result = RunHost(WriteModel("some_policy"), "MJPOLICY_ASSETS=" + folder_.path());
  EXPECT_EQ(result.status, 0) << result.output;
}

}  // namespace
}  // namespace mjp_test
