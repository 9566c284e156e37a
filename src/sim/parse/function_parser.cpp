#include "sim/parse/function_parser.h"

#include "base/quote.h"
#include "sim/parse/body.h"
#include "sim/parse/constant.h"

#include <limits>

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

constexpr std::uint64_t kMaxBound = std::numeric_limits<std::uint32_t>::max();

class FunctionParser {
 public:
  FunctionParser(ParseContext& context, Linkage linkage)
      : context_(context), tokens_(context.tokens) {
    function_.linkage = linkage;
  }

  void parse() {
    function_.is_entry = tokens_.take().text == ".entry";
    while (tokens_.peek().kind == TokenKind::kDirective) property();
    if (tokens_.peek().is_symbol('(')) add_parameters(function_.returns);
    const Token name = tokens_.expect(TokenKind::kName, "the name of the function");
    function_.name = name.text;
    function_.pos = name.pos;
    if (tokens_.peek().is_symbol('(')) add_parameters(function_.params);
    while (!tokens_.peek().is_symbol('{') && !tokens_.peek().is_symbol(';')) property();
    declare(name);
    context_.names.open();
    declare_parameters();
    if (!tokens_.accept(';')) {
      function_.is_defined = true;
      context_.function_idx = function_idx_;
      context_.loc = {};
      BodyParser(context_, open_).parse();
      context_.function_idx.reset();
    }
    context_.names.close();
    put_into_module();
  }

 private:
  void add_parameters(std::vector<std::uint32_t>& indices) {
    for (Variable& parameter : parse_parameters(context_)) {
      if (parameter.space == Space::kReg) {
        parameter.register_idx = static_cast<std::uint32_t>(function_.registers.size());
        function_.registers.push_back({parameter.name, parameter.type, 1, parameter.pos});
      }
      indices.push_back(static_cast<std::uint32_t>(function_.variables.size()));
      function_.variables.push_back(std::move(parameter));
    }
  }

  void declare_parameters() {
    for (std::uint32_t i = 0; i < function_.variables.size(); ++i) {
      const Variable& parameter = function_.variables[i];
      const std::string_view name = open_.names.emplace_back(parameter.name);
      if (name == "_") continue;
      if (parameter.space == Space::kReg) {
        context_.declare(name, {Symbol::Kind::kRegister, parameter.register_idx, parameter.pos});
      } else {
        context_.declare(name, {Symbol::Kind::kLocalVariable, i, parameter.pos});
      }
    }
  }

  /// What may stand around the name: launch bounds, .noreturn, .pragma, .attribute.
  void property() {
    if (parse_annotation(context_)) return;
    const Token token = tokens_.peek();
    if (token.kind != TokenKind::kDirective) {
      tokens_.fail(token.pos,
                   fmt::format("expected '{{' or ';' after the header of {}, found {}",
                               quote(function_.name, 200), TokenStream::describe(token)));
    }
    if (token.text == ".attribute") {
      parse_attribute(context_);
      return;
    }
    tokens_.take();
    if (!flag(token.text) && !bound(token.text)) fail_property(token);
  }

  bool flag(std::string_view directive) {
    if (directive == ".noreturn") return function_.is_noreturn = true;
    if (directive == ".explicitcluster") return function_.bounds.is_explicit_cluster = true;
    if (directive == ".blocksareclusters") return function_.bounds.is_blocks_are_clusters = true;
    if (directive == ".abi_preserve" || directive == ".abi_preserve_control") {
      number();
      return true;
    }
    return false;
  }

  bool bound(std::string_view directive) {
    LaunchBounds& bounds = function_.bounds;
    if (directive == ".maxntid") {
      extents(bounds.max_threads);
    } else if (directive == ".reqntid") {
      extents(bounds.required_threads);
    } else if (directive == ".reqnctapercluster") {
      extents(bounds.required_cluster);
    } else if (directive == ".minnctapersm") {
      bounds.min_ctas_per_sm = number();
    } else if (directive == ".maxnctapersm") {
      number();  // what .minnctapersm replaced; it bounds nothing that a program can see
    } else if (directive == ".maxnreg") {
      bounds.max_registers = number();
    } else if (directive == ".maxclusterrank") {
      bounds.max_cluster_rank = number();
    } else {
      return false;
    }
    return true;
  }

  [[noreturn]] void fail_property(const Token& token) {
    const auto close = suggestion(
        token.text, {".maxntid", ".reqntid", ".reqnctapercluster", ".minnctapersm", ".maxnreg",
                     ".maxclusterrank", ".explicitcluster", ".blocksareclusters", ".noreturn",
                     ".attribute", ".pragma", ".abi_preserve", ".abi_preserve_control"});
    tokens_.fail(token.pos, fmt::format("{} cannot stand in the header of a function{}{}",
                                        quote(token.text), close, context_.module.version_note()));
  }

  std::uint32_t number() {
    return static_cast<std::uint32_t>(parse_unsigned(tokens_, "the bound", kMaxBound));
  }

  /// x, y, z; what is missing is 1
  void extents(std::uint32_t (&extents)[3]) {
    extents[0] = number();
    extents[1] = tokens_.accept(',') ? number() : 1;
    extents[2] = tokens_.accept(',') ? number() : 1;
  }

  /// Finds an earlier declaration or makes the name known, so that the function can call itself.
  void declare(const Token& name) {
    const auto& functions = context_.module.functions;
    const auto* entry = context_.names.find(name.text);
    if (entry == nullptr) {
      function_idx_ = static_cast<std::uint32_t>(functions.size());
      context_.module.functions.emplace_back().name = function_.name;
      context_.declare(name.text, {Symbol::Kind::kFunction, function_idx_, name.pos});
      return;
    }
    if (entry->value.kind != Symbol::Kind::kFunction) {
      context_.fail_declared(name.text, name.pos, entry->value.pos);
    }
    function_idx_ = entry->value.index;
    is_redeclared_ = true;
    check_same(functions[function_idx_], name);
  }

  void check_same(const Function& first, const Token& name) {
    if (first.is_defined && tokens_.peek().is_symbol('{')) {
      tokens_.fail(name.pos, fmt::format("{} is already defined in line {}", quote(first.name, 200),
                                         first.pos.line));
    }
    const auto has_same = [&](const std::vector<std::uint32_t>& a,
                              const std::vector<std::uint32_t>& b) {
      if (a.size() != b.size()) return false;
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (first.variables[a[i]].size_bytes != function_.variables[b[i]].size_bytes) return false;
      }
      return true;
    };
    if (first.is_entry != function_.is_entry || !has_same(first.params, function_.params) ||
        !has_same(first.returns, function_.returns)) {
      tokens_.fail(name.pos,
                   fmt::format("{} was declared in line {} with other parameters or results",
                               quote(first.name, 200), first.pos.line));
    }
  }

  void put_into_module() {
    Function& place = context_.module.functions[function_idx_];
    const bool is_noreturn = place.is_noreturn || function_.is_noreturn;
    if (!is_redeclared_ || !place.is_defined) place = std::move(function_);
    place.is_noreturn = is_noreturn;
  }

  ParseContext& context_;
  TokenStream& tokens_;
  OpenFunction open_;
  Function& function_ = open_.function;
  std::uint32_t function_idx_ = 0;
  bool is_redeclared_ = false;
};

}  // namespace

void parse_function(ParseContext& context, Linkage linkage) {
  FunctionParser(context, linkage).parse();
}

}  // namespace tilewright::sim
