#include "bench/moe.h"

#include "tilewright/buffer.h"
#include "tilewright/stream.h"

#include "base/error.h"
#include "base/progress.h"
#include "bench/ladder.h"
#include "formats/minifloat.h"
#include "report/time_summary.h"
#include "verify/attention/data.h"
#include "verify/device_facts.h"
#include "verify/graph_times.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

constexpr std::size_t kRoutings = 8;  // taken in turn: few tokens then visit many experts

double moe_limit_of(const MoeShape& shape) {
  return shape.swiglu_limit > 0 ? shape.swiglu_limit : std::numeric_limits<double>::infinity();
}

std::vector<float> to_floats(const std::vector<std::uint16_t>& bf16) {
  std::vector<float> values;
  values.reserve(bf16.size());
  for (const std::uint16_t code : bf16)
    values.push_back(std::bit_cast<float>(std::uint32_t{code} << 16));
  return values;
}

// The FP8 expert beside the routed ones, of their sizes: copies that take turns, more bytes than
// the L2 cache holds.
class SingleExpert {
 public:
  SingleExpert(const Device& device, const MoeShape& shape)
      : host_({"single", 1, 1, shape.hidden, shape.inter, false, shape.swiglu_limit},
              NumberFormat::kFp8, 1) {
    constexpr std::size_t kCopies = 8;
    for (std::size_t i = 0; i < kCopies; ++i)
      copies_.push_back(MoeWeights::prepare(device, host_.source()));
  }

  const std::vector<MoeWeights>& copies() const { return copies_; }
  MoeProblem problem(const MoeProblem& routed) const {
    MoeProblem p = routed;
    p.topk = 1;
    p.routing = MoeRouting::kSingle;
    if (p.kernel != "direct" && p.kernel != "band") p.kernel = "auto";
    return p;
  }
  MoePlan plan(const Device& device, const MoeProblem& routed) const {
    return plan_moe(device, copies_.front().info(), problem(routed));
  }
  std::vector<double> exact_row(const float* x, double limit) {
    const std::int32_t id = 0;
    const float weight = 1;
    return host_.exact_row(x, &id, &weight, limit);
  }

 private:
  MoeExperts host_;
  std::vector<MoeWeights> copies_;
};

// Tokens and routings of a shape on the device.
struct MoeOperands {
  std::vector<std::uint16_t> x;
  std::vector<MoeRoutingData> routings;
  Buffer x_buffer;
  std::vector<Buffer> ids, weights;

  MoeOperands(const Device& device, const MoeShape& shape, std::int64_t tokens)
      : x(draw_normal(tokens * shape.hidden, 1, DType::kBF16)), x_buffer(Buffer::from(device, x)) {
    for (std::size_t r = 0; r < kRoutings; ++r) {
      routings.push_back(draw_routing(shape, tokens, r + 1));
      ids.push_back(Buffer::from(device, routings.back().ids));
      weights.push_back(Buffer::from(device, routings.back().weights));
    }
  }

  std::vector<float> row(std::int64_t token, std::int64_t hidden) const {
    const auto first = x.begin() + token * hidden;
    return to_floats({first, first + hidden});
  }
};

// One kernel at one number of tokens.
class MoePoint {
 public:
  MoePoint(const MoeWeights& weights, const MoeProblem& problem, const MoeOperands& operands,
           const SingleExpert* single)
      : moe_(weights, problem),
        operands_(operands),
        device_(weights.device()),
        stream_(device_),
        timer_(device_),
        elems_(static_cast<std::size_t>(problem.tokens * weights.info().hidden)),
        out_(device_, elems_ * 2),
        workspace_(device_, moe_.plan().workspace_bytes),
        single_out_(device_, single == nullptr ? 0 : elems_ * 2) {
    out_.poison();
    if (single == nullptr) return;
    for (const MoeWeights& copy : single->copies())
      singles_.emplace_back(copy, single->problem(problem));
    single_workspace_.emplace(device_, singles_.front().plan().workspace_bytes);
    single_out_.poison();
  }

  const MoePlan& plan() const { return moe_.plan(); }

  MoeArguments arguments(std::size_t routing) const {
    return {.x = operands_.x_buffer.data(),
            .ids = operands_.ids[routing].as<const std::int32_t>(),
            .weights = operands_.weights[routing].as<const float>(),
            .out = out_.data(),
            .workspace = workspace_.data(),
            .stream = stream_.handle()};
  }

  std::vector<float> run() {
    enqueue(0);
    moe_.check(arguments(0));
    return download(out_);
  }
  /// After run(), of the expert beside.
  std::vector<float> single_result() { return download(single_out_); }

  double time_us(const std::function<void()>& work) { return timer_.time_us(stream_, work); }

  // Several calls in a graph, each with the next routing.
  void measure(int samples, json& log) {
    const double once = time_us([&] { enqueue(1); });
    const int runs = std::clamp(static_cast<int>(2000 / std::max(once, 1.0)), 1, 16);
    log["runs_per_sample"] = runs;
    graph_times(device_, stream_, {.calls = runs, .samples = samples}, [&](int i) {
      enqueue(static_cast<std::size_t>(i));
    }).write(log);
  }

