#include "sim/parse/declaration.h"

#include "base/quote.h"
#include "sim/parse/constant.h"
#include "sim/parse/initializer.h"
#include "sim/parse/limits.h"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

constexpr std::array<std::pair<std::string_view, Space>, 6> kSpaces = {{{".reg", Space::kReg},
                                                                        {".param", Space::kParam},
                                                                        {".shared", Space::kShared},
                                                                        {".local", Space::kLocal},
                                                                        {".global", Space::kGlobal},
                                                                        {".const", Space::kConst}}};

/// What stands before the names of a declaration.
struct Head {
  Space space = Space::kGlobal;
  Type type = Type::kNone;
  std::uint8_t num_components = 1;
  std::uint32_t align_bytes = 0;  ///< 0: that of the type
  bool is_managed = false;
  bool is_handle = false;  ///< .texref, .samplerref, .surfref

  std::uint32_t value_bytes() const {
    return std::max(1U, static_cast<std::uint32_t>(bits_of(type)) / 8);
  }
};

/// name[2][3] or name<100>
struct Declarator {
  Token name;
  std::vector<std::uint64_t> extents;
  bool is_unsized = false;  ///< name[]
  std::optional<std::uint64_t> range;
};

class DeclarationParser {
 public:
  DeclarationParser(ParseContext& context, OpenFunction* function)
      : context_(context), tokens_(context.tokens), function_(function) {}

  void declaration(Linkage linkage) {
    const Token space = tokens_.peek();
    const Head head = parse_head();
    if (function_ == nullptr && (head.space == Space::kReg || head.space == Space::kParam)) {
      tokens_.fail(space.pos, fmt::format("{} outside of a function", space.text));
    }
    do {
      const Declarator declarator = parse_declarator();
      if (head.space == Space::kReg) {
        declare_registers(head, declarator);
      } else {
        declare_variables(head, declarator, linkage);
      }
    } while (tokens_.accept(','));
    tokens_.expect(';', "at the end of the declaration");
  }

  Variable parameter() {
    const Token space = tokens_.peek();
    const Head head = parse_head();
    if (head.space != Space::kReg && head.space != Space::kParam) {
      tokens_.fail(space.pos, "a parameter is .param or .reg");
    }
    const Declarator declarator = parse_declarator();
    if (declarator.range) tokens_.fail(declarator.name.pos, "a parameter cannot be a range");
    return make_variable(head, declarator, Linkage::kInternal);
  }

 private:
  Head parse_head() {
    Head head;
    const Token space = tokens_.expect(TokenKind::kDirective, "a state space such as .param");
    const auto row = std::ranges::find(kSpaces, space.text, [](const auto& r) { return r.first; });
    if (row == kSpaces.end()) {
      tokens_.fail(space.pos, fmt::format("{} is no state space", quote(space.text)));
    }
    head.space = row->second;
    if (head.space == Space::kConst && tokens_.accept('[')) {  // the bank of old programs
      parse_unsigned(tokens_, "the bank", 10);
      tokens_.expect(']', "after the bank");
    }
    while (tokens_.peek().kind == TokenKind::kDirective) parse_property(head);
    if (head.type == Type::kNone) {
      tokens_.fail(tokens_.end_of_last(), "the type is missing, as in .b32");
    }
    return head;
  }

  void parse_property(Head& head) {
    if (tokens_.peek().text == ".attribute") {
      head.is_managed |= parse_attribute(context_);
      return;
    }
    const Token property = tokens_.take();
    if (property.text == ".align") {
      head.align_bytes = parse_alignment();
    } else if (property.text == ".ptr") {
      parse_pointee();
    } else if (property.text == ".v2" || property.text == ".v4" || property.text == ".v8") {
      head.num_components = static_cast<std::uint8_t>(property.text[2] - '0');
    } else if (property.text == ".texref" || property.text == ".samplerref" ||
               property.text == ".surfref") {
      head.is_handle = true;
      head.type = Type::kB64;
    } else {
      head.type = parse_type(property.text.substr(1));
      if (head.type == Type::kNone || head.type > Type::kS16x2) {
        tokens_.fail(property.pos, fmt::format("{} is no type that a declaration can have",
                                               quote(property.text)));
      }
    }
  }

  std::uint32_t parse_alignment() {
    const SourcePos pos = tokens_.peek().pos;
    const std::uint64_t bytes = parse_unsigned(tokens_, "the alignment", kMaxAlignBytes, 1);
    if (!std::has_single_bit(bytes)) {
      tokens_.fail(pos, fmt::format("the alignment {} is no power of two", bytes));
    }
    return static_cast<std::uint32_t>(bytes);
  }

  /// What a .ptr parameter points to helps compilers only.
  void parse_pointee() {
    const Token space = tokens_.peek();
    const auto row = std::ranges::find(kSpaces, space.text, [](const auto& r) { return r.first; });
    if (space.kind == TokenKind::kDirective && row != kSpaces.end()) tokens_.take();
    if (tokens_.accept(".align")) parse_alignment();
  }

