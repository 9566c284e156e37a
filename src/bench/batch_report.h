// Times of a sweep over batches, each against a floor and a library beside: tables and pages.
#pragma once

#include "report/terminal.h"

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::cli {

struct BatchPoint {
  double us = 0;  ///< 0: not timed
  double tflops = 0, floor_us = 0;
  bool is_ok = true;
  std::vector<double> other_us = {};  ///< as BatchView::other_names
};

/// One kernel in one format.
struct BatchRow {
  std::string name;
  bool is_peer = false;
  std::map<std::int64_t, BatchPoint> points = {};  ///< by batch
};

/// What stands in one table and one plot.
struct BatchView {
  std::string title, batch_name, peer_name;
  std::vector<std::string> other_names;  ///< of further times, which a peer has not
  std::vector<BatchRow> rows = {};
  std::map<std::int64_t, double> floors = {};  ///< us, by batch

  /// A place for a sample; ours raise the floor of their batch.
  void add(const std::string& row, bool is_peer, std::int64_t batch, BatchPoint point);
  /// Of the same batch; 0 if it was not run.
  double peer_us(std::int64_t batch) const;
};

/// The view with that title; made if there is none.
BatchView& find_view(std::vector<BatchView>& views, const BatchView& like);
/// Median of a sample's times; 0 if there are none.
double median_us(const nlohmann::json& sample, const char* key);

std::string batch_table(const BatchView& view, const Style& style);
/// A page that needs nothing else.
std::string batch_page(const nlohmann::json& log, const std::string& heading,
                       const std::string& text, const std::vector<BatchView>& views);

}  // namespace tilewright::cli