  // Each launch alone, between events: what the next one hides is in it.
  json time_steps() {
    const std::vector<Launch>& launches = plan().launches;
    std::map<std::string, std::vector<double>> us;
    for (std::size_t repetition = 0; repetition < 5; ++repetition)
      for (std::size_t i = 0; i < launches.size(); ++i)
        us[launches[i].step].push_back(time_us([&] { moe_.run_launch(i, arguments(repetition)); }));
    json steps = json::object();
    for (const auto& [step, samples] : us) steps[step] = summarize(samples).median_us;
    return steps;
  }

 private:
  void enqueue(std::size_t turn) {
    const MoeArguments a = arguments(turn % kRoutings);
    if (singles_.empty()) return moe_.run(a);
    moe_.run_with_shared(a, singles_[turn % singles_.size()],
                         {.x = a.x,
                          .out = single_out_.data(),
                          .workspace = single_workspace_->data(),
                          .stream = a.stream});
  }
  std::vector<float> download(Buffer& buffer) {
    std::vector<std::uint16_t> codes(elems_);
    buffer.download(std::as_writable_bytes(std::span(codes)));
    return to_floats(codes);
  }

  Moe moe_;
  std::vector<Moe> singles_;
  const MoeOperands& operands_;
  Device device_;
  Stream stream_;
  StreamTimer timer_;
  std::size_t elems_;
  Buffer out_, workspace_, single_out_;
  std::optional<Buffer> single_workspace_;
};

class MoeRunner {
 public:
  MoeRunner(const Device& device, const MoeSweep& sweep)
      : device_(device),
        sweep_(sweep),
        progress_(stderr, "bench moe",
                  static_cast<std::int64_t>(sweep.shapes.size() * sweep.activations.size() *
                                            sweep.tokens.size() * 2),
                  "results") {}

  json run() {
    for (const MoeShape& shape : sweep_.shapes) {
      MoeExperts experts(shape, sweep_.format, sweep_.distinct);
      const std::int64_t most = *std::ranges::max_element(sweep_.tokens);
      const MoeOperands operands(device_, shape, most);
      exact_.clear();
      single_.reset();
      if (sweep_.has_single) single_ = std::make_unique<SingleExpert>(device_, shape);
      for (const LinearActivations activations : sweep_.activations) {
        const MoeWeights weights = MoeWeights::prepare(device_, experts.source(), activations);
        for (const std::int64_t tokens : sweep_.tokens)
          run_tokens(experts, operands, weights, tokens);
      }
    }
    progress_.finish();
    return std::move(samples_);
  }