  Declarator parse_declarator() {
    Declarator declarator;
    declarator.name = tokens_.expect(TokenKind::kName, "a name");
    if (tokens_.accept('<')) {
      if (declarator.name.text.size() > kMaxRangePrefixBytes) {
        tokens_.fail(declarator.name.pos, "the name of this range is too long");
      }
      declarator.range = parse_range(context_);
    }
    while (tokens_.peek().is_symbol('[')) parse_extent(declarator);
    return declarator;
  }

  void parse_extent(Declarator& declarator) {
    const SourcePos pos = tokens_.take().pos;
    if (declarator.extents.size() == kMaxDimensions) {
      tokens_.fail(pos, fmt::format("more than {} dimensions", kMaxDimensions));
    }
    if (declarator.extents.empty() && tokens_.peek().is_symbol(']')) {
      declarator.is_unsized = true;
      declarator.extents.push_back(0);
    } else {
      declarator.extents.push_back(
          parse_unsigned(tokens_, "the size of the array", kMaxVariableBytes, 1));
    }
    tokens_.expect(']', "after the size of an array");
  }

  void declare_registers(const Head& head, const Declarator& declarator) {
    if (!declarator.extents.empty()) {
      tokens_.fail(declarator.name.pos, "registers cannot be arrays; a range is written %r<4>");
    }
    if (head.is_handle) tokens_.fail(declarator.name.pos, "a register cannot have this type");
    auto& registers = function_->function.registers;
    const auto add = [&](std::string_view name) {
      const auto idx = static_cast<std::uint32_t>(registers.size());
      context_.declare(name, {Symbol::Kind::kRegister, idx, declarator.name.pos});
      registers.push_back({std::string(name), head.type, head.num_components, declarator.name.pos});
    };
    if (!declarator.range) return add(declarator.name.text);
    registers.reserve(std::max(2 * registers.capacity(), registers.size() + *declarator.range));
    for (std::uint64_t i = 0; i < *declarator.range; ++i) add(name_in_range(declarator, i));
  }

  /// The text of the name lives as long as the function is read.
  std::string_view name_in_range(const Declarator& declarator, std::uint64_t i) {
    return function_->names.emplace_back(
        std::string(declarator.name.text).append(std::to_string(i)));
  }

  void declare_variables(const Head& head, const Declarator& declarator, Linkage linkage) {
    Variable variable = make_variable(head, declarator, linkage);
    if (!declarator.range) return declare_variable(declarator.name.text, std::move(variable));
    if (function_ == nullptr) {
      tokens_.fail(declarator.name.pos, "a range of variables outside of a function");
    }
    for (std::uint64_t i = 0; i < *declarator.range; ++i) {
      Variable element = variable;
      element.name = name_in_range(declarator, i);
      declare_variable(function_->names.back(), std::move(element));
    }
  }

  /// Also takes the initialiser.
  Variable make_variable(const Head& head, const Declarator& declarator, Linkage linkage) {
    Variable variable;
    variable.name = declarator.name.text;
    variable.space = head.space;
    variable.type = head.type;
    variable.linkage = linkage;
    variable.is_managed = head.is_managed;
    variable.pos = declarator.name.pos;
    InitializerShape shape{declarator.extents, head.value_bytes()};
    if (head.num_components > 1) shape.extents.push_back(head.num_components);
    variable.size_bytes = size_of(shape, declarator);
    const std::uint32_t natural = shape.value_bytes * head.num_components;
    variable.align_bytes = head.align_bytes == 0 ? natural : head.align_bytes;
    if (tokens_.peek().is_symbol('=')) {
      initialize(head, shape, declarator, variable);
    } else if (declarator.is_unsized) {
      const bool may_be_unsized = linkage == Linkage::kExtern || head.space == Space::kParam;
      if (!may_be_unsized) {
        tokens_.fail(declarator.name.pos, "an array without size, initialiser or .extern");
      }
      variable.is_unsized_array = true;
    }
    return variable;
  }

  std::uint64_t size_of(const InitializerShape& shape, const Declarator& declarator) {
    std::uint64_t bytes = shape.value_bytes;
    for (std::size_t i = 0; i < shape.extents.size(); ++i) {
      const std::uint64_t extent = shape.extents[i];
      const bool is_unsized = i == 0 && declarator.is_unsized;
      if (is_unsized) continue;
      if (extent > kMaxVariableBytes / bytes) {
        tokens_.fail(declarator.name.pos,
                     fmt::format("this variable has more than {} bytes", kMaxVariableBytes));
      }
      bytes *= extent;
    }
    return declarator.is_unsized ? 0 : bytes;
  }

