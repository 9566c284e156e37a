#include "tilewright/hyper_connection.h"

#include "tilewright/tilewright_hyper_connection.h"

#include "ops/c_api/device.h"
#include "ops/c_api/operator.h"

namespace c_api = tilewright::c_api;
using c_api::guarded;
using c_api::initialise;
using c_api::require_address;

struct tw_hyper_connection {
  tilewright::HyperConnection connection;
};
struct tw_hyper_embedding {
  tilewright::HyperEmbedding embedding;
};
struct tw_rms_norm {
  tilewright::RmsNorm norm;
};

namespace {

tilewright::DType to_dtype(const char* function, const char* name, int32_t dtype) {
  tilewright::require(dtype == TW_BF16 || dtype == TW_F32, tilewright::ErrorKind::kInvalidArgument,
                      "{}: {} = {}; expected TW_BF16 = 0 or TW_F32 = 2", function, name, dtype);
  return dtype == TW_F32 ? tilewright::DType::kF32 : tilewright::DType::kBF16;
}

int32_t from_dtype(tilewright::DType dtype) {
  return dtype == tilewright::DType::kF32 ? TW_F32 : TW_BF16;
}

tilewright::HyperConnectionProblem to_problem(const tw_hyper_connection_problem& p) {
  constexpr const char* kName = "tw_hyper_connection_create";
  return {.tokens = p.tokens,
          .hidden = p.hidden,
          .stream_dtype = to_dtype(kName, "stream_dtype", p.stream_dtype),
          .has_merge = p.has_merge != 0,
          .has_second = p.has_second != 0,
          .has_mix = p.has_mix != 0,
          .is_head = p.is_head != 0,
          .f_dtype = to_dtype(kName, "f_dtype", p.f_dtype),
          .g_dtype = to_dtype(kName, "g_dtype", p.g_dtype),
          .iterations = p.iterations,
          .eps = p.eps,
          .norm_eps = p.norm_eps};
}

// An operator of the problem, behind a handle.
template <class Handle, class Problem, class Make>
tw_status create(const char* function, const char* name, const char* init, const tw_device* device,
                 const Problem* problem, Handle** handle, const Make& make) {
  return c_api::create(function, name, handle, [&] {
    require_address(device, function, "device");
    return make(c_api::checked(problem, function, "problem", init));
  });
}

}  // namespace

void tw_hyper_connection_problem_init(tw_hyper_connection_problem* problem) {
  const tilewright::HyperConnectionProblem p;
  tw_hyper_connection_problem defaults = {};
  defaults.stream_dtype = from_dtype(p.stream_dtype);
  defaults.f_dtype = from_dtype(p.f_dtype);
  defaults.g_dtype = from_dtype(p.g_dtype);
  defaults.has_mix = p.has_mix;
  defaults.iterations = p.iterations;
  defaults.eps = p.eps;
  defaults.norm_eps = p.norm_eps;
  initialise(problem, defaults);
}

void tw_hyper_connection_arguments_init(tw_hyper_connection_arguments* arguments) {
  initialise(arguments);
}

tw_status tw_hyper_connection_create(const tw_device* device,
                                     const tw_hyper_connection_problem* problem,
                                     tw_hyper_connection** connection) {
  return create("tw_hyper_connection_create", "connection", "tw_hyper_connection_problem_init",
                device, problem, connection, [&](const tw_hyper_connection_problem& p) {
                  return tilewright::HyperConnection(device->device, to_problem(p));
                });
}

void tw_hyper_connection_destroy(tw_hyper_connection* connection) {
  delete connection;
}

size_t tw_hyper_connection_workspace_bytes(const tw_hyper_connection* connection) {
  return connection == nullptr ? 0 : connection->connection.workspace_bytes();
}

tw_status tw_hyper_connection_run(const tw_hyper_connection* connection,
                                  const tw_hyper_connection_arguments* arguments) {
  return guarded([&] {
    constexpr const char* kName = "tw_hyper_connection_run";
    require_address(connection, kName, "connection");
    const auto& a =
        c_api::checked(arguments, kName, "arguments", "tw_hyper_connection_arguments_init");
    connection->connection.run({.streams = a.streams,
                                .merged = a.merged,
                                .mix_before = a.mix_before,
                                .f = a.f,
                                .g = a.g,
                                .fn = a.fn,
                                .base = a.base,
                                .scale = a.scale,
                                .norm_weight = a.norm_weight,
                                .mix = a.mix,
                                .out = a.out,
                                .workspace = a.workspace,
                                .stream = a.stream});
  });
}

void tw_hyper_embedding_problem_init(tw_hyper_embedding_problem* problem) {
  initialise(problem);
}

tw_status tw_hyper_embedding_create(const tw_device* device,
                                    const tw_hyper_embedding_problem* problem,
                                    tw_hyper_embedding** embedding) {
  constexpr const char* kName = "tw_hyper_embedding_create";
  return create(kName, "embedding", "tw_hyper_embedding_problem_init", device, problem, embedding,
                [&](const tw_hyper_embedding_problem& p) {
                  return tilewright::HyperEmbedding(
                      device->device, {p.tokens, p.hidden, p.vocab,
                                       to_dtype(kName, "stream_dtype", p.stream_dtype)});
                });
}

void tw_hyper_embedding_destroy(tw_hyper_embedding* embedding) {
  delete embedding;
}

tw_status tw_hyper_embedding_run(const tw_hyper_embedding* embedding, const void* table,
                                 const int32_t* ids, void* streams, void* stream) {
  return guarded([&] {
    require_address(embedding, "tw_hyper_embedding_run", "embedding");
    embedding->embedding.run(table, ids, streams, stream);
  });
}

void tw_rms_norm_problem_init(tw_rms_norm_problem* problem) {
  const tilewright::RmsNormProblem p;
  tw_rms_norm_problem defaults = {};
  defaults.x_dtype = from_dtype(p.x_dtype);
  defaults.has_weight = p.has_weight;
  defaults.eps = p.eps;
  initialise(problem, defaults);
}

tw_status tw_rms_norm_create(const tw_device* device, const tw_rms_norm_problem* problem,
                             tw_rms_norm** norm) {
  constexpr const char* kName = "tw_rms_norm_create";
  return create(kName, "norm", "tw_rms_norm_problem_init", device, problem, norm,
                [&](const tw_rms_norm_problem& p) {
                  return tilewright::RmsNorm(device->device,
                                             {.rows = p.rows,
                                              .cols = p.cols,
                                              .x_dtype = to_dtype(kName, "x_dtype", p.x_dtype),
                                              .x_stride = p.x_stride,
                                              .out_stride = p.out_stride,
                                              .has_weight = p.has_weight != 0,
                                              .eps = p.eps});
                });
}

void tw_rms_norm_destroy(tw_rms_norm* norm) {
  delete norm;
}

tw_status tw_rms_norm_run(const tw_rms_norm* norm, const void* x, const void* weight, void* out,
                          void* stream) {
  return guarded([&] {
    require_address(norm, "tw_rms_norm_run", "norm");
    norm->norm.run(x, weight, out, stream);
  });
}
