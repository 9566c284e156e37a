#include "bench/timing/experts.h"

#include "tilewright/buffer.h"
#include "tilewright/moe.h"

#include "base/error.h"
#include "verify/attention/data.h"
#include "verify/moe_data.h"

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

namespace tilewright::cli {

namespace {

constexpr std::int64_t kDistinct = 4;  // experts that differ: which are equal changes no time

MoeShape shape_of(const TimingPoint& point) {
  MoeShape shape = find_moe_shape(point.shape);
  shape.has_shared = point.problem["shared"];
  return shape;
}

NumberFormat experts_format(const TimingPoint& point) {
  const auto format = number_format_from_string(point.format);
  require(format.has_value(), ErrorKind::kInvalidArgument,
          "bench timing: a row of {} has format = {}, which is none", point.kernel, point.format);
  return *format;
}

LinearActivations activations_of(const TimingPoint& point) {
  if (point.problem.value("activations", "") == "block_scaled")
    return LinearActivations::kBlockScaled;
  return point.is_for_fp8 || point.kernel == "wide8" ? LinearActivations::kFp8
                                                     : LinearActivations::kBf16;
}

MoeWeights prepared(const Device& device, const MoeShape& shape, NumberFormat format,
                    LinearActivations activations) {
  const MoeExperts experts(shape, format, kDistinct);
  MoeWeightsSource source = experts.source();
  std::vector<float> ones;
  if (format == NumberFormat::kFp8 && activations == LinearActivations::kBlockScaled) {
    // Blackwell's tensor cores multiply by powers of two alone, whichever.
    ones.assign(static_cast<std::size_t>((shape.hidden + 127) / 128 * ((shape.inter + 127) / 128)),
                1.0F);
    for (auto* const matrices : {&source.gate, &source.up, &source.down}) {
      for (LinearWeightSource& matrix : *matrices) {
        matrix.scales = contiguous_view(static_cast<const void*>(ones.data()), DType::kF32,
                                        {matrix.scales.shape[0], matrix.scales.shape[1]});
      }
    }
  }
  return MoeWeights::prepare(device, source, activations);
}

// One call's operands, and the FP8 expert beside if the log has one.
class ExpertsCall {
 public:
  ExpertsCall(const Device& device, const Stream& stream, const TimingPoint& point)
      : shape_(shape_of(point)),
        stream_(stream.handle()),
        weights_(prepared(device, shape_, experts_format(point), activations_of(point))),
        problem_(problem(point)),
        moe_(weights_, problem_),
        routing_(draw_routing(shape_, problem_.tokens, 1)),
        x_(Buffer::from(device, draw_normal(problem_.tokens * shape_.hidden, 1, DType::kBF16))),
        ids_(Buffer::from(device, routing_.ids)),
        factors_(Buffer::from(device, routing_.weights)),
        out_(device, bytes_of_out()),
        workspace_(device, moe_.plan().workspace_bytes) {
    if (!point.has_single) return;
    const MoeShape one = {"single", 1, 1, shape_.hidden, shape_.inter, false, shape_.swiglu_limit};
    single_weights_.emplace(prepared(device, one, NumberFormat::kFp8, LinearActivations::kBf16));
    MoeProblem beside = problem_;
    beside.topk = 1;
    beside.routing = MoeRouting::kSingle;
    single_.emplace(*single_weights_, beside);
    single_out_.emplace(device, bytes_of_out());
    single_workspace_.emplace(device, single_->plan().workspace_bytes);
  }

  void enqueue() const {
    const MoeArguments routed = {.x = x_.data(),
                                 .ids = ids_.as<const std::int32_t>(),
                                 .weights = factors_.as<const float>(),
                                 .out = out_.data(),
                                 .workspace = workspace_.data(),
                                 .stream = stream_};
    if (!single_) return moe_.run(routed);
    moe_.run_with_shared(routed, *single_,
                         {.x = x_.data(),
                          .out = single_out_->data(),
                          .workspace = single_workspace_->data(),
                          .stream = stream_});
  }

 private:
  MoeProblem problem(const TimingPoint& point) const {
    MoeProblem problem;
    problem.tokens = point.problem["tokens"];
    problem.topk = shape_.topk;
    problem.swiglu_limit =
        shape_.swiglu_limit > 0 ? shape_.swiglu_limit : std::numeric_limits<double>::infinity();
    problem.kernel = point.kernel;
    return problem;
  }
  std::size_t bytes_of_out() const {
    return 2 * static_cast<std::size_t>(problem_.tokens * shape_.hidden);
  }

  MoeShape shape_;
  void* stream_;
  MoeWeights weights_;
  MoeProblem problem_;
  Moe moe_;
  MoeRoutingData routing_;
  Buffer x_, ids_, factors_, out_, workspace_;
  std::optional<MoeWeights> single_weights_;
  std::optional<Moe> single_;
  std::optional<Buffer> single_out_, single_workspace_;
};

}  // namespace

std::function<void()> experts_call(const Device& device, const Stream& stream,
                                   const TimingPoint& point) {
  auto call = std::make_shared<ExpertsCall>(device, stream, point);
  return [call] { call->enqueue(); };
}

}  // namespace tilewright::cli
