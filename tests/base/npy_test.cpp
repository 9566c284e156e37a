#include "base/npy.h"

#include "tests/base/expect_error.h"
#include "tests/base/golden_io.h"
#include "tests/base/scoped_folder.h"

#include <algorithm>

namespace tilewright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// A file of version 1.0 with that header text and as many bytes of data.
std::string npy(std::string_view header, std::size_t data_bytes) {
  const std::string prefix = {'\1', '\0', static_cast<char>(header.size() & 0xff),
                              static_cast<char>(header.size() >> 8)};
  return "\x93NUMPY" + prefix + std::string(header) + std::string(data_bytes, 'd');
}

std::string npy_error(ErrorKind kind, std::string_view file) {
  return error_of(kind, [&] { parse_npy(bytes_of(file), "a.npy"); });
}

/// The error for a file with that dict and 8 bytes of data.
std::string dict_error(std::string_view dict, ErrorKind kind = ErrorKind::kParseError) {
  return npy_error(kind, npy(dict, 8));
}

std::string descr_error(const std::string& descr, ErrorKind kind = ErrorKind::kUnsupported) {
  return dict_error("{'descr': " + descr + ", 'fortran_order': False, 'shape': (2,), }\n", kind);
}

std::string shape_error(const std::string& shape) {
  return dict_error("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n");
}

TEST(ReadNpy, ReadsWhatNumpyWrote) {
  for (const auto& [name, expected] : golden_npy()) {
    SCOPED_TRACE(name);
    const HostTensor tensor = read_npy(golden_io_path(name));
    EXPECT_EQ(tensor.dtype(), expected.dtype);
    EXPECT_EQ(tensor.shape(), expected.shape);
    EXPECT_TRUE(std::ranges::equal(tensor.bytes(), expected.bytes));
  }
}

TEST(WriteNpy, WritesTheSameBytesAsNumpy) {
  const ScopedFolder folder;
  int num_compared = 0;
  for (const auto& [name, expected] : golden_npy()) {
    if (name.starts_with("version")) continue;  // numpy writes those only when told to
    SCOPED_TRACE(name);
    const void* const data = expected.bytes.data();
    write_npy(folder / name, contiguous_view(data, expected.dtype, expected.shape));
    EXPECT_EQ(bytes_of_file(folder / name), bytes_of_file(golden_io_path(name)));
    ++num_compared;
  }
  EXPECT_EQ(num_compared, 17);
}

TEST(ReadNpy, RefusesWhatNumpyWroteButNothingHereNeeds) {
  const auto read_error = [](const char* name) {
    const std::string path = golden_io_path(name).string();
    const std::string message = error_of(ErrorKind::kUnsupported, [&] { read_npy(path); });
    EXPECT_THAT(message, StartsWith(path + ": "));
    return message.substr(std::min(message.size(), path.size() + 2));
  };
  EXPECT_EQ(read_error("refused_fortran.npy"),
            "the array is in Fortran order; only row-major ones are read. Save "
            "numpy.ascontiguousarray(array)");
  EXPECT_EQ(read_error("refused_big_endian.npy"),
            "elements are big-endian (\">f4\"); only little-endian ones are read. Save "
            "array.astype(array.dtype.newbyteorder('<'))");
  EXPECT_EQ(read_error("refused_structured.npy"),
            "elements are structured (descr is a list), which are not read. Save each field as an "
            "array of its own");
  EXPECT_EQ(read_error("refused_object.npy"),
            "elements are Python objects (\"|O\"), which are not read. Save an array of numbers");
  EXPECT_EQ(read_error("refused_string.npy"),
            "elements are strings (\"<U2\"), which are not read. Save an array of numbers");
  EXPECT_EQ(read_error("refused_date.npy"),
            "elements are dates (\"<M8[s]\"), which are not read. Save array.astype('i8')");
  EXPECT_EQ(read_error("refused_bf16.npy"),
            "elements are raw or custom elements, as numpy writes bf16 and 8-bit floats (\"<V2\"), "
            "which are not read. Save array.view('u1' or 'u2'), the raw bits, or use safetensors");
  EXPECT_THAT(read_error("refused_e4m3.npy"), HasSubstr("(\"<V1\")"));
  EXPECT_EQ(
      read_error("refused_complex128.npy"),
      "unknown element type \"<c16\"; expected '<', '=' or (one byte) '|' and one of b1 i1 i2 "
      "i4 i8 u1 u2 u4 u8 f2 f4 f8 c8");
}

