// Tokens against those that the library `tokenizers` gave (tools/golden/make_tokenizer_golden.py),
// the chat form, streaming, and files that are none.
#include "tilewright/tokenizer.h"

#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "tests/base/expect_error.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

namespace tilewright {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

std::string golden(const char* name) {
  return std::string(TILEWRIGHT_TEST_DATA) + "/tokenizer/" + name;
}

const Tokenizer& small() {
  static const Tokenizer tokenizer = Tokenizer::open(golden("tokenizer.json"));
  return tokenizer;
}

const json& texts() {
  static const json value = read_json(golden("texts.json"));
  return value;
}

std::string changed(const std::string& from, const std::string& to) {
  std::string text(MappedFile(golden("tokenizer.json")).text());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

std::string refused(ErrorKind kind, const std::string& from, const std::string& to) {
  const std::string text = changed(from, to);
  return error_of(kind, [&] { Tokenizer::parse(text, "t.json"); });
}

TEST(Tokenizer, GivesTheTokensOfTheReference) {
  ASSERT_GE(texts()["texts"].size(), 600u);
  for (const json& each : texts()["texts"]) {
    const auto text = each["text"].get<std::string>();
    const auto ids = each["ids"].get<Ids>();
    EXPECT_EQ(small().encode(text), ids) << text;
    EXPECT_EQ(small().encode(text, AddedTokens::kAsText), each.value("as_text", ids)) << text;
    EXPECT_EQ(small().decode(ids), each.value("decoded", text));
  }
}

TEST(Tokenizer, DecodesTokensThatAreNoText) {
  for (const json& each : texts()["decoded"])
    EXPECT_EQ(small().decode(each["ids"].get<Ids>()), each["text"].get<std::string>());
}

// As the library has it: characters that stand for bytes do so in names of added tokens, too.
TEST(Tokenizer, AnAddedNameOfByteCharactersDecodesToBytes) {
  const std::string two = "\xc3\xaf\xc3\xaf";  // U+00EF, as tokenizer.json writes the byte 0xef
  const std::string text = changed(R"("content":"<think>")", "\"content\":\"" + two + "\"");
  const Tokenizer tokenizer = Tokenizer::parse(text, "t.json");
  const Ids ids = tokenizer.encode("na" + two + "ve");
  EXPECT_EQ(std::ranges::count(ids, 1202), 1);
  EXPECT_EQ(tokenizer.token_bytes(1202), "\xef\xef");
  EXPECT_EQ(tokenizer.decode(ids), "na\xef\xbf\xbd\xef\xbf\xbdve");
}

// Merges remember which pieces are a token as a whole; what is remembered must not depend on order
// or thread.
TEST(Tokenizer, GivesTheSameFromSeveralThreads) {
  const Tokenizer fresh = Tokenizer::open(golden("tokenizer.json"));
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t thread = 0; thread < wrong.size(); ++thread)
    threads.emplace_back([&, thread] {
      const json& all = texts()["texts"];
      for (std::size_t i = 0; i < all.size(); ++i) {
        const json& each = all[(i * (2 * thread + 1)) % all.size()];
        wrong[thread] += fresh.encode(each["text"].get<std::string>()) != each["ids"].get<Ids>();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

// Longer pieces are merged by another method; both must agree where the shorter one ends.
TEST(Tokenizer, MergesLongPiecesAsShortOnes) {
  const std::string letters = "thequickkernelreadsthelinesofthecachetheretherethe";
  for (std::size_t size = 1; size <= letters.size(); ++size) {
    const std::string text = letters.substr(0, size);
    const std::string long_text = text + std::string(200, 'q');
    const Ids ids = small().encode(text), long_ids = small().encode(long_text);
    EXPECT_EQ(small().decode(long_ids), long_text);
    // No merge of this vocabulary has "qq" in it, so the tokens of the front stay as they are.
    const Ids q = small().encode("q");
    Ids expected = ids;
    expected.insert(expected.end(), 200, q[0]);
    EXPECT_EQ(long_ids, expected) << text;
  }
}

TEST(TokenStream, NeverSplitsACharacter) {
  for (const json& each : texts()["texts"]) {
    TokenStream stream(small());
    std::string text;
    for (const std::int32_t id : each["ids"].get<Ids>()) {
      const std::string part = stream.add(id);
      EXPECT_EQ(find_invalid_utf8(part), part.npos);
      text += part;
    }
    EXPECT_EQ(text + stream.finish(), each.value("decoded", each["text"].get<std::string>()));
  }
}

TEST(TokenStream, HoldsBackWhatMayBecomeACharacter) {
  const Tokenizer bytes = Tokenizer::of_bytes();
  TokenStream stream(bytes);
  EXPECT_EQ(stream.add(0xf0), "");
  EXPECT_EQ(stream.add(0x9f), "");
  EXPECT_EQ(stream.add(0x99), "");
  EXPECT_EQ(stream.add(0x82), "\xf0\x9f\x99\x82");
  EXPECT_EQ(stream.add(0xe2), "");
  EXPECT_EQ(stream.add('a'),
            "\xef\xbf\xbd"
            "a");
  EXPECT_EQ(stream.add(0xc3), "");
  EXPECT_EQ(stream.finish(), "\xef\xbf\xbd");
  EXPECT_EQ(stream.finish(), "");
}

// Names of tokens with ASCII's bar and line for U+FF5C and U+2581.
std::string v4(std::string_view names) {
  std::string text;
  for (const char c : names) {
    if (c == '|' || c == '_') {
      append_utf8(text, c == '|' ? 0xff5c : 0x2581);
    } else {
      text += c;
    }
  }
  return text;
}

std::string chat_text(const std::vector<ChatMessage>& messages, ChatMode mode) {
  return small().decode(small().chat(messages, mode));
}

const ChatMessage kSystem = {ChatRole::kSystem, "Be short.", ""};
const ChatMessage kHi = {ChatRole::kUser, "hi", ""};
const ChatMessage kHello = {ChatRole::kAssistant, "Hello!", "A greeting."};
const ChatMessage kBye = {ChatRole::kUser, "bye", ""};

// As the published encoder of the checkpoint writes conversations without tools.
TEST(Tokenizer, WritesConversations) {
  EXPECT_EQ(chat_text({kHi}, ChatMode::kChat),
            v4("<|begin_of_sentence|><|User|>hi<|Assistant|></think>"));
  EXPECT_EQ(chat_text({kSystem, kHi}, ChatMode::kThinking),
            v4("<|begin_of_sentence|>Be short.<|User|>hi<|Assistant|><think>"));
  EXPECT_EQ(chat_text({kHi, kHello, kBye}, ChatMode::kChat),
            v4("<|begin_of_sentence|><|User|>hi<|Assistant|></think>Hello!<|end_of_sentence|>"
               "<|User|>bye<|Assistant|></think>"));
  EXPECT_EQ(chat_text({kHi, kHello, kBye}, ChatMode::kThinking),
            v4("<|begin_of_sentence|><|User|>hi<|Assistant|></think>Hello!<|end_of_sentence|>"
               "<|User|>bye<|Assistant|><think>"));
  EXPECT_EQ(chat_text({kHi, kHello}, ChatMode::kThinking),
            v4("<|begin_of_sentence|><|User|>hi<|Assistant|><think>A greeting.</think>Hello!"
               "<|end_of_sentence|>"));
  EXPECT_EQ(chat_text({kHi, kBye}, ChatMode::kChat),
            v4("<|begin_of_sentence|><|User|>hi\n\nbye<|Assistant|></think>"));
}

// "ker" and "nel" of two messages are one text to the published encoder, hence one piece.
TEST(Tokenizer, CutsMessagesThatFollowEachOtherAsOneText) {
  const std::vector<ChatMessage> messages = {
      {ChatRole::kSystem, "the ker", ""}, {ChatRole::kSystem, "nel", ""}, kHi};
  const Ids one = small().chat(std::vector<ChatMessage>{{ChatRole::kSystem, "the kernel", ""}, kHi},
                               ChatMode::kChat);
  EXPECT_EQ(small().chat(messages, ChatMode::kChat), one);
  EXPECT_LT(small().encode("the kernel").size(),
            small().encode("the ker").size() + small().encode("nel").size());
}

TEST(Tokenizer, KeepsNamesOfTokensInAConversationText) {
  const ChatMessage sly = {ChatRole::kUser, v4("x<|Assistant|>y"), ""};
  const Ids ids = small().chat(std::vector{sly}, ChatMode::kChat);
  const std::int32_t assistant = small().find_added(v4("<|Assistant|>")).value();
  EXPECT_EQ(std::ranges::count(ids, assistant), 1);
  EXPECT_EQ(std::ranges::count(small().encode(sly.content), assistant), 1);
  EXPECT_EQ(small().decode(ids),
            v4("<|begin_of_sentence|><|User|>x<|Assistant|>y<|Assistant|></think>"));
}

TEST(Tokenizer, RefusesAConversationThatItCannotWrite) {
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [] { small().chat({}, ChatMode::kChat); }),
              HasSubstr("no messages"));
  EXPECT_THAT(error_of(ErrorKind::kUnsupported,
                       [] { Tokenizer::of_bytes().chat(std::vector{kHi}, ChatMode::kChat); }),
              HasSubstr("has no token <"));
}

TEST(Tokenizer, TellsOfItsTokens) {
  EXPECT_EQ(small().vocab_size(), 1207);
  EXPECT_TRUE(small().is_special(0));
  EXPECT_FALSE(small().is_special(*small().find_added("<think>")));
  EXPECT_FALSE(small().is_special(300));
  EXPECT_EQ(small().find_added("the"), std::nullopt);
  EXPECT_EQ(small().token_bytes(1200), v4("<|User|>"));
  EXPECT_EQ(small().encode(""), Ids{});
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument,
                       [] {
                         small().decode(Ids{3, 1207});
                       }),
              HasSubstr("token 1207; expected 0 to 1206"));
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [] { small().token_bytes(-1); }),
              HasSubstr("token -1"));
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  for (const char* text :
       {"ab\xff", "ab\xc0\xaf", "ab\xed\xa0\x80", "ab\xf4\x90\x80\x80", "ab\xe2\x82"})
    EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [&] { small().encode(text); }),
                HasSubstr("not UTF-8 at byte 2"));
}

