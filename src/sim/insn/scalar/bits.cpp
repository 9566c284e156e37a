// Logic, shifts, bit fields, byte permutation, dot products of bytes.
#include "sim/insn/lower_forms.h"
#include "sim/insn/scalar/bits_ops.h"
#include "sim/insn/scalar/predicate_ops.h"
#include "sim/insn/sections.h"

#include <array>

#include <immintrin.h>

namespace tilewright::sim {
namespace {

constexpr InsnClass kClass = InsnClass::kInteger;

/// The operation for 16, 32 and 64 bits and for predicates.
template <template <class> class Op, int kNumSources>
void lower_logic(Lowering& l) {
  const Type type = l.type();
  ExecFn exec = nullptr;
  switch (type) {
    case Type::kPred:
      exec = on_masks<Op<std::uint32_t>::kRun, kNumSources>;
      break;
    case Type::kB16:
      exec = lanes<Op<std::uint16_t>::kRun>;
      break;
    case Type::kB32:
      exec = lanes<Op<std::uint32_t>::kRun>;
      break;
    case Type::kB64:
      exec = lanes<Op<std::uint64_t>::kRun>;
      break;
    default:
      break;
  }
  Insn& insn = emit_uniform(l, exec, type, kNumSources);
  if (type == Type::kPred) insn.insn_class = InsnClass::kPredicate;
}

template <class T>
struct And {
  static constexpr auto kRun = bitwise::bit_and<T>;
};
template <class T>
struct Or {
  static constexpr auto kRun = bitwise::bit_or<T>;
};
template <class T>
struct Xor {
  static constexpr auto kRun = bitwise::bit_xor<T>;
};
template <class T>
struct Not {
  static constexpr auto kRun = bitwise::bit_not<T>;
};

void lower_cnot(Lowering& l) {
  const Type type = l.type();
  if (!is_bits(type)) refuse_type(l, type);
  const ExecFn exec =
      for_integer(type, []<class T>() -> ExecFn { return lanes<bitwise::logical_not<T>>; });
  emit_uniform(l, exec, type, 1);
}

void emit_shift(Lowering& l, ExecFn exec, Type type) {
  l.finish_modifiers();
  const Row d = l.destination(0, type);
  l.emit(exec, {d, l.source(1, type), l.source(2, Type::kU32)});
}

void lower_shl(Lowering& l) {
  const Type type = l.type();
  if (!is_bits(type)) refuse_type(l, type);
  const ExecFn exec = for_integer(type, []<class T>() -> ExecFn { return lanes<bitwise::shl<T>>; });
  emit_shift(l, exec, type);
}

void lower_shr(Lowering& l) {
  const Type type = l.type();
  const ExecFn exec = for_integer(type, []<class T>() -> ExecFn { return lanes<bitwise::shr<T>>; });
  if (exec == nullptr) refuse_type(l, type);
  emit_shift(l, exec, type);
}

void lower_shf(Lowering& l) {
  const int direction = l.take_one_of({"l", "r"});
  const int mode = l.take_one_of({"clamp", "wrap"});
  const Type type = l.type();
  if (direction < 0 || mode < 0) l.fail("shf needs .l or .r and .clamp or .wrap");
  if (type != Type::kB32) refuse_type(l, type);
  const ExecFn exec = for_flag(direction == 0, [=]<bool kLeft>() {
    return for_flag(mode == 1,
                    [=]<bool kWrap>() -> ExecFn { return lanes<bitwise::funnel<kLeft, kWrap>>; });
  });
  emit_uniform(l, exec, type, 3);
}

void lower_popc(Lowering& l) {
  const Type type = l.type();
  if (type != Type::kB32 && type != Type::kB64) refuse_type(l, type);
  const ExecFn exec = type == Type::kB64 ? lanes<bitwise::popc<std::uint64_t>>
                                         : lanes<bitwise::popc<std::uint32_t>>;
  emit_from(l, exec, Type::kU32, type, 1);
}

void lower_clz(Lowering& l) {
  const Type type = l.type();
  if (type != Type::kB32 && type != Type::kB64) refuse_type(l, type);
  const ExecFn exec =
      type == Type::kB64 ? lanes<bitwise::clz<std::uint64_t>> : lanes<bitwise::clz<std::uint32_t>>;
  emit_from(l, exec, Type::kU32, type, 1);
}

void lower_bfind(Lowering& l) {
  const bool is_shift = l.take("shiftamt");
  const Type type = l.type();
  if (is_bits(type) || bits_of(type) < 32) refuse_type(l, type);
  const ExecFn exec = for_integer(type, [is_shift]<class T>() -> ExecFn {
    return is_shift ? lanes<bitwise::bfind<T, true>> : lanes<bitwise::bfind<T, false>>;
  });
  if (exec == nullptr) refuse_type(l, type);
  emit_from(l, exec, Type::kU32, type, 1);
}

void lower_fns(Lowering& l) {
  const Type type = l.type();
  if (type != Type::kB32) refuse_type(l, type);
  emit_uniform(l, lanes_one_by_one<bitwise::find_nth_set>, type, 3);
}

void lower_brev(Lowering& l) {
  const Type type = l.type();
  if (type != Type::kB32 && type != Type::kB64) refuse_type(l, type);
  const ExecFn exec = type == Type::kB64 ? lanes<bitwise::brev<std::uint64_t>>
                                         : lanes<bitwise::brev<std::uint32_t>>;
  emit_uniform(l, exec, type, 1);
}

void lower_bfe(Lowering& l) {
  const Type type = l.type();
  if (is_bits(type) || bits_of(type) < 32) refuse_type(l, type);
  const ExecFn exec = for_integer(type, []<class T>() -> ExecFn { return lanes<bitwise::bfe<T>>; });
  if (exec == nullptr) refuse_type(l, type);
  l.finish_modifiers();
  const Row d = l.destination(0, type);
  l.emit(exec, {d, l.source(1, type), l.source(2, Type::kU32), l.source(3, Type::kU32)});
}

void lower_bfi(Lowering& l) {
  const Type type = l.type();
  if (type != Type::kB32 && type != Type::kB64) refuse_type(l, type);
  const ExecFn exec =
      type == Type::kB64 ? lanes<bitwise::bfi<std::uint64_t>> : lanes<bitwise::bfi<std::uint32_t>>;
  l.finish_modifiers();
  const Row d = l.destination(0, type);
  l.emit(exec, {d, l.source(1, type), l.source(2, type), l.source(3, Type::kU32),
                l.source(4, Type::kU32)});
}

bool take_wrap(Lowering& l) {
  const int mode = l.take_one_of({"clamp", "wrap"});
  if (mode < 0) l.fail("expected .clamp or .wrap");
  return mode == 1;
}

void lower_bmsk(Lowering& l) {
  const bool is_wrap = take_wrap(l);
  const Type type = l.type();
  if (type != Type::kB32) refuse_type(l, type);
  emit_uniform(l, is_wrap ? lanes<bitwise::bit_mask<true>> : lanes<bitwise::bit_mask<false>>, type,
               2);
}

void lower_szext(Lowering& l) {
  const bool is_wrap = take_wrap(l);
  const Type type = l.type();
  if (type != Type::kU32 && type != Type::kS32) refuse_type(l, type);
  const ExecFn exec = for_flag(is_wrap, [type]<bool kWrap>() -> ExecFn {
    return type == Type::kS32 ? lanes<bitwise::extend<std::int32_t, kWrap>>
                              : lanes<bitwise::extend<std::uint32_t, kWrap>>;
  });
  emit_uniform(l, exec, type, 2);
}

/// Calls `select` with the signedness of the two types that follow.
template <class Select>
ExecFn for_two_signs(Lowering& l, Select select) {
  const Type a = l.type();
  const Type b = l.type();
  for (const Type type : {a, b}) {
    if (type != Type::kU32 && type != Type::kS32) refuse_type(l, type);
  }
  return for_flag(a == Type::kS32, [&]<bool kA>() {
    return for_flag(b == Type::kS32,
                    [&]<bool kB>() { return select.template operator()<kA, kB>(); });
  });
}
template <bool kSigned>
using ByteOf = std::conditional_t<kSigned, std::int8_t, std::uint8_t>;
template <bool kSigned>
using ShortOf = std::conditional_t<kSigned, std::int16_t, std::uint16_t>;

void lower_dp4a(Lowering& l) {
  const ExecFn exec = for_two_signs(
      l, []<bool kA, bool kB>() -> ExecFn { return lanes<bitwise::dot4<ByteOf<kA>, ByteOf<kB>>>; });
  emit_uniform(l, exec, Type::kB32, 3);
}

void lower_dp2a(Lowering& l) {
  const int half = l.take_one_of({"lo", "hi"});
  if (half < 0) l.fail("dp2a needs .lo or .hi");
  const ExecFn exec = for_two_signs(l, [half]<bool kA, bool kB>() -> ExecFn {
    return half == 1 ? lanes<bitwise::dot2<ShortOf<kA>, ByteOf<kB>, true>>
                     : lanes<bitwise::dot2<ShortOf<kA>, ByteOf<kB>, false>>;
  });
  emit_uniform(l, exec, Type::kB32, 3);
}

/// op: d, a, b, c; imm: the table.
Step run_lop3(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto table = static_cast<std::uint32_t>(insn.imm);
  const auto* a = warp.row<std::uint32_t>(insn.op[1]);
  const auto* b = warp.row<std::uint32_t>(insn.op[2]);
  const auto* c = warp.row<std::uint32_t>(insn.op[3]);
  auto* d = warp.row<std::uint32_t>(insn.op[0]);
  alignas(64) std::uint32_t blended[kLanes];
  std::uint32_t* out = active == kAllLanes ? d : blended;
#pragma GCC ivdep
  for (int i = 0; i < kLanes; ++i) out[i] = bitwise::lop3(a[i], b[i], c[i], table);
  if (active != kAllLanes) blend(d, blended, active);
  return Step::kNext;
}

/// op: p, value, q; imm: 0 for .or, 1 for .and; small: 1 if q is negated.
Step run_nonzero(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto nonzero = lane_mask<[](std::uint32_t x) { return x != 0; }>(warp, &insn.op[1]);
  const std::uint32_t q = warp.predicate(insn.op[2]) ^ (insn.small != 0 ? kAllLanes : 0);
  warp.set_predicate(insn.op[0], active, insn.imm == 0 ? nonzero | q : nonzero & q);
  return Step::kNext;
}

void lower_lop3(Lowering& l) {
  const int combine = l.take_one_of({"or", "and"});
  const Type type = l.type();
  if (type != Type::kB32) refuse_type(l, type);
  l.finish_modifiers();
  const auto [d, p] =
      combine < 0 ? std::pair(l.destination(0, type), kNoRow) : l.destination_pair(0, type);
  const std::int64_t table = l.immediate(4);
  if (table < 0 || table > 255) l.fail_at(l.operand(4), "the table of lop3 has 8 bits");
  l.emit(run_lop3, {d, l.source(1, type), l.source(2, type), l.source(3, type)}).imm = table;
  if (combine < 0) return;
  if (p == kNoRow) l.fail_at(l.operand(0), "lop3 with .or or .and writes d|p");
  const auto [q, is_negated] = l.source_predicate(5);
  Insn& insn = l.emit(run_nonzero, {p, d, q});
  insn.imm = combine;
  insn.small = is_negated ? 1 : 0;
}

/// prmt with selectors known now, as two byte shuffles: zero where the other operand is taken.
struct Shuffle {
  alignas(32) std::array<std::int8_t, 32> from_a, from_b;
};

Shuffle make_shuffle(std::uint32_t selectors) {
  Shuffle shuffle;
  for (int i = 0; i < 32; ++i) {
    const int selector = (selectors >> (4 * (i % 4))) & 7;
    const int lane_byte = (i % 16) / 4 * 4 + selector % 4;
    const auto byte = static_cast<std::int8_t>(lane_byte);
    shuffle.from_a[static_cast<std::size_t>(i)] = selector < 4 ? byte : std::int8_t{-128};
    shuffle.from_b[static_cast<std::size_t>(i)] = selector < 4 ? std::int8_t{-128} : byte;
  }
  return shuffle;
}

Step run_shuffle(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto& shuffle = *static_cast<const Shuffle*>(insn.extra);
  const auto load = [](const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  };
  const __m256i from_a = load(shuffle.from_a.data());
  const __m256i from_b = load(shuffle.from_b.data());
  const auto* a = warp.row<std::uint32_t>(insn.op[1]);
  const auto* b = warp.row<std::uint32_t>(insn.op[2]);
  auto* d = warp.row<std::uint32_t>(insn.op[0]);
  alignas(64) std::uint32_t blended[kLanes];
  std::uint32_t* out = active == kAllLanes ? d : blended;
  for (int i = 0; i < kLanes; i += 8) {
    const __m256i value = _mm256_or_si256(_mm256_shuffle_epi8(load(a + i), from_a),
                                          _mm256_shuffle_epi8(load(b + i), from_b));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), value);
  }
  if (active != kAllLanes) blend(d, blended, active);
  return Step::kNext;
}

