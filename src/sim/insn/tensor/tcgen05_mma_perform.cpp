// Computing a tcgen05.mma: operands into dense tiles, the tile product, D back to Tensor Memory.
// D is computed in parts that lie in one run of columns each (mma_layout.h).
#include "sim/insn/tensor/tcgen05_mma.h"
#include "sim/state/byte_shadow.h"
#include "sim/tensor/scaled_multiply.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

constexpr std::size_t kMaxRows = 128;  ///< of one CTA
constexpr std::size_t kMaxColumns = 256;
constexpr std::size_t kMaxScales = 6;  ///< of a row

struct Buffers {
  alignas(64) std::array<std::byte, kMaxOperandBytes> a, b;
  alignas(64) std::array<std::uint32_t, kMaxRows * kMaxColumns> d;
  std::array<std::uint8_t, kMaxRows * kMaxScales> a_scales;
  /// Of each quarter of the lanes
  std::array<std::array<std::uint8_t, kMaxColumns * kMaxScales>, 4> b_scales;
  /// 1 where an element of the row of A, of the row of B is undefined
  std::array<std::uint8_t, kMaxRows> a_undefined;
  std::array<std::uint8_t, kMaxColumns> b_undefined;
  bool has_undefined = false;
};

Buffers& buffers() {
  thread_local const auto memory = std::make_unique<Buffers>();
  return *memory;
}

class MmaRun {
 public:
  explicit MmaRun(const MmaCall& call)
      : call_(call),
        mode_(call.form->mode),
        shape_(call.shape),
        rows_(rows_per_cta(call.shape)),
        width_(call.shape.n / column_parts(call.shape)),
        k_(static_cast<std::size_t>(call.fields.k)),
        buffers_(buffers()),
        keeps_defined_(tensor_memory_of(*call.ctas[0]).keeps_defined()) {}

  void run() {
    buffers_.has_undefined = false;
    if (keeps_defined_) {
      std::ranges::fill(buffers_.b_undefined, 0);
      std::ranges::fill(buffers_.a_undefined, 0);
    }
    for (int cta = 0; cta < shape_.cta_group; ++cta) gather_shared_operand(cta, false);
    for (int cta = 0; cta < shape_.cta_group; ++cta) {
      if (!mode_.is_a_in_tmem) gather_shared_operand(cta, true);
      for (int part = 0; part < column_parts(shape_); ++part) run_part(cta, part);
      if (call_.form->is_shifting_a) shift_a(cta);
    }
  }

 private:
  Cta& cta_of(int cta) const { return *call_.ctas[static_cast<std::size_t>(cta)]; }

  // ---------------------------------------------------------------------------- operands

  void gather_shared_operand(int cta, bool is_a) {
    const Cta& from = cta_of(cta);
    const std::uint64_t bits = is_a ? call_.a_descriptor : call_.b_descriptor;
    const SharedDescriptor descriptor = decode_shared_descriptor(bits);
    const MmaOperand operand = operand_of(call_, is_a);
    const std::size_t first = is_a ? 0 : static_cast<std::size_t>(cta * operand.rows);
    const std::size_t row_bytes = k_ * static_cast<std::size_t>(operand.code_bytes());
    const auto codes =
        std::span(is_a ? buffers_.a : buffers_.b).subspan(first * row_bytes, operand.size_bytes());
    const GatherResult result =
        gather_shared({from.shared, from.shared_bytes}, descriptor, operand, codes);
    if (!result.is_done()) {
      fault(FaultKind::kIllegalAddress, 1u << call_.lane,
            fmt::format("tcgen05.mma by lane {}: descriptor of {} = {}; it reaches shared address "
                        "{:#x}, but the CTA's shared memory ends at {:#x}",
                        call_.lane, is_a ? "A" : "B", describe_shared_descriptor(bits),
                        result.address, from.shared_bytes));
    }
    if (!keeps_defined_ || from.shared_defined.empty()) return;
    const std::span<std::uint8_t> undefined =
        is_a ? std::span<std::uint8_t>(buffers_.a_undefined) : buffers_.b_undefined;
    find_undefined(from, descriptor, operand,
                   undefined.subspan(first, static_cast<std::size_t>(operand.rows)));
  }

