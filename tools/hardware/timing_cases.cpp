// The table of timing probes.

#include "hardware/timing_case.h"
#include "kernels/probe/timing/probe.h"

#include <bit>
#include <string_view>

#include <fmt/format.h>

namespace tilewright::hardware {

namespace {

using kernels::kTimingCopyMarks;
using kernels::kTimingProducts;
using kernels::kTimingSharedBytes;

constexpr std::uint32_t kSms = 132;
constexpr std::uint64_t kMiB = 1 << 20;

class Table {
 public:
  std::vector<TimingCase> make() {
    arithmetic();
    shared_memory();
    tensor_cores();
    beside_products();
    tiles_of_attention();
    few_tokens();
    barriers();
    clusters();
    fences();
    copies();
    rings();
    pages();
    memory();
    atomics();
    launches();
    power();
    return std::move(cases_);
  }

 private:
  TimingCase& add(std::string name, std::string kernel) {
    TimingCase& added = cases_.emplace_back();
    added.name = std::move(name);
    added.kernel = std::move(kernel);
    return added;
  }

  void add_warps(const std::string& kernel, std::initializer_list<std::uint32_t> warps,
                 double operations, std::uint32_t stride = 0) {
    for (const std::uint32_t count : warps) {
      TimingCase& added =
          add(stride == 0 ? fmt::format("{}, {} warps", kernel, count)
                          : fmt::format("{}, {} warps, {} bytes", kernel, count, stride),
              kernel);
      added.threads = 32 * count;
      added.stride = stride;
      added.operations = operations;
    }
  }

  void arithmetic() {
    constexpr double kSteps = 128;  // kSteps of arithmetic.cu
    for (const char* step : {"ffma",       "fadd",      "fmul",      "fmul_immediate",
                             "imad",       "lop3",      "iadd_lop3", "prmt",
                             "mul_bf16x2", "fma_f16x2", "shf",       "fmin_fmax",
                             "cvt_bf16x2", "ex2",       "lg2",       "i2f",
                             "f2i",        "shfl_bfly", "redux",     "dfma"}) {
      add_warps(fmt::format("{}_chain", step), {1, 4}, kSteps);
      add_warps(fmt::format("{}_streams", step), {1, 4, 8, 16}, kSteps);
    }
    for (const std::uint32_t pieces : {1U, 2U, 4U}) {
      TimingCase& all = add(
          fmt::format("cold_code, {} KiB, all SMs, behind other memory", 32 * pieces), "cold_code");
      all.blocks = kSms;
      all.threads = 128;
      all.count = pieces;
      all.iterations = 2;  // the first one is cold
      all.launches = 4;
      all.caches = Caches::kClean;
      all.reading = Reading::kMean;
      all.operations = static_cast<double>(pieces) * kernels::kTimingColdInstructions;
    }
    cold_jumps();
    for (const int sums : {2, 4, 8}) {
      add_warps(fmt::format("ex2_beside_{}_sums", sums), {4, 8}, 32);
    }
    add_warps("special_register", {1}, 16);
    add_warps("nothing", {1, 4, 16}, 1);
    for (const std::uint32_t pieces : {1U, 2U, 4U, 8U}) {
      TimingCase& cold = add(fmt::format("cold_code, {} KiB", 32 * pieces), "cold_code");
      cold.threads = 128;
      cold.count = pieces;
      cold.iterations = 3;  // the first one is cold
      cold.launches = 2;
      cold.operations = static_cast<double>(pieces) * kernels::kTimingColdInstructions;
    }
  }