TEST(ParseNpy, TakesSpellingsThatPythonWouldTake) {
  for (const char* dict : {
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n",
           "{\"shape\":(2,),\"descr\":\"=f4\",\"fortran_order\":False}",
           "  { 'fortran_order' : False , 'shape' : ( 2 , ) , 'descr' : '<f4' }   \n",
           "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 2)}",
           "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 2,)}",
           "{'descr': '<u8', 'fortran_order': False, 'shape': ()}",
           "{'descr': '|b1', 'fortran_order': False, 'shape': (8,)}",
           "{'descr': '<b1', 'fortran_order': False, 'shape': (8,)}",
       }) {
    const std::string file = npy(dict, 8);
    EXPECT_EQ(parse_npy(bytes_of(file), "a.npy").data_begin_bytes, file.size() - 8) << dict;
  }
}

TEST(ParseNpy, RefusesTruncatedFiles) {
  EXPECT_EQ(npy_error(ErrorKind::kParseError, ""),
            "a.npy: the file begins with \"\"; an npy file begins with \"\\x93NUMPY\"");
  EXPECT_THAT(npy_error(ErrorKind::kParseError, "PK\3\4 zip"),
              HasSubstr("the file begins with \"PK\\x03\\x04 z\""));
  EXPECT_EQ(npy_error(ErrorKind::kParseError, "\x93NUMPY\1"),
            "a.npy: the file ends before its version");
  EXPECT_EQ(npy_error(ErrorKind::kParseError, std::string_view("\x93NUMPY\1\0\5", 9)),
            "a.npy: the file ends before the length of its header");
  EXPECT_EQ(npy_error(ErrorKind::kParseError, std::string_view("\x93NUMPY\1\0\x76\0{'descr", 17)),
            "a.npy: the header length is 118 bytes, but only 7 follow; the file is cut off");
}

TEST(ParseNpy, RefusesHostileHeaderLengths) {
  EXPECT_EQ(npy_error(ErrorKind::kParseError,
                      std::string_view("\x93NUMPY\2\0\xff\xff\xff\xff{'descr", 19)),
            "a.npy: the header length is 4294967295 bytes; at most 65535 are read");
  EXPECT_THAT(
      npy_error(ErrorKind::kParseError, std::string_view("\x93NUMPY\3\0\0\0\1\0{'descr", 19)),
      HasSubstr("the header length is 65536 bytes; at most 65535"));
}

TEST(ParseNpy, RefusesOtherVersions) {
  EXPECT_EQ(npy_error(ErrorKind::kUnsupported, std::string_view("\x93NUMPY\4\0\0\0\0\0\0\0", 14)),
            "a.npy: format version 4.0; versions 1.0, 2.0 and 3.0 are read");
  EXPECT_THAT(npy_error(ErrorKind::kUnsupported, std::string_view("\x93NUMPY\0\0\0\0\0\0", 12)),
              HasSubstr("format version 0.0"));
  EXPECT_THAT(npy_error(ErrorKind::kUnsupported, std::string_view("\x93NUMPY\1\1\0\0\0\0", 12)),
              HasSubstr("format version 1.1"));
}

TEST(ParseNpy, RefusesMalformedDicts) {
  EXPECT_EQ(dict_error(""), "a.npy: header byte 0: expected '{', found the end");
  EXPECT_EQ(dict_error("['descr']"), "a.npy: header byte 0: expected '{', found \"['descr']\"");
  EXPECT_EQ(dict_error("{'descr' '<f4'}"), "a.npy: header byte 9: expected ':', found \"'<f4'}\"");
  EXPECT_EQ(dict_error("{descr: '<f4'}"),
            "a.npy: header byte 1: expected a string, found \"descr: '<f4'}\"");
  EXPECT_EQ(dict_error("{'descr"), "a.npy: header byte 2: the string has no end, found \"descr\"");
  EXPECT_EQ(dict_error("{'descr': 4}"), "a.npy: header byte 10: expected a string, found \"4}\"");
  EXPECT_EQ(dict_error("{'fortran_order': false}"),
            "a.npy: header byte 18: expected True or False, found \"false}\"");
  EXPECT_EQ(dict_error("{'fortran_order': False 'shape': ()}"),
            "a.npy: header byte 24: expected ',' or '}', found \"'shape': ()}\"");
  EXPECT_EQ(dict_error("{'fortran_order': False, 'fortran_order': False}"),
            "a.npy: header byte 41: the key \"fortran_order\" is unknown or there twice, found "
            "\" False}\"");
  EXPECT_THAT(dict_error("{'other': 1}"), HasSubstr("the key \"other\" is unknown"));
  EXPECT_EQ(dict_error("{'fortran_order': False, } x"),
            "a.npy: header byte 27: expected the end of the header, found \"x\"");
  EXPECT_EQ(dict_error("{}"),
            "a.npy: the header lacks descr; expected descr, fortran_order and shape");
  EXPECT_THAT(dict_error("{'descr': '<f4'}"), HasSubstr("lacks fortran_order"));
  EXPECT_THAT(dict_error("{'descr': '<f4', 'fortran_order': False}"), HasSubstr("lacks shape"));
}