/// prmt with selectors of the lanes' own: bits 2..0 of each name a byte of the pair, bit 3 asks for
/// its sign in all bits.
Step run_permute(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto load = [](const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  };
  const auto* a = warp.row<std::uint32_t>(insn.op[1]);
  const auto* b = warp.row<std::uint32_t>(insn.op[2]);
  const auto* c = warp.row<std::uint32_t>(insn.op[3]);
  auto* d = warp.row<std::uint32_t>(insn.op[0]);
  alignas(64) std::uint32_t blended[kLanes];
  std::uint32_t* out = active == kAllLanes ? d : blended;
  const __m256i lane_bytes = _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404,
                                               0x08080808, 0x0c0c0c0c);
  const __m256i three = _mm256_set1_epi8(3), four = _mm256_set1_epi8(4);
  const __m256i eight = _mm256_set1_epi8(8), zero = _mm256_setzero_si256();
  for (int i = 0; i < kLanes; i += 8) {
    // One selector in each byte.
    __m256i s = _mm256_and_si256(load(c + i), _mm256_set1_epi32(0xffff));
    s = _mm256_and_si256(_mm256_or_si256(s, _mm256_slli_epi32(s, 8)),
                         _mm256_set1_epi32(0x00ff00ff));
    s = _mm256_and_si256(_mm256_or_si256(s, _mm256_slli_epi32(s, 4)),
                         _mm256_set1_epi32(0x0f0f0f0f));
    const __m256i byte = _mm256_or_si256(_mm256_and_si256(s, three), lane_bytes);
    const __m256i is_b = _mm256_cmpeq_epi8(_mm256_and_si256(s, four), four);
    const __m256i is_sign = _mm256_cmpeq_epi8(_mm256_and_si256(s, eight), eight);
    const __m256i value = _mm256_blendv_epi8(_mm256_shuffle_epi8(load(a + i), byte),
                                             _mm256_shuffle_epi8(load(b + i), byte), is_b);
    const __m256i sign = _mm256_cmpgt_epi8(zero, value);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        _mm256_blendv_epi8(value, sign, is_sign));
  }
  if (active != kAllLanes) blend(d, blended, active);
  return Step::kNext;
}