  // Pieces of code that do not lie in the order in which they run: the first pass of a launch
  // behind other code and other memory, and two more. And straight code and launches likewise.
  void cold_jumps() {
    const auto passes = [&](TimingCase& added, std::uint32_t blocks, Caches caches) {
      added.blocks = blocks;
      added.threads = 128;
      added.iterations = 3;
      added.launches = 4;
      added.caches = caches;
      added.reading = Reading::kMean;
    };
    for (const std::uint32_t blocks : {1U, kSms}) {
      for (const Caches caches : {Caches::kWarm, Caches::kClean, Caches::kOtherCode}) {
        const char* const behind = caches == Caches::kWarm    ? "itself"
                                   : caches == Caches::kClean ? "other memory"
                                                              : "other code";
        for (const std::uint32_t count : {8U, 24U, 64U, 128U}) {
          TimingCase& jumps =
              add(fmt::format("cold_jumps, {} of 1 KiB, {} SMs, behind {}", count, blocks, behind),
                  "cold_jumps");
          passes(jumps, blocks, caches);
          jumps.count = count;
          jumps.stride = 37;
          jumps.operations = count;
        }
        for (const std::uint32_t pieces : {1U, 2U, 4U, 8U}) {
          TimingCase& straight = add(
              fmt::format("cold_straight, {} KiB, {} SMs, behind {}", 32 * pieces, blocks, behind),
              "cold_code");
          passes(straight, blocks, caches);
          straight.count = pieces;
          straight.operations = double{kernels::kTimingColdInstructions} * pieces;
        }
      }
    }
    for (const Caches caches : {Caches::kClean, Caches::kDirty, Caches::kOtherCode}) {
      const char* const behind = caches == Caches::kClean   ? "other memory"
                                 : caches == Caches::kDirty ? "written memory"
                                                            : "other code";
      cold_launch(behind, caches, kSms, 128, 0);
      cold_launch(behind, caches, kSms, 384, kernels::kTimingSharedBytes);
      cold_launch(behind, caches, kSms * 2, 1024, 0);
    }
  }

  void cold_launch(const char* behind, Caches caches, std::uint32_t blocks, std::uint32_t threads,
                   std::uint32_t shared_bytes) {
    TimingCase& empty = add(fmt::format("cold_launch, {} CTAs of {} threads, {} KiB, behind {}",
                                        blocks, threads, shared_bytes >> 10, behind),
                            "empty");
    empty.blocks = blocks;
    empty.threads = threads;
    empty.shared_bytes = shared_bytes;
    empty.iterations = 1;
    empty.caches = caches;
    empty.reading = Reading::kMicroseconds;
    empty.launches = 15;
  }

  void shared_memory() {
    constexpr double kAccesses = 16;  // kAccesses of shared.cu
    add_warps("shared_load_chain", {1}, kAccesses);
    for (const std::uint32_t stride : {4U, 8U, 16U, 32U, 64U, 128U}) {
      add_warps("shared_loads", {1, 4, 8}, kAccesses, stride);
    }
    add_warps("shared_wide_loads", {1, 4, 8}, kAccesses);
    for (const std::uint32_t stride : {4U, 128U}) {
      add_warps("shared_stores", {1, 4, 8}, kAccesses, stride);
    }
    add_warps("ldmatrix_chain", {1}, kAccesses);
    add_warps("ldmatrix_loads", {1, 4, 8}, kAccesses);
    add_warps("stmatrix", {1, 4, 8}, kAccesses);
    add_warps("stmatrix_fenced", {1, 4, 8}, kAccesses);
    add_warps("proxy_fence", {1, 4}, 1);
    add_warps("l1_chain", {1}, kAccesses);
    add_warps("l1_loads", {1, 4, 8}, kAccesses);
  }