 private:
  void run_tokens(MoeExperts& experts, const MoeOperands& operands, const MoeWeights& weights,
                  std::int64_t tokens) {
    MoeProblem problem = {.tokens = tokens,
                          .topk = experts.shape().topk,
                          .swiglu_limit = moe_limit_of(experts.shape())};
    const MoePlan chosen = plan_moe(device_, weights.info(), problem);
    std::vector<float> first;  // out of the first kernel: all rows of the others are compared
    for (const char* const kernel : {"direct", "band", "wide", "wide8"}) {
      const auto& wanted = sweep_.kernels;
      if (!wanted.empty() && std::ranges::find(wanted, kernel) == wanted.end()) continue;
      problem.kernel = kernel;
      json log = describe(experts.shape(), chosen, kernel);
      if (single_) add_single(log, single_->plan(device_, problem));
      log["is_chosen"] = chosen.kernel == kernel;
      try {
        MoePoint point(weights, problem, operands, single_.get());
        log["plan"] = point.plan().to_string();
        const std::vector<float> out = point.run();
        log["error"] = check(experts, operands, problem, out, kernel == std::string("wide8"));
        if (single_)
          log["single"]["error"] = check_single(operands, problem, point.single_result());
        if (first.empty()) {
          first = out;
        } else {
          log["beside"] = compare(out, first, kernel == std::string("wide8"));
        }
        if (!device_.is_simulated()) {
          point.measure(sweep_.samples, log);
          if (sweep_.has_steps) log["steps_us"] = point.time_steps();
        }
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kUnsupported) throw;
        continue;
      }
      samples_.push_back(std::move(log));
      progress_.add();
    }
  }

  static json describe(const MoeShape& shape, const MoePlan& plan, const char* kernel) {
    const MoeWeightsInfo& info = plan.weights;
    const bool is_fp8 = info.activations == LinearActivations::kFp8;
    return {{"shape", shape.name},
            {"problem",
             {{"tokens", plan.problem.tokens},
              {"topk", shape.topk},
              {"experts", shape.experts},
              {"hidden", shape.hidden},
              {"inter", shape.inter},
              {"shared", shape.has_shared}}},
            {"source", "tilewright"},
            {"kernel", kernel},
            {"format", to_string(info.format)},
            {"activations", is_fp8 ? "fp8" : "bf16"},
            {"flops", plan.flops},
            {"bytes", plan.bytes},
            {"active_experts", plan.expected_experts - (info.has_shared ? 1 : 0)},
            {"floor_bf16_us", plan.floor_us(kMoeBytesPerS, kMoeBf16FlopsPerS)},
            {"floor_fp8_us", plan.floor_us(kMoeBytesPerS, kMoeFp8FlopsPerS)}};
  }

  // What the expert beside adds.
  static void add_single(json& log, const MoePlan& plan) {
    log["single"] = {{"kernel", plan.kernel}, {"format", to_string(plan.weights.format)}};
    log["flops"] = log["flops"].get<double>() + plan.flops;
    log["bytes"] = log["bytes"].get<double>() + plan.bytes;
    for (const auto& [key, flops] : {std::pair{"floor_bf16_us", kMoeBf16FlopsPerS},
                                     std::pair{"floor_fp8_us", kMoeFp8FlopsPerS}})
      log[key] = log[key].get<double>() + plan.floor_us(kMoeBytesPerS, flops);
  }

  json check_single(const MoeOperands& operands, const MoeProblem& problem,
                    const std::vector<float>& out) {
    MoeDifference difference;
    const std::int64_t hidden = single_->copies().front().info().hidden;
    for (const std::int64_t t : {std::int64_t{0}, problem.tokens - 1}) {
      const std::vector<double> exact =
          single_->exact_row(operands.row(t, hidden).data(), problem.swiglu_limit);
      for (std::int64_t c = 0; c < hidden; ++c)
        difference.add(out[static_cast<std::size_t>(t * hidden + c)],
                       exact[static_cast<std::size_t>(c)]);
    }
    return difference.log(kMoeBf16Rms, "float64 on dequantised weights, two tokens");
  }

  // The first and the last token against float64, without roundings: the gates of the format.
  json check(MoeExperts& experts, const MoeOperands& operands, const MoeProblem& problem,
             const std::vector<float>& out, bool is_e4m3) {
    MoeDifference difference;
    const std::int64_t hidden = experts.shape().hidden;
    for (const std::int64_t t : {std::int64_t{0}, problem.tokens - 1}) {
      const std::vector<double>& exact = exact_row(experts, operands, problem, t);
      for (std::int64_t c = 0; c < hidden; ++c)
        difference.add(out[static_cast<std::size_t>(t * hidden + c)],
                       exact[static_cast<std::size_t>(c)]);
    }
    return difference.log(is_e4m3 ? kMoeFp8DrawnRms : kMoeBf16Rms,
                          "float64 on dequantised weights, two tokens");
  }

  json compare(const std::vector<float>& out, const std::vector<float>& first, bool is_e4m3) {
    MoeDifference difference;
    for (std::size_t i = 0; i < out.size(); ++i) difference.add(out[i], first[i]);
    return difference.log(is_e4m3 ? kMoeFp8DrawnRms : kMoeBf16Rms, "the first kernel, all tokens");
  }

  const std::vector<double>& exact_row(MoeExperts& experts, const MoeOperands& operands,
                                       const MoeProblem& problem, std::int64_t token) {
    std::vector<double>& row = exact_[token];
    if (!row.empty()) return row;
    const std::int64_t hidden = experts.shape().hidden;
    const std::vector<float> x = operands.row(token, hidden);
    const auto slot = static_cast<std::size_t>(token * problem.topk);
    row = experts.exact_row(x.data(), &operands.routings[0].ids[slot],
                            &operands.routings[0].weights[slot], problem.swiglu_limit);
    return row;
  }

  const Device& device_;
  const MoeSweep& sweep_;
  Progress progress_;
  std::map<std::int64_t, std::vector<double>> exact_;  // of the shape, by token
  std::unique_ptr<SingleExpert> single_;
  json samples_ = json::array();
};

}  // namespace

json run_moe_sweep(const Device& device, const MoeSweep& sweep, const std::string& command) {
  json log = ladder_header(device, command);
  log["kind"] = "moe";
  log["tool"] = std::string("tilewright bench moe ") + TILEWRIGHT_VERSION;
  log["cache"] = device.is_simulated()
                     ? "simulated: no times"
                     : "cold: the experts are larger than the L2, and 8 routings take turns";
  for (const char* const key : {"ceiling_tflops", "ceiling"}) log.erase(key);
  log["floors"] = "4.3 TB/s, 790 TFLOP/s bf16, 1600 TFLOP/s FP8";
  log["clocks_before"] = read_clocks(device);
  log["samples"] = MoeRunner(device, sweep).run();
  log["clocks_after"] = read_clocks(device);
  return log;
}

void merge_moe_peers(json& log, const json& peers) {
  require(peers.is_object() && peers.value("kind", "") == "moe" && peers.contains("samples"),
          ErrorKind::kParseError, "bench moe: the peers' file is no log of moe results");
  for (const json& sample : peers.at("samples")) log["samples"].push_back(sample);
}

bool is_moe_log_correct(const json& log) {
  for (const json& sample : log.at("samples")) {
    for (const char* const key : {"error", "beside"})
      if (sample.contains(key) && !sample[key].value("ok", false)) return false;
    if (sample.contains("single") && !sample["single"]["error"].value("ok", false)) return false;
  }
  return !log.at("samples").empty();
}

}  // namespace tilewright::cli
