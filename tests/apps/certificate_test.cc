// Every value of a certificate, edited once: with its old checksums, and by somebody who makes them
// anew.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "apps/certify/checksums.h"
#include "apps/certify/verify.h"
#include "base/json.h"
#include "tasks/results/statistics.h"

namespace mjp::app {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kCertificate[] = MJPOLICY_SOURCE_DIR "/docs/certificates/pusht_image.json";

// Another value of the same type.
Json Edited(const Json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_string()) return value.get<std::string>() + "0";
  if (value.is_number_float()) return value.get<double>() * 1.01;
  return value.get<int64_t>() + 1;
}

// What differs.
std::vector<std::string> Different(const std::vector<Comparison>& lines) {
  std::vector<std::string> names;
  for (const Comparison& line : lines)
    if (line.verdict == Verdict::kDiffers) names.push_back(line.what);
  return names;
}

class CertificateTest : public testing::Test {
 protected:
  // The shipped policy's, of three episodes.
  CertificateTest() {
    Json& episodes = whole_["episodes"];
    while (episodes["each"].size() > 3) episodes["each"].erase(3);
    whole_["settings"]["episodes"] = 3;
    const Interval interval = Wilson95(3, 3);
    episodes["interval_95"] = {interval.low, interval.high};
    AddChecksums(whole_);
  }

  // All values but the checksums themselves.
  std::vector<std::string> Places() const {
    std::vector<std::string> places;
    for (const auto& [place, value] : LeavesOf(whole_))
      if (!place.starts_with("fields/") && place != "checksum") places.push_back(place);
    return places;
  }

  static Json& At(Json& certificate, const std::string& place) {
    return certificate[Json::json_pointer("/" + place)];
  }

  // `whole_` with one value edited.
  Json With(const std::string& place) const {
    Json changed = whole_;
    Json& value = At(changed, place);
    value = Edited(value);
    return changed;
  }

  Json whole_ = mjp::ReadJson(kCertificate);
};

TEST_F(CertificateTest, TheSameIsEqual) {
  EXPECT_THAT(Different(CompareChecksums(whole_)), IsEmpty());
  EXPECT_THAT(Different(CompareCertificates(whole_, whole_)), IsEmpty());
  EXPECT_GT(Places().size(), 80u);
}

TEST(ShippedCertificatesTest, HaveTheChecksumsOfTheirForm) {
  int count = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(MJPOLICY_SOURCE_DIR "/docs/certificates")) {
    if (file.path().extension() != ".json") continue;
    EXPECT_THAT(Different(CompareChecksums(mjp::ReadJson(file.path()))), IsEmpty()) << file.path();
    ++count;
  }
  EXPECT_EQ(count, 4);
}

TEST_F(CertificateTest, AnEditOfAnyValueIsNamed) {
  for (const std::string& place : Places())
    EXPECT_EQ(Different(CompareChecksums(With(place))),
              (std::vector<std::string>{place, "checksum"}));
  for (const auto& [place, value] : LeavesOf(whole_["fields"])) {
    Json changed = whole_;
    At(changed, "fields/" + place) = "00000000";
    EXPECT_THAT(Different(CompareChecksums(changed)), testing::SizeIs(2)) << place;
  }
  EXPECT_EQ(Different(CompareChecksums(With("checksum"))), std::vector<std::string>{"checksum"});
}

TEST_F(CertificateTest, AValueThatIsGoneOrNewIsNamed) {
  for (const std::string& place : Places()) {
    Json changed = whole_;
    const Json::json_pointer at("/" + place);
    if (!changed[at.parent_pointer()].is_object()) continue;  // the next would take its place
    changed[at.parent_pointer()].erase(at.back());
    EXPECT_THAT(Different(CompareChecksums(changed)), testing::Contains(place));
  }
  Json changed = whole_;
  changed["episodes"]["each"][1]["note"] = "seen";
  EXPECT_THAT(Different(CompareChecksums(changed)), testing::Contains("episodes/each/1/note"));
  AddChecksums(changed);
  EXPECT_THAT(Different(CompareCertificates(changed, whole_)),
              testing::ElementsAre("episodes/each/1/note"));
}

// With new checksums only what is repeated or derived tells an edit.
TEST_F(CertificateTest, AnEditWithNewChecksumsIsSeenInAllThatIsRepeated) {
  const auto not_repeatable = [](const std::string& place) {
    return place.starts_with("engine/") || place.starts_with("machine/") ||
           place.starts_with("latency/milliseconds/") ||
           place.starts_with("latency/fixed_work_milliseconds/") ||
           place == "latency/peak_memory_mib" || place == "format";  // another is refused
  };
  for (const std::string& place : Places()) {
    Json changed = With(place);
    AddChecksums(changed);
    ASSERT_THAT(Different(CompareChecksums(changed)), IsEmpty()) << place;
    if (not_repeatable(place)) continue;
    const std::vector<std::string> names = Different(CompareCertificates(changed, whole_));
    ASSERT_THAT(names, Not(IsEmpty())) << place;
    const std::string part = place.substr(0, place.find('/'));
    const bool derived = names[0] == "settings timed" || names[0].starts_with("episodes ");
    EXPECT_TRUE(names[0].starts_with(part) || derived) << place << ": " << names[0];
  }
}

