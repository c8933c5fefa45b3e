// Byte-level BPE against the `tokenizers` package, see
// generate_tokenizer_cases.py.
#include "TestVocabulary.h"

#include <fstream>
#include <nlohmann/json.hpp>

using namespace sprig;
using namespace sprig::test;

class TokenizerCases : public testing::TestWithParam<const char *> {};

TEST_P(TokenizerCases, MatchThePackage) {
  std::ifstream file(SPRIG_SOURCE_DIR
                     "/test/runtime/Text/tokenizer_cases.json");
  const auto cases = nlohmann::json::parse(file);
  const auto tokens = cases["tokens"].get<std::vector<std::string>>();
  const auto special = cases["special"].get<std::vector<std::string>>();

  TokenizerBuilder builder(TokenizerKind::ByteBpe);
  for (const std::string &token : tokens)
    builder.addToken(token, TokenType::Normal);
  for (const std::string &token : special)
    builder.addToken(token, TokenType::Control);
  for (const std::string &merge :
       cases["merges"].get<std::vector<std::string>>()) {
    const Status status = builder.addMerge(merge);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  builder.tables.pre = GetParam();
  builder.tables.ignoreMerges = findPreTokenizer(GetParam())->ignoreMerges;
  const Made t = make(std::move(builder));

  const auto &family = cases["families"][GetParam()];
  for (size_t i = 0; i < cases["texts"].size(); ++i) {
    const auto text = cases["texts"][i].get<std::string>();
    EXPECT_EQ(t.encode(text), family["plain"][i].get<std::vector<uint32_t>>())
        << cases["texts"][i].dump(-1, ' ', true);
    EXPECT_EQ(t.encode(text, true),
              family["with_special"][i].get<std::vector<uint32_t>>())
        << cases["texts"][i].dump(-1, ' ', true);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TokenizerCases,
                         testing::Values("gpt-2", "llama3", "qwen2", "smollm"));
