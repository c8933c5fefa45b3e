#include "lib/Weights/WeightExpr.h"
#include "lib/Weights/WeightTypes.h"
#include "mlir/AsmParser/AsmParser.h"
#include "test/lib/Weights/ExprTesting.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::testing;
using sprig::quant::Format;
namespace quant = sprig::quant;

namespace {

class WeightExprTest : public ExprTest {
protected:
  /// A file with one tensor per GGUF format, 10 rows of 4 blocks, named as its
  /// format; `i` (f32 3x4x5 of 0, 1, 2 …) and `h` (f16 4x6 likewise).
  void SetUp() override {
    ExprTest::SetUp();
    GGUFWriter writer;
    for (const GGUFFormat &format : getGGUFFormats()) {
      const Format stored = *quant::formatOfGGUF(format.typeId);
      const int64_t K = 4 * format.blockElements;
      blocks[format.name.str()] =
          randomBytes(10 * quant::info(stored).rowBytes(K), format.typeId);
      writer.addTensor(format.name, stored, {10, K}, blocks[format.name.str()]);
    }
    std::vector<float> counting(60);
    for (size_t i = 0; i < counting.size(); ++i)
      counting[i] = float(i);
    llvm::cantFail(
        writer.addTensor("i", Format::F32, {3, 4, 5}, ArrayRef(counting)));
    llvm::cantFail(writer.addTensor("h", Format::F16, {4, 6},
                                    ArrayRef(counting).take_front(24)));
    llvm::cantFail(writer.write(path("m.gguf")));
  }

  /// `%w = llm.weight …` of a format's tensor, and its type.
  std::pair<std::string, std::string> weight(const GGUFFormat &format) {
    std::string type;
    llvm::raw_string_ostream out(type);
    Attribute layout;
    if (!isa<FloatType>(getGGUFType(&context, format)))
      layout = LayoutAttr::get(&context, LayoutKind::GGUF, 0, 0);
    out << RankedTensorType::get({10, 4 * int64_t(format.blockElements)},
                                 getGGUFType(&context, format), layout);
    return {
        ("%w = llm.weight @m[\"" + format.name + "\"] : " + type + "\n").str(),
        type};
  }

  std::vector<std::byte> rowsOf(const GGUFFormat &format,
                                ArrayRef<int64_t> rows) {
    const auto &all = blocks[format.name.str()];
    const size_t bytes = all.size() / 10;
    std::vector<std::byte> result;
    for (int64_t row : rows)
      result.insert(result.end(), all.begin() + row * bytes,
                    all.begin() + (row + 1) * bytes);
    return result;
  }