// Episodes that are left out are said, and success, seeds and the interval still follow from them.
TEST_F(CertificateTest, FewerEpisodesAreSaid) {
  Json fewer = whole_;
  fewer["episodes"]["each"].erase(2);
  const std::vector<Comparison> lines = CompareCertificates(whole_, fewer);
  EXPECT_THAT(Different(lines), IsEmpty());
  EXPECT_EQ(std::ranges::count_if(lines,
                                  [](const Comparison& line) {
                                    return line.what == "episodes each" &&
                                           line.verdict == Verdict::kNotRepeated &&
                                           line.text.starts_with("1 of 3");
                                  }),
            1);
  for (const char* member : {"success", "seed"}) {
    Json changed = With(std::string("episodes/each/2/") + member);
    EXPECT_THAT(Different(CompareCertificates(changed, fewer)), Not(IsEmpty())) << member;
  }
}

// On a GPU a decision depends on batch and window, which earlier builds did not write down.
TEST_F(CertificateTest, WithoutTheBatchAGpusDecisionsArePromisedToNobody) {
  Json old = whole_;
  old["settings"]["backend"] = "cuda";
  old["settings"].erase("temperature");
  Json now = old;
  now["settings"]["batch"] = 3;
  now["settings"]["temperature"] = "1.0";
  now["decisions"][0] = now["decisions"][1];
  now["episodes"]["each"][0]["hash"] = "0";
  const std::vector<Comparison> lines = CompareCertificates(old, now);
  EXPECT_THAT(Different(lines), IsEmpty());
  for (const char* what : {"decisions", "episodes each hash"})
    EXPECT_EQ(std::ranges::find(lines, what, &Comparison::what)->verdict, Verdict::kNotPromised);
  old["settings"]["batch"] = 3;
  EXPECT_EQ(Different(CompareCertificates(old, now)),
            (std::vector<std::string>{"decisions", "episodes each hash"}));
  old["settings"]["batch"] = 2;
  EXPECT_THAT(Different(CompareCertificates(old, now)), testing::Contains("settings batch"));
}

// Nor, on any machine, how the model ran: earlier builds left the settings out of it.
TEST_F(CertificateTest, WithoutTheBatchTheModelsHashIsPromisedToNobody) {
  Json old = whole_;
  old["model"] = {{"sha256", "f"}, {"hash", "1"}};
  Json now = old;
  now["settings"]["batch"] = 3;
  now["model"]["hash"] = "2";
  const std::vector<Comparison> lines = CompareCertificates(old, now);
  EXPECT_THAT(Different(lines), IsEmpty());
  EXPECT_EQ(std::ranges::find(lines, "model hash", &Comparison::what)->verdict,
            Verdict::kNotPromised);
  now["model"]["sha256"] = "e";
  EXPECT_EQ(Different(CompareCertificates(old, now)), std::vector<std::string>{"model sha256"});
  old["settings"]["batch"] = 3;
  EXPECT_EQ(Different(CompareCertificates(old, now)),
            (std::vector<std::string>{"model sha256", "model hash"}));
}

TEST_F(CertificateTest, TheLastLineAdvisesWhatHelps) {
  const auto says = [](const Json& certificate, const char* what, Verdict verdict) {
    return TextWhereNothingDiffers(certificate, {{what, verdict, ""}});
  };
  Json gpus = whole_;
  gpus["settings"]["backend"] = "cuda";
  EXPECT_EQ(says(gpus, "decisions", Verdict::kEqual), "verified");
  EXPECT_THAT(says(gpus, "decisions", Verdict::kNotPromised), EndsWith("certify the policy anew"));
  EXPECT_THAT(says(whole_, "model hash", Verdict::kNotPromised),
              EndsWith("certify the policy anew"));
  EXPECT_THAT(says(whole_, "episodes each hash", Verdict::kNotPromised),
              EndsWith("a machine as the one above"));
  gpus["settings"]["batch"] = 3;
  EXPECT_THAT(says(gpus, "decisions", Verdict::kNotPromised),
              EndsWith("a machine as the one above"));
  EXPECT_THAT(says(gpus, "episodes each", Verdict::kNotRepeated),
              HasSubstr("leave out --episodes"));
}

}  // namespace
}  // namespace mjp::app
