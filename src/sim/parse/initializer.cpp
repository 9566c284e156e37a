#include "sim/parse/initializer.h"

#include "sim/parse/constant.h"
#include "sim/parse/limits.h"

#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

class InitializerParser {
 public:
  InitializerParser(ParseContext& context, const InitializerShape& shape, Variable& variable,
                    std::uint32_t variable_idx)
      : context_(context),
        tokens_(context.tokens),
        extents_(shape.extents),
        value_bytes_(shape.value_bytes),
        variable_(variable),
        variable_idx_(variable_idx) {
    if (extents_.empty()) extents_.push_back(1);
    strides_.resize(extents_.size());
    std::uint64_t stride = value_bytes_;
    for (std::size_t i = extents_.size(); i-- > 0;) {
      strides_[i] = stride;
      stride *= extents_[i];
    }
    is_array_ = !shape.extents.empty();
  }

  void parse() {
    const SourcePos pos = tokens_.peek().pos;
    if (tokens_.peek().is_symbol('{')) {
      const std::uint64_t end = braces(0, 0);
      if (extents_[0] == 0) variable_.size_bytes = round_up(end, strides_[0]);
    } else {
      if (is_array_) tokens_.fail(pos, "the initialiser of an array needs braces");
      value(0);
    }
    grow(variable_.size_bytes, pos);
  }

