// `mjpolicy doctor` and `inspect --gpu` as a user calls them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"

namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kShipped = std::string(MJPOLICY_SOURCE_DIR) + "/assets/pusht_image";

TEST(DoctorTest, NamesEachPartAndItsHealth) {
  const auto outcome = mjp_test::RunMjpolicy("doctor");
  for (const char* name :
       {"engine", "plugin", "processor", "assets", "models", "build", "driver", "EGL", "videos"})
    EXPECT_THAT(outcome.text, HasSubstr(name));
  EXPECT_THAT(outcome.text, HasSubstr("MuJoCo 4.0.1"));
}

TEST(DoctorTest, JsonHasWhatThePageHas) {
  const auto outcome = mjp_test::RunMjpolicy("doctor --json");
  const auto json = nlohmann::json::parse(outcome.text);
  ASSERT_TRUE(json.contains("findings"));
  for (const auto& finding : json["findings"])
    for (const char* key : {"name", "health", "text", "remedy"})
      EXPECT_TRUE(finding.contains(key)) << finding.dump();
}

TEST(DoctorTest, SaysWhatToDoAboutWhatIsMissing) {
  const auto outcome = mjp_test::RunMjpolicy(
      "doctor", "PATH=/nowhere MJPOLICY_ASSETS=/nowhere CUDA_VISIBLE_DEVICES=");
  EXPECT_THAT(outcome.text, HasSubstr("absent  videos"));
  EXPECT_THAT(outcome.text, HasSubstr("apt-get install ffmpeg"));
}

#ifdef FAULT_SHIM

// As in a container, or a chroot, that has no /proc.
class NoProcTest : public mjp_test::ProgramTest {
 protected:
  static mjp_test::Outcome Run(const std::string& arguments) {
    return mjp_test::RunMjpolicy(arguments, "MJPOLICY_NO_PROC=1 LD_PRELOAD=" FAULT_SHIM);
  }
};

TEST_F(NoProcTest, DoctorFindsTheSameFiles) {
  const auto parts = [](const std::string& text) {
    return text.substr(0, text.find("\n", text.find(" models ")));
  };
  const std::string there = mjp_test::RunMjpolicy("doctor").text, absent = Run("doctor").text;
  EXPECT_THAT(there, HasSubstr(" models "));
  EXPECT_EQ(parts(absent), parts(there));
}

TEST_F(NoProcTest, CertifyNamesTheSameProgram) {
  const auto engine = [&](const mjp_test::Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    return nlohmann::json::parse(mjp_test::ReadText(Path("a.json")))["engine"].dump();
  };
  const std::string certify = "certify " + checkpoint_ + " --out " + Path("a.json") +
                              " --backend cpu --sampler ddim --steps 2 --episodes 1 --timed 2";
  const std::string there = engine(mjp_test::RunMjpolicy(certify));
  EXPECT_THAT(there, HasSubstr("program_sha256"));
  EXPECT_EQ(engine(Run(certify)), there);
}

#endif

#ifdef MJPOLICY_HAVE_CUDA

// A machine without a driver, or with a GPU that is hidden.
class NoGpuTest : public mjp_test::ProgramTest {
 protected:
  mjp_test::Outcome Run(const std::string& backend) const {
    return mjp_test::RunMjpolicy(
        "evaluate --checkpoint " + checkpoint_ + " --out " + Path("out") +
            " --sampler ddim --steps 2 --max-steps 16 --episodes 1 --backend " + backend,
        "CUDA_VISIBLE_DEVICES=");
  }
  static std::string Why() {
    const bool driver = std::filesystem::exists("/proc/driver/nvidia/version");
    return driver ? "no NVIDIA GPU found" : "no NVIDIA driver found";
  }
};

TEST_F(NoGpuTest, AutoTakesTheCpuWithOneSentence) {
  const auto outcome = Run("auto");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  const std::string sentence = Why() + ": running on the CPU\n";
  const size_t first = outcome.text.find(sentence);
  ASSERT_NE(first, std::string::npos) << outcome.text;
  EXPECT_EQ(outcome.text.find("running on the CPU", first + sentence.size()), std::string::npos);
  EXPECT_TRUE(first == 0 || outcome.text[first - 1] == '\n') << outcome.text;
}

TEST_F(NoGpuTest, CudaIsRefused) {
  const auto outcome = Run("cuda");
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_THAT(outcome.text,
              HasSubstr("backend cuda: " + Why() + "; choose the backend cpu or auto"));
}

TEST(InspectGpuTest, ShowsThePlanForAGpuThatIsNotHere) {
  const auto outcome = mjp_test::RunMjpolicy("inspect " + kShipped + " --gpu a100");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("on NVIDIA A100 (8.0, 108 SMs, 163 KiB)"));
  EXPECT_THAT(outcome.text, HasSubstr("row kernel"));
  EXPECT_THAT(outcome.text, HasSubstr("since "));
}

TEST(InspectGpuTest, AnUnknownGpuIsAnError) {
  const auto outcome = mjp_test::RunMjpolicy("inspect " + kShipped + " --gpu h300");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, HasSubstr("rtx4090"));
}

TEST(InspectGpuTest, JsonHasThePlans) {
  const auto outcome = mjp_test::RunMjpolicy("inspect " + kShipped + " --json --gpu h200");
  const auto json = nlohmann::json::parse(outcome.text);
  ASSERT_EQ(json["execution"].size(), 5u);
  EXPECT_EQ(json["execution"][0]["form"], "row kernel");
  EXPECT_EQ(json["execution"][0]["environments"], 1);
}

#else

TEST(InspectGpuTest, ABuildWithoutCudaHasNoPlansAndSaysSo) {
  const auto outcome = mjp_test::RunMjpolicy("inspect " + kShipped + " --gpu a100");
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("this build has no CUDA kernels"));
}

#endif

}  // namespace
