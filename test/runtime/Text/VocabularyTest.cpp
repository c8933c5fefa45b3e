// Tables that contradict themselves, as a damaged or hostile file has them.
#include "TestVocabulary.h"

#include <cmath>

using namespace sprig;
using namespace sprig::test;

namespace {

/// The message of the refusal; empty where there is none.
std::string refusal(const TokenizerTables &tables) {
  const auto made = Tokenizer::create(tables.data());
  if (made.ok())
    return {};
  EXPECT_EQ(made.status().code(), StatusCode::Corrupt);
  return made.status().message();
}

TokenizerTables good() { return byteBuilder({"ab"}, {"a b"}).tables; }

} // namespace

TEST(Vocabulary, TheGoodTablesPass) { EXPECT_EQ(refusal(good()), ""); }

TEST(Vocabulary, Empty) {
  TokenizerTables t;
  t.pre = "gpt-2";
  EXPECT_EQ(
      refusal(t),
      "tokenizer: expects at least one token, but got an empty vocabulary");
}

TEST(Vocabulary, Offsets) {
  TokenizerTables t = good();
  t.tokenOffsets.pop_back();
  EXPECT_EQ(refusal(t),
            "tokenizer: expects 258 entries in token_offsets, but got 257");
  t = good();
  t.tokenOffsets[9] = 4000;
  EXPECT_EQ(refusal(t), "tokenizer: expects ascending token_offsets, but got "
                        "4000 before 10 at token 9");
  t = good();
  t.tokenOffsets.back() = 4000000000u;
  EXPECT_EQ(refusal(t), "tokenizer: expects offsets within the 258 bytes of "
                        "text, but got 4000000000");
}

TEST(Vocabulary, Types) {
  for (const uint8_t type : {0, 7, 255}) {
    TokenizerTables t = good();
    t.tokenTypes[3] = type;
    EXPECT_EQ(refusal(t), "tokenizer: expects token types 1 to 6, but got " +
                              std::to_string(type) + " at token 3");
  }
}

TEST(Vocabulary, Scores) {
  TokenizerTables t = good();
  t.scores.assign(3, 0.f);
  EXPECT_NE(refusal(t), "");
  t = good();
  t.kind = TokenizerKind::SentencePiece;
  EXPECT_EQ(refusal(t), "tokenizer: expects 257 entries in scores, but got 0");
  t.scores.assign(257, 0.f);
  EXPECT_EQ(refusal(t), "");
  t.scores[5] = NAN;
  EXPECT_EQ(refusal(t),
            "tokenizer: expects numbers as scores, but got NaN at token 5");
}

TEST(Vocabulary, Merges) {
  TokenizerTables t = good();
  t.mergeLeft.push_back(0);
  EXPECT_EQ(refusal(t),
            "tokenizer: expects 2 entries in merge_right, but got 1");
  t.mergeRight.push_back(257);
  EXPECT_EQ(refusal(t), "tokenizer: expects merges of tokens below 257, but "
                        "merge 1 is of 0 and 257");
}

TEST(Vocabulary, SpecialIds) {
  TokenizerTables t = good();
  t.bos = 257;
  EXPECT_EQ(refusal(t),
            "tokenizer: expects the bos token below 257, but got 257");
  t = good();
  t.padding = -2;
  EXPECT_NE(refusal(t), "");
  t = good();
  t.endTokens = {3, 257};
  EXPECT_EQ(refusal(t), "tokenizer: expects end tokens below 257, but got 257");
}

TEST(Vocabulary, UnknownKind) {
  for (const TokenizerKind kind : {TokenizerKind(4), TokenizerKind(77)}) {
    TokenizerTables t = good();
    t.kind = kind;
    const auto made = Tokenizer::create(t.data());
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), StatusCode::Unsupported);
  }
}

// A merge can lead only to a longer text, so there are no cycles; with empty
// tokens there might be.
TEST(Vocabulary, EmptyTokensAndSenselessMerges) {
  TokenizerBuilder builder = byteBuilder();
  builder.addToken("", TokenType::Normal);
  builder.addToken("", TokenType::Control);
  builder.addToken("", TokenType::UserDefined);
  for (const uint32_t left : {256u, 97u, 257u, 0u})
    for (const uint32_t right : {256u, 97u, 258u}) {
      builder.tables.mergeLeft.push_back(left);
      builder.tables.mergeRight.push_back(right);
    }
  const Made t = make(std::move(builder));
  EXPECT_EQ(t.encode("aaa", true), (std::vector<uint32_t>{97, 97, 97}));
}