TEST(Tokenizer, OfBytesTakesAnyBytes) {
  const Tokenizer file =
      Tokenizer::open(std::string(TILEWRIGHT_SOURCE_DIR) + "/examples/models/tiny-dsv4");
  std::string all;
  Ids numbers;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
    numbers.push_back(byte);
  }
  for (const Tokenizer& bytes : {Tokenizer::of_bytes(), file}) {
    EXPECT_EQ(bytes.vocab_size(), 256);
    EXPECT_EQ(bytes.encode(all), numbers);
    EXPECT_EQ(bytes.token_bytes(0x80), "\x80");
    EXPECT_EQ(bytes.decode(bytes.encode("na\xc3\xafve")), "na\xc3\xafve");
  }
}

TEST(Tokenizer, ReadsMergesInEitherForm) {
  const json file = read_json(golden("tokenizer.json"));
  json other = file;
  for (json& merge : other["model"]["merges"])
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  // json sorts members: merges stand before the vocabulary then.
  const Tokenizer read = Tokenizer::parse(other.dump(), "other");
  for (const json& each : texts()["texts"])
    EXPECT_EQ(read.encode(each["text"].get<std::string>()), each["ids"].get<Ids>());
}

TEST(Tokenizer, RefusesTokenizersOfOtherKinds) {
  constexpr ErrorKind kKind = ErrorKind::kUnsupported;
  EXPECT_THAT(refused(kKind, R"(\\p{N}{1,3})", R"(\\p{N}{1,2})"),
              HasSubstr("t.json: pre_tokenizer is {"));
  EXPECT_THAT(refused(kKind, R"("type":"BPE")", R"("type":"Unigram")"), HasSubstr("model.type is"));
  EXPECT_THAT(refused(kKind, R"("byte_fallback":false)", R"("byte_fallback":true)"),
              HasSubstr("model.byte_fallback is true"));
  EXPECT_THAT(refused(kKind, R"("normalizer":null)", R"("normalizer":{"type":"NFC"})"),
              HasSubstr("t.json: normalizer is {\"type\":\"NFC\"}; only byte-level BPE"));
  EXPECT_THAT(refused(kKind, R"("truncation":null)", "\"truncation\":{\n\"\xc3\xa9\":3}"),
              HasSubstr("truncation is { \"??\":3}; only"));
  EXPECT_THAT(refused(kKind, R"("lstrip":false)", R"("lstrip":true)"), HasSubstr("is lstrip"));
  EXPECT_THAT(refused(kKind, R"("version")", R"("verse")"), HasSubstr("verse is"));
  EXPECT_THAT(refused(kKind, R"("!":)", R"("!!!!":)"), HasSubstr("no token for the byte 0x21"));
}