  void tensor_cores() {
    const auto groups = [&](const char* form, int n) {
      for (const int count : {1, 4, 16}) {
        for (const std::uint32_t warpgroups : {1U, 2U}) {
          const std::string kernel = fmt::format("wgmma_{}_n{}_x{}", form, n, count);
          TimingCase& added = add(fmt::format("{}, {} warpgroups", kernel, warpgroups), kernel);
          added.threads = 128 * warpgroups;
          added.shared_bytes = kTimingSharedBytes;
          added.operations = static_cast<double>(count) * warpgroups;
        }
      }
    };
    for (const int n : {8, 32, 64, 128, 256}) groups("ss", n);
    for (const int n : {8, 32, 64, 128}) groups("rs", n);
    for (const int n : {64, 128}) groups("fp8", n);
    for (const char* form : {"ss_n64", "ss_n128", "ss_n256", "rs_n64", "rs_n128"}) {
      for (const std::uint32_t warpgroups : {1U, 2U}) {
        const std::string kernel = fmt::format("wgmma_marks_{}", form);
        TimingCase& added = add(fmt::format("{}, {} warpgroups", kernel, warpgroups), kernel);
        added.threads = 128 * warpgroups;
        added.shared_bytes = kTimingSharedBytes;
        added.reading = Reading::kMarks;
        added.num_marks = kTimingProducts + 2;
        added.iterations = 6;
      }
    }
    for (const char* probe :
         {"ffma_ss_n128",       "fadd_ss_n128",   "fmul_immediate_ss_n128", "fmin_fmax_ss_n128",
          "cvt_bf16x2_ss_n128", "ex2_ss_n128",    "shfl_bfly_ss_n128",      "ffma_ss_n256",
          "ffma_ss_n64",        "ffma_rs_n128",   "fadd_rs_n128",           "ex2_rs_n128",
          "load4_ss_n128",      "load4_rs_n128",  "load16_ss_n64",          "load16_ss_n128",
          "load16_ss_n256",     "load16_rs_n64",  "load16_rs_n128",         "load16_fp8_n128",
          "store16_ss_n128",    "store16_rs_n128"}) {
      for (const std::uint32_t others : {0U, 1U, 2U}) {
        for (const std::uint32_t products : {0U, 1U}) {
          if (others + products == 0) continue;
          const std::string kernel = fmt::format("wgmma_beside_{}", probe);
          TimingCase& added = add(fmt::format("{}, {} other warpgroups, {}", kernel, others,
                                              products == 0 ? "no products" : "products"),
                                  kernel);
          added.threads = 128 * (1 + others);
          added.shared_bytes = kTimingSharedBytes;
          added.count = products;
          added.reading = Reading::kWarps;
          added.iterations = 8;
          // Products are 16 groups of 8.
          const std::string_view what = probe;
          added.operations = what.starts_with("load") || what.starts_with("store")
                                 ? 16 * 64    // accesses
                                 : 16 * 128;  // steps
        }
      }
    }
    for (const int chains : {1, 2, 4, 8}) {
      add_warps(fmt::format("mma_sync_x{}", chains), {1, 4, 8, 12}, 64);
    }
  }

  // Arithmetic at rates that leave room for products: of other warps, and of those that multiply.
  void beside_products() {
    for (const char* probe : {"ffma_x1_ss_n128",
                              "ffma_x2_ss_n128",
                              "ffma_x4_ss_n128",
                              "ffma_x1_rs_n128",
                              "ffma_x2_rs_n128",
                              "ffma_x4_rs_n128",
                              "ffma_x1_ss_n64",
                              "ffma_x2_ss_n64",
                              "ffma_x4_ss_n64",
                              "ffma_x1_ss_n256",
                              "ffma_x2_ss_n256",
                              "ffma_x4_ss_n256",
                              "fadd_x1_ss_n128",
                              "fadd_x2_ss_n128",
                              "fadd_x4_ss_n128",
                              "fmul_immediate_x1_ss_n128",
                              "fmul_immediate_x2_ss_n128",
                              "fmul_immediate_x4_ss_n128",
                              "fmin_fmax_x1_ss_n128",
                              "fmin_fmax_x2_ss_n128",
                              "fmin_fmax_x4_ss_n128",
                              "cvt_bf16x2_x1_ss_n128",
                              "cvt_bf16x2_x2_ss_n128",
                              "cvt_bf16x2_x4_ss_n128",
                              "imad_x1_ss_n128",
                              "imad_x2_ss_n128",
                              "imad_x4_ss_n128",
                              "ffma_ex2_x8_ss_n128",
                              "ffma_fmax_x1_ss_n128",
                              "ffma_fmax_x8_ss_n128",
                              "softmax_x8_ss_n128",
                              "softmax_x8_rs_n128"}) {
      const std::string_view what = probe;
      const std::string kernel = fmt::format("wgmma_paced_{}", probe);
      for (const std::uint32_t others : {0U, 1U, 2U}) {
        for (const bool multiplies : {false, true}) {
          if (others == 0 && !multiplies) continue;
          TimingCase& added = add(fmt::format("{}, {} other warpgroups, {}", kernel, others,
                                              multiplies ? "products" : "no products"),
                                  kernel);
          added.threads = 128 * (1 + others);
          added.shared_bytes = kTimingSharedBytes;
          // Products for 32,768 clocks, of which the others take a part
          const std::uint32_t groups = what.ends_with("n64")    ? 128
                                       : what.ends_with("n256") ? 32
                                                                : 64;
          added.count = multiplies ? groups : 0;
          added.stride = what.find("_x1_") != what.npos   ? 16
                         : what.find("_x4_") != what.npos ? 64
                                                          : 32;
          added.reading = Reading::kWarps;
          added.iterations = 6;
          added.operations = 128 * added.stride;  // steps
        }
      }
    }
    for (const char* probe :
         {"ffma_x1_ss_n128", "ffma_x4_ss_n128", "ffma_x16_ss_n128", "fmin_fmax_x1_ss_n128",
          "fmin_fmax_x16_ss_n128", "softmax_x8_ss_n128", "softmax_x8_rs_n128"}) {
      const std::string kernel = fmt::format("wgmma_own_{}", probe);
      for (const std::uint32_t warpgroups : {1U, 2U}) {
        for (const std::uint32_t parts : {1U, 2U, 3U}) {
          TimingCase& added = add(fmt::format("{}, {} warpgroups, {}", kernel, warpgroups,
                                              parts == 1   ? "products"
                                              : parts == 2 ? "steps"
                                                           : "both"),
                                  kernel);
          added.threads = 128 * warpgroups;
          added.shared_bytes = kTimingSharedBytes;
          added.count = parts;
          added.reading = Reading::kWarps;
          added.iterations = 6;
          added.operations = 16;  // groups of eight products
        }
      }
    }
  }

