// What a Tokenizer is made of.
#pragma once

#include "tilewright/tokenizer.h"

#include "tokenizer/added_tokens.h"
#include "tokenizer/vocabulary.h"

#include <memory>
#include <string>
#include <string_view>

namespace tilewright {

struct Tokenizer::State {
  std::string source;  ///< where it comes from, for messages
  tokenizer::Vocabulary vocabulary;
  tokenizer::AddedTokenSet added;
  bool is_of_bytes = false;  ///< a token is the byte of its number: any bytes can be encoded
};

namespace tokenizer {

/// Errors as Tokenizer::parse.
std::shared_ptr<const Tokenizer::State> parse_file(std::string_view json,
                                                   const std::string& source);

/// The state of Tokenizer::of_bytes().
std::shared_ptr<const Tokenizer::State> byte_state();

}  // namespace tokenizer
}  // namespace tilewright