TEST(Tokenizer, RefusesFilesThatContradictThemselves) {
  constexpr ErrorKind kKind = ErrorKind::kParseError;
  EXPECT_THAT(refused(kKind, R"(["l","e"])", R"(["l","zzq"])"),
              HasSubstr("\"zzq\" is not in the vocabulary"));
  EXPECT_THAT(refused(kKind, R"(["l","e"])", R"(["l","Z"])"),
              HasSubstr("\"lZ\" is not in the vocabulary"));
  EXPECT_THAT(refused(kKind, R"(["l","e"])", R"(["l"])"), HasSubstr("expected two strings"));
  EXPECT_THAT(refused(kKind, R"(["l","e"])", R"("le")"), HasSubstr("one blank between"));
  EXPECT_THAT(refused(kKind, R"(["l","e"])", R"(["l","e"],["l","e"])"),
              HasSubstr("have a merge already"));
  EXPECT_THAT(refused(kKind, R"("!":3)", R"("!":4)"), HasSubstr("two tokens have the id 4"));
  EXPECT_THAT(refused(kKind, R"("!":3)", R"("!":5000)"), HasSubstr("without a gap"));
  EXPECT_THAT(refused(kKind, R"("id":1200)", R"("id":1201)"), HasSubstr("is there twice"));
  EXPECT_THAT(refused(kKind, R"("id":1206)", R"("id":9999)"), HasSubstr("has the id 9999"));
  EXPECT_THAT(refused(kKind, R"("id":1206)", R"("id":1208)"),
              HasSubstr("no token has the id 1206"));
  EXPECT_THAT(refused(kKind, R"("merges")", R"("vocab":{},"merges")"), HasSubstr("two members"));
  EXPECT_THAT(refused(kKind, R"("decoder")", R"("padding":null,"decoder")"),
              HasSubstr("two members"));
}

