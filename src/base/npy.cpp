#include "base/npy.h"

#include "base/error.h"
#include "base/file.h"
#include "base/python_literal.h"
#include "base/quote.h"

#include <array>
#include <optional>

namespace tilewright {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct TypeRow {
  std::string_view code;  // without the byte order
  DType dtype;
};

constexpr std::array<TypeRow, 13> kTypes = {{
    {"b1", DType::kBOOL},
    {"i1", DType::kI8},
    {"i2", DType::kI16},
    {"i4", DType::kI32},
    {"i8", DType::kI64},
    {"u1", DType::kU8},
    {"u2", DType::kU16},
    {"u4", DType::kU32},
    {"u8", DType::kU64},
    {"f2", DType::kF16},
    {"f4", DType::kF32},
    {"f8", DType::kF64},
    {"c8", DType::kC64},
}};

/// What a kind of numpy type that is not in kTypes is called, and what to do about it.
struct UnsupportedRow {
  char code;
  const char* name;
  const char* remedy;
};

constexpr std::array<UnsupportedRow, 6> kUnsupported = {{
    {'O', "Python objects", "Save an array of numbers"},
    {'V', "raw or custom elements, as numpy writes bf16 and 8-bit floats",
     "Save array.view('u1' or 'u2'), the raw bits, or use safetensors"},
    {'S', "byte strings", "Save an array of numbers"},
    {'U', "strings", "Save an array of numbers"},
    {'M', "dates", "Save array.astype('i8')"},
    {'m', "time spans", "Save array.astype('i8')"},
}};

/// The element type that a descr string such as "<f4" stands for.
DType parse_descr(std::string_view descr, std::string_view source) {
  const char order = descr.empty() ? '\0' : descr[0];
  const std::string_view code = descr.substr(descr.empty() ? 0 : 1);
  if (order == '>') {
    fail(ErrorKind::kUnsupported,
         "{}: elements are big-endian ({}); only little-endian ones are read. Save "
         "array.astype(array.dtype.newbyteorder('<'))",
         source, quote(descr));
  }
  for (const TypeRow& row : kTypes) {
    if (row.code != code) continue;
    if (order == '<' || order == '=' || (order == '|' && bits_per_elem(row.dtype) == 8)) {
      return row.dtype;
    }
  }
  for (const UnsupportedRow& row : kUnsupported) {
    if (!code.starts_with(row.code)) continue;
    fail(ErrorKind::kUnsupported, "{}: elements are {} ({}), which are not read. {}", source,
         row.name, quote(descr), row.remedy);
  }
  fail(ErrorKind::kUnsupported,
       "{}: unknown element type {}; expected '<', '=' or (one byte) '|' and one of b1 i1 i2 i4 i8 "
       "u1 u2 u4 u8 f2 f4 f8 c8",
       source, quote(descr));
}

/// The values of the header's dict, each present exactly once.
struct Fields {
  std::optional<DType> dtype;
  std::optional<bool> is_fortran;
  std::optional<std::vector<std::int64_t>> shape;
};

void parse_field(PythonLiteralParser& parser, std::string_view source, Fields& fields) {
  const std::string_view key = parser.string();
  parser.expect(':');
  if (key == "descr" && !fields.dtype) {
    if (parser.accept('[')) {
      fail(ErrorKind::kUnsupported,
           "{}: elements are structured (descr is a list), which are not read. Save each field as "
           "an array of its own",
           source);
    }
    fields.dtype = parse_descr(parser.string(), source);
  } else if (key == "fortran_order" && !fields.is_fortran) {
    fields.is_fortran = parser.boolean();
  } else if (key == "shape" && !fields.shape) {
    fields.shape = parser.dimensions();
  } else {
    parser.fail_here(fmt::format("the key {} is unknown or there twice", quote(key)));
  }
}

Fields parse_dict(std::string_view text, std::string_view source) {
  PythonLiteralParser parser(text, source);
  Fields fields;
  bool has_comma = true;
  parser.expect('{');
  while (!parser.accept('}')) {
    if (!has_comma) parser.fail_here("expected ',' or '}'");
    parse_field(parser, source, fields);
    has_comma = parser.accept(',');
  }
  parser.expect_end();
  require(fields.dtype && fields.is_fortran && fields.shape, ErrorKind::kParseError,
          "{}: the header lacks {}; expected descr, fortran_order and shape", source,
          !fields.dtype        ? "descr"
          : !fields.is_fortran ? "fortran_order"
                               : "shape");
  return fields;
}

/// The text of the header; everything before it has been checked then.
std::string_view header_text(std::string_view file, std::string_view source) {
  require(file.starts_with(kMagic), ErrorKind::kParseError,
          "{}: the file begins with {}; an npy file begins with \"\\x93NUMPY\"", source,
          quote(file.substr(0, kMagic.size())));
  const auto byte_at = [file](std::size_t i) { return static_cast<unsigned char>(file[i]); };
  require(file.size() >= 8, ErrorKind::kParseError, "{}: the file ends before its version", source);
  const int major = byte_at(6);
  require(major >= 1 && major <= 3 && byte_at(7) == 0, ErrorKind::kUnsupported,
          "{}: format version {}.{}; versions 1.0, 2.0 and 3.0 are read", source, major,
          byte_at(7));
  const std::size_t num_length_bytes = major == 1 ? 2 : 4;
  const std::size_t begin = 8 + num_length_bytes;
  require(file.size() >= begin, ErrorKind::kParseError,
          "{}: the file ends before the length of its header", source);
  std::size_t length = 0;
  for (std::size_t i = begin; i-- > 8;) length = length << 8 | byte_at(i);
  require(length <= kMaxNpyHeaderBytes, ErrorKind::kParseError,
          "{}: the header length is {} bytes; at most {} are read", source, length,
          kMaxNpyHeaderBytes);
  require(length <= file.size() - begin, ErrorKind::kParseError,
          "{}: the header length is {} bytes, but only {} follow; the file is cut off", source,
          length, file.size() - begin);
  return file.substr(begin, length);
}

}  // namespace

