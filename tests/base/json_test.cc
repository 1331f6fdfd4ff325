#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
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