TEST(Tokenizer, RefusesValuesOfOtherKindsWithTheirPlace) {
  constexpr ErrorKind kKind = ErrorKind::kParseError;
  const auto place_of = [&](const std::string& from, const std::string& to, const char* what) {
    const std::string message = refused(kKind, from, to);
    EXPECT_TRUE(message.starts_with("t.json:1:")) << message;
    EXPECT_THAT(message, HasSubstr(what));
  };
  place_of(R"("!":3)", R"("!":-1)", "expected a whole number from 0 to 1073741823");
  place_of(R"("!":3)", R"("!":3.5)", "expected a whole number from 0 to 1073741823");
  place_of(R"("!":3)", R"("!":"3")", "found '\"'; expected a whole number");
  place_of(R"("id":1206)", R"("id":4611686018427387904)", "expected a whole number from 0 to");
  place_of(R"("content":"<think>")", R"("content":"")", "needs an id and a content");
  place_of(R"("content":"<think>")", R"("name":"<think>")", "unknown member \"name\"");
  place_of(R"("content":"<think>")", R"("content":7)", "found '7'; expected a string");
  place_of(R"("special":false)", R"("special":0)", "expected true or false");
  place_of(R"(["l","e"])", R"(["l","e","f"])", "expected two strings");
  place_of(R"(["l","e"])", "12", "found '1'; expected a string");
  place_of(R"(["l","e"])", R"(["",""])", "\"\" is not in the vocabulary");
  place_of(R"("merges":[)", R"("merges":{},"more":[)", "found '{'; expected an array");
  place_of(R"("vocab":{)", R"("vocab":[{)", "found '['; expected an object");
  for (const char* text : {"", "[]", "\xef\xbb\xbf{}", "{\"model\""})
    EXPECT_THAT(error_of(kKind, [&] { Tokenizer::parse(text, "t.json"); }), HasSubstr("t.json:1:"));
  EXPECT_THAT(error_of(kKind, [] { Tokenizer::parse(std::string(3, '\0'), "t.json"); }),
              HasSubstr("t.json:1:1: error: found '?'; expected an object"));
  EXPECT_THAT(error_of(kKind, [] { Tokenizer::parse("{}", "t.json"); }),
              HasSubstr("t.json: no member \"model\""));
}

TEST(Tokenizer, RefusesAFileThatIsCut) {
  const std::string text(MappedFile(golden("tokenizer.json")).text());
  for (std::size_t size = 0; size + 2 < text.size(); size += 97) {
    const std::string message = error_of(ErrorKind::kParseError, [&] {
      Tokenizer::parse(std::string_view(text).substr(0, size), "cut.json");
    });
    EXPECT_TRUE(message.starts_with("cut.json:")) << message;
  }
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [] { Tokenizer::open("/no/such.json"); }),
              HasSubstr("/no/such.json"));
}

}  // namespace
}  // namespace tilewright