  // The skeleton of attention's kernels: see time_tiles().
  void tiles_of_attention() {
    for (const char* kernel :
         {"wgmma_tiles", "wgmma_tiles_turns", "wgmma_tiles_ahead", "wgmma_tiles_turns_ahead"}) {
      for (const std::uint32_t warpgroups : {1U, 2U}) {
        if (warpgroups == 1 && std::string_view(kernel).find("turns") != std::string_view::npos) {
          continue;
        }
        for (const std::uint32_t steps : {4U, 32U}) {
          TimingCase& added =
              add(fmt::format("{}, {} warpgroups, {} steps", kernel, warpgroups, steps), kernel);
          added.threads = 128 * warpgroups;
          added.shared_bytes = kTimingSharedBytes;
          added.count = steps;
          added.reading = Reading::kWarps;
          added.iterations = 6;
          added.operations = steps;
        }
      }
    }
  }

  // mma.sync beside other warps' work and the warp's own.
  void few_tokens() {
    for (const char* step : {"ffma", "imad", "lop3", "prmt", "mul_bf16x2", "ex2"}) {
      const std::string kernel = fmt::format("mma_sync_beside_{}", step);
      for (const std::uint32_t others : {0U, 1U, 2U}) {
        for (const std::uint32_t products : {0U, 1U}) {
          if (others + products == 0) continue;
          TimingCase& added = add(fmt::format("{}, {} other warpgroups, {}", kernel, others,
                                              products == 0 ? "no products" : "products"),
                                  kernel);
          added.threads = 128 * (1 + others);
          added.count = products;
          added.reading = Reading::kWarps;
          added.iterations = 8;
          added.operations = 16 * 128;  // steps; products are 16 times 64
        }
      }
    }
    for (const char* parts : {"loads", "decodes", "loads_decodes", "products_1", "loads_products_1",
                              "decodes_products_1", "all_1", "all_2", "all_4"}) {
      for (const std::uint32_t warps : {1U, 4U, 8U, 16U}) {
        const std::string kernel = fmt::format("few_tokens_{}", parts);
        TimingCase& added = add(fmt::format("{}, {} warps", kernel, warps), kernel);
        added.threads = 32 * warps;
        added.shared_bytes = 32 << 10;
        added.iterations = 8;
        added.operations = 16 * 8;  // blocks of 64 along K
      }
    }
  }

