#include "tokenizer/vocabulary.h"

#include "base/utf8.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace tilewright::tokenizer {

namespace {

constexpr std::uint32_t kFirstInvisible = 0x100;
constexpr int kNoByte = -1;

constexpr bool is_visible(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

// The byte that each of the first characters of Unicode stands for.
constexpr auto kByteOfChar = [] {
  std::array<std::int16_t, kFirstInvisible + 68> bytes{};
  std::size_t invisible = kFirstInvisible;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[static_cast<std::size_t>(byte)] =
        is_visible(byte) ? static_cast<std::int16_t>(byte) : std::int16_t{kNoByte};
    if (!is_visible(byte)) bytes[invisible++] = static_cast<std::int16_t>(byte);
  }
  return bytes;
}();

// Beyond it a heap takes less time than looking at all neighbours for each merge.
constexpr std::size_t kMostShort = 40;

}  // namespace

bool append_bytes_of(std::string_view visible, std::string& bytes) {
  const std::size_t size_before = bytes.size();
  for (std::size_t at = 0; at < visible.size();) {
    const Utf8Char c = utf8_char_at(visible.data() + at);
    const int byte = c.code < kByteOfChar.size() ? kByteOfChar[c.code] : kNoByte;
    if (byte == kNoByte) {
      bytes.resize(size_before);
      return false;
    }
    bytes += static_cast<char>(byte);
    at += c.bytes;
  }
  return true;
}

std::string visible_byte(std::uint8_t byte) {
  const auto found = std::ranges::find(kByteOfChar, std::int16_t{byte});
  std::string visible;
  append_utf8(visible, static_cast<std::uint32_t>(found - kByteOfChar.begin()));
  return visible;
}

void Vocabulary::reserve(std::size_t tokens, std::size_t bytes) {
  bytes_.reserve(bytes);
  begin_.reserve(tokens + 1);
  table_.reserve(tokens);
  merges_.reserve(tokens);  // mostly each makes a token of its own
  byte_ids_.fill(kNone);
}

bool Vocabulary::add(std::string_view visible) {
  const std::int32_t id = size();
  const std::size_t begin = bytes_.size();
  if (append_bytes_of(visible, bytes_)) {
    const std::string_view bytes = std::string_view(bytes_).substr(begin);
    if (find_bytes(bytes) != kNone) return false;
    table_.insert(bytes, id);
    if (bytes.size() == 1) byte_ids_[static_cast<std::uint8_t>(bytes[0])] = id;
  } else {
    if (!names_.emplace(visible, id).second) return false;
    bytes_ += visible;
  }
  begin_.push_back(bytes_.size());
  return true;
}

void Vocabulary::add_token(std::string_view visible) {
  if (!append_bytes_of(visible, bytes_)) bytes_ += visible;
  begin_.push_back(bytes_.size());
}

std::int32_t Vocabulary::find(std::string_view visible) const {
  std::string bytes;
  if (append_bytes_of(visible, bytes)) return find_bytes(bytes);
  const auto found = names_.find(std::string(visible));
  return found == names_.end() ? kNone : found->second;
}

Vocabulary::AddResult Vocabulary::add_merge(std::string_view visible_left,
                                            std::string_view visible_right) {
  scratch_.clear();
  std::int32_t left, right, whole;
  const bool is_left_bytes = append_bytes_of(visible_left, scratch_);
  const std::size_t left_size = scratch_.size();
  if (is_left_bytes && append_bytes_of(visible_right, scratch_)) {
    const std::string_view bytes = scratch_;
    left = find_bytes(bytes.substr(0, left_size));
    right = find_bytes(bytes.substr(left_size));
    // Who trained the tokenizer numbered tokens as merges made them: mostly it is the next one.
    const std::int32_t next = last_whole_ + 1;
    whole = next < size() && bytes_of(next) == bytes ? next : find_bytes(bytes);
    last_whole_ = whole;
  } else {
    left = find(visible_left);
    right = find(visible_right);
    whole = find(std::string(visible_left) += visible_right);
  }
  if (left == kNone) return AddResult::kUnknownLeft;
  if (right == kNone) return AddResult::kUnknownRight;
  if (whole == kNone) return AddResult::kUnknownBoth;
  const bool is_new = merges_.insert(left, right, {num_merges_, whole});
  ++num_merges_;
  return is_new ? AddResult::kAdded : AddResult::kTwice;
}

