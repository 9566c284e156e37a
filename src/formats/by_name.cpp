// The lookups that throw; find_format() and find_block_format() are the constexpr ones.
#include "base/error.h"
#include "formats/block_format.h"
#include "formats/format_spec.h"

#include <string>

namespace tilewright {

namespace {

template <class Row, size_t kNumRows>
[[noreturn]] void fail_unknown(const char* function, std::string_view name,
                               const Row (&rows)[kNumRows]) {
  std::string known;
  for (const Row& row : rows) {
    known += known.empty() ? "" : ", ";
    known += row.name;
  }
  fail(ErrorKind::kInvalidArgument,
       "{}: there is no '{}'; expected one of {}. Names are lower case.", function, name, known);
}

}  // namespace

const FormatSpec& format_by_name(std::string_view name) {
  const FormatSpec* format = find_format(name);
  if (format == nullptr) fail_unknown("format_by_name", name, kFormats);
  return *format;
}

const BlockFormat& block_format_by_name(std::string_view name) {
  const BlockFormat* format = find_block_format(name);
  if (format == nullptr) fail_unknown("block_format_by_name", name, kBlockFormats);
  return *format;
}

}  // namespace tilewright
