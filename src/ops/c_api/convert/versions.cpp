#include "ops/c_api/convert/versions.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tilewright::c_api {

namespace {

constexpr std::size_t kSizeBytes = sizeof(std::size_t);
// A newer header may have added so much; what is larger is taken for memory that was not filled in.
constexpr std::size_t kMostAdded = 4096;

// The struct's own size, which says how many of its members there are. `room`: bytes up to the end
// of the struct around it.
std::size_t size_of(const Shape& shape, const std::byte* given, std::size_t room,
                    const Where& where) {
  std::size_t bytes = 0;
  std::memcpy(&bytes, given, kSizeBytes);
  const std::size_t most = std::min(room, shape.bytes + kMostAdded);
  if (bytes >= kSizeBytes && bytes <= most && bytes % kSizeBytes == 0) return bytes;
  fail(ErrorKind::kInvalidArgument,
       "{}: {}.struct_bytes = {}; expected {}, or what the header of another version has. Fill it "
       "in with {}_init().",
       where.function, where.path(), bytes, shape.bytes, shape.name);
}

// Goes through a struct of the caller and ours side by side. copy(at of theirs, at of ours, bytes)
// gets each run of members that both have, beyond(at of theirs, bytes) what we do not know.
template <class Copy, class Beyond>
void walk(const Shape& shape, const std::byte* given, std::size_t bytes, std::size_t ours_begin,
          std::size_t theirs_begin, const Where& where, const Copy& copy, const Beyond& beyond) {
  std::size_t ours = kSizeBytes, theirs = kSizeBytes;  // their size stays theirs, and ours ours
  for (const Inner& inner : shape.inner) {
    const std::size_t plain = inner.offset - ours;
    const std::size_t both = std::min(plain, bytes - theirs);
    copy(theirs_begin + theirs, ours_begin + ours, both);
    if (theirs + both == bytes) return;
    theirs += both;
    const std::byte* const at = given + theirs;
    const Where inside = where.in(inner.name);
    const std::size_t size = size_of(*inner.shape, at, bytes - theirs, inside);
    walk(*inner.shape, at, size, ours_begin + inner.offset, theirs_begin + theirs, inside, copy,
         beyond);
    theirs += size;
    ours = inner.offset + inner.shape->bytes;
  }
  const std::size_t both = std::min(shape.bytes - ours, bytes - theirs);
  copy(theirs_begin + theirs, ours_begin + ours, both);
  beyond(shape, theirs_begin + theirs + both, bytes - theirs - both, bytes, where);
}

}  // namespace

std::string Where::path() const {
  return outer == nullptr ? name : outer->path() + "." + name;
}

std::string Where::field(const char* member) const {
  return outer == nullptr ? member : outer->field(name) + "." + member;
}

void read_struct(const Shape& shape, const void* given, void* ours, const Where& where) {
  const auto* const theirs = static_cast<const std::byte*>(given);
  auto* const to = static_cast<std::byte*>(ours);
  walk(
      shape, theirs, size_of(shape, theirs, SIZE_MAX, where), 0, 0, where,
      [&](std::size_t from, std::size_t at, std::size_t n) {
        std::memcpy(to + at, theirs + from, n);
      },
      [&](const Shape& s, std::size_t from, std::size_t n, std::size_t bytes, const Where& w) {
        const std::byte* const end = theirs + from + n;
        const std::byte* const set =
            std::find_if(theirs + from, end, [](std::byte b) { return b != std::byte{0}; });
        if (set == end) return;
        fail(ErrorKind::kInvalidArgument,
             "{}: {}.struct_bytes = {}, but this library knows {} bytes of {}, and one beyond them "
             "is not 0. Leave members of newer versions 0, or use a newer library.",
             w.function, w.path(), bytes, s.bytes, s.name);
      });
}

void write_struct(const Shape& shape, const void* ours, void* given, const Where& where) {
  auto* const theirs = static_cast<std::byte*>(given);
  const auto* const from = static_cast<const std::byte*>(ours);
  walk(
      shape, theirs, size_of(shape, theirs, SIZE_MAX, where), 0, 0, where,
      [&](std::size_t to, std::size_t at, std::size_t n) {
        std::memcpy(theirs + to, from + at, n);
      },
      [&](const Shape&, std::size_t to, std::size_t n, std::size_t, const Where&) {
        std::memset(theirs + to, 0, n);
      });
}

void require_address(const void* address, const char* function, const char* name) {
  require(address != nullptr, ErrorKind::kInvalidArgument, "{}: {} is NULL", function, name);
}

void refuse_choice(std::int32_t value, std::span<const Choice<int>> choices, const Where& where,
                   const char* member) {
  std::string expected;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) expected += i + 1 == choices.size() ? " or " : ", ";
    expected += std::string(choices[i].name) + " = " + std::to_string(choices[i].value);
  }
  const Reason reason = {where.field(member), std::to_string(value), std::move(expected), {}};
  if (where.refused != nullptr) return where.refused->push_back(reason);
  const Where* root = &where;
  while (root->outer != nullptr) root = root->outer;
  require_none({reason}, *root);
}

void require_none(const std::vector<Reason>& refused, const Where& where) {
  if (refused.empty()) return;
  std::string text = std::string(where.function) + ": ";
  for (std::size_t i = 0; i < refused.size(); ++i)
    text += (i > 0 ? "\n  " : "") + std::string(where.name) + "." + to_string(refused[i]);
  throw Refusal(ErrorKind::kInvalidArgument, text, refused);
}

}  // namespace tilewright::c_api
