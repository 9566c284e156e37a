#include "base/safetensors.h"

#include "tests/base/expect_error.h"
#include "tests/base/golden_io.h"
#include "tests/base/safetensors_bytes.h"
#include "tests/base/scoped_folder.h"

#include <algorithm>
#include <utility>

namespace tilewright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr const char* kRemedy =
    ". The file is damaged or was written wrongly; fetch or write it again";

SafetensorsHeader parse(std::string_view file) {
  return parse_safetensors(std::as_bytes(std::span(file)), "w.st");
}

std::string parse_error(std::string_view file) {
  return error_of(ErrorKind::kParseError, [&] { parse(file); });
}

std::string header_error(std::string_view header, std::size_t data_bytes = 0) {
  return parse_error(safetensors_file(header, std::string(data_bytes, 'd')));
}

class SafetensorsGolden : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Files, SafetensorsGolden,
                         ::testing::Values("numpy_types.safetensors", "raw_types.safetensors",
                                           "no_tensors.safetensors"));

TEST_P(SafetensorsGolden, ReadsWhatTheReferenceWrote) {
  const auto expected = golden_safetensors(GetParam());
  const SafetensorsFile file(golden_io_path(GetParam()));
  EXPECT_EQ(file.entries().size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(file.contains(name));
    const HostTensor copy(file.tensor(name));
    EXPECT_EQ(copy.dtype(), tensor.dtype);
    EXPECT_EQ(copy.shape(), tensor.shape);
    EXPECT_TRUE(std::ranges::equal(copy.bytes(), tensor.bytes));
  }
}

TEST(SafetensorsFile, ReadsMetadata) {
  EXPECT_THAT(SafetensorsFile(golden_io_path("numpy_types.safetensors")).metadata(),
              ElementsAre(Pair("made by", "numpy \u2713")));
  EXPECT_THAT(SafetensorsFile(golden_io_path("raw_types.safetensors")).metadata(), IsEmpty());
}

TEST(SafetensorsFile, ViewsPointIntoTheFileAndSurviveMoves) {
  SafetensorsFile file(golden_io_path("numpy_types.safetensors"));
  const void* const data = file.tensor("float32.weight").data;
  const SafetensorsFile moved(std::move(file));
  EXPECT_EQ(moved.tensor("float32.weight").data, data);
  EXPECT_EQ(moved.tensor("float32.weight").shape, (std::vector<std::int64_t>{2, 3}));
}

TEST(SafetensorsFile, UnknownNameErrorListsSimilarNames) {
  const SafetensorsFile file(golden_io_path("numpy_types.safetensors"));
  const std::string message =
      error_of(ErrorKind::kInvalidArgument, [&] { file.tensor("float23.weight"); });
  EXPECT_THAT(message, StartsWith(golden_io_path("numpy_types.safetensors").string() +
                                  ": there is no tensor \"float23.weight\"; similar names: "));
  EXPECT_THAT(message, HasSubstr("\"float32.weight\""));
}

TEST(ParseSafetensors, ListsEntriesInTheOrderOfTheData) {
  const auto header =
      parse(safetensors_file(R"({"b": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]},)"
                             R"( "a": {"dtype": "U8", "shape": [2], "data_offsets": [3, 5]},)"
                             R"( "d": {"dtype": "F32", "shape": [0, 9], "data_offsets": [3, 3]},)"
                             R"( "c": {"dtype": "F32", "shape": [0], "data_offsets": [3, 3]}}  )",
                             "ddddd"));
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : header.entries) names.push_back(entry.name);
  EXPECT_THAT(names, ElementsAre("b", "c", "d", "a"));
  EXPECT_EQ(header.entries[3].begin_bytes, 3u);
  EXPECT_EQ(header.entries[3].end_bytes, 5u);
}

TEST(ParseSafetensors, IgnoresMembersItDoesNotKnow) {
  const auto header = parse(safetensors_file(
      R"({"a": {"dtype": "U8", "shape": [], "data_offsets": [0, 1], "note": [{}]}})", "d"));
  EXPECT_EQ(header.entries.size(), 1u);
}

TEST(ParseSafetensors, RefusesBadLengths) {
  EXPECT_EQ(parse_error(""),
            "w.st: the file has 0 bytes; a safetensors file begins with 8 bytes of header length");
  EXPECT_THAT(parse_error("1234567"), HasSubstr("the file has 7 bytes"));
  EXPECT_EQ(parse_error(safetensors_file(~0ULL, "{}", "")),
            "w.st: the header length is 18446744073709551615 bytes; at most 100000000 are allowed. "
            "The file is damaged or not a safetensors file");
  EXPECT_THAT(parse_error(safetensors_file(100'000'001, "{}", "")),
              HasSubstr("the header length is 100000001 bytes; at most 100000000"));
  EXPECT_EQ(parse_error(safetensors_file(100'000'000, "{}", "")),
            "w.st: the header length is 100000000 bytes, but only 2 follow; the file is cut off. "
            "Fetch it again");
  EXPECT_THAT(parse_error(safetensors_file(3, "{}", "")), HasSubstr("is 3 bytes, but only 2"));
}

