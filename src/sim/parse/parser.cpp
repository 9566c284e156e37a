#include "sim/parse/parser.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "sim/parse/constant.h"
#include "sim/parse/diagnostic.h"
#include "sim/parse/function_parser.h"
#include "sim/parse/limits.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

constexpr std::pair<std::string_view, Linkage> kLinkages[] = {{".visible", Linkage::kVisible},
                                                              {".extern", Linkage::kExtern},
                                                              {".weak", Linkage::kWeak},
                                                              {".common", Linkage::kCommon}};

/// .alias a, b;
struct PendingAlias {
  Token alias, aliasee;
};

class ModuleParser {
 public:
  explicit ModuleParser(Module& module)
      : context_(module), tokens_(context_.tokens), module_(module) {}

  void parse() {
    while (parse_annotation(context_)) {
    }
    version();
    while (parse_annotation(context_)) {
    }
    target();
    while (tokens_.peek().kind != TokenKind::kEnd) statement();
    std::ranges::for_each(aliases_, [this](const PendingAlias& alias) { resolve(alias); });
    std::ranges::for_each(context_.relocations,
                          [this](const PendingRelocation& pending) { resolve(pending); });
  }

 private:
  void version() {
    if (!tokens_.accept(".version")) {
      tokens_.fail(tokens_.peek().pos,
                   fmt::format("PTX begins with .version, as in \".version 9.0\"; found {}",
                               TokenStream::describe(tokens_.peek())));
    }
    const Token number = tokens_.expect(TokenKind::kNumber, "a version such as 9.0");
    const std::string_view text = number.text;
    const std::size_t dot = text.find('.');
    const char* const end = text.data() + text.size();
    std::uint8_t major = 0;
    std::uint8_t minor = 0;
    const auto first = std::from_chars(text.data(), end, major);
    if (dot != text.npos && first.ptr == text.data() + dot) {
      const auto second = std::from_chars(first.ptr + 1, end, minor);
      const bool is_version = second.ec == std::errc() && second.ptr == end && minor <= 9;
      if (is_version && major >= 1 && major <= kLastMajorVersion) {
        module_.version = 10 * major + minor;
        return;
      }
    }
    tokens_.fail(number.pos,
                 fmt::format("{} is no version; expected one from 1.0 to {}.9, of "
                             "which {}.{} is the newest known",
                             quote(text, 30), kLastMajorVersion, kNewestPtx / 10, kNewestPtx % 10));
  }

  /// .target sm_90a, texmode_independent, debug
  void target() {
    if (!tokens_.accept(".target")) {
      tokens_.fail(tokens_.peek().pos, fmt::format("expected .target after .version, found {}",
                                                   TokenStream::describe(tokens_.peek())));
    }
    do {
      const Token name = tokens_.expect(TokenKind::kName, "a target such as sm_90a");
      if (name.text.starts_with("sm_")) architecture(name);
    } while (tokens_.accept(','));
    if (module_.target == 0) {
      tokens_.fail(tokens_.end_of_last(), "the .target names no architecture such as sm_90a");
    }
  }

