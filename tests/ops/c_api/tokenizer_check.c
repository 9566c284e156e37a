/* The tokenizer through C, compiled as C99: buffers of the caller, streams, conversations. */
#include "tests/ops/c_api/check.h"
#include "tests/ops/c_api/device.h"

enum { kThink = 1202, kThinkEnd = 1203, kVocab = 1207, kRoom = 64 };

static int check_text(const tw_tokenizer* tokenizer) {
  static const char text[] = "caf\xc3\xa9 <think>\0the";
  enum { kBytes = sizeof text - 1 };
  int32_t ids[kBytes], plain[kBytes];
  size_t count = 0, num_plain = 0, bytes = 0;
  char back[kBytes + 1];
  CHECK(tw_tokenizer_encode(tokenizer, text, kBytes, TW_ADDED_TOKENS_MATCH, ids, kBytes, &count) ==
        TW_OK);
  CHECK(count > 4 && count < kBytes);
  CHECK(tw_tokenizer_encode(tokenizer, text, kBytes, TW_ADDED_TOKENS_AS_TEXT, plain, kBytes,
                            &num_plain) == TW_OK);
  CHECK(num_plain > count);
  /* How many there are is told without memory, and if there is too little. */
  memset(back, 'x', sizeof back);
  CHECK(tw_tokenizer_decode(tokenizer, ids, count, NULL, 0, &bytes) == TW_OK && bytes == kBytes);
  bytes = 0;
  CHECK(tw_tokenizer_decode(tokenizer, ids, count, back, kBytes - 1, &bytes) ==
        TW_INVALID_ARGUMENT);
  CHECK(bytes == kBytes && back[0] == 'x');
  CHECK(strstr(tw_last_error(), "capacity = 16; expected at least 17") != NULL);
  CHECK(tw_tokenizer_decode(tokenizer, ids, count, back, kBytes, NULL) == TW_OK);
  CHECK(memcmp(back, text, kBytes) == 0 && back[kBytes] == 'x');
  num_plain = 0;
  CHECK(tw_tokenizer_encode(tokenizer, text, kBytes, TW_ADDED_TOKENS_MATCH, NULL, 0, &num_plain) ==
        TW_OK);
  CHECK(num_plain == count);
  CHECK(tw_tokenizer_encode(tokenizer, NULL, 0, TW_ADDED_TOKENS_MATCH, NULL, 0, &count) == TW_OK);
  CHECK(count == 0);
  return 0;
}

/* Two tokens make a character; another character never ends. */
static int check_stream(void) {
  static const unsigned char bytes[] = {0xc3, 0xa9, 'a', 0xf0};
  static const char* const texts[] = {"", "\xc3\xa9", "a", ""};
  tw_tokenizer* tokenizer = NULL;
  tw_token_stream* stream = NULL;
  const char* text = NULL;
  size_t i = 0, size = 0;
  CHECK(tw_tokenizer_open(NULL, &tokenizer) == TW_OK);
  CHECK(tw_tokenizer_vocab_size(tokenizer) == 256);
  CHECK(tw_token_stream_create(tokenizer, &stream) == TW_OK);
  tw_tokenizer_destroy(tokenizer);
  for (i = 0; i < sizeof bytes; ++i) {
    CHECK(tw_token_stream_add(stream, bytes[i], &text, &size) == TW_OK);
    CHECK(strcmp(text, texts[i]) == 0 && size == strlen(texts[i]));
  }
  CHECK(tw_token_stream_add(stream, 256, &text, &size) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "token 256; expected 0 to 255") != NULL);
  CHECK(tw_token_stream_finish(stream, &text, NULL) == TW_OK && strcmp(text, "\xef\xbf\xbd") == 0);
  CHECK(tw_token_stream_finish(stream, &text, &size) == TW_OK && size == 0 && text[0] == '\0');
  CHECK(tw_token_stream_finish(stream, NULL, &size) == TW_INVALID_ARGUMENT);
  tw_token_stream_destroy(stream);
  return 0;
}