  void barriers() {
    constexpr double kTurns = 32;  // kTurns of barrier.cu
    add_warps("cta_barrier", {1, 4, 8, 12, 16, 32}, kTurns);
    add_warps("barrier_ring", {8, 12, 16}, kTurns);
    add_warps("hand_over", {2, 5, 9, 13}, kTurns);
    add_warps("arrivals", {1}, kTurns);
    add_warps("ready_waits", {1, 4}, kTurns);
    add_warps("own_phases", {1}, kTurns);
    add_warps("set_registers", {4, 8, 12}, 8);
    add_warps("cta_fence", {1, 4}, kTurns);
  }

  void add_clusters(const std::string& kernel, std::initializer_list<std::uint32_t> sizes,
                    std::initializer_list<std::uint32_t> warps, double operations) {
    for (const std::uint32_t size : sizes) {
      for (const std::uint32_t count : warps) {
        TimingCase& added = add(fmt::format("{}, {} CTAs, {} warps", kernel, size, count), kernel);
        added.blocks = added.cluster = size;
        added.threads = 32 * count;
        added.operations = operations;
      }
    }
  }

  void clusters() {
    constexpr double kTurns = 32;
    add_clusters("cluster_barrier", {1, 2, 4, 8}, {4, 12}, kTurns);
    add_clusters("cluster_barrier_relaxed", {1, 2, 4, 8}, {4, 12}, kTurns);
    add_clusters("remote_hand_over", {2}, {4}, kTurns);
    add_clusters("remote_chain", {2, 4}, {1}, kTurns);
    add_clusters("remote_loads", {2, 4}, {1, 4, 8}, kTurns);
    for (const char* kernel :
         {"remote_stores", "remote_stores_synced", "own_stores", "own_stores_synced"}) {
      add_clusters(kernel, {2, 4}, {1, 4, 8, 12}, kTurns);
    }
  }

  void fences() {
    add_warps("gpu_fence", {1, 4}, 1);
    add_warps("gpu_fence_after_1_store", {1, 4}, 1);
    add_warps("gpu_fence_after_8_stores", {1, 4}, 1);
    add_warps("cluster_fence", {1}, 1);
  }

  void copies() {
    for (const char* kernel : {"copy_tensor", "copy_tensor_prefetched", "copy_plain"}) {
      for (const std::uint32_t bytes : {256U, 1024U, 4096U, 16384U, 32768U}) {
        for (const std::uint32_t count : {1U, 2U, 4U, 6U}) {
          if (count != 1 && bytes < 16384) continue;
          for (const Caches caches : {Caches::kWarm, Caches::kClean}) {
            TimingCase& added = add(fmt::format("{}, {} of {} bytes, {}", kernel, count, bytes,
                                                caches == Caches::kWarm ? "L2" : "HBM"),
                                    kernel);
            added.shared_bytes = kTimingSharedBytes;
            added.stride = bytes;
            added.count = count;
            added.iterations = 16;
            added.memory_bytes = 16 * kMiB;
            added.caches = caches;
            added.reading = Reading::kMarks;
            added.num_marks = kTimingCopyMarks;
            added.launches = 3;
          }
        }
      }
    }
    for (const std::uint32_t kib : {8U, 16U, 32U, 64U, 128U, 192U}) {
      for (const std::uint64_t mib : {16U, 1024U}) {
        const std::uint32_t box = kib < 64 ? kib * 512 : 32 << 10;
        TimingCase& added =
            add(fmt::format("copy_stream, {} KiB an SM, {}", kib, mib == 16 ? "L2" : "HBM"),
                "copy_stream");
        added.blocks = kSms;
        added.shared_bytes = kTimingSharedBytes;
        added.stride = box;
        added.count = kib * 1024 / box;
        added.memory_bytes = mib * kMiB;
        added.iterations = static_cast<std::uint32_t>(1024 * kMiB / box);
        added.reading = Reading::kMicroseconds;
        added.launches = 5;
        added.operations = static_cast<double>(1024 * kMiB);
      }
    }
  }