TEST(ParseSafetensors, RefusesWhatIsNotAHeader) {
  EXPECT_EQ(parse_error(safetensors_file(0, "{}", "")),
            "w.st: the header begins with \"\"; expected a JSON object. The file is damaged or not "
            "a safetensors file");
  EXPECT_THAT(header_error(" {}"), HasSubstr("the header begins with \" \""));
  EXPECT_THAT(header_error("[]"), HasSubstr("the header begins with \"[\""));
  EXPECT_THAT(header_error("{} x"), StartsWith("w.st: header:1:4: error: "));
  EXPECT_THAT(header_error(std::string("{}\0", 3)), StartsWith("w.st: header:1:3: error: "));
  EXPECT_THAT(header_error("{\"a\xff\": 1}"), HasSubstr("ill-formed UTF-8"));
}

TEST(ParseSafetensors, ExplainsGitLfsPointers) {
  EXPECT_EQ(
      parse_error(std::string_view("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")),
      "w.st: this is a Git LFS pointer, not the file it stands for; run `git lfs pull`");
}

TEST(ParseSafetensors, RefusesTwoTensorsOfOneName) {
  EXPECT_THAT(header_error(R"({"a": {"dtype": "U8", "shape": [], "data_offsets": [0, 1]},)"
                           R"( "a": {"dtype": "U8", "shape": [], "data_offsets": [1, 2]}})",
                           2),
              HasSubstr("the object has two members \"a\""));
}

/// The error for a file of one tensor with these members.
std::string entry_error(const std::string& members, std::size_t data_bytes = 16) {
  return header_error("{\"a\": {" + members + "}}", data_bytes);
}

TEST(ParseSafetensors, RefusesMissingAndWrongMembers) {
  EXPECT_EQ(
      entry_error(R"("shape": [4], "data_offsets": [0, 16])"),
      R"(w.st: header: /a: member "dtype" is missing; the object has "data_offsets", "shape")");
  EXPECT_EQ(header_error(R"({"a": 3})"), "w.st: header: /a: expected an object, found number 3");
  EXPECT_EQ(
      entry_error(R"("dtype": "F31", "shape": [4], "data_offsets": [0, 16])"),
      R"(w.st: header: /a/dtype: unknown element type "F31"; expected F32, BF16, F8_E4M3, ...)");
  EXPECT_EQ(entry_error(R"("dtype": 32, "shape": [4], "data_offsets": [0, 16])"),
            "w.st: header: /a/dtype: expected a string, found number 32");
  EXPECT_EQ(entry_error(R"("dtype": "F32", "shape": 4, "data_offsets": [0, 16])"),
            "w.st: header: /a/shape: expected an array, found number 4");
  EXPECT_EQ(
      entry_error(R"("dtype": "F32", "shape": [4, -1], "data_offsets": [0, 16])"),
      "w.st: header: /a/shape/1: expected a whole number from 0 to 9223372036854775807, found "
      "number -1");
  EXPECT_THAT(entry_error(R"("dtype": "F32", "shape": [4.0], "data_offsets": [0, 16])"),
              HasSubstr("found number 4.0"));
  EXPECT_THAT(entry_error(R"("dtype": "F32", "shape": [18446744073709551615],)"
                          R"( "data_offsets": [0, 16])"),
              HasSubstr("found number 18446744073709551615"));
}

TEST(ParseSafetensors, RefusesHostileRanks) {
  std::string shape = "1";
  for (int i = 1; i < 64; ++i) shape += ",1";
  const auto members = [](const std::string& dims) {
    return R"("dtype": "U8", "data_offsets": [0, 1], "shape": [)" + dims + "]";
  };
  EXPECT_NO_THROW(parse(safetensors_file("{\"a\": {" + members(shape) + "}}", "d")));
  EXPECT_EQ(entry_error(members(shape + ",1"), 1),
            "w.st: header: /a/shape: 65 dimensions; at most 64 are read");
}