TEST(ParseNpy, RefusesMalformedShapes) {
  EXPECT_THAT(shape_error("2"), HasSubstr("expected '(', found \"2, }"));
  EXPECT_THAT(shape_error("(2)"), HasSubstr("expected ',' after the only dimension"));
  EXPECT_THAT(shape_error("(2 3)"), HasSubstr("expected ',' or ')', found \"3)"));
  EXPECT_THAT(shape_error("(,)"), HasSubstr("expected a dimension from 0 to 9223372036854775807, "
                                            "found \",)"));
  EXPECT_THAT(shape_error("(-1,)"), HasSubstr("found \"-1,)"));
  EXPECT_THAT(shape_error("(02,)"), HasSubstr("found \"02,)"));
  EXPECT_THAT(shape_error("(2L,)"), HasSubstr("found \"L,)"));
  EXPECT_THAT(shape_error("(2.0,)"), HasSubstr("found \".0,)"));
  EXPECT_THAT(shape_error("(9223372036854775808,)"), HasSubstr("found \"9223372036854775808,"));
}

TEST(ParseNpy, RefusesHostileShapes) {
  std::string ones = "(";
  for (int i = 0; i < 65; ++i) ones += "1,";
  EXPECT_THAT(shape_error(ones + ")"), HasSubstr("more than 64 dimensions"));
  EXPECT_EQ(shape_error("(4294967296, 4294967296)"),
            "a.npy: shape [4294967296, 4294967296] has too many elements; at most 2^63 - 1 fit");
  EXPECT_THAT(shape_error("(0, 9223372036854775807, 2)"), HasSubstr("has too many elements"));
  EXPECT_THAT(shape_error("(9223372036854775807,)"),
              HasSubstr("9223372036854775807 elements of F32 are too large"));
}

TEST(ParseNpy, RefusesDataOfAnotherSize) {
  EXPECT_EQ(shape_error("(1,)"),
            "a.npy: shape [1] of F32 takes 4 bytes, but 8 follow the header; the file is not one "
            "array");
  EXPECT_EQ(shape_error("(3,)"),
            "a.npy: shape [3] of F32 takes 12 bytes, but 8 follow the header; the file is cut off");
  EXPECT_THAT(shape_error("(1000000000000,)"), HasSubstr("takes 4000000000000 bytes, but 8"));
}

TEST(ParseNpy, RefusesOtherElementTypes) {
  EXPECT_THAT(descr_error("'>u1'"), HasSubstr("big-endian (\">u1\")"));
  EXPECT_THAT(descr_error("'|S8'"), HasSubstr("byte strings (\"|S8\")"));
  EXPECT_THAT(descr_error("'<m8[ns]'"), HasSubstr("time spans (\"<m8[ns]\")"));
  for (const char* descr : {"''", "'<'", "'f4'", "'<f1'", "'<f3'", "'|f4'", "'<F4'", "'<f44'"}) {
    EXPECT_THAT(descr_error(descr), HasSubstr("unknown element type")) << descr;
  }
  EXPECT_THAT(descr_error("('<f4', (2,))", ErrorKind::kParseError), HasSubstr("expected a string"));
}

TEST(WriteNpy, RefusesWhatNumpyCannotRead) {
  const ScopedFolder folder;
  const std::vector<std::byte> data(64);
  const void* const bytes = data.data();
  const auto write_error = [&](const ConstTensorView& view) {
    return error_of(ErrorKind::kUnsupported, [&] { write_npy(folder / "a", view); });
  };
  EXPECT_EQ(
      write_error(contiguous_view(bytes, DType::kBF16, {2})),
      "format_npy_header: numpy has no type BF16; write safetensors, or the raw bits as U8 or "
      "U16");
  EXPECT_EQ(write_error(contiguous_view(bytes, DType::kU8, std::vector<std::int64_t>(65, 1))),
            "format_npy_header: 65 dimensions; numpy reads at most 64");
  EXPECT_EQ(write_error({bytes, DType::kF32, {2, 2}, {1, 2}}),
            (folder / "a").string() +
                ": shape [2, 2] with strides [1, 2] is not contiguous; make it contiguous first");
  EXPECT_THAT(folder.names(), ElementsAre());
}

TEST(WriteNpy, LargestShapesFit) {
  const ScopedFolder folder;
  const std::vector<std::byte> data(1);
  const void* const bytes = data.data();
  std::vector<std::int64_t> shape(64, 1);
  write_npy(folder / "a", contiguous_view(bytes, DType::kU8, shape));
  EXPECT_EQ(read_npy(folder / "a").shape(), shape);
  shape = {0, 9223372036854775807};
  write_npy(folder / "b", contiguous_view(bytes, DType::kU8, shape));
  EXPECT_EQ(read_npy(folder / "b").shape(), shape);
}

}  // namespace
}  // namespace tilewright