  void architecture(const Token& name) {
    std::string_view digits = name.text.substr(3);
    module_.is_arch_specific = digits.ends_with('a');
    module_.is_family_specific = digits.ends_with('f');
    if (module_.is_arch_specific || module_.is_family_specific) digits.remove_suffix(1);
    std::uint16_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size() || number == 0) {
      tokens_.fail(name.pos, fmt::format("{} is no architecture; expected one such as sm_90a",
                                         quote(name.text, 40)));
    }
    module_.target = number;
  }

  void statement() {
    const Token token = tokens_.peek();
    if (parse_annotation(context_)) return;
    if (token.kind != TokenKind::kDirective) {
      if (token.kind == TokenKind::kName && tokens_.peek_second().is_symbol(':')) {
        tokens_.fail(token.pos,
                     fmt::format("the label {} stands outside of a function", quote(token.text)));
      }
      tokens_.fail(token.pos, fmt::format("expected a directive such as .func or .global, found {}",
                                          TokenStream::describe(token)));
    }
    if (token.text == ".address_size") return address_size();
    if (token.text == ".section") return section();
    if (token.text == ".alias") return alias();
    if (token.text == ".target") return target();
    declaration();
  }

  void address_size() {
    tokens_.take();
    const SourcePos pos = tokens_.peek().pos;
    const std::uint64_t bits = parse_unsigned(tokens_, "the address size", 64, 32);
    if (bits != 32 && bits != 64) tokens_.fail(pos, "the address size must be 32 or 64");
    module_.address_bits = static_cast<int>(bits);
  }

  /// Debug information: .section name { ... }
  void section() {
    tokens_.take();
    tokens_.take();  // its name is .debug_info, or a string
    const SourcePos open = tokens_.expect('{', "after the name of the section").pos;
    for (int depth = 1; depth > 0;) {
      const Token token = tokens_.take();
      if (token.kind == TokenKind::kEnd) tokens_.fail(open, "this brace is never closed");
      depth += token.is_symbol('{') - token.is_symbol('}');
    }
  }

  void alias() {
    tokens_.take();
    PendingAlias pending;
    pending.alias = tokens_.expect(TokenKind::kName, "the name of a function");
    tokens_.expect(',', "between the names of .alias");
    pending.aliasee = tokens_.expect(TokenKind::kName, "the name of a function");
    tokens_.expect(';', "after .alias");
    aliases_.push_back(pending);
  }

  void declaration() {
    Linkage linkage = Linkage::kInternal;
    for (bool is_linkage = true; is_linkage;) {
      is_linkage = false;
      for (const auto& [directive, value] : kLinkages) {
        if (!tokens_.accept(directive)) continue;
        linkage = value;
        is_linkage = true;
      }
    }
    const Token& token = tokens_.peek();
    if (token.is_directive(".func") || token.is_directive(".entry")) {
      return parse_function(context_, linkage);
    }
    if (begins_declaration(token)) return parse_declaration(context_, linkage, nullptr);
    const auto close = suggestion(
        token.text, {".func", ".entry", ".global", ".const", ".shared", ".local", ".visible",
                     ".extern", ".weak", ".common", ".section", ".file", ".alias", ".pragma"});
    tokens_.fail(token.pos,
                 fmt::format("{} cannot stand outside of a function{}{}",
                             TokenStream::describe(token), close, module_.version_note()));
  }

  std::uint32_t function_named(const Token& name) {
    const auto* entry = context_.names.find(name.text);
    if (entry == nullptr || entry->value.kind != Symbol::Kind::kFunction) {
      context_.fail_unknown(name, "function", {Symbol::Kind::kFunction});
    }
    return entry->value.index;
  }

  void resolve(const PendingAlias& pending) {
    const std::uint32_t aliasee = function_named(pending.aliasee);
    Function& alias = module_.functions[function_named(pending.alias)];
    if (alias.is_defined || module_.functions[aliasee].alias) {
      tokens_.fail(pending.alias.pos,
                   "an .alias needs a declared function and a defined one that is no alias");
    }
    alias.alias = aliasee;
  }

  void resolve(const PendingRelocation& pending) {
    auto& variables = pending.function_idx ? module_.functions[*pending.function_idx].variables
                                           : module_.variables;
    Relocation& relocation = variables[pending.variable_idx].relocations[pending.relocation_idx];
    const auto* entry = context_.names.find(pending.target.text);
    if (entry == nullptr) {
      context_.fail_unknown(pending.target, "variable or function",
                            {Symbol::Kind::kModuleVariable, Symbol::Kind::kFunction});
    }
    relocation.is_function = entry->value.kind == Symbol::Kind::kFunction;
    relocation.target = entry->value.index;
  }

  ParseContext context_;
  TokenStream& tokens_;
  Module& module_;
  std::vector<PendingAlias> aliases_;
};

void check_text(const Module& module) {
  const std::string& text = *module.text;
  if (text.size() > kMaxTextBytes) {
    fail_at(module, {},
            fmt::format("{} bytes of PTX; at most {} are read", text.size(), kMaxTextBytes));
  }
  const std::size_t nul = text.find('\0');
  if (nul == text.npos) return;
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(nul), '\n');
  const std::size_t begin = nul == 0 ? text.npos : text.rfind('\n', nul - 1);
  const std::size_t column = nul - (begin == text.npos ? 0 : begin + 1) + 1;
  fail_at(module, {static_cast<std::uint32_t>(line), static_cast<std::uint32_t>(column)},
          "a zero byte in the text");
}

}  // namespace

Module parse_module(std::string text, std::string name) {
  Module module;
  module.name = std::move(name);
  module.text = std::make_shared<const std::string>(std::move(text));
  check_text(module);
  ModuleParser(module).parse();
  return module;
}

std::string read_ptx(const std::filesystem::path& path) {
  const MappedFile file(path);
  require(file.bytes().size() <= kMaxTextBytes, ErrorKind::kInvalidArgument,
          "{}: {} bytes of PTX; at most {} are read", path.string(), file.bytes().size(),
          kMaxTextBytes);
  return std::string(file.text());
}

}  // namespace tilewright::sim