  void find_undefined(const Cta& from, const SharedDescriptor& descriptor,
                      const MmaOperand& operand, std::span<std::uint8_t> undefined) {
    std::ranges::fill(undefined, 0);
    const std::uint8_t* const shadow = from.shared_defined.data();
    for (const SharedRun& run : runs_of(descriptor, operand, from.shared_bytes)) {
      if (is_all_defined(shadow + run.address, run.bytes)) continue;
      find_undefined_rows({shadow, from.shared_bytes}, descriptor, operand, undefined);
      buffers_.has_undefined = true;
      return;
    }
  }

  void gather_tensor_a(TensorMemory& memory, int part) {
    const MmaOperand operand = operand_of(call_, true);
    const std::size_t row_bytes = k_ * static_cast<std::size_t>(operand.code_bytes());
    const auto cells = static_cast<std::size_t>(tensor_cells(operand));
    std::byte* to = buffers_.a.data();
    for (int row = 0; row < rows_; ++row, to += row_bytes) {
      const std::uint32_t lane = lane_of_row(call_, row, part);
      unpack_tensor_row(memory.row(lane) + call_.a.column, operand, to);
      if (!keeps_defined_) continue;
      const std::uint8_t* const defined = memory.defined_row(lane) + call_.a.column;
      const bool is_defined = std::all_of(
          defined, defined + cells, [](std::uint8_t bytes) { return bytes == kTensorDefined; });
      buffers_.a_undefined[static_cast<std::size_t>(row)] = is_defined ? 0 : 1;
      buffers_.has_undefined |= !is_defined;
    }
  }

  // ------------------------------------------------------------------------------ scales

  struct ScaleSource {
    TensorMemory& memory;
    const TensorAddress& address;
    int id, per_group;
  };

  /// The scales of one row as they stand in a quarter of the lanes. False if one is undefined.
  bool read_scales(const ScaleSource& from, int row, int quarter, std::uint8_t* to) const {
    bool is_defined = true;
    for (int i = 0; i < scales_per_row(call_); ++i) {
      const ScalePlace place = place_of_scale(row, from.id + i, from.per_group);
      const auto lane = static_cast<std::uint32_t>(quarter * 32 + place.lane);
      const std::uint32_t column = from.address.column + static_cast<std::uint32_t>(place.column);
      to[i] = static_cast<std::uint8_t>(from.memory.cell(lane, column) >> (8 * place.byte));
      if (!keeps_defined_) continue;
      is_defined &= (from.memory.defined_row(lane)[column] >> place.byte & 1) != 0;
    }
    return is_defined;
  }

  void gather_scales(TensorMemory& memory, int part) {
    const auto per_row = static_cast<std::size_t>(scales_per_row(call_));
    const ScaleSource a{memory, call_.a_scales, call_.fields.a_scale_id, scale_columns(rows_)};
    const ScaleSource b{memory, call_.b_scales, call_.fields.b_scale_id, scale_columns(width_)};
    for (int row = 0; row < rows_; ++row) {
      const auto at = static_cast<std::size_t>(row);
      const bool is_defined =
          read_scales(a, row, quarter_of(row, part), &buffers_.a_scales[at * per_row]);
      if (!is_defined) buffers_.a_undefined[at] = 1;
      buffers_.has_undefined |= !is_defined;
    }
    for (int row = 0; row < rows_; row += 32) {
      const int quarter = quarter_of(row, part);
      auto& to = buffers_.b_scales[static_cast<std::size_t>(quarter)];
      for (int column = 0; column < width_; ++column) {
        const auto at = static_cast<std::size_t>(column);
        const bool is_defined = read_scales(b, column, quarter, &to[at * per_row]);
        if (!is_defined) buffers_.b_undefined[static_cast<std::size_t>(part * width_) + at] = 1;
        buffers_.has_undefined |= !is_defined;
      }
    }
  }

