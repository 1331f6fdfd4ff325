#include "policy/dit/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "tests/support/error_of.h"
#include "tests/support/shared_data.h"

namespace {

using mjp::Json;
using mjp::Tokenizer;

// Single letters with and without the end of a word, and a few pairs.
Json SmallVocabulary() {
  Json vocabulary = Json::object();
  const auto add = [&](const std::string& symbol) {
    vocabulary[symbol] = static_cast<int>(vocabulary.size());
  };
  for (const char* ending : {"", "</w>"}) {
    for (char c = 'a'; c <= 'z'; ++c) add(c + std::string(ending));
    for (const char* c : {"1", "2", "'", "!", "Ã", "©"}) add(c + std::string(ending));
  }
  for (const char* pair : {"lo", "low</w>", "'s</w>", "!!</w>"}) add(pair);
  add("<|startoftext|>");
  add("<|endoftext|>");
  return vocabulary;
}
constexpr char kMerges[] = "#version: 0.2\nl o\nlo w</w>\n' s</w>\n! !</w>\n";

// The symbols of a text but for start and end.
std::vector<std::string> Symbols(const std::string& text) {
  const Json vocabulary = SmallVocabulary();
  const Tokenizer tokenizer(vocabulary, kMerges, "small");
  const std::vector<int> ids = tokenizer.Encode(text, 77);
  EXPECT_EQ(ids.front(), tokenizer.start());
  EXPECT_EQ(ids.back(), tokenizer.end());
  std::vector<std::string> symbols;
  for (size_t i = 1; i + 1 < ids.size(); ++i) {
    for (const auto& [symbol, id] : vocabulary.items()) {
      if (id == ids[i]) symbols.push_back(symbol);
    }
  }
  return symbols;
}

using Strings = std::vector<std::string>;

TEST(TokenizerTest, JoinsTheBestPairFirst) {
  EXPECT_EQ(Symbols("low"), (Strings{"low</w>"}));
  EXPECT_EQ(Symbols("lol"), (Strings{"lo", "l</w>"}));
  EXPECT_EQ(Symbols("lolow"), (Strings{"lo", "low</w>"}));
  // "lo" is joined from l and o alone, not from l and the o that ends a word
  EXPECT_EQ(Symbols("lo"), (Strings{"l", "o</w>"}));
}

TEST(TokenizerTest, SplitsAsTheLibraryDoes) {
  EXPECT_EQ(Symbols("it's"), (Strings{"i", "t</w>", "'s</w>"}));
  EXPECT_EQ(Symbols("a12"), (Strings{"a</w>", "1</w>", "2</w>"}));
  EXPECT_EQ(Symbols("a!!b"), (Strings{"a</w>", "!!</w>", "b</w>"}));
  EXPECT_EQ(Symbols(" A \t\n b "), (Strings{"a</w>", "b</w>"}));
  EXPECT_EQ(Symbols("\u00c9"), (Strings{"Ã", "©</w>"}));  // the bytes of its small letter
  EXPECT_EQ(Symbols(""), Strings{});
}

std::string ErrorOf(const std::string& text) {
  const Json vocabulary = SmallVocabulary();
  const Tokenizer tokenizer(vocabulary, kMerges, "small");
  return mjp_test::ErrorOf([&] { tokenizer.Encode(text, 6); });
}

TEST(TokenizerTest, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(ErrorOf("a b c d e"), testing::HasSubstr("7 tokens, and the policy reads 6"));
  EXPECT_THAT(ErrorOf("e\u0301"), testing::HasSubstr("U+0301"));
  EXPECT_THAT(ErrorOf("\xff"), testing::HasSubstr("not UTF-8 at byte 0"));
  EXPECT_THAT(ErrorOf("\xc0\x80"), testing::HasSubstr("not UTF-8"));
  EXPECT_THAT(ErrorOf("\xe4\xbd"), testing::HasSubstr("not UTF-8"));
  EXPECT_THAT(ErrorOf("a<|endoftext|>"), testing::HasSubstr("only the tokenizer may place"));
  EXPECT_THAT(ErrorOf("7"), testing::HasSubstr("the vocabulary has no \"7</w>\""));
}

TEST(TokenizerTest, RefusesFilesThatDoNotFit) {
  const auto error = [](const Json& vocabulary, const char* merges) -> std::string {
    try {
      Tokenizer(vocabulary, merges, "folder");
    } catch (const mjp::Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(error(SmallVocabulary(), "l o\nx y\n"), testing::HasSubstr("line 2 of merges.txt"));
  EXPECT_THAT(error(SmallVocabulary(), "l\n"), testing::HasSubstr("line 1 of merges.txt"));
  const std::string merges = kMerges;
  EXPECT_EQ(error(SmallVocabulary(), kMerges), "");
  EXPECT_THAT(error(SmallVocabulary(), merges.substr(0, merges.rfind('!') - 2).c_str()),
              testing::HasSubstr("has \"!!</w>\", which no line of merges.txt makes"));
  EXPECT_THAT(error(SmallVocabulary(), ""), testing::HasSubstr("which no line"));
  Json twice = SmallVocabulary();
  twice["b"] = twice["a"];
  EXPECT_THAT(error(twice, kMerges), testing::HasSubstr("gives \"a\" and \"b\" the id 0"));
  EXPECT_THAT(error(Json{{"a", 0}}, ""), testing::HasSubstr("lacks \"<|startoftext|>\""));
  EXPECT_THAT(error(Json{{"a", -1}}, ""), testing::HasSubstr("the id of \"a\""));
  EXPECT_THAT(error(Json::array(), ""), testing::HasSubstr("must be an object"));
}

// The ids that the library's own tokenizer gives.
TEST(TokenizerTest, AgreesWithTheLibrary) {
  SHARED_OR_SKIP(cases, "goldens_act_dit/tokenizer_cases.json");
  const std::string folder = mjp_test::SharedPath("goldens_act_dit/p_dit_tiny/clip-tiny");
  const std::vector<uint8_t> merges = mjp::ReadFile(folder + "/merges.txt", 1 << 20);
  const Tokenizer tokenizer(mjp::ReadJson(folder + "/vocab.json"),
                            {reinterpret_cast<const char*>(merges.data()), merges.size()}, folder);
  const Json expected = mjp::ReadJson(cases);
  EXPECT_GE(expected.size(), 6u);
  for (const Json& one : expected) {
    EXPECT_EQ(tokenizer.Encode(one["text"].get<std::string>(), 77),
              one["ids"].get<std::vector<int>>())
        << one["text"];
    EXPECT_EQ(tokenizer.end(), one["padding_id"].get<int>());
  }
}

}  // namespace
