// Checks of the table of angles that a call brings: the form that a kernel reads, and its rows.
#pragma once

#include "tilewright/rotary.h"

#include "ops/operator/arguments.h"

namespace tilewright::ops {

/// A kernel that reads cosines and sines of a position side by side.
inline void check_one_table(const ArgumentChecks& checks, const RotaryTable& rope,
                            std::size_t alignment) {
  checks.check(rope.cos == nullptr && rope.sin == nullptr,
               "rope.cos and rope.sin are set; this operator reads one table, rope.angles: of each "
               "position the cosines, then the sines. Join the two along the last dimension");
  checks.address("rope.angles", rope.angles, alignment);
}

/// A kernel that reads cosines from one table, sines from another.
inline void check_two_tables(const ArgumentChecks& checks, const RotaryTable& rope) {
  checks.check(rope.angles == nullptr,
               "rope.angles is set; this operator reads two tables, rope.cos and rope.sin, each "
               "[positions, rotary_dim / 2]. Split the one in the middle of its rows");
  checks.address("rope.cos", rope.cos, kWordAlignment);
  checks.address("rope.sin", rope.sin, kWordAlignment);
}

/// The rows of a table, where the problem has said how many a plan counts on.
inline void check_planned_positions(const ArgumentChecks& checks, const RotaryTable& rope,
                                    std::int64_t planned) {
  checks.check(rope.positions == 0 || rope.positions >= planned,
               "rope.positions = {}; expected at least {}, as the problem says, or 0",
               rope.positions, planned);
}

}  // namespace tilewright::ops