  int quarter_of(int row, int part) const {
    return static_cast<int>(lane_of_row(call_, row, part) / 32);
  }

  // ---------------------------------------------------------------------------- products

  /// Rows of a part, with what they are multiplied by.
  struct Tile {
    TileExtents extents;
    std::span<const std::byte> a, b;
    std::span<std::uint32_t> d;
  };

  Tile tile_of(int part, int first_row, int num_rows) {
    const auto bytes = k_ * static_cast<std::size_t>(operand_of(call_, true).code_bytes());
    const auto width = static_cast<std::size_t>(width_);
    const auto row = static_cast<std::size_t>(first_row), rows = static_cast<std::size_t>(num_rows);
    return {{num_rows, width_, call_.fields.k},
            std::span(buffers_.a).subspan(row * bytes, rows * bytes),
            std::span(buffers_.b)
                .subspan(static_cast<std::size_t>(part) * width * bytes, width * bytes),
            std::span(buffers_.d).subspan(row * width, rows * width)};
  }

  void multiply_scaled(int part) {
    const auto per_row = static_cast<std::size_t>(scales_per_row(call_));
    const std::size_t num_b = static_cast<std::size_t>(width_) * per_row;
    const auto b_scales = [&](int row) {
      const auto quarter = static_cast<std::size_t>(quarter_of(row, part));
      return std::span<const std::uint8_t>(buffers_.b_scales[quarter]).first(num_b);
    };
    bool are_same = true;
    for (int row = 32; row < rows_; row += 32) {
      are_same &= std::ranges::equal(b_scales(0), b_scales(row));
    }
    const int step = are_same ? rows_ : 32;
    TensorArithmetic arithmetic =
        tensor_arithmetic(is_fp4(mode_.kind) ? TensorUnit::kTcgen05BlockFp4 : TensorUnit::kTcgen05,
                          *call_.fields.a, false);
    arithmetic.is_exact = is_exact();
    for (int row = 0; row < rows_; row += step) {
      const Tile tile = tile_of(part, row, step);
      const auto a_scales = std::span<const std::uint8_t>(buffers_.a_scales)
                                .subspan(static_cast<std::size_t>(row) * per_row,
                                         static_cast<std::size_t>(step) * per_row);
      const TileScales scales{a_scales, b_scales(row), scales_per_row(call_), call_.fields.scale};
      const TileOperand a{tile.a, call_.fields.a, call_.fields.is_a_negated};
      const TileOperand b{tile.b, call_.fields.b, call_.fields.is_b_negated};
      (is_fp4(mode_.kind) ? multiply_fp4_tile : multiply_scaled_tile)(
          arithmetic, tile.extents, a, b, scales, old_d(tile), tile.d, best_variant());
    }
  }

  std::span<const std::uint32_t> old_d(const Tile& tile) const {
    return call_.keeps_d ? std::span<const std::uint32_t>(tile.d)
                         : std::span<const std::uint32_t>();
  }

  bool is_exact() const { return call_.ctas[0]->grid->options.is_exact_mma; }