 private:
  static std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
  }

  /// { values of dimension `dim` }, the first of them at `begin`. Returns where the last one ends.
  std::uint64_t braces(std::size_t dim, std::uint64_t begin) {
    const SourcePos open = tokens_.take().pos;
    const std::uint64_t stride = strides_[dim];
    std::uint64_t offset = begin;
    while (!tokens_.peek().is_symbol('}')) {
      const SourcePos pos = tokens_.peek().pos;
      const bool is_nested = tokens_.peek().is_symbol('{');
      const std::uint64_t step = is_nested ? stride : value_bytes_;
      if (extents_[dim] != 0 && offset + step > begin + extents_[dim] * stride) {
        tokens_.fail(pos, fmt::format("more values than the {} of this dimension", extents_[dim]));
      }
      if (is_nested && (dim + 1 == extents_.size() || (offset - begin) % stride != 0)) {
        tokens_.fail(pos, "braces where a value of the array is expected");
      }
      if (is_nested) {
        braces(dim + 1, offset);
      } else {
        value(offset);
      }
      offset += step;
      if (!tokens_.accept(',')) break;
    }
    tokens_.expect('}',
                   fmt::format("at the end of the initialiser that begins in line {}", open.line));
    return offset;
  }

  void grow(std::uint64_t bytes, SourcePos pos) {
    const std::uint64_t now = variable_.initial.size();
    if (bytes <= now) return;
    if (bytes - now > kMaxInitialBytes - context_.num_initial_bytes) {
      tokens_.fail(pos,
                   fmt::format("the initialised variables of this module take more than {} bytes",
                               kMaxInitialBytes));
    }
    context_.num_initial_bytes += bytes - now;
    variable_.initial.resize(bytes);
  }

  void value(std::uint64_t offset) {
    const Token first = tokens_.peek();
    grow(offset + value_bytes_, first.pos);
    if (first.kind == TokenKind::kName && first.text != "WARP_SZ") return address(offset);
    const Constant constant = parse_constant(tokens_);
    if (tokens_.peek().is_symbol('(')) return masked_address(offset, first, constant);
    store(offset, first, constant);
  }

  /// sym + 4, generic(sym) + 4 or mask(0xff00, sym)
  void address(std::uint64_t offset) {
    const Token first = tokens_.peek();
    if (first.text == "mask" && tokens_.peek_second().is_symbol('(')) {
      tokens_.take();
      tokens_.take();
      const Constant mask = parse_constant(tokens_);
      tokens_.expect(',', "after the mask");
      return add_masked(offset, first, mask);
    }
    if (value_bytes_ != 4 && value_bytes_ != 8) {
      tokens_.fail(first.pos,
                   "an address needs a type of 4 or 8 bytes, or a mask as in 0xff00(name)");
    }
    Relocation relocation;
    relocation.size_bytes = static_cast<std::uint8_t>(value_bytes_);
    add(offset, relocation);
  }

  /// 0xff00(sym + 4): one byte of an address
  void masked_address(std::uint64_t offset, const Token& first, Constant mask) {
    tokens_.take();
    add_masked(offset, first, mask);
  }

  void add_masked(std::uint64_t offset, const Token& first, Constant mask) {
    Relocation relocation;
    const int shift = std::countr_zero(mask.bits);
    if (mask.is_float() || shift % 8 != 0 || shift > 56 || mask.bits >> shift != 0xff) {
      tokens_.fail(first.pos, "the mask of an address must be 0xff, 0xff00, ... (one byte)");
    }
    if (value_bytes_ != 1) tokens_.fail(first.pos, "a masked address needs a type of one byte");
    relocation.size_bytes = 1;
    relocation.shift_bits = static_cast<std::uint8_t>(shift);
    add(offset, relocation);
    tokens_.expect(')', "after the masked address");
  }

  void add(std::uint64_t offset, Relocation relocation) {
    relocation.offset_bytes = offset;
    Token target = tokens_.expect(TokenKind::kName, "the name of a variable or function");
    if (target.text == "generic" && tokens_.accept('(')) {
      relocation.is_generic = true;
      target = tokens_.expect(TokenKind::kName, "the name of a variable or function");
      relocation.addend = parse_addend(tokens_);
      tokens_.expect(')', "after generic(");
    }
    const auto addend = static_cast<std::uint64_t>(parse_addend(tokens_));
    relocation.addend =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(relocation.addend) + addend);
    const auto relocation_idx = static_cast<std::uint32_t>(variable_.relocations.size());
    context_.relocations.push_back({context_.function_idx, variable_idx_, relocation_idx, target});
    variable_.relocations.push_back(relocation);
  }

  void store(std::uint64_t offset, const Token& first, Constant constant) {
    const bool is_signed = constant.kind == Constant::Kind::kSigned;
    const std::uint64_t low = bits_in_type(first, constant);
    const std::uint64_t high = is_signed && low >> 63 != 0 ? ~std::uint64_t{0} : 0;
    for (std::uint32_t i = 0; i < value_bytes_; ++i) {
      const std::uint64_t word = i < 8 ? low : high;
      variable_.initial[offset + i] = static_cast<std::byte>(word >> 8 * (i % 8));
    }
  }

  /// The bits that the constant has in the variable's type. Integers are cut to size, as PTX says.
  std::uint64_t bits_in_type(const Token& first, Constant constant) {
    const Type type = variable_.type;
    const bool is_32_bits = type == Type::kF32 || (type == Type::kB32 && constant.is_f32_bits);
    const bool is_64_bits = type == Type::kF64 || (type == Type::kB64 && !constant.is_f32_bits);
    if ((is_float(type) && !is_32_bits && !is_64_bits) || type == Type::kPred) {
      tokens_.fail(first.pos,
                   fmt::format("variables of type .{} cannot be initialised", name_of(type)));
    }
    if (!constant.is_float() && !is_float(type)) return constant.bits;
    if (!is_32_bits && !is_64_bits) {
      tokens_.fail(first.pos, fmt::format("a floating-point number cannot initialise type .{}",
                                          name_of(type)));
    }
    const std::uint64_t bits =
        constant.is_float() ? constant.bits : std::bit_cast<std::uint64_t>(constant.as_double());
    return is_32_bits ? float_bits_of_double(bits) : bits;
  }

  ParseContext& context_;
  TokenStream& tokens_;
  std::vector<std::uint64_t> extents_;
  std::vector<std::uint64_t> strides_;  ///< bytes from one value of a dimension to the next
  std::uint32_t value_bytes_;
  bool is_array_ = false;
  Variable& variable_;
  std::uint32_t variable_idx_;
};

}  // namespace

void parse_initializer(ParseContext& context, const InitializerShape& shape, Variable& variable,
                       std::uint32_t variable_idx) {
  InitializerParser(context, shape, variable, variable_idx).parse();
}

}  // namespace tilewright::sim
