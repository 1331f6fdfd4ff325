// Certificates: the shipped policy's holds here, and one that was changed does not.

#include <gmock/gmock.h>

#include <fstream>

#include "apps/certify/checksums.h"
#include "apps/certify/measures.h"
#include "base/json.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/program.h"
#include "tests/support/renderer.h"

namespace mjp::app {
namespace {

using mjp_test::Outcome;
using mjp_test::RunMjpolicy;
using testing::HasSubstr;
using testing::Not;

constexpr char kShipped[] = MJPOLICY_SOURCE_DIR "/assets/pusht_image";
constexpr char kCertificate[] = MJPOLICY_SOURCE_DIR "/docs/certificates/pusht_image.json";
constexpr char kStudent[] = MJPOLICY_SOURCE_DIR "/assets/pusht_image_onestep";
constexpr char kStudents[] = MJPOLICY_SOURCE_DIR "/docs/certificates/pusht_image_onestep.json";

class CertifyTest : public mjp_test::ProgramTest {
 protected:
  Outcome Verify(const std::string& file, const std::string& more = "",
                 const std::string& checkpoint = kShipped) {
    return RunMjpolicy("certify " + checkpoint + " --verify " + file + " --episodes 1 --timed 2 " +
                       more);
  }

  std::string Stored(const mjp::Json& certificate) {
    std::ofstream(Path("changed.json")) << certificate.dump();
    return Path("changed.json");
  }

  mjp::Json shipped_ = mjp::ReadJson(kCertificate);
};

TEST_F(CertifyTest, TheShippedPolicysHolds) {
  const Outcome outcome = Verify(kCertificate);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("equal             decisions: 32 of 32 are equal"));
  EXPECT_THAT(outcome.text, HasSubstr("equal             episodes each score: 1 of 1 are equal"));
  EXPECT_THAT(outcome.text, HasSubstr("equal             checkpoint model.safetensors"));
  EXPECT_THAT(outcome.text, HasSubstr("not repeated      episodes each: 99 of 100"));
  EXPECT_THAT(outcome.text, Not(HasSubstr("DIFFERS")));
  EXPECT_THAT(outcome.text, Not(HasSubstr("verified"))) << "99 episodes were left out";
  EXPECT_THAT(outcome.text, HasSubstr("leave out --episodes to repeat all"));
}

TEST_F(CertifyTest, TheShippedStudentsHolds) {
  const Outcome outcome = Verify(kStudents, "", kStudent);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("equal             decisions: 32 of 32 are equal"));
  EXPECT_THAT(outcome.text, HasSubstr("equal             episodes each score: 1 of 1 are equal"));
  EXPECT_THAT(outcome.text, HasSubstr("equal             checkpoint model.safetensors"));
  EXPECT_THAT(outcome.text, Not(HasSubstr("DIFFERS")));
}

// A certificate says itself by which sampler, format and backend its decisions were made.
TEST_F(CertifyTest, VerifyTakesNoSettingsOfDecisions) {
  for (const std::string given : {"--sampler ddim", "--steps 5", "--backend cpu", "--parallel 4",
                                  "--precision fp32", "--hold-noise 2", "--no-self-check"}) {
    const Outcome outcome = Verify(kCertificate, given);
    EXPECT_EQ(outcome.code, 1) << given;
    EXPECT_THAT(outcome.text, HasSubstr(given.substr(0, given.find(' ')))) << given;
    EXPECT_THAT(outcome.text, HasSubstr("--verify")) << given;
  }
}