TEST(ParseSafetensors, RefusesSizesThatOverflow) {
  EXPECT_EQ(
      entry_error(R"("dtype": "F32", "shape": [4294967296, 4294967296],)"
                  R"( "data_offsets": [0, 16])"),
      "w.st: tensor \"a\": shape [4294967296, 4294967296] has too many elements; at most 2^63 "
      "- 1 fit");
  EXPECT_THAT(entry_error(R"("dtype": "F64", "shape": [1152921504606846976],)"
                          R"( "data_offsets": [0, 16])"),
              HasSubstr("1152921504606846976 elements of F64 are too large"));
  EXPECT_THAT(entry_error(R"("dtype": "F4", "shape": [3], "data_offsets": [0, 2])", 2),
              HasSubstr("shape [3] of F4 takes 12 bits"));
}

TEST(ParseSafetensors, RefusesBadOffsets) {
  EXPECT_EQ(
      entry_error(R"("dtype": "F32", "shape": [4], "data_offsets": [0, 12])", 12),
      "w.st: tensor \"a\": data_offsets [0, 12] span 12 bytes, but shape [4] of F32 takes 16" +
          std::string(kRemedy));
  EXPECT_EQ(entry_error(R"("dtype": "F32", "shape": [4], "data_offsets": [16, 0])"),
            "w.st: header: /a/data_offsets: the tensor begins at 16, behind its end 0");
  for (const char* offsets : {"[]", "[0]", "[0, 16, 16]", "\"ab\"", "null"}) {
    EXPECT_THAT(
        entry_error(std::string(R"("dtype": "F32", "shape": [4], "data_offsets": )") + offsets),
        HasSubstr("/a/data_offsets: expected "))
        << offsets;
  }
  EXPECT_THAT(entry_error(R"("dtype": "F32", "shape": [4], "data_offsets": [-16, 0])"),
              HasSubstr("/a/data_offsets/0: expected a whole number"));
}

std::string two_entries_error(const std::string& a, const std::string& b, std::size_t data_bytes) {
  const std::string type = R"({"dtype": "U8", "shape": [8], "data_offsets": )";
  return header_error("{\"a\": " + type + a + "}, \"b\": " + type + b + "}}", data_bytes);
}

TEST(ParseSafetensors, RefusesOverlapsAndGaps) {
  EXPECT_EQ(two_entries_error("[0, 8]", "[7, 15]", 15),
            "w.st: tensor \"b\" begins at byte 7 of the data and overlaps the one before, which "
            "ends at 8" +
                std::string(kRemedy));
  EXPECT_THAT(two_entries_error("[0, 8]", "[0, 8]", 8),
              HasSubstr("tensor \"b\" begins at byte 0 of the data and overlaps"));
  EXPECT_EQ(two_entries_error("[0, 8]", "[10, 18]", 18),
            "w.st: bytes 8 to 10 of the data, before tensor \"b\", belong to no tensor" +
                std::string(kRemedy));
  EXPECT_THAT(two_entries_error("[16, 24]", "[8, 16]", 24),
              HasSubstr("bytes 0 to 8 of the data, before tensor \"b\""));
}

TEST(ParseSafetensors, RefusesDataOfAnotherSize) {
  EXPECT_EQ(two_entries_error("[0, 8]", "[8, 16]", 15),
            "w.st: the tensors take 16 bytes, but only 15 follow the header; the file is cut off. "
            "Fetch it again");
  EXPECT_EQ(
      two_entries_error("[0, 8]", "[8, 16]", 17),
      "w.st: the tensors take 16 bytes, but 17 follow the header; the bytes at the end belong "
      "to no tensor" +
          std::string(kRemedy));
  EXPECT_THAT(header_error("{}", 1), HasSubstr("the tensors take 0 bytes, but 1 follow"));
}

TEST(ParseSafetensors, RefusesMetadataThatIsNotText) {
  EXPECT_EQ(header_error(R"({"__metadata__": {"a": 1}})"),
            "w.st: header: /__metadata__/a: expected a string, found number 1");
  EXPECT_EQ(header_error(R"({"__metadata__": []})"),
            "w.st: header: /__metadata__: expected an object, found an array of 0 elements");
}

TEST(ParseSafetensors, RefusesDeepNesting) {
  EXPECT_THAT(header_error("{\"a\":" + std::string(1'000'000, '[')),
              HasSubstr("nested more than 100 deep"));
}

TEST(ParseSafetensors, MessagesStayShort) {
  const std::string name(1'000'000, 'n');
  const std::string message = header_error(
      "{\"" + name + R"(": {"dtype": "U8", "shape": [2], "data_offsets": [0, 1]}})", 1);
  EXPECT_THAT(message, HasSubstr("\" (1000000 bytes): data_offsets [0, 1] span 1 bytes"));
  EXPECT_LT(message.size(), 400u);
}

}  // namespace
}  // namespace tilewright
