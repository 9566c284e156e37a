// tokenizer.json: what it may have and what it must.
#include "base/error.h"
#include "base/json_error.h"
#include "base/quote.h"
#include "tokenizer/json_reader.h"
#include "tokenizer/split.h"
#include "tokenizer/state.h"

#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace tilewright::tokenizer {

namespace {

constexpr std::int64_t kMostTokens = std::numeric_limits<std::int32_t>::max() / 2;

// A value as the file has it, cut and in printable ASCII: for a message.
std::string shown(std::string_view value) {
  constexpr std::size_t kMost = 60;
  std::string text(value.substr(0, kMost));
  for (char& c : text)
    if (c < ' ' || c > '~') c = c == '\n' || c == '\t' || c == '\r' ? ' ' : '?';
  return value.size() > kMost ? text + "..." : text;
}

// A small value as its scalars by path: {"a": [1]} is {"/a/0": "1"}. Strings begin with a quote;
// offsets in the text (trim_offsets) are left out, for they are not asked for here.
using Scalars = std::map<std::string, std::string>;

void add_scalars(JsonReader& json, const std::string& path, Scalars& scalars) {
  const JsonReader::Kind kind = json.next_kind();
  if (kind == JsonReader::Kind::kObject) {
    json.begin_object();
    scalars[path] = "{}";
    while (json.next_member()) {
      const std::string name = json.name();
      if (name == "trim_offsets") {
        json.skip();
      } else {
        add_scalars(json, path + "/" + name, scalars);
      }
    }
  } else if (kind == JsonReader::Kind::kArray) {
    json.begin_array();
    scalars[path] = "[]";
    for (int i = 0; json.next_elem(); ++i)
      add_scalars(json, path + "/" + std::to_string(i), scalars);
  } else if (kind == JsonReader::Kind::kString) {
    scalars[path] = '"' + std::string(json.string());
  } else {
    scalars[path] = json.skip();
  }
}

Scalars expected_pre_tokenizer() {
  Scalars expected = {{"", "{}"}, {"/type", "\"Sequence"}, {"/pretokenizers", "[]"}};
  std::string part;
  for (int i = 0; i < 4; ++i) {
    part = "/pretokenizers/" + std::to_string(i);
    expected[part] = "{}";
    if (i == 3) break;
    expected[part + "/type"] = "\"Split";
    expected[part + "/pattern"] = "{}";
    expected[part + "/pattern/Regex"] = '"' + std::string(kSplitPatterns[i]);
    expected[part + "/behavior"] = "\"Isolated";
    expected[part + "/invert"] = "false";
  }
  expected[part + "/type"] = "\"ByteLevel";
  expected[part + "/add_prefix_space"] = "false";
  expected[part + "/use_regex"] = "false";
  return expected;
}

// Members of the file and of its model that are small: whether all is as it is implemented here.
bool is_known(const std::string& name, const Scalars& scalars) {
  const auto is = [&scalars](const char* path, std::string_view value) {
    const auto found = scalars.find(path);
    return found != scalars.end() && found->second == value;
  };
  const bool is_null = is("", "null");
  if (name == "version") return true;
  if (name == "truncation" || name == "padding") return is_null;
  if (name == "normalizer")
    return is_null ||
           scalars == Scalars{{"", "{}"}, {"/type", "\"Sequence"}, {"/normalizers", "[]"}};
  if (name == "post_processor") return is_null || is("/type", "\"ByteLevel");
  if (name == "decoder") return is("/type", "\"ByteLevel");
  if (name == "pre_tokenizer") {
    static const Scalars kExpected = expected_pre_tokenizer();
    return scalars == kExpected;
  }
  if (name == "type") return is("", "\"BPE");
  if (name == "dropout" || name == "unk_token") return is_null;
  if (name == "continuing_subword_prefix" || name == "end_of_word_suffix")
    return is_null || is("", "\"");
  if (name == "fuse_unk") return true;  // of unknown tokens, which there are not
  if (name == "byte_fallback" || name == "ignore_merges") return is("", "false");
  return false;
}

class FileReader {
 public:
  FileReader(std::string_view text, const std::string& source)
      : text_(text),
        source_(source),
        json_(text, source),
        state_(std::make_shared<Tokenizer::State>()) {
    state_->source = source;
  }

  std::shared_ptr<const Tokenizer::State> read() {
    json_.begin_object();
    while (json_.next_member()) {
      const std::string name = json_.name();
      note_member(name);
      if (name == "model") {
        read_model();
      } else if (name == "added_tokens") {
        read_added_tokens();
      } else {
        check_small(name, "");
      }
    }
    json_.end();
    for (const char* name : {"model", "pre_tokenizer", "decoder"})
      require(members_.contains(name), ErrorKind::kParseError,
              "{}: no member \"{}\"; expected a tokenizer.json as the library tokenizers writes it",
              source_, name);
    add_added_tokens();
    finish();
    return state_;
  }