  void initialize(const Head& head, const InitializerShape& shape, const Declarator& declarator,
                  Variable& variable) {
    const Token equals = tokens_.take();
    const bool has_initializer = head.space == Space::kGlobal || head.space == Space::kConst;
    if (!has_initializer || declarator.range) {
      tokens_.fail(equals.pos, "only single variables in .global and .const can be initialised");
    }
    if (variable.linkage == Linkage::kExtern) {
      tokens_.fail(equals.pos, "an .extern variable is initialised where it is defined");
    }
    if (head.is_handle) return skip_braces();
    const std::size_t variable_idx = function_ == nullptr ? context_.module.variables.size()
                                                          : function_->function.variables.size();
    parse_initializer(context_, shape, variable, static_cast<std::uint32_t>(variable_idx));
  }

  /// The properties of a texture or sampler.
  void skip_braces() {
    const SourcePos open = tokens_.expect('{', "to begin the initialiser").pos;
    while (!tokens_.accept('}')) {
      if (tokens_.take().kind == TokenKind::kEnd) tokens_.fail(open, "this brace is never closed");
    }
  }

  void declare_variable(std::string_view name, Variable variable) {
    if (function_ != nullptr) {
      auto& variables = function_->function.variables;
      const auto idx = static_cast<std::uint32_t>(variables.size());
      context_.declare(name, {Symbol::Kind::kLocalVariable, idx, variable.pos});
      variables.push_back(std::move(variable));
      return;
    }
    auto& variables = context_.module.variables;
    const auto idx = static_cast<std::uint32_t>(variables.size());
    const auto* entry = context_.names.find(name);
    if (entry != nullptr && entry->value.kind == Symbol::Kind::kModuleVariable) {
      return merge(variables[entry->value.index], std::move(variable), entry->value.index);
    }
    context_.declare(name, {Symbol::Kind::kModuleVariable, idx, variable.pos});
    variables.push_back(std::move(variable));
  }

  /// An .extern declaration and the definition are one variable.
  void merge(Variable& first, Variable second, std::uint32_t first_idx) {
    const bool is_second_extern = second.linkage == Linkage::kExtern;
    if (first.linkage != Linkage::kExtern && !is_second_extern) {
      context_.fail_declared(second.name, second.pos, first.pos);
    }
    const bool has_sizes = !first.is_unsized_array && !second.is_unsized_array;
    if (first.space != second.space || first.type != second.type ||
        (has_sizes && first.size_bytes != second.size_bytes)) {
      tokens_.fail(second.pos,
                   fmt::format("{} was declared with another type, size or space in line {}",
                               quote(second.name), first.pos.line));
    }
    if (is_second_extern) return;
    // Its relocations were recorded for the place where it would have stood.
    const auto num_variables = static_cast<std::uint32_t>(context_.module.variables.size());
    for (auto relocation = context_.relocations.rbegin();
         relocation != context_.relocations.rend() && !relocation->function_idx &&
         relocation->variable_idx == num_variables;
         ++relocation) {
      relocation->variable_idx = first_idx;
    }
    first = std::move(second);
  }

  ParseContext& context_;
  TokenStream& tokens_;
  OpenFunction* function_;
};

}  // namespace

bool begins_declaration(const Token& token) noexcept {
  return token.kind == TokenKind::kDirective &&
         std::ranges::any_of(kSpaces, [&](const auto& row) { return row.first == token.text; });
}

void parse_declaration(ParseContext& context, Linkage linkage, OpenFunction* function) {
  DeclarationParser(context, function).declaration(linkage);
}

std::vector<Variable> parse_parameters(ParseContext& context) {
  std::vector<Variable> parameters;
  TokenStream& tokens = context.tokens;
  tokens.expect('(', "to begin the parameters");
  if (tokens.accept(')')) return parameters;
  do {
    parameters.push_back(DeclarationParser(context, nullptr).parameter());
  } while (tokens.accept(','));
  tokens.expect(')', "at the end of the parameters");
  return parameters;
}

std::uint64_t parse_range(ParseContext& context) {
  TokenStream& tokens = context.tokens;
  const Token count = tokens.expect(TokenKind::kNumber, "the number of names");
  const Constant value = parse_literal(tokens, count);
  if (value.is_float() || value.bits == 0 || value.bits > kMaxRange) {
    tokens.fail(count.pos, fmt::format("a range of {} names; expected 1 to {}",
                                       quote(count.text, 30), kMaxRange));
  }
  tokens.expect('>', "after the number of names");
  context.num_range_names += value.bits;
  const std::uint64_t max_names = kMaxRange + context.module.text->size();
  if (context.num_range_names > max_names) {
    tokens.fail(count.pos,
                fmt::format("the ranges of this module have more than {} names", max_names));
  }
  return value.bits;
}

bool parse_attribute(ParseContext& context) {
  TokenStream& tokens = context.tokens;
  tokens.take();
  const SourcePos open = tokens.expect('(', "after .attribute").pos;
  bool is_managed = false;
  for (int depth = 1; depth > 0;) {
    const Token token = tokens.take();
    if (token.kind == TokenKind::kEnd) tokens.fail(open, "this parenthesis is never closed");
    is_managed |= token.is_directive(".managed");
    depth += token.is_symbol('(') - token.is_symbol(')');
  }
  return is_managed;
}

}  // namespace tilewright::sim