// A certificate as a GPU's on a machine that has none.
TEST_F(CertifyTest, WhatCannotBeRepeatedIsComparedAsFarAsItGoes) {
  const std::string verify = std::string("certify ") + kShipped + " --verify ";
  mjp::Json gpus = shipped_;
  gpus["settings"]["backend"] = "cuda", gpus["settings"]["precision"] = "fp16";
  gpus.erase("fields"), gpus.erase("checksum");
  AddChecksums(gpus);
  const Outcome outcome = RunMjpolicy(verify + Stored(gpus), "CUDA_VISIBLE_DEVICES=");
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("equal             checkpoint model.safetensors"));
  EXPECT_THAT(outcome.text, HasSubstr("equal             episodes success: 1.0, 100 of 100"));
  EXPECT_THAT(outcome.text, HasSubstr("error: backend cuda: "));

  mjp::Json changed = gpus;
  changed["checkpoint"]["config.json"] = "0";
  const Outcome other = RunMjpolicy(verify + Stored(changed), "CUDA_VISIBLE_DEVICES=");
  EXPECT_EQ(other.code, 5) << other.text;
  EXPECT_THAT(other.text, HasSubstr("DIFFERS           checkpoint config.json: was 0"));
  EXPECT_THAT(other.text, HasSubstr("3 lines differ; all else could not be repeated here"));
}

TEST_F(CertifyTest, AChangedOneDoesNot) {
  mjp::Json changed = shipped_;
  changed["decisions"][31] = changed["decisions"][30];
  changed["checkpoint"]["config.json"] = "0";
  changed["error"]["max"] = 1;
  const Outcome outcome = Verify(Stored(changed));
  EXPECT_EQ(outcome.code, 5) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("DIFFERS           decisions: 31 of 32 are equal"));
  EXPECT_THAT(outcome.text, HasSubstr("DIFFERS           checkpoint config.json: was 0"));
  EXPECT_THAT(outcome.text, HasSubstr("DIFFERS           error max: was 1"));
  for (const char* edited : {"decisions/31", "checkpoint/config.json", "error/max", "checksum"})
    EXPECT_THAT(outcome.text, HasSubstr(std::string("DIFFERS           ") + edited));
  EXPECT_THAT(outcome.text, HasSubstr("7 lines differ"));
}

TEST_F(CertifyTest, EditedSettingsAreNotRepeated) {
  mjp::Json changed = shipped_;
  changed["settings"]["seed"] = 100001;
  const Outcome outcome = Verify(Stored(changed));
  EXPECT_EQ(outcome.code, 5) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("DIFFERS           settings/seed: edited"));
  EXPECT_THAT(outcome.text, HasSubstr("2 lines differ; nothing was repeated"));
  changed["format"] = 1;
  const Outcome old = Verify(Stored(changed));
  EXPECT_EQ(old.code, 2) << old.text;
  EXPECT_THAT(old.text, HasSubstr("without checksums: certify the policy anew"));
}

TEST_F(CertifyTest, WhatIsNoneIsAnError) {
  for (const char* key : {"format", "settings", "decisions", "episodes"}) {
    mjp::Json changed = shipped_;
    changed.erase(key);
    const Outcome outcome = Verify(Stored(changed));
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr(key));
  }
  mjp::Json settings = shipped_;
  settings["settings"]["sampler"] = "ddpn";
  EXPECT_THAT(Verify(Stored(settings)).text, HasSubstr("ddpn"));
  for (const char* key : {"decisions", "latency", "checkpoint", "refused", "error"}) {
    mjp::Json changed = shipped_;
    changed[key] = 3;
    const Outcome outcome = Verify(Stored(changed));
    EXPECT_EQ(outcome.code, 2) << key << ": " << outcome.text;
  }
  EXPECT_EQ(Verify(kCertificate, kShipped).code, 1) << "a model that the certificate has not";
}