  std::map<std::string, std::vector<std::byte>> blocks;
};

/// The type that the table of formats names is the type of the dialect.
TEST_F(WeightExprTest, FormatsAndTypesAgree) {
  for (const GGUFFormat &format : getGGUFFormats()) {
    const quant::FormatInfo &row =
        quant::info(*quant::formatOfGGUF(format.typeId));
    EXPECT_EQ(row.name, std::string_view(format.name));
    EXPECT_EQ(row.blockElements, format.blockElements);
    EXPECT_EQ(row.blockBytes, format.blockBytes);
    if (row.isPlain())
      continue;
    EXPECT_EQ(parseType(("!llm.q" + StringRef(row.type)).str(), &context),
              getGGUFType(&context, format))
        << format.name.str();
  }
}

TEST_F(WeightExprTest, RowsOfEveryFormatKeepTheirBytes) {
  for (const GGUFFormat &format : getGGUFFormats()) {
    SCOPED_TRACE(format.name.str());
    const auto [w, type] = weight(format);
    EXPECT_EQ(bytes(*open(w)), blocks[format.name.str()]);
    EXPECT_EQ(bytes(*open(w + "%s = llm.slice %w 3 to 8 axis 0 : " + type)),
              rowsOf(format, {3, 4, 5, 6, 7}));
    const std::string cut = StringRef(type).drop_front(9).str();
    auto joined =
        open(w + "%a = llm.slice %w 7 to 10 axis 0 : " + type +
             "\n%c = llm.concat %a, %w axis 0 : tensor<3" + cut + ", " + type);
    EXPECT_EQ(bytes(*joined, 4),
              rowsOf(format, {7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_EQ(joined->format(), *quant::formatOfGGUF(format.typeId));
    auto gathered =
        open(w +
             "%i = llm.weight dense<[9, 1, 2, 3, 1]> : tensor<5xi32>\n"
             "%g = llm.gather %w, %i axis 0 : " +
             type + ", tensor<5xi32>");
    EXPECT_EQ(bytes(*gathered, 2), rowsOf(format, {9, 1, 2, 3, 1}));
  }
}

TEST_F(WeightExprTest, ColumnsOfWholeBlocksKeepTheirBytes) {
  for (const GGUFFormat &format : getGGUFFormats()) {
    SCOPED_TRACE(format.name.str());
    const auto [w, type] = weight(format);
    const int64_t B = format.blockElements;
    const std::string b1 = std::to_string(B), b3 = std::to_string(3 * B);
    auto middle =
        open(w + "%s = llm.slice %w " + b1 + " to " + b3 + " axis 1 : " + type);
    ASSERT_TRUE(middle);
    EXPECT_EQ(middle->format(), *quant::formatOfGGUF(format.typeId));
    std::vector<std::byte> expected;
    const auto &all = blocks[format.name.str()];
    for (size_t row = 0; row < 10; ++row)
      expected.insert(expected.end(),
                      all.begin() + (4 * row + 1) * format.blockBytes,
                      all.begin() + (4 * row + 3) * format.blockBytes);
    EXPECT_EQ(bytes(*middle), expected);
    // Cut in two and joined again.
    const std::string rest =
        StringRef(type).split('x').second.split('x').second.str();
    auto joined = open(w + "%a = llm.slice %w 0 to " + b1 +
                       " axis 1 : " + type + "\n%b = llm.slice %w " + b1 +
                       " to " + std::to_string(4 * B) + " axis 1 : " + type +
                       "\n%c = llm.concat %a, %b axis 1 : tensor<10x" + b1 +
                       "x" + rest + ", tensor<10x" + b3 + "x" + rest);
    EXPECT_EQ(bytes(*joined), all);
  }
}

/// Groups of 16 that share a block of 64: a cut within the block cannot keep
/// it.
TEST_F(WeightExprTest, CutsWithinABlockAreDecoded) {
  const auto [w, type] = weight(*lookupGGUF("NVFP4"));
  const auto whole = numbers(*open(w));
  auto part = open(w + "%s = llm.slice %w 16 to 48 axis 1 : " + type);
  EXPECT_EQ(part->format(), Format::F32);
  const auto cut = numbers(*part);
  for (size_t row = 0; row < 10; ++row)
    for (size_t k = 0; k < 32; ++k)
      ASSERT_EQ(cut[32 * row + k], whole[256 * row + 16 + k]);
  // Joined with a whole block, the other follows: one format for all rows.
  const std::string rest =
      StringRef(type).split('x').second.split('x').second.str();
  auto joined = open(w + "%s = llm.slice %w 16 to 32 axis 1 : " + type +
                     "\n%t = llm.slice %w 64 to 128 axis 1 : " + type +
                     "\n%c = llm.concat %s, %t axis 1 : tensor<10x16x" + rest +
                     ", tensor<10x64x" + rest);
  const auto both = numbers(*joined);
  EXPECT_EQ(both[80 * 9 + 5], whole[256 * 9 + 21]);
  EXPECT_EQ(both[80 * 9 + 20], whole[256 * 9 + 68]);
}

constexpr const char *kI = "%w = llm.weight @m[\"i\"] : tensor<3x4x5xf32>\n";

TEST_F(WeightExprTest, MiddleDimensions) {
  const auto at = [](int64_t a, int64_t b, int64_t c) {
    return double(20 * a + 5 * b + c);
  };
  auto sliced = open(std::string(kI) +
                     "%s = llm.slice %w 1 to 3 axis 1 : tensor<3x4x5xf32>");
  EXPECT_EQ(sliced->shape(), (ArrayRef<int64_t>{3, 2, 5}));
  const auto slice = numbers(*sliced, 4);
  auto gathered =
      open(std::string(kI) +
           "%i = llm.weight dense<[3, 0]> : tensor<2xi32>\n"
           "%g = llm.gather %w, %i axis 1 : tensor<3x4x5xf32>, tensor<2xi32>");
  const auto gather = numbers(*gathered, 5);
  auto concatenated = open(std::string(kI) + R"(
    %a = llm.slice %w 3 to 4 axis 1 : tensor<3x4x5xf32>
    %c = llm.concat %a, %w axis 1 : tensor<3x1x5xf32>, tensor<3x4x5xf32>)");
  const auto concat = numbers(*concatenated, 7);
  auto transposed = open(std::string(kI) +
                         "%t = llm.transpose %w [1, 0, 2] : tensor<3x4x5xf32>");
  EXPECT_EQ(transposed->shape(), (ArrayRef<int64_t>{4, 3, 5}));
  const auto transpose = numbers(*transposed, 5);
  auto turned = open(std::string(kI) +
                     "%t = llm.transpose %w [2, 0, 1] : tensor<3x4x5xf32>");
  EXPECT_EQ(turned->shape(), (ArrayRef<int64_t>{5, 3, 4}));
  const auto turn = numbers(*turned, 4);
  for (int64_t a = 0; a < 3; ++a)
    for (int64_t c = 0; c < 5; ++c) {
      for (int64_t b = 0; b < 2; ++b) {
        EXPECT_EQ(slice[(a * 2 + b) * 5 + c], at(a, b + 1, c));
        EXPECT_EQ(gather[(a * 2 + b) * 5 + c], at(a, b ? 0 : 3, c));
      }
      for (int64_t b = 0; b < 5; ++b)
        EXPECT_EQ(concat[(a * 5 + b) * 5 + c], at(a, b ? b - 1 : 3, c));
      for (int64_t b = 0; b < 4; ++b) {
        EXPECT_EQ(transpose[(b * 3 + a) * 5 + c], at(a, b, c));
        EXPECT_EQ(turn[(c * 3 + a) * 4 + b], at(a, b, c));
      }
    }
}

TEST_F(WeightExprTest, ElementsAndShapes) {
  auto gathered = open(std::string(kI) + R"(
    %i = arith.constant dense<[4, 0, 0]> : tensor<3xi32>
    %g = llm.gather %w, %i axis 2 : tensor<3x4x5xf32>, tensor<3xi32>)");
  const auto gather = numbers(*gathered);
  EXPECT_EQ((std::vector<double>(gather.begin() + 3, gather.begin() + 6)),
            (std::vector<double>{9, 5, 5}));
  auto reshaped =
      open(std::string(kI) +
           "%r = llm.reshape %w : tensor<3x4x5xf32> -> tensor<4x15xf32>");
  EXPECT_EQ(reshaped->columns(), 15);
  const auto reshape = numbers(*reshaped, 2);
  for (size_t i = 0; i < 60; ++i)
    EXPECT_EQ(reshape[i], double(i));
  auto both = open(std::string(kI) + R"(
    %r = llm.reshape %w : tensor<3x4x5xf32> -> tensor<60xf32>
    %s = llm.slice %r 7 to 10 axis 0 : tensor<60xf32>)");
  EXPECT_EQ(numbers(*both), (std::vector<double>{7, 8, 9}));
}

TEST_F(WeightExprTest, NewNumbers) {
  auto byRow = open(std::string(kI) + R"(
    %f = llm.weight dense<[1.0, 2.0, 3.0, 0.5]> : tensor<4xf32>
    %s = llm.scale_axis %w, %f axis 1 : tensor<3x4x5xf32>, tensor<4xf32>)");
  EXPECT_EQ(numbers(*byRow)[59], 29.5);
  EXPECT_EQ(numbers(*byRow)[20 + 10 + 1], 3 * 31.0);
  auto byColumn = open(std::string(kI) + R"(
    %f = llm.weight dense<[1.0, 2.0, 3.0, 0.5, 4.0]> : tensor<5xf32>
    %s = llm.scale_axis %w, %f axis 2 : tensor<3x4x5xf32>, tensor<5xf32>)");
  EXPECT_EQ(numbers(*byColumn)[59], 236.0);
  auto shifted = open(R"(
    %w = llm.weight @m["h"] : tensor<4x6xf16>
    %s = llm.offset %w by 0.125 : tensor<4x6xf16> -> tensor<4x6xf32>)");
  EXPECT_EQ(shifted->format(), Format::F32);
  EXPECT_EQ(numbers(*shifted)[23], 23.125);
  // The declared type rounds: 23 * 0.1 as f16.
  auto half = open(R"(
    %w = llm.weight @m["h"] : tensor<4x6xf16>
    %f = llm.weight dense<0.1> : tensor<4xf64>
    %s = llm.scale_axis %w, %f axis 0 : tensor<4x6xf16>, tensor<4xf64>)");
  EXPECT_EQ(half->format(), Format::F16);
  EXPECT_EQ(numbers(*half)[23], 2.30078125);
  for (const char *name : {"Q4_1", "Q6_K"}) {
    const auto [w, type] = weight(*lookupGGUF(name));
    const std::string float_ =
        "tensor<10x" + std::to_string(4 * lookupGGUF(name)->blockElements) +
        "xf32>";
    auto decoded =
        open(w + "%d = llm.dequantize %w : " + type + " -> " + float_);
    EXPECT_EQ(decoded->format(), Format::F32);
    std::vector<float> expected(size_t(decoded->rows() * decoded->columns()));
    quant::decode(*quant::formatOfName(name), blocks[name].data(),
                  expected.data(), expected.size());
    std::vector<float> got(expected.size());
    decoded->decode(0, 10, got.data());
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * 4), 0);
  }
}

TEST_F(WeightExprTest, InlineValues) {
  EXPECT_EQ(numbers(*open("%w = llm.weight dense<2.5> : tensor<3x2xf32>")),
            std::vector<double>(6, 2.5));
  auto q = open("%w = llm.weight dense<17> : tensor<36xi8> as "
                "tensor<2x32x!llm.q<u4-8, 32:f16>, #llm.layout<gguf>>");
  EXPECT_EQ(q->format(), Format::Q4_0);
  EXPECT_EQ(bytes(*q), std::vector<std::byte>(36, std::byte(17)));
  parse("%w = llm.weight dense<[-3, 4294967295]> : tensor<2xi64>");
  EXPECT_EQ(*readIntegers(last(), *store),
            (SmallVector<int64_t>{-3, 4294967295}));
}

/// In pieces of any size, the bytes of the whole tensor laid out at once.
TEST_F(WeightExprTest, StreamsTheTiledLayout) {
  for (const char *name : {"Q4_1", "Q6_K", "F16", "F32", "Q8_0", "NVFP4"}) {
    const auto [w, type] = weight(*lookupGGUF(name));
    auto expr = open(w + "%r = llm.relayout %w : " + type + " -> " +
                     StringRef(type).split(", #").first.str() +
                     (StringRef(type).contains(", #") ? ">" : ""));
    const auto layout = quant::describe(expr->format(), size_t(expr->rows()),
                                        size_t(expr->columns()));
    std::vector<std::byte> whole(layout.bytes);
    quant::relayout(layout, blocks[name].data(), whole.data());
    for (size_t chunk : {size_t(1), size_t(5000), size_t(1) << 20}) {
      std::vector<std::byte> streamed;
      llvm::cantFail(streamTiled(
          *expr, layout,
          [&](std::span<const std::byte> part) {
            streamed.insert(streamed.end(), part.begin(), part.end());
            return llvm::Error::success();
          },
          chunk));
      EXPECT_EQ(streamed, whole) << name << " by " << chunk;
    }
    // Errors of the receiver come back.
    const std::string message = llvm::toString(
        streamTiled(*expr, layout, [](std::span<const std::byte>) {
          return llvm::createStringError("full");
        }));
    EXPECT_EQ(message, "full");
  }
}

TEST_F(WeightExprTest, Refuses) {
  EXPECT_MESSAGE(refusal("%w = llm.weight @m[\"none\"] : tensor<2xf32>"),
                 "no tensor 'none'");
  EXPECT_MESSAGE(refusal("%w = llm.weight @m[\"i\"] : tensor<3x20xf32>"),
                 "expects 'i' to be 'tensor<3x20xf32>', but");
  EXPECT_MESSAGE(refusal("%w = llm.weight @m[\"i\"] : tensor<3x4x5xf16>"),
                 "m.gguf holds 3x4x5 of F32");
  EXPECT_MESSAGE(refusal("%w = llm.weight @m[\"Q4_1\"] : "
                         "tensor<10x128x!llm.q<u4-8, 32:f16>>"),
                 "holds 10x128 of Q4_1");
  EXPECT_MESSAGE(refusal("%w = llm.weight @run[\"a\"] : tensor<2xf32>"),
                 "is filled at run time");
  EXPECT_MESSAGE(refusal(std::string(kI) + R"(
    %i = llm.weight dense<[4]> : tensor<1xi32>
    %g = llm.gather %w, %i axis 1 : tensor<3x4x5xf32>, tensor<1xi32>)"),
                 "expects indices from 0 to 3, but index 0 is 4");
  EXPECT_MESSAGE(refusal(std::string(kI) +
                         "%q = llm.quantize %w : tensor<3x4x5xf32> -> "
                         "tensor<3x4x5x!llm.q<i8, *:f32>>"),
                 "has to be written as a new weight first");
}

TEST_F(WeightExprTest, KnowsWhatItCanEvaluate) {
  parse(std::string(kI) +
        "%s = llm.slice %w 1 to 3 axis 1 : tensor<3x4x5xf32>");
  EXPECT_TRUE(isWeightExpr(last()));
  parse(std::string(kI) +
        "%a = llm.activation relu %w : tensor<3x4x5xf32>\n"
        "%s = llm.slice %a 1 to 3 axis 1 : tensor<3x4x5xf32>");
  EXPECT_FALSE(isWeightExpr(last()));
}

} // namespace