NpyHeader parse_npy(std::span<const std::byte> file, std::string_view source) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const std::string_view header = header_text(text, source);
  Fields fields = parse_dict(header, source);
  require(!*fields.is_fortran, ErrorKind::kUnsupported,
          "{}: the array is in Fortran order; only row-major ones are read. Save "
          "numpy.ascontiguousarray(array)",
          source);
  const auto num_bytes = static_cast<std::uint64_t>(
      checked_num_bytes(*fields.dtype, *fields.shape, source, ErrorKind::kParseError));
  const auto begin = static_cast<std::size_t>(header.data() + header.size() - text.data());
  if (file.size() - begin != num_bytes) {
    fail(ErrorKind::kParseError, "{}: shape {} of {} takes {} bytes, but {} follow the header; {}",
         source, shape_text(*fields.shape), to_string(*fields.dtype), num_bytes,
         file.size() - begin,
         file.size() - begin < num_bytes ? "the file is cut off" : "the file is not one array");
  }
  return {*fields.dtype, *std::move(fields.shape), begin};
}

HostTensor read_npy(const std::filesystem::path& path) {
  const MappedFile file(path);
  NpyHeader header = parse_npy(file.bytes(), path.string());
  const void* const data = file.bytes().data() + header.data_begin_bytes;
  return HostTensor(contiguous_view(data, header.dtype, std::move(header.shape)));
}

std::string format_npy_header(DType dtype, std::span<const std::int64_t> shape) {
  std::string_view code;
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) code = row.code;
  }
  require(
      !code.empty(), ErrorKind::kUnsupported,
      "format_npy_header: numpy has no type {}; write safetensors, or the raw bits as U8 or U16",
      to_string(dtype));
  require(shape.size() <= kMaxRank, ErrorKind::kUnsupported,
          "format_npy_header: {} dimensions; numpy reads at most {}", shape.size(), kMaxRank);
  checked_num_bytes(dtype, shape, "format_npy_header");
  const char order = bits_per_elem(dtype) == 8 ? '|' : '<';
  const std::string tuple =
      fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  std::string text =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': {}, }}", order, code, tuple);
  // numpy leaves room for the first dimension to grow to that many digits in place.
  constexpr std::size_t kMaxDigits = 21;
  if (!shape.empty()) text.append(kMaxDigits - std::to_string(shape[0]).size(), ' ');
  // Magic, version, length and text end at a multiple of 64, so that a map of the file is aligned.
  constexpr std::size_t kAlignmentBytes = 64;
  constexpr std::size_t kPrefixBytes = kMagic.size() + 4;
  const std::size_t used_bytes = kPrefixBytes + text.size() + 1;
  text.append(kAlignmentBytes - used_bytes % kAlignmentBytes, ' ');
  text += '\n';
  const std::string prefix = {'\1', '\0', static_cast<char>(text.size() & 0xff),
                              static_cast<char>(text.size() >> 8)};
  return std::string(kMagic) + prefix + text;
}

void write_npy(const std::filesystem::path& path, const ConstTensorView& view) {
  const std::string header = format_npy_header(view.dtype, view.shape);
  AtomicFile file(path);
  file.write_at(0, std::as_bytes(std::span(header)));
  file.write_at(header.size(), contiguous_bytes(view, path.string()));
  file.commit();
}

}  // namespace tilewright