 private:
  void note_member(const std::string& name) {
    if (!members_.insert(name).second)
      json_.fail(fmt::format("the object has two members {}; rename or remove one", quote(name)));
  }

  void check_small(const std::string& name, std::string_view parent) {
    const std::size_t place = json_.place();
    const std::string_view value = json_.skip();  // refuses what is nested too deeply
    json_.go_to(place);
    Scalars scalars;
    add_scalars(json_, "", scalars);
    require(is_known(name, scalars), ErrorKind::kUnsupported,
            "{}: {}{} is {}; only byte-level BPE with the three patterns of DeepSeek-V3 and V4 is "
            "read: use the tokenizer.json of such a model",
            source_, parent, escape(name), shown(value));
  }

  // Vocabulary and merges may stand in any order; merges are read when the tokens are known.
  void read_model() {
    std::set<std::string> outer = std::exchange(members_, {});
    std::optional<std::size_t> merges_at;
    json_.begin_object();
    while (json_.next_member()) {
      const std::string name = json_.name();
      note_member(name);
      if (name == "vocab") {
        read_vocab();
        make_tokens();
      } else if (name != "merges") {
        check_small(name, "model.");
      } else if (members_.contains("vocab")) {
        read_merges();
      } else {
        merges_at = json_.place();
        json_.skip();
      }
    }
    for (const char* name : {"type", "vocab", "merges"})
      require(members_.contains(name), ErrorKind::kParseError,
              "{}: the model has no member \"{}\"; expected type, vocab and merges", source_, name);
    if (merges_at) {
      const std::size_t end = json_.place();
      json_.go_to(*merges_at);
      read_merges();
      json_.go_to(end);
    }
    members_ = std::move(outer);
  }

  void read_vocab() {
    json_.begin_object();
    while (json_.next_member()) {
      std::string_view name = json_.name_in_text();
      if (name.data() == nullptr) name = escaped_.emplace_back(json_.name());
      const std::size_t place = json_.place();
      const std::int64_t id = json_.integer(0, kMostTokens);
      tokens_.push_back({name, id, place});
    }
  }

  void make_tokens() {
    std::vector<const Token*> by_id(tokens_.size(), nullptr);
    std::size_t bytes = 0;
    for (const Token& token : tokens_) {
      const auto id = static_cast<std::size_t>(token.id);
      if (id >= by_id.size())
        fail_json(
            text_, token.place, source_,
            fmt::format("token {} of {}; expected ids from 0 on without a gap", id, by_id.size()));
      if (by_id[id] != nullptr)
        fail_json(text_, token.place, source_, fmt::format("two tokens have the id {}", id));
      by_id[id] = &token;
      bytes += token.name.size();
    }
    state_->vocabulary.reserve(tokens_.size(), bytes);
    for (const Token* token : by_id)
      if (!state_->vocabulary.add(token->name))
        fail_json(text_, token->place, source_,
                  fmt::format("the vocabulary has {} twice", quote(token->name)));
    if (const auto byte = state_->vocabulary.missing_byte())
      fail(ErrorKind::kUnsupported,
           "{}: no token for the byte 0x{:02x}; expected one for each of the 256: use the "
           "tokenizer.json of a model with byte-level BPE",
           source_, *byte);
  }

  void read_merges() {
    json_.begin_array();
    std::string left;
    for (std::size_t i = 0; json_.next_elem(); ++i) {
      if (json_.next_kind() == JsonReader::Kind::kArray) {
        json_.begin_array();
        if (!json_.next_elem()) json_.fail("expected two strings");
        left = json_.string();
        if (!json_.next_elem()) json_.fail("expected two strings");
        const std::string copy(json_.string());
        if (json_.next_elem()) json_.fail("expected two strings");
        add_merge(i, left, copy);
      } else {
        const std::string_view both = json_.string();
        const std::size_t blank = both.find(' ');
        if (blank == both.npos || both.find(' ', blank + 1) != both.npos)
          json_.fail("a merge is two tokens with one blank between them");
        add_merge(i, both.substr(0, blank), both.substr(blank + 1));
      }
    }
  }