TEST(Vocabulary, SeveralEndTokens) {
  TokenizerBuilder builder =
      byteBuilder({}, {}, {"<|im_end|>", "<|endoftext|>", "<|other|>"});
  builder.addToken("<|eot_id|>", TokenType::Normal); // text, whatever its name
  builder.addEnd(256);
  builder.addKnownEnds();
  EXPECT_EQ(builder.tables.endTokens, (std::vector<uint32_t>{256, 257}));
  const Made t = make(std::move(builder));
  EXPECT_TRUE(t->isEnd(257));
  EXPECT_FALSE(t->isEnd(258));
  EXPECT_EQ(t->find("<|other|>"), 258u);
  EXPECT_EQ(t->find("<|nonesuch|>"), std::nullopt);
}

TEST(Vocabulary, MergesOfStrings) {
  TokenizerBuilder builder = byteBuilder({"ab"});
  EXPECT_TRUE(builder.addMerge("a b").ok());
  EXPECT_EQ(builder.addMerge("a").message(),
            "tokenizer: expects merge 1 to be two tokens with a space between, "
            "but got 'a'");
  EXPECT_FALSE(builder.addMerge("a ").ok());
  EXPECT_FALSE(builder.addMerge("").ok());
  EXPECT_EQ(builder.addMerge("a xyz").message(),
            "tokenizer: expects merge 1 to join tokens of the vocabulary, but "
            "'xyz' is none");
  EXPECT_TRUE(builder.addMerge("b", "a").ok());
  EXPECT_EQ(builder.tables.mergeRight, (std::vector<uint32_t>{'b', 'a'}));
}

TEST(Vocabulary, MergesMayBeSplits) {
  const TokenizerTables t = good(); // a merge makes token 256, "ab"
  TokenizerData data = t.data();
  data.mergeLeft = data.mergeRight = {};
  data.mergeFirst = 256;
  const auto with = [&](std::vector<uint16_t> splits) {
    data.mergeSplits = splits;
    auto made = Tokenizer::create(data);
    return made.ok() ? std::to_string(made->encode("abba")->size())
                     : made.status().message();
  };
  EXPECT_EQ(with({}), "4"); // letters
  EXPECT_EQ(with({1}), "3");
  EXPECT_EQ(with({2}), "tokenizer: expects merges of two tokens, but the parts "
                       "of merge 0, 2 bytes and 0, are none");
  EXPECT_EQ(with({3}), "tokenizer: expects merges of two tokens, but the parts "
                       "of merge 0, 2 bytes and 0, are none");
  EXPECT_EQ(with({1, 1}), "tokenizer: expects merges that make tokens below "
                          "257, but got 2 from 256 on");
  data.mergeFirst = UINT32_MAX;
  EXPECT_EQ(with({1}), "tokenizer: expects merges that make tokens below 257, "
                       "but got 1 from 4294967295 on");
  data = t.data();
  EXPECT_EQ(with({1}),
            "tokenizer: expects merges as pairs or as splits, but got both");
}

TEST(Vocabulary, GrownTablesOfRandomBytesNeverCrash) {
  uint32_t state = 7;
  const auto next = [&] {
    return state = state * 1664525u + 1013904223u, state >> 8;
  };
  for (int round = 0; round < 500; ++round) {
    TokenizerTables t = good();
    t.kind = TokenizerKind(next() % 2);
    if (t.kind == TokenizerKind::SentencePiece)
      t.scores.assign(257, 1.f);
    for (int i = 0; i < 3; ++i) {
      switch (next() % 5) {
      case 0:
        t.tokenOffsets[next() % t.tokenOffsets.size()] = next() % 300;
        break;
      case 1:
        t.tokenTypes[next() % t.tokenTypes.size()] = uint8_t(next() % 8);
        break;
      case 2:
        t.mergeLeft.push_back(next() % 260),
            t.mergeRight.push_back(next() % 260);
        break;
      case 3:
        t.tokenBytes[next() % t.tokenBytes.size()] = uint8_t(next());
        break;
      default:
        t.unknown = int32_t(next() % 260) - 2;
        break;
      }
    }
    const auto made = Tokenizer::create(t.data());
    if (made.ok()) {
      const auto tokens = made->encode("abab \u00E9\xFFzz  ", true);
      ASSERT_TRUE(tokens.ok());
      (void)made->decode(*tokens);
    }
  }
}
