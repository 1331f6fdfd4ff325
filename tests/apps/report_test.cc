// `mjpolicy report` as a user runs it, and its page as a browser shows it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "apps/report/charts.h"
#include "apps/report/html.h"
#include "tests/support/program.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;

using mjp_test::Outcome;
using mjp_test::ReadText;
using mjp_test::RunMjpolicy;
using testing::HasSubstr;
using testing::Not;

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

class ReportTest : public mjp_test::ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    ASSERT_EQ(RunMjpolicy(Evaluate("plain") + "--episodes 4 --videos 2").code, 0);
    ASSERT_EQ(RunMjpolicy(Evaluate("other") + "--episodes 4 --latency 200ms").code, 0);
    fs::rename(Path("other"), Path("a<b"));
  }
  std::string Report(const std::string& options = "") const {
    return "report " + Path("plain") + " '" + Path("a<b") + "' --out " + Path("page.html") + " " +
           options;
  }
};

TEST(ReportHtmlTest, TextIsNeverMarkup) {
  EXPECT_EQ(Escaped("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
}

// RFC 4648, section 10.
TEST(ReportHtmlTest, Base64IsTheStandards) {
  const auto base64 = [](const std::string& text) {
    return Base64({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  };
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(ReportHtmlTest, ASmallProbabilityIsNotZero) {
  EXPECT_EQ(Probability(0.05), "0.0500");
  EXPECT_EQ(Probability(1e-6), "< 0.0001");
}

TEST(ReportChartTest, CurvesStayWithinTheirDrawing) {
  const std::string svg = CurveChart({{"x", {{0, 0}, {5, 0.5}, {50, 1}}}}, {"step", 0, 10, 0}, "y");
  EXPECT_THAT(svg, HasSubstr("<path d=\"M46.0 230.0H46.0V230.0H296.0V120.0H546.0V10.0H546.0\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST_F(ReportTest, HasEverythingInOneFile) {
  const Outcome outcome = RunMjpolicy(Report());
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("2 videos inside, 0 linked"));
  const std::string page = ReadText(Path("page.html"));
  for (const char* id :
       {"success", "comparison", "episodes", "curves", "disturbances", "time", "run"})
    EXPECT_THAT(page, HasSubstr("<section id=\"" + std::string(id) + "\">")) << id;
  EXPECT_EQ(CountOf(page, "src=\"data:video/mp4;base64,"), 2u);
  EXPECT_THAT(page, HasSubstr("a&lt;b"));
  EXPECT_THAT(page, Not(HasSubstr("a<b")));
  EXPECT_THAT(page, Not(HasSubstr("://")));  // nothing comes from elsewhere
  EXPECT_EQ(CountOf(page, "<tr>"), CountOf(page, "</tr>"));
}

TEST_F(ReportTest, VideosBeyondTheLimitAreLinks) {
  ASSERT_EQ(RunMjpolicy(Report("--embed 0")).code, 0);
  const std::string page = ReadText(Path("page.html"));
  EXPECT_EQ(CountOf(page, "data:video"), 0u);
  EXPECT_THAT(page, HasSubstr("href=\"plain/videos/eval_episode_0.mp4\""));
  EXPECT_TRUE(fs::exists(Path("plain/videos/eval_episode_0.mp4")));
}

TEST_F(ReportTest, ShowsAProfileAndACertificate) {
  ASSERT_EQ(RunMjpolicy("profile --checkpoint " + checkpoint_ +
                        " --backend cpu --sampler ddim --steps 2 --decisions 2 --trace " +
                        Path("trace.json"))
                .code,
            0);
  std::ofstream(Path("plain/certificate.json")) << R"({"claim": "success above 0.9 <b>"})";
  ASSERT_EQ(RunMjpolicy(Report("--profile " + Path("trace.json"))).code, 0);
  const std::string page = ReadText(Path("page.html"));
  EXPECT_THAT(page, HasSubstr("From the profile"));
  EXPECT_THAT(page, HasSubstr("<td>denoise</td><td>2</td>"));
  EXPECT_THAT(page, HasSubstr("success above 0.9 &lt;b&gt;"));
}

TEST_F(ReportTest, RefusesWhatIsNoEvaluationAndReplacesNothingUnasked) {
  fs::create_directory(Path("empty"));
  const Outcome empty = RunMjpolicy("report " + Path("empty") + " --out " + Path("page.html"));
  EXPECT_EQ(empty.code, 2);
  EXPECT_THAT(empty.text, HasSubstr("there is no evaluation in it"));
  EXPECT_FALSE(fs::exists(Path("page.html")));
  ASSERT_EQ(RunMjpolicy(Report()).code, 0);
  EXPECT_EQ(RunMjpolicy(Report()).code, 1);
  EXPECT_EQ(RunMjpolicy(Report("--force")).code, 0);
  EXPECT_EQ(RunMjpolicy(Report("--force --profile " + Path("plain/run.json"))).code, 2);
}

// What beside the episodes a page is made of, damaged: which value of which file is wrong.
TEST_F(ReportTest, NamesTheValueThatIsWrong) {
  struct Row {
    const char *file, *text, *said;
  };
  const Row rows[] = {
      {"eval_info.json", "null", "eval_info.json: must be a JSON object"},
      {"eval_info.json", "{\"x\": ", "delete the file and give evaluate --resume"},
      {"eval_info.json", "{}", "eval_info.json: \"timing\" is missing"},
      {"eval_info.json", R"({"timing": {"stages": 5}})", "timing/stages: must be a JSON object"},
      {"eval_info.json", R"({"timing": {"stages": {"film": {"n": 1, "median_ms": "x"}}}})",
       "timing/stages/film: \"median_ms\" is \"x\""},
      {"trace.json", "[]", "trace.json: must be a JSON object"},
      {"trace.json", R"({"traceEvents": 5})", "trace.json: \"traceEvents\" is no list"},
      {"trace.json", R"({"traceEvents": [{"ph": "X", "cat": "stages", "name": "a", "dur": -1}]})",
       "trace.json: traceEvents 0: \"dur\" is -1"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    const bool trace = row.file == std::string("trace.json");
    const std::string path = Path(trace ? "trace.json" : "plain/eval_info.json");
    const std::string kept = trace ? "" : ReadText(path);
    std::ofstream(path) << row.text;
    const Outcome outcome = RunMjpolicy(Report(trace ? "--force --profile " + path : "--force"));
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_THAT(outcome.text, AllOf(HasSubstr(row.said), Not(HasSubstr("json.exception"))));
    std::ofstream(path) << kept;
  }
}

// The page says of itself what a click did: a script that is appended clicks and writes the result.
TEST_F(ReportTest, ABrowserShowsItAndItsButtonsWork) {
  if (mjp_test::Run("command -v chromium").code != 0) GTEST_SKIP() << "no chromium here";
  ASSERT_EQ(RunMjpolicy(Report()).code, 0);
  std::string page = ReadText(Path("page.html"));
  page += R"(<script>
    const shown = () => [...document.querySelectorAll('.video')].filter(card => card.offsetParent).length;
    const log = [shown()];
    for (const button of document.querySelectorAll('.filters button')) { button.click(); log.push(shown()); }
    document.querySelector('#episode-table summary').click();
    log.push(document.querySelector('#episode-table').open);
    const video = document.querySelector('video');
    log.push(video.controls);  // nothing covers the picture
    video.click();
    log.push(video.controls);
    for (const link of document.querySelectorAll('nav a')) log.push(!!document.querySelector(link.getAttribute('href')));
    log.push('wide ' + (document.documentElement.scrollWidth > innerWidth));
    document.body.innerHTML = '<p id="log">' + log.join(' ') + '</p>';
  </script>)";
  std::ofstream(Path("clicked.html")) << page;
  const Outcome outcome = mjp_test::Run(
      "timeout 100 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage "
      "--window-size=390,844 "
      "--user-data-dir=" +
      Path("profile") + " --dump-dom file://" + Path("clicked.html"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const size_t at = outcome.text.find("<p id=\"log\">");
  ASSERT_NE(at, std::string::npos) << outcome.text.substr(0, 2000);
  // all videos, then the filters: all, failures, solved, plain, a<b; nothing is wider than a phone
  const std::string log = outcome.text.substr(at + 12, outcome.text.find("</p>", at) - at - 12);
  EXPECT_THAT(log, testing::MatchesRegex("2 2 [0-2] [0-2] 2 0 true false true( true)+ wide false"));
  EXPECT_EQ(log[4] - '0' + log[6] - '0', 2) << log;
}

}  // namespace
}  // namespace mjp::app
