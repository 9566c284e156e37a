#include "model/checkpoint/synthetic.h"

#include "base/error.h"
#include "model/checkpoint/draw.h"
#include "model/checkpoint/released.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace tilewright::model {
namespace {

// "w1" of "layers.0.ffn.experts.3.w1": what is alike in all layers.
std::string last_part(const std::string& name) {
  return name.substr(name.rfind('.') + 1);
}

class SyntheticReader final : public TensorReader {
 public:
  explicit SyntheticReader(const SyntheticRequest& request)
      : request_(request), kept_(local_sizes(request.share, request.config).experts) {}

  bool keeps_expert(std::int64_t expert) const override {
    return expert >= kept_.first && expert < kept_.first + kept_.count;
  }

  Matrix matrix(TensorPlace place, const std::string& name, Dim rows, Dim cols) override {
    const MatrixRange range = range_of(place, rows.size, cols.size);
    if (range.rows.count == 0) return {};
    std::string part = last_part(name);
    if (const std::int64_t which =
            std::max<std::int64_t>(place.expert, 0) % request_.different_experts)
      part += fmt::format(".{}", which);
    const Key key = {place.role, part, range.rows.count, range.cols.count};
    const auto found = drawn_.find(key);
    Matrix matrix = found != drawn_.end() ? found->second
                                          : drawn_[key] = draw(place.role, part, range, cols.size);
    matrix.name = name + ".weight";
    num_bytes_ += bytes_of(matrix.codes) + bytes_of(matrix.scales);
    return matrix;
  }

  Vector vector(TensorPlace place, const std::string& name,
                std::initializer_list<Dim> dims) override {
    std::int64_t count = 1;
    for (const Dim& dim : dims) count *= dim.size;
    count = range_of(place, count, 1).rows.count;
    num_bytes_ += 4 * count;
    return draw_vector(place.role, name, count, NamedRandom(request_.seed, name));
  }

  std::vector<std::int32_t> table(TensorPlace, const std::string& name, Dim rows, Dim cols,
                                  Dim limit) override {
    num_bytes_ += 8 * rows.size * cols.size;
    return draw_table(rows.size, cols.size, limit.size, NamedRandom(request_.seed, name));
  }

  MatrixStorage take_storage() { return std::move(storage_); }
  std::int64_t num_bytes() const noexcept { return num_bytes_; }

 private:
  using Key = std::tuple<TensorRole, std::string, std::int64_t, std::int64_t>;

  MatrixRange range_of(TensorPlace place, std::int64_t rows, std::int64_t cols) const {
    return share_of(request_.share, place.role, rows, cols, place.expert, request_.config.experts);
  }

  static std::int64_t bytes_of(const ConstTensorView& view) {
    return view.data == nullptr ? 0 : view.shape[0] * view.shape[1] * bits_per_elem(view.dtype) / 8;
  }

  Matrix draw(TensorRole role, const std::string& part, const MatrixRange& range,
              std::int64_t all_cols) {
    const std::string format(stored_format(role, request_.experts));
    const std::int64_t rows = range.rows.count, cols = range.cols.count;
    DrawnMatrix drawn = draw_matrix(format, rows, cols, drawn_deviation(role, all_cols),
                                    NamedRandom(request_.seed, part));
    Matrix matrix;
    matrix.format = format;
    matrix.rows = rows;
    matrix.cols = cols;
    matrix.tensor_scale = drawn.tensor_scale;
    const void* const codes = storage_.keep(std::move(drawn.codes));
    if (format.empty()) {
      matrix.codes = contiguous_view(codes, DType::kBF16, {rows, cols});
      return matrix;
    }
    const BlockFormat& blocks = block_format_by_name(format);
    const auto names =
        blocks.has_tensor_scale ? CheckpointNames::kModelOpt : CheckpointNames::kDeepSeek;
    const auto parts = checkpoint_parts(names, blocks, part + ".weight", rows, cols);
    matrix.codes = contiguous_view(codes, parts[0].dtype, parts[0].shape);
    matrix.scales =
        contiguous_view(storage_.keep(std::move(drawn.scales)), parts[1].dtype, parts[1].shape);
    return matrix;
  }

  const SyntheticRequest& request_;
  Range kept_;
  std::map<Key, Matrix> drawn_;
  MatrixStorage storage_;
  std::int64_t num_bytes_ = 0;
};

}  // namespace

std::shared_ptr<const Weights> synthetic_weights(const SyntheticRequest& request) {
  check_share(request.share, request.config);
  SyntheticReader reader(request);
  ModelWeights weights = read_model(request.config, reader, request.has_drafts);
  return std::make_shared<const Weights>(WeightsSource{.name = "synthetic",
                                                       .config = request.config,
                                                       .share = request.share,
                                                       .weights = std::move(weights),
                                                       .storage = reader.take_storage(),
                                                       .num_bytes = reader.num_bytes()});
}

Config synthetic_config(std::string_view like, std::int64_t layers) {
  auto config = released_config(like);
  require(config.has_value(), ErrorKind::kInvalidArgument,
          "synthetic weights of {}: no such model is known; expected flash or pro", like);
  require(layers >= 0 && layers <= config->num_layers(), ErrorKind::kInvalidArgument,
          "synthetic weights: {} layers of {}; expected 1 to {}, or 0 for all", layers, like,
          config->num_layers());
  if (layers == 0) return *config;
  config->layers.resize(static_cast<std::size_t>(layers));
  config->hash_layers = std::min(config->hash_layers, layers);
  return *config;
}

}  // namespace tilewright::model
