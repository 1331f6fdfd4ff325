#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <locale>
#include <string>

#include "base/error.h"
#include "base/text_stream.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {
namespace {

using mjp::Json;
using mjp::ParseJson;
using testing::HasSubstr;

std::string ErrorOf(const std::string& text, const mjp::JsonLimits& limits = {}) {
  try {
    ParseJson(text, "c.json", limits);
  } catch (const mjp::Error& error) {
    EXPECT_EQ(error.code(), mjp::ExitCode::kBadInput);
    EXPECT_THAT(error.what(), HasSubstr("c.json"));
    return error.what();
  }
  return "";
}

TEST(Json, ReadsEveryKindOfValue) {
  const Json json =
      ParseJson(R"( {"z":[1,-2,2.5e3,true,false,null,"\u00e9"],"a":{"b":{}},"m":[]} )", "c.json");
  EXPECT_EQ(json["z"][0], 1);
  EXPECT_EQ(json["z"][1], -2);
  EXPECT_EQ(json["z"][2], 2500.0);
  EXPECT_EQ(json["z"][3], true);
  EXPECT_TRUE(json["z"][5].is_null());
  EXPECT_EQ(json["z"][6], "\xC3\xA9");
  EXPECT_TRUE(json["a"]["b"].empty());
  EXPECT_EQ(json.begin().key(), "z");  // the file's order, not the alphabet's
}

TEST(Json, RefusesDuplicateKeysAtEveryLevel) {
  EXPECT_THAT(ErrorOf(R"({"a":1,"a":2})"), HasSubstr("\"a\" appears twice"));
  EXPECT_THAT(ErrorOf(R"([{"x":{"b":1,"c":[],"b":2}}])"), HasSubstr("\"b\" appears twice"));
  EXPECT_EQ(ErrorOf(R"({"a":{"a":1},"b":{"a":1}})"), "");
}

TEST(Json, RefusesWhatIsNotOneText) {
  for (const char* text : {"", " ", "{", "{}x", "{} {}", "[1,]", "{\"a\":}", "{'a':1}", "NaN",
                           "[Infinity]", "[1e999]", "[-1e999]", "// c\n{}", "\"\xFF\"", "[01]"}) {
    EXPECT_NE(ErrorOf(text), "") << text;
  }
}

TEST(Json, RefusesMarksAndNul) {
  EXPECT_THAT(ErrorOf("\xEF\xBB\xBF{}"), HasSubstr("byte order mark"));
  EXPECT_THAT(ErrorOf(std::string("{}\0{}", 5)), HasSubstr("NUL"));
}

TEST(Json, KeepsItsLimits) {
  const std::string deep = std::string(100000, '[');
  EXPECT_THAT(ErrorOf(deep), HasSubstr("nested deeper"));
  EXPECT_EQ(ErrorOf("[[1]]", {.bytes = 100, .depth = 2}), "");
  EXPECT_NE(ErrorOf("[[[1]]]", {.bytes = 100, .depth = 2}), "");
  EXPECT_EQ(ErrorOf("[10]", {.bytes = 4, .depth = 2}), "");
  EXPECT_NE(ErrorOf("[100]", {.bytes = 4, .depth = 2}), "");
}

TEST(Json, ManyKeysTakeLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 60000; ++i) text += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":0";
  EXPECT_EQ(ParseJson(text + "}", "c.json").size(), 60000u);
}

// as a host that speaks German makes it
class CommaForThePoint : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(TextStream, NumbersAreTheSameInEveryLocale) {
  const std::locale before =
      std::locale::global(std::locale(std::locale::classic(), new CommaForThePoint));
  mjp::TextWriter text;
  text << 1234567 << " " << 0.5;
  mjp::TextReader reader("2.5 1000");
  double half = 0;
  int thousand = 0;
  reader >> half >> thousand;
  std::locale::global(before);
  EXPECT_EQ(text.str(), "1234567 0.5");
  EXPECT_EQ(half, 2.5);
  EXPECT_EQ(thousand, 1000);
}

TEST(JsonText, IsUtf8WhateverItHolds) {
  const mjp::Json json = {{"path", "a/\xff\xfe/\xc3\xa4"}};
  EXPECT_EQ(mjp::JsonText(json), "{\"path\":\"a/\xef\xbf\xbd\xef\xbf\xbd/\xc3\xa4\"}");
  EXPECT_EQ(mjp::JsonText(mjp::Json{{"a", 1}}, 1), "{\n \"a\": 1\n}");
}

TEST(ReadJson, NamesTheFile) {
  const TempDir dir;
  EXPECT_EQ(mjp::ReadJson(dir.Write("a.json", "[1]"))[0], 1);
  try {
    mjp::ReadJson(dir / "absent.json");
    FAIL();
  } catch (const mjp::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(dir / "absent.json"));
  }
}

}  // namespace
}  // namespace mjp_test