static int check_chat(const tw_tokenizer* tokenizer) {
  tw_chat_message messages[2];
  int32_t ids[kRoom];
  size_t count = 0, thinking = 0;
  tw_chat_message_init(&messages[0]);
  tw_chat_message_init(&messages[1]);
  CHECK(messages[0].role == TW_CHAT_ROLE_USER);
  messages[0].role = TW_CHAT_ROLE_SYSTEM;
  messages[0].content = "Be short.";
  messages[1].content = "the <think>";
  CHECK(tw_tokenizer_chat(tokenizer, messages, 2, TW_CHAT_MODE_CHAT, ids, kRoom, &count) == TW_OK);
  CHECK(count > 6 && ids[0] == 0 && ids[count - 1] == kThinkEnd);
  CHECK(tw_tokenizer_chat(tokenizer, messages, 2, TW_CHAT_MODE_THINKING, ids, kRoom, &thinking) ==
        TW_OK);
  CHECK(thinking == count && ids[count - 1] == kThink);
  CHECK(tw_tokenizer_chat(tokenizer, messages, 2, 7, ids, kRoom, &count) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "mode = 7; expected TW_CHAT_MODE_CHAT = 0") != NULL);
  CHECK(tw_tokenizer_chat(tokenizer, NULL, 0, TW_CHAT_MODE_CHAT, ids, kRoom, &count) ==
        TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "no messages") != NULL);
  messages[1].role = 9;
  CHECK(tw_tokenizer_chat(tokenizer, messages, 2, TW_CHAT_MODE_CHAT, ids, kRoom, &count) ==
        TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "messages[1].role = 9") != NULL);
  messages[1].struct_bytes = 0;
  CHECK(tw_tokenizer_chat(tokenizer, messages, 2, TW_CHAT_MODE_CHAT, ids, kRoom, &count) ==
        TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "tw_chat_message_init") != NULL);
  return 0;
}

static int check_tokens(const tw_tokenizer* tokenizer) {
  const char* bytes = NULL;
  size_t size = 0;
  CHECK(tw_tokenizer_vocab_size(tokenizer) == kVocab && tw_tokenizer_vocab_size(NULL) == 0);
  CHECK(tw_tokenizer_find_added(tokenizer, "<think>") == kThink);
  CHECK(tw_tokenizer_find_added(tokenizer, "the") == -1);
  CHECK(tw_tokenizer_find_added(NULL, "the") == -1 &&
        tw_tokenizer_find_added(tokenizer, NULL) == -1);
  CHECK(tw_tokenizer_is_special(tokenizer, 0) == 1);
  CHECK(tw_tokenizer_is_special(tokenizer, kThink) == 0 && tw_tokenizer_is_special(NULL, 0) == 0);
  CHECK(tw_tokenizer_token_bytes(tokenizer, kThink, &bytes, &size) == TW_OK);
  CHECK(size == 7 && memcmp(bytes, "<think>", 7) == 0);
  CHECK(tw_tokenizer_token_bytes(tokenizer, kVocab, &bytes, &size) == TW_INVALID_ARGUMENT);
  return 0;
}

static int check_refused(const tw_tokenizer* tokenizer) {
  tw_tokenizer* other = NULL;
  tw_token_stream* stream = NULL;
  size_t count = 0;
  CHECK(tw_tokenizer_open("/no/such/file", &other) == TW_INVALID_ARGUMENT && other == NULL);
  CHECK(strstr(tw_last_error(), "/no/such/file") != NULL);
  CHECK(tw_tokenizer_parse("{\"model\": 3}", 12, "t.json", &other) == TW_PARSE_ERROR);
  CHECK(strstr(tw_last_error(), "t.json:1:11: error:") != NULL && other == NULL);
  CHECK(tw_tokenizer_parse(NULL, 12, "t.json", &other) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "text is NULL") != NULL);
  CHECK(tw_tokenizer_open(NULL, NULL) == TW_INVALID_ARGUMENT);
  CHECK(tw_tokenizer_encode(NULL, "a", 1, 0, NULL, 0, &count) == TW_INVALID_ARGUMENT);
  CHECK(tw_tokenizer_encode(tokenizer, NULL, 1, 0, NULL, 0, &count) == TW_INVALID_ARGUMENT);
  CHECK(tw_tokenizer_encode(tokenizer, "a", 1, 5, NULL, 0, &count) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "added_tokens = 5; expected TW_ADDED_TOKENS_MATCH = 0") != NULL);
  CHECK(tw_tokenizer_encode(tokenizer, "a\xff", 2, 0, NULL, 0, &count) == TW_INVALID_ARGUMENT);
  CHECK(strstr(tw_last_error(), "not UTF-8 at byte 1") != NULL);
  CHECK(tw_tokenizer_decode(tokenizer, NULL, 1, NULL, 0, &count) == TW_INVALID_ARGUMENT);
  CHECK(tw_token_stream_create(NULL, &stream) == TW_INVALID_ARGUMENT && stream == NULL);
  CHECK(tw_token_stream_add(NULL, 1, NULL, NULL) == TW_INVALID_ARGUMENT);
  tw_tokenizer_destroy(NULL);
  tw_token_stream_destroy(NULL);
  return 0;
}

int check_tokenizer_c_api(const char* folder) {
  tw_tokenizer* tokenizer = NULL;
  int line = 0;
  CHECK(tw_tokenizer_open(folder, &tokenizer) == TW_OK);
  line = check_text(tokenizer);
  if (line == 0) line = check_stream();
  if (line == 0) line = check_chat(tokenizer);
  if (line == 0) line = check_tokens(tokenizer);
  if (line == 0) line = check_refused(tokenizer);
  tw_tokenizer_destroy(tokenizer);
  return line;
}