  void add_merge(std::size_t number, std::string_view left, std::string_view right) {
    using Result = Vocabulary::AddResult;
    const Result result = state_->vocabulary.add_merge(left, right);
    if (result == Result::kAdded) return;
    if (result == Result::kTwice)
      json_.fail(fmt::format("merge {}: {} and {} have a merge already", number, quote(left),
                             quote(right)));
    const std::string missing(result == Result::kUnknownLeft    ? std::string(left)
                              : result == Result::kUnknownRight ? std::string(right)
                                                                : std::string(left) += right);
    json_.fail(fmt::format("merge {}: {} is not in the vocabulary", number, quote(missing)));
  }

  void read_added_tokens() {
    json_.begin_array();
    while (json_.next_elem()) {
      AddedToken token;
      std::set<std::string> outer = std::exchange(members_, {});
      token.is_normalized = true;
      json_.begin_object();
      const std::size_t place = json_.place();
      while (json_.next_member()) {
        const std::string name = json_.name();
        note_member(name);
        if (name == "id") {
          token.id = static_cast<std::int32_t>(json_.integer(0, kMostTokens));
        } else if (name == "content") {
          token.name = json_.string();
        } else if (name == "special") {
          token.is_special = json_.boolean();
        } else if (name == "normalized") {
          token.is_normalized = json_.boolean();
        } else if (name != "single_word" && name != "lstrip" && name != "rstrip") {
          json_.fail(fmt::format("an added token has the unknown member {}", quote(name)));
        } else if (json_.boolean()) {
          fail(ErrorKind::kUnsupported,
               "{}: the added token {} is {}; only false is read: use the tokenizer.json of a "
               "DeepSeek-V3 or V4 model",
               source_, quote(token.name), name);
        }
      }
      if (token.name.empty() || !members_.contains("id"))
        fail_json(text_, place, source_, "an added token needs an id and a content");
      members_ = std::move(outer);
      added_.push_back(std::move(token));
    }
  }

  // Their ids follow those of the vocabulary, but for those that are in it.
  void add_added_tokens() {
    Vocabulary& vocabulary = state_->vocabulary;
    const std::int32_t own = vocabulary.size();
    const auto places = static_cast<std::size_t>(own) + added_.size();
    std::vector<const AddedToken*> by_id(places, nullptr);
    std::size_t num_new = 0;
    for (const AddedToken& token : added_) {
      const std::string name = quote(token.name);
      const std::int32_t in_vocab = vocabulary.find(token.name);
      const auto id = static_cast<std::size_t>(token.id);
      require(
          in_vocab == Vocabulary::kNone ? token.id >= own && id < places : in_vocab == token.id,
          ErrorKind::kParseError,
          "{}: the added token {} has the id {}; expected the one that the vocabulary gives it, "
          "or the next that is free",
          source_, name, token.id);
      require(by_id[id] == nullptr && state_->added.find(token.name) == Vocabulary::kNone,
              ErrorKind::kParseError, "{}: the added token {} or its id {} is there twice", source_,
              name, token.id);
      by_id[id] = &token;
      num_new += in_vocab == Vocabulary::kNone ? 1 : 0;
      state_->added.add(token);
    }
    for (std::size_t id = static_cast<std::size_t>(own); id < own + num_new; ++id) {
      require(by_id[id] != nullptr, ErrorKind::kParseError,
              "{}: no token has the id {}; expected added tokens without a gap", source_, id);
      vocabulary.add_token(by_id[id]->name);
    }
  }

  void finish() {
    Vocabulary& vocabulary = state_->vocabulary;
    vocabulary.finish();
    bool is_of_bytes = vocabulary.size() == 256 && !vocabulary.has_merges() && added_.empty();
    for (std::int32_t id = 0; is_of_bytes && id < 256; ++id)
      is_of_bytes = vocabulary.bytes_of(id)[0] == static_cast<char>(id);
    state_->is_of_bytes = is_of_bytes;
  }

  struct Token {
    std::string_view name;
    std::int64_t id;
    std::size_t place;
  };

  std::string_view text_;
  std::string source_;
  JsonReader json_;
  std::shared_ptr<Tokenizer::State> state_;
  std::set<std::string> members_;
  std::vector<Token> tokens_;
  std::deque<std::string> escaped_;  // names of tokens that the text has with escapes
  std::vector<AddedToken> added_;
};

}  // namespace

std::shared_ptr<const Tokenizer::State> parse_file(std::string_view json,
                                                   const std::string& source) {
  return FileReader(json, source).read();
}

std::shared_ptr<const Tokenizer::State> byte_state() {
  auto state = std::make_shared<Tokenizer::State>();
  state->source = "bytes";
  state->vocabulary.reserve(256, 512);
  for (int byte = 0; byte < 256; ++byte)
    state->vocabulary.add(visible_byte(static_cast<std::uint8_t>(byte)));
  state->vocabulary.finish();
  state->is_of_bytes = true;
  return state;
}

}  // namespace tilewright::tokenizer