template <bitwise::PermuteMode kMode>
std::uint32_t permute_by(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return bitwise::permute(a, b, bitwise::permute_selectors(kMode, c));
}

void lower_prmt(Lowering& l) {
  using Mode = bitwise::PermuteMode;
  constexpr ExecFn kExecs[] = {run_permute,
                               lanes<permute_by<Mode::kF4e>>,
                               lanes<permute_by<Mode::kB4e>>,
                               lanes<permute_by<Mode::kRc8>>,
                               lanes<permute_by<Mode::kEcl>>,
                               lanes<permute_by<Mode::kEcr>>,
                               lanes<permute_by<Mode::kRc16>>};
  const Type type = l.type();
  if (type != Type::kB32) refuse_type(l, type);
  const int mode = l.take_one_of({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}) + 1;
  if (!l.is_immediate(3)) {
    emit_uniform(l, kExecs[mode], type, 3);
    return;
  }
  const auto selectors = bitwise::permute_selectors(static_cast<Mode>(mode),
                                                    static_cast<std::uint32_t>(l.immediate(3)));
  if ((selectors & 0x8888) != 0) {
    emit_uniform(l, kExecs[mode], type, 3);
    return;
  }
  l.finish_modifiers();
  const Row d = l.destination(0, type);
  // The selectors are an operand for checks that follow single bytes: init.
  l.emit(run_shuffle, {d, l.source(1, type), l.source(2, type), l.source(3, type)}).extra =
      l.keep(make_shuffle(selectors));
}