  void rings() {
    for (const std::uint32_t bytes : {1024U, 2048U, 4096U}) {
      for (const std::uint32_t count : {1U, 2U, 3U}) {
        for (const std::uint32_t mib : {64U, 1024U}) {
          TimingCase& added =
              add(fmt::format("copy_rings, {} of {} bytes a warp, {} MiB", count, bytes, mib),
                  "copy_rings");
          added.blocks = kSms;
          added.threads = 512;
          added.shared_bytes = kTimingSharedBytes;
          added.stride = bytes;
          added.count = count;
          added.memory_bytes = mib * kMiB;
          added.iterations = 1;
          added.caches = Caches::kClean;
          added.reading = Reading::kMicroseconds;
          added.launches = 5;
          added.operations = static_cast<double>(mib * kMiB);
        }
      }
    }
  }

  void add_pages(const char* kernel, std::uint32_t bytes, std::uint32_t pages, std::uint32_t warps,
                 std::uint32_t count) {
    TimingCase& added = add(fmt::format("{}, {} of {} bytes", kernel, pages, bytes), kernel);
    added.blocks = kSms;
    added.threads = 32 * warps;
    added.shared_bytes = kTimingSharedBytes;
    added.stride = bytes;
    added.count = count;
    added.memory_bytes = std::uint64_t{bytes} * (256 * kMiB / std::bit_floor(bytes));
    added.iterations = pages;
    added.caches = Caches::kClean;
    added.reading = Reading::kMicroseconds;
    added.launches = 7;
    added.operations = static_cast<double>(pages) * bytes;
  }

  // Some 100 KB under way in each SM, of pages that lie anywhere, as keys of a cache do.
  void pages() {
    struct Ring {
      std::uint32_t bytes, warps, count;
    };
    for (const std::uint32_t row : {128U, 512U, 2048U, 8192U}) {
      TimingCase& added = add(fmt::format("copy_boxes, rows of {} bytes", row), "copy_boxes");
      added.blocks = kSms;
      added.shared_bytes = kTimingSharedBytes;
      added.stride = row;
      added.count = 12;
      added.memory_bytes = std::uint64_t{kSms} * 4 * 64 * 8192;
      added.iterations = 1;
      added.caches = Caches::kClean;
      added.reading = Reading::kMicroseconds;
      added.launches = 7;
      added.operations = static_cast<double>(added.memory_bytes);
    }
    for (const auto [bytes, warps, count] : {Ring{1024, 16, 6},
                                             {2048, 16, 3},
                                             {4096, 8, 3},
                                             {8448, 4, 3},
                                             {16384, 2, 3},
                                             {32768, 1, 3}}) {
      const std::uint32_t all = 256 * kMiB / std::bit_floor(bytes);
      for (const char* kernel : {"copy_pages", "copy_pages_shuffled", "copy_pages_stores"}) {
        if (bytes != 8448 && std::string_view(kernel) == "copy_pages_stores") continue;
        for (const std::uint32_t part : {16U, 8U, 4U, 2U, 1U}) {
          if (bytes == 8448 || part == 2) add_pages(kernel, bytes, all / part, warps, count);
        }
      }
    }
  }

  void stream(const std::string& name, std::uint32_t blocks, std::uint32_t threads,
              std::uint64_t memory_bytes, std::uint64_t bytes, Caches caches, Reading reading,
              const char* kernel = "memory_stream") {
    TimingCase& added = add(name, kernel);
    added.blocks = blocks;
    added.threads = threads;
    added.memory_bytes = memory_bytes;
    added.count =
        static_cast<std::uint32_t>(bytes / (std::uint64_t{blocks} * threads * 16) / 8 * 8);
    added.iterations = 1;
    added.caches = caches;
    added.reading = reading;
    added.launches = 5;
    added.operations = static_cast<double>(added.count) * blocks * threads * 16;
  }

