// What commands write, by one table each: a fault at any write leaves a whole file, none or an
// error; and no command replaces what it reads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/datasets/recorded_set.h"
#include "tests/metamorphic/write_faults.h"
#include "tests/support/renderer.h"

namespace mjp_test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

const std::string kModels = MJPOLICY_SOURCE_DIR "/models/";

class OutputsTest : public WriteFaultTest {
 protected:
  void SetUp() override {
    WriteFaultTest::SetUp();
    ASSERT_EQ(RunMjpolicy(Observe("in.safetensors")).code, 0);
    ASSERT_EQ(RunMjpolicy("demonstrate --rows 40 --threads 1 --samples 32 --rounds 1 --out " +
                          Path("rows"))
                  .code,
              0);
    for (const auto& entry : fs::directory_iterator(Path("rows"))) {
      if (entry.path().extension() == ".npy") states_ = entry.path();
    }
  }
  std::string Observe(const std::string& out) const {
    return "observe --checkpoint " + checkpoint_ + " --out " + Path(out);
  }
  std::string Infer(const std::string& out) const {
    return "infer --backend cpu --sampler ddim --steps 2 --checkpoint " + checkpoint_ + " --in " +
           Path("in.safetensors") + " --out " + Path(out);
  }
  std::string Certify(const std::string& out) const {
    return "certify " + checkpoint_ +
           " --backend cpu --sampler ddim --steps 2 --episodes 1 --timed 2 --out " + Path(out);
  }
  std::string Report(const std::string& out) const {
    return "report " + Path("0") + " --out " + Path(out);
  }
  std::string Profile(const std::string& out) const {
    return "profile --backend cpu --decisions 1 --sampler ddim --steps 2 --checkpoint " +
           checkpoint_ + " --trace " + Path(out);
  }
  // A command that writes a file into the folder out, the same each time.
  Command Writes(const char* name, const std::string& arguments) const {
    return {name,
            arguments,
            arguments + (name == std::string("report") ? " --force" : ""),
            [this] { return Content("out"); },
            [this, whole = std::make_shared<Files>()] {
              if (whole->empty()) *whole = Content("whole");
              for (const auto& [file, content] : Content("out")) {
                EXPECT_TRUE(whole->contains(file) && whole->at(file) == content) << file;
              }
            },
            [this] { fs::create_directory(Path("out")); }};
  }
  // Tries such a command, whose files are compared with those of a run without a fault.
  void TryWhole(const char* name, const std::string& arguments) const {
    const Command command = Writes(name, arguments);
    fs::remove_all(Path("out"));
    fs::remove_all(Path("whole"));
    command.prepare();
    ASSERT_EQ(RunMjpolicy(command.arguments).code, 0) << name;
    fs::rename(Path("out"), Path("whole"));
    Try(command);
  }

  std::string states_;
};

TEST_F(OutputsTest, OfOneFileAreWholeOrNone) {
  TryWhole("infer", Infer("out/a.safetensors"));
  TryWhole("observe", Observe("out/a.safetensors"));
  TryWhole("report", Report("out/a.html"));
}

// times are in them, so that one run's is not another's: each is read
TEST_F(OutputsTest, WithTimesInThemAreWholeOrNone) {
  const auto files = [this] {
    Files files;
    for (const auto& [name, content] : Content("out")) files[name] = "";
    return files;
  };
  const auto check = [this] {
    for (const auto& [name, content] : Content("out")) {
      if (name.ends_with(".json")) {
        EXPECT_TRUE(Json::accept(content)) << name;
      } else {
        EXPECT_TRUE(content.ends_with("\n")) << name;
      }
    }
  };
  const auto prepare = [this] { fs::create_directory(Path("out")); };
  Try({"certify", Certify("out/a.json"), Certify("out/a.json"), files, check, prepare});
  Try({"profile", Profile("out/a.json"), Profile("out/a.json"), files, check, prepare});
}

TEST_F(OutputsTest, OfTaskFilesAreWholeOrNone) {
  if (const std::string why = RendererLacks(); !why.empty()) GTEST_SKIP() << why;
  const std::string cart = kModels + "cart_pole.xml --checkpoint " + Path("cart") +
                           " --backend cpu --sampler ddim --steps 2 ";
  ASSERT_EQ(RunMjpolicy("random-checkpoint " + Path("cart") + " --state 2 --action 1").code, 0);
  const std::string evaluate =
      "evaluate " + cart + "--episodes 3 --max-steps 6 --videos 1 --out " + Path("out") + " ";
  Try({"evaluate", evaluate, evaluate + "--overwrite", [this] { return Evaluated("out"); },
       [this] { ExpectWholeVideos("out"); }});
  const auto prepare = [this] {
    fs::create_directory(Path("out"));
    folder_.Write("out/arm.xml", R"(<mujoco model="arm"><worldbody>
      <camera name="side" pos="0 -2 0.5" xyaxes="1 0 0 0 0 1"/>
      <body><joint name="a" axis="0 1 0" range="-60 60"/><geom size="0.1"/></body></worldbody>
      <actuator><position joint="a" ctrlrange="-1 1"/></actuator></mujoco>)");
  };
  const std::string scaffold = "scaffold " + Path("out/arm.xml");
  Try({"scaffold", scaffold, scaffold + " --force", [this] { return Content("out"); },
       [this] {
         Files files = Content("out");
         std::string& task = files["arm_task.xml"];
         EXPECT_TRUE(task.empty() || task.ends_with("</mujoco>\n")) << task;
         EXPECT_EQ(files.size(), 2u);
       },
       prepare});
}