std::optional<std::uint8_t> Vocabulary::missing_byte() const {
  const auto found = std::ranges::find(byte_ids_, kNone);
  if (found == byte_ids_.end()) return std::nullopt;
  return static_cast<std::uint8_t>(found - byte_ids_.begin());
}

void Vocabulary::finish() {
  whole_ = std::make_unique<std::atomic<std::uint8_t>[]>(static_cast<std::size_t>(size()));
}

void Vocabulary::encode(std::string_view piece, std::vector<std::int32_t>& ids) const {
  if (piece.size() == 1) {
    ids.push_back(byte_ids_[static_cast<std::uint8_t>(piece[0])]);
    return;
  }
  const std::int32_t token = find_bytes(piece);
  if (token != kNone &&
      whole_[static_cast<std::size_t>(token)].load(std::memory_order_relaxed) == kIsToken) {
    ids.push_back(token);
    return;
  }
  const std::size_t size_before = ids.size();
  if (piece.size() <= kMostShort) {
    merge_short(piece, ids);
  } else {
    merge_long(piece, ids);
  }
  if (token != kNone)
    whole_[static_cast<std::size_t>(token)].store(
        ids.size() == size_before + 1 && ids.back() == token ? kIsToken : kIsNot,
        std::memory_order_relaxed);
}

void Vocabulary::merge_short(std::string_view piece, std::vector<std::int32_t>& ids) const {
  std::array<std::int32_t, kMostShort> tokens;
  std::array<Merge, kMostShort> merges;  // of a token and the next
  std::size_t count = piece.size();
  for (std::size_t i = 0; i < count; ++i) {
    tokens[i] = byte_ids_[static_cast<std::uint8_t>(piece[i])];
    if (i > 0) merges[i - 1] = merges_.find(tokens[i - 1], tokens[i]);
  }
  while (count > 1) {
    std::size_t first = 0;
    for (std::size_t i = 1; i + 1 < count; ++i)
      if (merges[i].rank < merges[first].rank) first = i;
    if (merges[first].rank == Merge{}.rank) break;
    tokens[first] = merges[first].id;
    --count;
    for (std::size_t i = first + 1; i < count; ++i) {
      tokens[i] = tokens[i + 1];
      merges[i - 1] = merges[i];
    }
    if (first > 0) merges[first - 1] = merges_.find(tokens[first - 1], tokens[first]);
    if (first + 1 < count) merges[first] = merges_.find(tokens[first], tokens[first + 1]);
  }
  ids.insert(ids.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
}

void Vocabulary::merge_long(std::string_view piece, std::vector<std::int32_t>& ids) const {
  constexpr std::uint32_t kEnd = UINT32_MAX;
  struct Link {
    std::int32_t token;  // kNone: became part of the one before
    std::uint32_t before, after;
    Merge merge;  // with the next
  };
  std::vector<Link> links(piece.size());
  // By rank, then place. What was pushed for neighbours that have changed since is passed over.
  using Entry = std::uint64_t;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  const auto find_merge = [&](std::uint32_t i) {
    Link& link = links[i];
    link.merge = link.after == kEnd ? Merge{} : merges_.find(link.token, links[link.after].token);
    if (link.merge.rank != Merge{}.rank) queue.push(Entry{link.merge.rank} << 32 | i);
  };
  const auto count = static_cast<std::uint32_t>(piece.size());
  for (std::uint32_t i = 0; i < count; ++i)
    links[i] = {.token = byte_ids_[static_cast<std::uint8_t>(piece[i])],
                .before = i == 0 ? kEnd : i - 1,
                .after = i + 1 == count ? kEnd : i + 1,
                .merge = {}};
  for (std::uint32_t i = 0; i + 1 < count; ++i) find_merge(i);
  while (!queue.empty()) {
    const auto rank = static_cast<std::uint32_t>(queue.top() >> 32);
    const auto i = static_cast<std::uint32_t>(queue.top());
    queue.pop();
    Link& link = links[i];
    if (link.token == kNone || link.merge.rank != rank) continue;
    Link& next = links[link.after];
    link.token = link.merge.id;
    next.token = kNone;
    link.after = next.after;
    if (link.after != kEnd) links[link.after].before = i;
    find_merge(i);
    if (link.before != kEnd) find_merge(link.before);
  }
  for (std::uint32_t i = 0; i != kEnd; i = links[i].after) ids.push_back(links[i].token);
}

}  // namespace tilewright::tokenizer