  void memory() {
    const auto chain = [&](const char* name, std::uint64_t memory_bytes, std::uint32_t stride,
                           Caches caches) {
      TimingCase& added = add(name, "memory_loads");
      added.memory_bytes = memory_bytes;
      added.stride = stride;
      added.caches = caches;
      added.iterations = 512;
      added.launches = 2;
    };
    chain("memory_loads, L2, 128 KiB", 128 << 10, 256, Caches::kWarm);
    chain("memory_loads, L2, 2 MiB", 2 * kMiB, 4352, Caches::kWarm);
    chain("memory_loads, L2, 24 MiB", 24 * kMiB, 49408, Caches::kWarm);
    chain("memory_loads, HBM, 2 MiB", 2 * kMiB, 4352, Caches::kClean);
    chain("memory_loads, HBM, 64 MiB", 64 * kMiB, 131328, Caches::kClean);
    chain("memory_loads, HBM, 1 GiB, pages of 2 MiB", 1024 * kMiB, (2 << 20) + 131328,
          Caches::kClean);
    chain("memory_loads, HBM, 64 MiB, all SMs", 64 * kMiB, 131328, Caches::kClean);
    cases_.back().blocks = kSms;
    cases_.back().reading = Reading::kMean;
    chain("memory_loads, HBM, 64 MiB, dirty lines", 64 * kMiB, 131328, Caches::kDirty);
    for (const std::uint32_t threads : {128U, 256U, 512U, 1024U}) {
      stream(fmt::format("memory_stream, one SM, L2, {} threads", threads), 1, threads, 8 * kMiB,
             8 * kMiB, Caches::kWarm, Reading::kSpan);
      stream(fmt::format("memory_stream, one SM, HBM, {} threads", threads), 1, threads, 8 * kMiB,
             8 * kMiB, Caches::kClean, Reading::kSpan);
    }
    for (const std::uint64_t mib : {4U, 8U, 16U, 24U, 32U, 40U, 48U}) {
      stream(fmt::format("memory_stream, L2, {} MiB", mib), kSms * 2, 1024, mib * kMiB, 1024 * kMiB,
             Caches::kWarm, Reading::kMicroseconds);
    }
    for (const Caches caches : {Caches::kClean, Caches::kDirty}) {
      for (const std::uint64_t mib : {16U, 64U, 256U, 1024U}) {
        stream(fmt::format("memory_stream, HBM, {} MiB, {} lines", mib,
                           caches == Caches::kClean ? "clean" : "dirty"),
               kSms * 2, 1024, mib * kMiB, mib * kMiB, caches, Reading::kMicroseconds);
      }
    }
    for (const std::uint64_t mib : {16U, 1024U}) {
      stream(fmt::format("memory_stores, {} MiB", mib), kSms * 2, 1024, mib * kMiB, 1024 * kMiB,
             Caches::kWarm, Reading::kMicroseconds, "memory_stores");
    }
  }

  void atomics() {
    add_warps("atomic_chain", {1}, 16);
    for (const char* kernel : {"atomics", "reductions"}) {
      for (const std::uint32_t stride : {0U, 4U, 32U, 128U}) {
        TimingCase& added = add(fmt::format("{}, all SMs, {} bytes apart", kernel, stride), kernel);
        added.blocks = kSms;
        added.threads = 256;
        added.stride = stride;
        added.count = stride == 0 ? 16 : 64;
        added.memory_bytes = 16 * kMiB;
        added.iterations = 1;
        added.reading = Reading::kMicroseconds;
        added.launches = 5;
        added.operations = static_cast<double>(kSms) * 256 * added.count;
      }
    }
  }

  void launches() {
    for (const std::uint32_t threads : {128U, 384U, 1024U}) {
      for (const std::uint32_t shared : {0U, 200U << 10}) {
        TimingCase& added =
            add(fmt::format("cta_times, {} threads, {} bytes of shared memory", threads, shared),
                "cta_times");
        // Four waves: two CTAs of 1024 threads fit on an SM otherwise, sixteen of 128.
        added.blocks = kSms * 4 * (shared != 0 ? 1 : 2048 / threads);
        added.threads = threads;
        added.shared_bytes = shared;
        added.count = 4000;
        added.iterations = 1;
        added.reading = Reading::kGaps;
      }
    }
    // Where CTAs go that leave room for a second one on their SM.
    for (const std::uint32_t cluster : {1U, 2U, 4U, 8U}) {
      for (const std::uint32_t blocks : {32U, 64U, 104U, 120U, 128U, 192U}) {
        for (const bool is_dependent : {false, true}) {
          TimingCase& added =
              add(fmt::format("places of {} CTAs in clusters of {}, two to an SM{}", blocks,
                              cluster, is_dependent ? ", dependent launches" : ""),
                  "place_ctas");
          added.blocks = blocks;
          added.cluster = cluster;
          added.threads = 192;
          added.shared_bytes = 100 << 10;
          added.stride = 1000;  // clocks before the wait
          added.count = 5000;
          added.iterations = 12;
          added.is_dependent = is_dependent;
          added.reading = Reading::kPlaces;
        }
      }
    }
    // One wave that works for two million clocks: what the clock is.
    TimingCase& clock = add("clock, 2000000 clocks", "cta_times");
    clock.blocks = kSms;
    clock.threads = 128;
    clock.count = 2'000'000;
    clock.iterations = 1;
    clock.reading = Reading::kMicroseconds;
    clock.launches = 5;
    clock.operations = clock.count;
  }