// episodes that a recorder left behind, and a conversion of them that is broken off
TEST_F(OutputsTest, FinishedDataSetsLoseNoEpisode) {
  constexpr int64_t kEpisodes = 5;
  {
    mjp::datasets::DatasetWriter writer(Path("spooled"), RecordedInfo("image"));
    for (int64_t episode = 0; episode < kEpisodes; ++episode) RecordEpisode(writer, episode);
  }
  ASSERT_TRUE(fs::exists(Path("spooled/.spool")));
  const std::string finish = "dataset --finish " + Path("out");
  Try({"finish", finish, finish,
       [this] {
         return Files{{"check", RunMjpolicy("dataset " + Path("out")).text}};
       },
       [] {}, [this] { fs::copy(Path("spooled"), Path("out"), fs::copy_options::recursive); }});
  EXPECT_THAT(RunMjpolicy("dataset " + Path("out")).text, HasSubstr("5 episodes"));
}

// ---- what is read is not replaced ---------------------------------------------------------------

TEST_F(OutputsTest, DoNotReplaceWhatTheCommandReads) {
  const std::string policy = "policy/";
  const std::string states = fs::path(states_).lexically_relative(folder_.path());
  const std::string arguments[] = {
      Infer("in.safetensors"),
      Infer("./policy/../in.safetensors"),
      Infer(policy + "model.safetensors"),
      Observe(policy + "config.json"),
      Certify(policy + "config.json"),
      Profile(policy + "policy_preprocessor.json"),
      "bench network --seconds 0.01 --checkpoint " + checkpoint_ + " --json " +
          Path(policy + "config.json"),
      "render --states " + states_ + " --out " + states_,
      Report("0/run.json"),
      Report("0/run.json") + " --force",
      "merge " + Path("0") + " " + Path("1") + " --overwrite --out " + Path("1"),
      "scaffold " + kModels + "aloha/transfer_cube.xml --force --out " + kModels +
          "aloha/transfer_cube.xml",
      "convert " + Path("0") + " " + Path("0"),
  };
  fs::create_symlink(Path("in.safetensors"), Path("link.safetensors"));
  const Files before = Content("");
  for (const std::string& each : arguments) {
    SCOPED_TRACE(each);
    const Outcome outcome = RunMjpolicy(each);
    EXPECT_EQ(outcome.code, 1) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr("mjpolicy: error: "));
    EXPECT_TRUE(Content("") == before);
  }
}

TEST_F(OutputsTest, ACertificatesPageReplacesItsOwnKindAlone) {
  folder_.Write("README.md", "# Mine\n");
  const Outcome refused = RunMjpolicy(Certify("README.json"));
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.text, HasSubstr("README.md: is no page of a certificate"));
  EXPECT_EQ(Content("").at("README.md"), "# Mine\n");
  EXPECT_FALSE(fs::exists(Path("README.json")));
  ASSERT_EQ(RunMjpolicy(Certify("a.json")).code, 0);
  EXPECT_EQ(RunMjpolicy(Certify("a.json")).code, 0);
}

// it would take hours to get to the end
TEST_F(OutputsTest, ThatCannotBeWrittenAreRefusedBeforeTheWork) {
  fs::create_directory(Path("folder"));
  for (const std::string out : {"absent/a.json", "folder"}) {
    for (const std::string& each :
         {"certify " + checkpoint_ + " --backend cpu --episodes 1000000 --out " + Path(out),
          "profile --decisions 100000 --checkpoint " + checkpoint_ + " --trace " + Path(out)}) {
      const Outcome outcome = RunMjpolicy(each, "timeout 60 ");
      EXPECT_EQ(outcome.code, 2) << each << outcome.text;
      EXPECT_THAT(outcome.text, HasSubstr(out));
    }
  }
}

class NamesTest : public WriteFaultTest {
 protected:
  void SetUp() override { ProgramTest::SetUp(); }
};

// Names that a program behind a video could take for something else: an option, a pattern, a
// protocol, several arguments; and that are no UTF-8. One name has all that one name can have.
TEST_F(NamesTest, OfOutputsAreAny) {
  for (const std::string name : {"-y %d a:b '\xff\xfe", "pipe:1"}) {
    SCOPED_TRACE(name);
    const std::string here = "cd " + folder_.path() + " && ";
    const std::string out = "\"./" + name + "\"";
    std::string evaluate = Evaluate("out") + "--episodes 1 --videos 1";
    evaluate.replace(evaluate.find(Path("out")), Path("out").size(),
                     name.starts_with('-') ? out : "\"" + name + "\"");
    const Outcome outcome = RunMjpolicy(evaluate, here);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    ExpectWholeVideos(name);
    EXPECT_EQ(Content(name + "/videos").size(), 1u);
  }
  fs::create_directory_symlink(checkpoint_, Path("\xff"));
  const Outcome inspected = RunMjpolicy("inspect --json " + Path("\xff"));
  EXPECT_EQ(inspected.code, 0) << inspected.text;
  EXPECT_TRUE(Json::accept(inspected.text)) << inspected.text;
}

}  // namespace
}  // namespace mjp_test
