// Work on rows, shared by threads.
#pragma once

#include "base/thread_pool.h"
#include "reference/linear/linear.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::model {

/// Splits rows into blocks that do not depend on the number of threads.
class Rows {
 public:
  explicit Rows(ThreadPool& pool) : pool_(pool) {}

  /// Calls body(first, last) for all blocks.
  template <class Body>
  void each(std::int64_t rows, const Body& body, std::int64_t block = 16) const {
    pool_.parallel_for(0, rows, block, body);
  }

  /// make(first, last) gives rows first .. last - 1 of the result, `cols` numbers each.
  template <class Make>
  std::vector<double> make(std::int64_t rows, std::int64_t cols, const Make& make) const {
    std::vector<double> result(static_cast<std::size_t>(rows * cols));
    each(rows, [&](std::int64_t first, std::int64_t last) {
      const std::vector<double> part = make(first, last);
      std::copy(part.begin(), part.end(), result.begin() + first * cols);
    });
    return result;
  }

  /// x [rows, k] times w [n, k].
  std::vector<double> linear(std::span<const double> x, std::span<const double> w,
                             std::int64_t rows) const {
    const auto k = static_cast<std::int64_t>(x.size()) / rows;
    const auto n = static_cast<std::int64_t>(w.size()) / k;
    return make(rows, n, [&](std::int64_t first, std::int64_t last) {
      return reference::linear({last - first, n, k}, part(x, k, first, last), w);
    });
  }

  template <class T>
  static std::span<const T> part(std::span<const T> array, std::int64_t cols, std::int64_t first,
                                 std::int64_t last) {
    return array.subspan(static_cast<std::size_t>(first * cols),
                         static_cast<std::size_t>((last - first) * cols));
  }
  template <class T>
  static std::span<const T> part(const std::vector<T>& array, std::int64_t cols, std::int64_t first,
                                 std::int64_t last) {
    return part(std::span<const T>(array), cols, first, last);
  }

 private:
  ThreadPool& pool_;
};

}  // namespace tilewright::model