const InsnRow kBitsRows[] = {
    {"and", "and.{pred,b16,b32,b64} d, a, b;", 20, kClass, lower_logic<And, 2>},
    {"or", "or.{pred,b16,b32,b64} d, a, b;", 20, kClass, lower_logic<Or, 2>},
    {"xor", "xor.{pred,b16,b32,b64} d, a, b;", 20, kClass, lower_logic<Xor, 2>},
    {"not", "not.{pred,b16,b32,b64} d, a;", 20, kClass, lower_logic<Not, 1>},
    {"cnot", "cnot.{b16,b32,b64} d, a;", 20, kClass, lower_cnot},
    {"lop3", "lop3.b32 d, a, b, c, table; lop3.{or,and}.b32 d|p, a, b, c, table, q;", 50, kClass,
     lower_lop3},
    {"shl", "shl.{b16,b32,b64} d, a, amount;", 20, kClass, lower_shl},
    {"shr", "shr.{b,u,s}{16,32,64} d, a, amount;", 20, kClass, lower_shr},
    {"shf", "shf.{l,r}.{clamp,wrap}.b32 d, a, b, amount;", 32, kClass, lower_shf},
    {"popc", "popc.{b32,b64} d, a;", 20, kClass, lower_popc},
    {"clz", "clz.{b32,b64} d, a;", 20, kClass, lower_clz},
    {"bfind", "bfind{.shiftamt}.{u,s}{32,64} d, a;", 20, kClass, lower_bfind},
    {"fns", "fns.b32 d, mask, base, offset;", 30, kClass, lower_fns},
    {"brev", "brev.{b32,b64} d, a;", 20, kClass, lower_brev},
    {"bfe", "bfe.{u,s}{32,64} d, a, position, length;", 20, kClass, lower_bfe},
    {"bfi", "bfi.{b32,b64} d, a, b, position, length;", 20, kClass, lower_bfi},
    {"bmsk", "bmsk.{clamp,wrap}.b32 d, position, length;", 70, kClass, lower_bmsk},
    {"szext", "szext.{clamp,wrap}.{u32,s32} d, a, length;", 70, kClass, lower_szext},
    {"prmt", "prmt.b32{.f4e,.b4e,.rc8,.ecl,.ecr,.rc16} d, a, b, selectors;", 20, kClass,
     lower_prmt},
    {"dp4a", "dp4a.{u32,s32}.{u32,s32} d, a, b, c;", 61, kClass, lower_dp4a},
    {"dp2a", "dp2a.{lo,hi}.{u32,s32}.{u32,s32} d, a, b, c;", 61, kClass, lower_dp2a},
};

}  // namespace

const InsnSection& bits_section() {
  static const InsnSection section{"Logic, shifts and bit fields", kBitsRows};
  return section;
}

}  // namespace tilewright::sim