  TimingCase& add_power(const std::string& what, const std::string& kernel, std::uint32_t threads,
                        std::uint32_t rounds, std::uint32_t sleep_ns = 0) {
    TimingCase& added =
        add(fmt::format("power: {}, {} rounds{}", what, rounds,
                        sleep_ns == 0 ? "" : fmt::format(", {} ns of sleep between", sleep_ns)),
            kernel);
    added.blocks = kSms;
    added.threads = threads;
    added.shared_bytes = kTimingSharedBytes;
    added.iterations = 1;
    added.count = rounds;
    added.stride = sleep_ns;
    added.reading = Reading::kClock;
    added.launches = 5;
    added.operations = rounds;
    return added;
  }

  // The clock under load. A round of eight products of two warpgroups takes 1024 clocks, one of 256
  // steps of 16 warps 1024 or a multiple.
  void power() {
    add_power("sleep", "power_sleep", 128, 1000, 1000);
    for (const char* form : {"ss", "rs", "fp8"}) {
      const std::string kernel = fmt::format("power_products_{}", form);
      for (const std::uint32_t rounds : {200U, 2000U, 40000U}) {
        add_power(kernel, kernel, 256, rounds);
      }
      for (const std::uint32_t sleep : {100U, 300U, 1000U, 3000U, 10'000U, 40'000U}) {
        add_power(kernel, kernel, 256, 2000, sleep);
      }
      add_power(kernel + " of zeros", kernel, 256, 2000).has_zeros = true;
    }
    for (const char* step : {"ffma", "fmin_fmax", "ex2", "lop3"}) {
      const std::string kernel = fmt::format("power_{}", step);
      for (const std::uint32_t rounds : {200U, 2000U, 20000U}) {
        add_power(kernel, kernel, 512, rounds);
      }
      add_power(kernel, kernel, 512, 2000, 1000);
    }
    for (const char* step : {"ffma", "ex2", "fmin_fmax"}) {
      const std::string kernel = fmt::format("power_both_{}", step);
      for (const std::uint32_t rounds : {200U, 2000U}) add_power(kernel, kernel, 384, rounds);
    }
    for (const std::uint32_t rounds : {200U, 2000U}) {
      add_power("power_shared", "power_shared", 512, rounds);
    }
    for (const std::uint64_t mib : {16U, 1024U}) {
      add_memory_power("drawn words", "power_fill", mib, 1);
      for (const std::uint32_t rounds : {100U, 1000U, 4000U}) {
        add_memory_power("reads", "power_memory", mib, rounds);
      }
    }
    add_memory_power("zeros", "power_fill", 1024, 1).has_zeros = true;
    add_memory_power("reads of zeros", "power_memory", 1024, 1000).has_zeros = true;
  }

  TimingCase& add_memory_power(const char* what, const std::string& kernel, std::uint64_t mib,
                               std::uint32_t rounds) {
    TimingCase& added = add_power(fmt::format("{}, {} MiB", what, mib), kernel, 1024, rounds);
    added.shared_bytes = 0;
    added.memory_bytes = mib * kMiB;
    return added;
  }

  std::vector<TimingCase> cases_;
};

}  // namespace

std::vector<TimingCase> timing_cases() {
  return Table().make();
}

}  // namespace tilewright::hardware