TEST_F(CertifyTest, IsWrittenWithItsPage) {
  const Outcome outcome = RunMjpolicy(
      std::string("certify ") + kShipped +
      " --backend cpu --sampler ddim --steps 2 --episodes 1 --timed 2 --out " + Path("a.json"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  std::ifstream page(Path("a.md"));
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  EXPECT_THAT(text, HasSubstr("## What this does not establish"));
  const mjp::Json certificate = mjp::ReadJson(Path("a.json"));
  EXPECT_EQ(certificate["decisions"].size(), 32u);
  EXPECT_EQ(certificate["settings"]["steps"], 2);
  EXPECT_EQ(certificate["settings"]["batch"], 1) << "as many as there are episodes";
  EXPECT_LT(certificate["error"]["max"].get<double>(), 1e-5);
  for (const mjp::Json& each : certificate["refused"])
    EXPECT_NE(each["answer"], "it was not refused") << each["asked"];
  const Outcome again = Verify(Path("a.json"));
  EXPECT_EQ(again.code, 0) << again.text;
  EXPECT_THAT(again.text, testing::EndsWith("\nverified\n"));
}

TEST_F(CertifyTest, AnyToleranceThatIsTakenIsVerified) {
  const Outcome made = RunMjpolicy(std::string("certify ") + kShipped +
                                   " --backend cpu --sampler ddim --steps 4 --parallel 4,5 "
                                   "--episodes 1 --timed 2 --out " +
                                   Path("a.json"));
  ASSERT_EQ(made.code, 0) << made.text;
  const Outcome outcome = Verify(Path("a.json"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("parallel_tolerance: 5.0"));
}

TEST_F(CertifyTest, RepeatsFewerEpisodesInTheirBatch) {
  const Outcome made = RunMjpolicy(std::string("certify ") + kStudent +
                                   " --backend cpu --episodes 2 --timed 2 --out " + Path("a.json"));
  ASSERT_EQ(made.code, 0) << made.text;
  EXPECT_EQ(mjp::ReadJson(Path("a.json"))["settings"]["batch"], 2);
  const Outcome outcome = Verify(Path("a.json"), "", kStudent);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("equal             settings batch: 2"));
}

class CertifyCartTest : public CertifyTest {
 protected:
  void SetUp() override {
    CertifyTest::SetUp();
    if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
    ASSERT_EQ(RunMjpolicy("random-checkpoint " + Path("cart") +
                          " --state 2 --action 1 --picture 96x72 --range 4")
                  .code,
              0);
  }

  // The cart and pole, of 20 control steps, with `to` in place of `from`; returns the arguments.
  std::string Cart(const std::string& from = "", const std::string& to = "") const {
    std::string xml = mjp_test::ReadText(MJPOLICY_SOURCE_DIR "/models/cart_pole.xml");
    xml.replace(xml.find("data=\"200\""), 10, "data=\"20\"");
    xml.replace(xml.find(from), from.size(), to);
    return "certify " + Path("cart") + " " + folder_.Write("cart_pole.xml", xml);
  }

  static std::string Key(const std::string& key, const std::string& value) {
    return "<config key=\"" + key + "\" value=\"" + value + "\"/>";
  }

  // The same as no task, with `more` attributes and a latency.
  std::string NoTask(const std::string& more) const {
    const std::string camera = "<config key=\"camera\"";
    const std::string what =
        Cart(camera, Key("latency", "200") + Key("action_steps", "4") + more + camera);
    const std::string xml = Path("cart_pole.xml");
    std::string text = mjp_test::ReadText(xml);
    for (size_t at; (at = text.find("\"task.")) != std::string::npos;)
      text.replace(at, 6, "\"no_task.");
    std::ofstream(xml) << text;
    return what;
  }

  // The certificate of `what`, of two episodes.
  mjp::Json Certificate(const std::string& what, const std::string& more) const {
    const Outcome made =
        RunMjpolicy(what + " --backend cpu --sampler ddim --episodes 2 --timed 2 " + "--out " +
                    Path("cart.json") + " " + more);
    EXPECT_EQ(made.code, 0) << made.text;
    return mjp::ReadJson(Path("cart.json"));
  }

  const std::string prefix_ = Key("prefix", "1");
};

TEST_F(CertifyCartTest, ItsTenSecondsRunWithItsSettings) {
  const std::string what = Cart();
  const mjp::Json two = Certificate(what, "--steps 2"), three = Certificate(what, "--steps 3");
  EXPECT_NE(two["model"]["hash"], three["model"]["hash"]);
  EXPECT_FALSE(two["model"].contains("failure"));
  EXPECT_EQ(two["settings"]["batch"], 1) << "the plugin's";
  const std::string attribute = "<config key=\"camera\"";
  const std::string slow = Cart(attribute, "<config key=\"steps\" value=\"3\"/>" + attribute);
  EXPECT_EQ(Certificate(slow, "--steps 2")["model"]["hash"], two["model"]["hash"]);
}

// The ten seconds of a model that is no task run as it says, where the certificate has no settings.
TEST_F(CertifyCartTest, AModelThatIsNoTaskKeepsItsPrefixAndWarmStart) {
  const auto hash = [&](const std::string& more) {
    const mjp::Json made = Certificate(NoTask(more), "--steps 4");
    EXPECT_TRUE(made["episodes"].contains("absent")) << "they are of Push-T";
    return made["model"]["hash"];
  };
  const mjp::Json plain = hash(""), held = hash(prefix_);
  EXPECT_NE(held, plain);
  EXPECT_NE(hash(prefix_ + Key("warm_start", "2")), held);
  const Outcome parallel = RunMjpolicy(NoTask(prefix_) +
                                       " --backend cpu --parallel 4 --episodes 1 --timed 2 "
                                       "--out " +
                                       Path("cart.json"));
  EXPECT_EQ(parallel.code, 2) << parallel.text;
  EXPECT_THAT(parallel.text, HasSubstr("leave parallel out"));
  // whatever window would be faster on a GPU
  for (const char* text : {"1", "01"}) {
    NoTask(Key("prefix", text));
    CertifyOptions options;
    options.model = Path("cart_pole.xml");
    TakeTask(*mjp::LoadCheckpoint(Path("cart")), options);
    EXPECT_EQ(options.policy.sampler.parallel_window, 0) << text;
  }
}

// A policy that makes its chunk in one pass holds no actions, and is run without the attribute.
TEST_F(CertifyCartTest, APolicyWithoutASamplerRunsInAModelWithPrefix) {
  mjp::ActPolicyConfig config = mjp_test::SmallActConfig();
  config.cameras = {{"observation.images.front", 3, 72, 96}};
  config.state_dim = 2, config.environment_dim = 0, config.action_dim = 1;
  mjp::WriteCheckpoint(Path("act"), *mjp_test::ActCheckpoint(config), mjp::WeightFormat::kF32);
  NoTask(prefix_ + Key("warm_start", "2"));
  const std::string certify =
      "certify " + Path("act") + " " + Path("cart_pole.xml") + " --timed 2 ";
  const Outcome made =
      RunMjpolicy(certify + "--backend cpu --episodes 1 --out " + Path("act.json"));
  ASSERT_EQ(made.code, 0) << made.text;
  EXPECT_FALSE(mjp::ReadJson(Path("act.json"))["model"].contains("failure"));
  const Outcome again = RunMjpolicy(certify + "--verify " + Path("act.json"));
  EXPECT_EQ(again.code, 0) << again.text;
  EXPECT_THAT(again.text, HasSubstr("equal             model hash"));
}

TEST_F(CertifyCartTest, AWarmStartWithoutStepsIsRefused) {
  const std::string what = NoTask(prefix_ + Key("warm_start", "012"));
  const Outcome refused = RunMjpolicy(what +
                                      " --backend cpu --sampler ddim --steps 4 --episodes 1 "
                                      "--timed 2 --out " +
                                      Path("cart.json"));
  EXPECT_EQ(refused.code, 1) << refused.text;
  EXPECT_THAT(refused.text, HasSubstr("cart_pole.xml: the model's warm_start of 12 needs --steps "
                                      "above 12, not 4"));
  EXPECT_FALSE(std::ifstream(Path("cart.json")).good());
}

// As earlier builds made it, on a GPU: in a window that the model's prefix does not allow.
TEST_F(CertifyCartTest, SettingsThatTheModelDoesNotAllowAreNamed) {
  mjp::Json made = Certificate(NoTask(prefix_ + Key("warm_start", "2")), "--steps 4");
  const auto verify = [&](const char* key, int value) {
    mjp::Json earlier = made;
    earlier["settings"][key] = value;
    earlier.erase("fields"), earlier.erase("checksum");
    AddChecksums(earlier);
    const Outcome outcome = RunMjpolicy("certify " + Path("cart") + " " + Path("cart_pole.xml") +
                                        " --verify " + Stored(earlier));
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr("certify the policy anew"));
    return outcome.text;
  };
  EXPECT_THAT(verify("parallel_window", 4),
              HasSubstr("changed.json: settings/parallel_window is 4, "
                        "which the prefix of "));
  EXPECT_THAT(verify("steps", 2), HasSubstr("settings/steps is 2, which the warm_start of 2 of "));
}

TEST_F(CertifyCartTest, AModelThatDivergesEndsWithItsFailure) {
  const std::string damping = "range=\"-1.8 1.8\" limited=\"true\" damping=\"0.5\"";
  const mjp::Json model =
      Certificate(Cart(damping, "stiffness=\"-3000\""), "--steps 2").at("model");
  EXPECT_EQ(model.value("failure", ""), "the physics diverged");
  EXPECT_LT(model.at("seconds").get<double>(), 10);
}

// A task by file: its own episodes, by the policy that is certified and not the one that the model
// names.
TEST_F(CertifyCartTest, TakesTheEpisodesOfATaskFile) {
  const std::string what = Cart();
  const mjp::Json certificate = Certificate(what, "--steps 2");
  EXPECT_EQ(certificate["episodes"]["task"], "cart_pole");
  ASSERT_EQ(certificate["episodes"]["each"].size(), 2u);
  EXPECT_NE(certificate["episodes"]["each"][0]["hash"], certificate["episodes"]["each"][1]["hash"]);
  const Outcome again = RunMjpolicy(what + " --timed 2 --episodes 1 --verify " + Path("cart.json"));
  EXPECT_EQ(again.code, 0) << again.text;
  EXPECT_THAT(again.text, HasSubstr("equal             episodes each hash: 1 of 1 are equal"));
  EXPECT_THAT(again.text, HasSubstr("equal             model hash"));
}

// A network that is no U-Net has a certificate without errors of passes.
TEST_F(CertifyTest, TakesOtherNetworks) {
  mjp::WriteCheckpoint(Path("act"), *mjp_test::ActCheckpoint(mjp_test::SmallActConfig()),
                       mjp::WeightFormat::kF32);
  const Outcome made = RunMjpolicy(
      "certify " + Path("act") + " --backend cpu --episodes 1 --timed 2 --out " + Path("act.json"));
  ASSERT_EQ(made.code, 0) << made.text;
  const mjp::Json certificate = mjp::ReadJson(Path("act.json"));
  EXPECT_EQ(certificate["decisions"].size(), 32u);
  EXPECT_EQ(certificate["settings"]["sampler"], "none");
  EXPECT_THAT(certificate["error"]["absent"].get<std::string>(), HasSubstr("double precision"));
  EXPECT_TRUE(certificate["episodes"].contains("absent")) << "it is no policy for Push-T";
  const Outcome again =
      RunMjpolicy("certify " + Path("act") + " --timed 2 --verify " + Path("act.json"));
  EXPECT_EQ(again.code, 0) << again.text;
  EXPECT_THAT(again.text, HasSubstr("equal             decisions: 32 of 32 are equal"));
}

}  // namespace
}  // namespace mjp::app