  void multiply(int part) {
    if (mode_.scale_block != 0) return multiply_scaled(part);
    const Tile tile = tile_of(part, 0, rows_);
    const MmaDescriptor& f = call_.fields;
    if (mode_.kind == MmaKind::kI8) {
      const std::span sums(reinterpret_cast<std::int32_t*>(tile.d.data()), tile.d.size());
      const auto old =
          call_.keeps_d ? std::span<const std::int32_t>(sums) : std::span<const std::int32_t>();
      return multiply_integer_tile(tile.extents, {tile.a, f.a_integer}, {tile.b, f.b_integer},
                                   f.is_saturating, old, sums);
    }
    TensorArithmetic arithmetic =
        tensor_arithmetic(TensorUnit::kTcgen05, *f.a, f.sum == MmaSum::kF16);
    arithmetic.is_exact = is_exact();
    const TileOperand a{tile.a, f.a, f.is_a_negated}, b{tile.b, f.b, f.is_b_negated};
    multiply_tile_onto_scaled(arithmetic, tile.extents, a, b, call_.form->input_shift, old_d(tile),
                              tile.d);
  }

  // ----------------------------------------------------------------------------------- D

  void run_part(int cta, int part) {
    TensorMemory& memory = tensor_memory_of(cta_of(cta));
    if (mode_.is_a_in_tmem) gather_tensor_a(memory, part);
    if (mode_.scale_block != 0) gather_scales(memory, part);
    const auto width = static_cast<std::size_t>(width_);
    std::uint32_t* at = buffers_.d.data();
    if (call_.keeps_d) {
      for (int row = 0; row < rows_; ++row, at += width) {
        std::copy_n(memory.row(lane_of_row(call_, row, part)) + call_.d.column, width, at);
      }
      if (call_.fields.sum == MmaSum::kF16) {
        for (std::uint32_t* cell = buffers_.d.data(); cell != at; ++cell) *cell &= 0xFFFF;
      }
    }
    multiply(part);
    at = buffers_.d.data();
    for (int row = 0; row < rows_; ++row, at += width) {
      const std::uint32_t lane = lane_of_row(call_, row, part);
      const TensorLanes& disabled = call_.disabled[static_cast<std::size_t>(cta)];
      if ((disabled[lane / 32] >> lane % 32 & 1) != 0) continue;
      std::copy_n(at, width, memory.row(lane) + call_.d.column);
      if (keeps_defined_) set_defined(memory.defined_row(lane) + call_.d.column, row, part);
    }
  }

  void set_defined(std::uint8_t* defined, int row, int part) const {
    const auto width = static_cast<std::size_t>(width_);
    const bool is_undefined = buffers_.a_undefined[static_cast<std::size_t>(row)] != 0;
    if (!buffers_.has_undefined) {
      if (!call_.keeps_d) std::fill_n(defined, width, kTensorDefined);
      return;
    }
    const std::uint8_t* const b =
        buffers_.b_undefined.data() + static_cast<std::size_t>(part) * width;
    for (std::size_t i = 0; i < width; ++i) {
      const std::uint8_t old = call_.keeps_d ? defined[i] : kTensorDefined;
      defined[i] = is_undefined || b[i] != 0 ? std::uint8_t{0} : old;
    }
  }

  // .ashift: in each quarter of the lanes every row of A but the last becomes the one below it.
  void shift_a(int cta) {
    TensorMemory& memory = tensor_memory_of(cta_of(cta));
    const auto cells = static_cast<std::size_t>(tensor_cells(operand_of(call_, true)));
    for (std::uint32_t lane = 0; lane + 1 < kTensorLanes; ++lane) {
      if (lane % 32 == 31) continue;
      std::copy_n(memory.row(lane + 1) + call_.a.column, cells, memory.row(lane) + call_.a.column);
      if (!keeps_defined_) continue;
      std::copy_n(memory.defined_row(lane + 1) + call_.a.column, cells,
                  memory.defined_row(lane) + call_.a.column);
    }
  }

  const MmaCall& call_;
  const MmaMode& mode_;
  const MmaShape& shape_;
  int rows_;   ///< of A and D in a CTA
  int width_;  ///< columns of a part
  std::size_t k_;
  Buffers& buffers_;
  bool keeps_defined_;
};

}  // namespace

void perform_mma(const MmaCall& call) {
  MmaRun(call).run();
}

}  // namespace tilewright::sim
