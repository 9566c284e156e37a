/* clang-format off */
/* Made by tools/make_c_api.py from tools/c_api; edit that. */
#include "table.h"

#define COUNT(array) ((int)(sizeof array / sizeof array[0]))

static const Word kWords0[] = {{"tensor", 2}, {"head", 3}, {"block", 5}, {NULL, 0}};
static const Word kWords1[] = {{"rows", 0}, {"columns", 1}, {NULL, 0}};
static const Word kWords2[] = {{"auto", 0}, {"one_level", 1}, {"two_level", 2}, {NULL, 0}};
static const Word kWords3[] = {{"bf16", 0}, {"f16", 1}, {"e4m3", 3}, {NULL, 0}};
static const Word kWords4[] = {{"bf16", 0}, {"f16", 1}, {"absent", -1}, {NULL, 0}};
static const Word kWords5[] = {{"bf16", 0}, {"f16", 1}, {"e4m3", 3}, {"absent", -1}, {NULL, 0}};
static const Word kWords6[] = {{"f32", 2}, {"bf16", 0}, {"f16", 1}, {NULL, 0}};
static const Word kWords7[] = {{"bf16", 0}, {"f16", 1}, {NULL, 0}};
static const Word kWords8[] = {{"none", 0}, {"interleaved", 1}, {"halves", 2}, {NULL, 0}};
static const Word kWords9[] = {{"none", 1}, {"tensor", 2}, {"head", 3}, {NULL, 0}};
static const Word kWords10[] = {{"bf16", 0}, {"fp8", 1}, {"mxfp4", 2}, {"nvfp4", 3}, {NULL, 0}};
static const Word kWords11[] = {{"bf16", 0}, {"fp8", 1}, {"block_scaled", 2}, {NULL, 0}};
static const Word kWords12[] = {{"f32", 2}, {"e8m0", 4}, {NULL, 0}};
static const Word kWords13[] = {{"plain", 0}, {"128x4", 1}, {NULL, 0}};
static const Word kWords14[] = {{"bf16", 0}, {"e4m3", 3}, {NULL, 0}};
static const Word kWords15[] = {{"auto", 0}, {"row", 4}, {"block", 5}, {NULL, 0}};
static const Word kWords16[] = {{"bf16", 0}, {"f32", 2}, {NULL, 0}};
static const Word kWords17[] = {{"bf16", 0}, {"f4", 5}, {"e4m3", 3}, {NULL, 0}};
static const Word kWords18[] = {{"bf16", 0}, {"f16", 1}, {"f32", 2}, {NULL, 0}};
static const Word kWords19[] = {{"given", 0}, {"logits", 1}, {"hash", 2}, {"grouped", 3}, {"contiguous", 4}, {"single", 5}, {NULL, 0}};
static const Word kWords20[] = {{"softmax", 0}, {"sqrt_softplus", 1}, {NULL, 0}};
static const Word kWords21[] = {{"bf16", 0}, {"fp8", 1}, {"nvfp4", 3}, {NULL, 0}};
static const Word kWords22[] = {{"full", 0}, {"per_batch", 1}, {"per_query", 2}, {NULL, 0}};
static const Word kWords23[] = {{"bytes", 0}, {"bits", 1}, {NULL, 0}};
static const Word kWords24[] = {{"write", 0}, {"window", 1}, {"entries", 2}, {NULL, 0}};
static const Word kWords25[] = {{"csa", 0}, {"hca", 1}, {"index_fp8", 2}, {"index_mxfp4", 3}, {NULL, 0}};
static const Word kWords26[] = {{"mxfp4", 2}, {"fp8", 1}, {NULL, 0}};
static const Word kWords27[] = {{"fp8", 1}, {"mxfp4", 2}, {NULL, 0}};
static const Word kWords28[] = {{"f32", 2}, {"bf16", 0}, {NULL, 0}};
static const Word kWords29[] = {{"user", 0}, {"system", 1}, {"assistant", 2}, {NULL, 0}};

static void init_tw_reason(void* given) { tw_reason_init(given); }
static const Member kMembers_tw_reason[] = {
  {"field", KIND_TEXT, offsetof(tw_reason, field)},
  {"value", KIND_TEXT, offsetof(tw_reason, value)},
  {"rule", KIND_TEXT, offsetof(tw_reason, rule)},
  {"fix", KIND_TEXT, offsetof(tw_reason, fix)}};
static PyObject* names_tw_reason[COUNT(kMembers_tw_reason)];
static tw_reason defaults_tw_reason;
static const Struct kStruct_tw_reason = {
  "Reason", sizeof(tw_reason), init_tw_reason, kMembers_tw_reason,
  COUNT(kMembers_tw_reason), names_tw_reason, &defaults_tw_reason};

static void init_tw_candidate(void* given) { tw_candidate_init(given); }
static const Member kMembers_tw_candidate[] = {
  {"name", KIND_TEXT, offsetof(tw_candidate, name)},
  {"reason", KIND_TEXT, offsetof(tw_candidate, reason)},
  {"is_possible", KIND_FLAG, offsetof(tw_candidate, is_possible)},
  {"is_automatic", KIND_FLAG, offsetof(tw_candidate, is_automatic)},
  {"is_chosen", KIND_FLAG, offsetof(tw_candidate, is_chosen)},
  {"cost_us", KIND_F64, offsetof(tw_candidate, cost_us)}};
static PyObject* names_tw_candidate[COUNT(kMembers_tw_candidate)];
static tw_candidate defaults_tw_candidate;
static const Struct kStruct_tw_candidate = {
  "Candidate", sizeof(tw_candidate), init_tw_candidate, kMembers_tw_candidate,
  COUNT(kMembers_tw_candidate), names_tw_candidate, &defaults_tw_candidate};

static void init_tw_launch(void* given) { tw_launch_init(given); }
static const Member kMembers_tw_launch[] = {
  {"step", KIND_TEXT, offsetof(tw_launch, step)},
  {"entry", KIND_TEXT, offsetof(tw_launch, entry)},
  {"grid_x", KIND_I32, offsetof(tw_launch, grid_x)},
  {"grid_y", KIND_I32, offsetof(tw_launch, grid_y)},
  {"grid_z", KIND_I32, offsetof(tw_launch, grid_z)},
  {"block_x", KIND_I32, offsetof(tw_launch, block_x)},
  {"block_y", KIND_I32, offsetof(tw_launch, block_y)},
  {"block_z", KIND_I32, offsetof(tw_launch, block_z)},
  {"cluster", KIND_I32, offsetof(tw_launch, cluster)},
  {"shared_bytes", KIND_I32, offsetof(tw_launch, shared_bytes)}};
static PyObject* names_tw_launch[COUNT(kMembers_tw_launch)];
static tw_launch defaults_tw_launch;
static const Struct kStruct_tw_launch = {
  "Launch", sizeof(tw_launch), init_tw_launch, kMembers_tw_launch,
  COUNT(kMembers_tw_launch), names_tw_launch, &defaults_tw_launch};

static void init_tw_strides(void* given) { tw_strides_init(given); }
static const Member kMembers_tw_strides[] = {
  {"batch", KIND_I64, offsetof(tw_strides, batch)},
  {"row", KIND_I64, offsetof(tw_strides, row)},
  {"head", KIND_I64, offsetof(tw_strides, head)}};
static PyObject* names_tw_strides[COUNT(kMembers_tw_strides)];
static tw_strides defaults_tw_strides;
static const Struct kStruct_tw_strides = {
  "Strides", sizeof(tw_strides), init_tw_strides, kMembers_tw_strides,
  COUNT(kMembers_tw_strides), names_tw_strides, &defaults_tw_strides};

static void init_tw_fp8_options(void* given) { tw_fp8_options_init(given); }
static const Member kMembers_tw_fp8_options[] = {
  {"scales", KIND_WORD, offsetof(tw_fp8_options, scales), .words = kWords0},
  {"v_layout", KIND_WORD, offsetof(tw_fp8_options, v_layout), .words = kWords1},
  {"accumulation", KIND_WORD, offsetof(tw_fp8_options, accumulation), .words = kWords2}};
static PyObject* names_tw_fp8_options[COUNT(kMembers_tw_fp8_options)];
static tw_fp8_options defaults_tw_fp8_options;
static const Struct kStruct_tw_fp8_options = {
  "Fp8Options", sizeof(tw_fp8_options), init_tw_fp8_options, kMembers_tw_fp8_options,
  COUNT(kMembers_tw_fp8_options), names_tw_fp8_options, &defaults_tw_fp8_options};

static void init_tw_attention_problem(void* given) { tw_attention_problem_init(given); }
static const Member kMembers_tw_attention_problem[] = {
  {"dtype", KIND_WORD, offsetof(tw_attention_problem, dtype), .words = kWords3},
  {"batch", KIND_I64, offsetof(tw_attention_problem, batch)},
  {"heads", KIND_I64, offsetof(tw_attention_problem, heads)},
  {"kv_heads", KIND_I64, offsetof(tw_attention_problem, kv_heads)},
  {"q_len", KIND_I64, offsetof(tw_attention_problem, q_len)},
  {"kv_len", KIND_I64, offsetof(tw_attention_problem, kv_len)},
  {"head_dim", KIND_I64, offsetof(tw_attention_problem, head_dim)},
  {"scale", KIND_F64, offsetof(tw_attention_problem, scale)},
  {"causal", KIND_FLAG, offsetof(tw_attention_problem, causal)},
  {"window_left", KIND_I64, offsetof(tw_attention_problem, window_left)},
  {"window_right", KIND_I64, offsetof(tw_attention_problem, window_right)},
  {"softcap", KIND_F64, offsetof(tw_attention_problem, softcap)},
  {"has_sink", KIND_FLAG, offsetof(tw_attention_problem, has_sink)},
  {"has_lse", KIND_FLAG, offsetof(tw_attention_problem, has_lse)},
  {"is_packed", KIND_FLAG, offsetof(tw_attention_problem, is_packed)},
  {"total_q", KIND_I64, offsetof(tw_attention_problem, total_q)},
  {"total_kv", KIND_I64, offsetof(tw_attention_problem, total_kv)},
  {"q_strides", KIND_STRUCT, offsetof(tw_attention_problem, q_strides), .inner = &kStruct_tw_strides},
  {"k_strides", KIND_STRUCT, offsetof(tw_attention_problem, k_strides), .inner = &kStruct_tw_strides},
  {"v_strides", KIND_STRUCT, offsetof(tw_attention_problem, v_strides), .inner = &kStruct_tw_strides},
  {"out_strides", KIND_STRUCT, offsetof(tw_attention_problem, out_strides), .inner = &kStruct_tw_strides},
  {"kernel", KIND_TEXT, offsetof(tw_attention_problem, kernel)},
  {"out_dtype", KIND_WORD, offsetof(tw_attention_problem, out_dtype), .words = kWords4},
  {"fp8", KIND_STRUCT, offsetof(tw_attention_problem, fp8), .inner = &kStruct_tw_fp8_options},
  {"has_q_lengths", KIND_FLAG, offsetof(tw_attention_problem, has_q_lengths)},
  {"has_kv_lengths", KIND_FLAG, offsetof(tw_attention_problem, has_kv_lengths)},
  {"page_size", KIND_I64, offsetof(tw_attention_problem, page_size)},
  {"num_pages", KIND_I64, offsetof(tw_attention_problem, num_pages)},
  {"max_pages", KIND_I64, offsetof(tw_attention_problem, max_pages)},
  {"table_stride", KIND_I64, offsetof(tw_attention_problem, table_stride)},
  {"value_dim", KIND_I64, offsetof(tw_attention_problem, value_dim)},
  {"chunk", KIND_I64, offsetof(tw_attention_problem, chunk)},
  {"kv_dtype", KIND_WORD, offsetof(tw_attention_problem, kv_dtype), .words = kWords5}};
static PyObject* names_tw_attention_problem[COUNT(kMembers_tw_attention_problem)];
static tw_attention_problem defaults_tw_attention_problem;
static const Struct kStruct_tw_attention_problem = {
  "AttentionProblem", sizeof(tw_attention_problem), init_tw_attention_problem, kMembers_tw_attention_problem,
  COUNT(kMembers_tw_attention_problem), names_tw_attention_problem, &defaults_tw_attention_problem};

static void init_tw_attention_arguments(void* given) { tw_attention_arguments_init(given); }
static const Member kMembers_tw_attention_arguments[] = {
  {"q", KIND_INPUT, offsetof(tw_attention_arguments, q)},
  {"k", KIND_INPUT, offsetof(tw_attention_arguments, k)},
  {"v", KIND_INPUT, offsetof(tw_attention_arguments, v)},
  {"out", KIND_OUTPUT, offsetof(tw_attention_arguments, out)},
  {"lse", KIND_OUTPUT, offsetof(tw_attention_arguments, lse), .element = ELEMENT_F32},
  {"sink", KIND_INPUT, offsetof(tw_attention_arguments, sink), .element = ELEMENT_F32},
  {"cu_q", KIND_INPUT, offsetof(tw_attention_arguments, cu_q), .element = ELEMENT_I32},
  {"cu_kv", KIND_INPUT, offsetof(tw_attention_arguments, cu_kv), .element = ELEMENT_I32},
  {"workspace", KIND_OUTPUT, offsetof(tw_attention_arguments, workspace)},
  {"stream", KIND_STREAM, offsetof(tw_attention_arguments, stream)},
  {"q_descale", KIND_INPUT, offsetof(tw_attention_arguments, q_descale), .element = ELEMENT_F32},
  {"k_descale", KIND_INPUT, offsetof(tw_attention_arguments, k_descale), .element = ELEMENT_F32},
  {"v_descale", KIND_INPUT, offsetof(tw_attention_arguments, v_descale), .element = ELEMENT_F32},
  {"v_descale_max", KIND_INPUT, offsetof(tw_attention_arguments, v_descale_max), .element = ELEMENT_F32},
  {"q_lengths", KIND_INPUT, offsetof(tw_attention_arguments, q_lengths), .element = ELEMENT_I32},
  {"kv_lengths", KIND_INPUT, offsetof(tw_attention_arguments, kv_lengths), .element = ELEMENT_I32},
  {"block_table", KIND_INPUT, offsetof(tw_attention_arguments, block_table), .element = ELEMENT_I32}};
static PyObject* names_tw_attention_arguments[COUNT(kMembers_tw_attention_arguments)];
static tw_attention_arguments defaults_tw_attention_arguments;
static const Struct kStruct_tw_attention_arguments = {
  "AttentionArguments", sizeof(tw_attention_arguments), init_tw_attention_arguments, kMembers_tw_attention_arguments,
  COUNT(kMembers_tw_attention_arguments), names_tw_attention_arguments, &defaults_tw_attention_arguments};

static void init_tw_attention_merge_problem(void* given) { tw_attention_merge_problem_init(given); }
static const Member kMembers_tw_attention_merge_problem[] = {
  {"part_dtype", KIND_WORD, offsetof(tw_attention_merge_problem, part_dtype), .words = kWords6},
  {"out_dtype", KIND_WORD, offsetof(tw_attention_merge_problem, out_dtype), .words = kWords6},
  {"parts", KIND_I64, offsetof(tw_attention_merge_problem, parts)},
  {"batch", KIND_I64, offsetof(tw_attention_merge_problem, batch)},
  {"rows", KIND_I64, offsetof(tw_attention_merge_problem, rows)},
  {"heads", KIND_I64, offsetof(tw_attention_merge_problem, heads)},
  {"head_dim", KIND_I64, offsetof(tw_attention_merge_problem, head_dim)},
  {"has_sink", KIND_FLAG, offsetof(tw_attention_merge_problem, has_sink)},
  {"has_lse", KIND_FLAG, offsetof(tw_attention_merge_problem, has_lse)},
  {"part_stride", KIND_I64, offsetof(tw_attention_merge_problem, part_stride)},
  {"lse_part_stride", KIND_I64, offsetof(tw_attention_merge_problem, lse_part_stride)},
  {"part_strides", KIND_STRUCT, offsetof(tw_attention_merge_problem, part_strides), .inner = &kStruct_tw_strides},
  {"out_strides", KIND_STRUCT, offsetof(tw_attention_merge_problem, out_strides), .inner = &kStruct_tw_strides},
  {"lse_part_strides", KIND_STRUCT, offsetof(tw_attention_merge_problem, lse_part_strides), .inner = &kStruct_tw_strides},
  {"lse_strides", KIND_STRUCT, offsetof(tw_attention_merge_problem, lse_strides), .inner = &kStruct_tw_strides},
  {"other_strides", KIND_STRUCT, offsetof(tw_attention_merge_problem, other_strides), .inner = &kStruct_tw_strides},
  {"lse_other_strides", KIND_STRUCT, offsetof(tw_attention_merge_problem, lse_other_strides), .inner = &kStruct_tw_strides}};
static PyObject* names_tw_attention_merge_problem[COUNT(kMembers_tw_attention_merge_problem)];
static tw_attention_merge_problem defaults_tw_attention_merge_problem;
static const Struct kStruct_tw_attention_merge_problem = {
  "AttentionMergeProblem", sizeof(tw_attention_merge_problem), init_tw_attention_merge_problem, kMembers_tw_attention_merge_problem,
  COUNT(kMembers_tw_attention_merge_problem), names_tw_attention_merge_problem, &defaults_tw_attention_merge_problem};

static void init_tw_attention_merge_arguments(void* given) { tw_attention_merge_arguments_init(given); }
static const Member kMembers_tw_attention_merge_arguments[] = {
  {"part_out", KIND_INPUT, offsetof(tw_attention_merge_arguments, part_out)},
  {"part_lse", KIND_INPUT, offsetof(tw_attention_merge_arguments, part_lse), .element = ELEMENT_F32},
  {"other_out", KIND_INPUT, offsetof(tw_attention_merge_arguments, other_out)},
  {"other_lse", KIND_INPUT, offsetof(tw_attention_merge_arguments, other_lse), .element = ELEMENT_F32},
  {"out", KIND_OUTPUT, offsetof(tw_attention_merge_arguments, out)},
  {"lse", KIND_OUTPUT, offsetof(tw_attention_merge_arguments, lse), .element = ELEMENT_F32},
  {"sink", KIND_INPUT, offsetof(tw_attention_merge_arguments, sink), .element = ELEMENT_F32},
  {"stream", KIND_STREAM, offsetof(tw_attention_merge_arguments, stream)}};
static PyObject* names_tw_attention_merge_arguments[COUNT(kMembers_tw_attention_merge_arguments)];
static tw_attention_merge_arguments defaults_tw_attention_merge_arguments;
static const Struct kStruct_tw_attention_merge_arguments = {
  "AttentionMergeArguments", sizeof(tw_attention_merge_arguments), init_tw_attention_merge_arguments, kMembers_tw_attention_merge_arguments,
  COUNT(kMembers_tw_attention_merge_arguments), names_tw_attention_merge_arguments, &defaults_tw_attention_merge_arguments};

static void init_tw_attention_prepare_problem(void* given) { tw_attention_prepare_problem_init(given); }
static const Member kMembers_tw_attention_prepare_problem[] = {
  {"dtype", KIND_WORD, offsetof(tw_attention_prepare_problem, dtype), .words = kWords7},
  {"batch", KIND_I64, offsetof(tw_attention_prepare_problem, batch)},
  {"heads", KIND_I64, offsetof(tw_attention_prepare_problem, heads)},
  {"kv_heads", KIND_I64, offsetof(tw_attention_prepare_problem, kv_heads)},
  {"q_len", KIND_I64, offsetof(tw_attention_prepare_problem, q_len)},
  {"kv_len", KIND_I64, offsetof(tw_attention_prepare_problem, kv_len)},
  {"head_dim", KIND_I64, offsetof(tw_attention_prepare_problem, head_dim)},
  {"is_packed", KIND_FLAG, offsetof(tw_attention_prepare_problem, is_packed)},
  {"total_q", KIND_I64, offsetof(tw_attention_prepare_problem, total_q)},
  {"total_kv", KIND_I64, offsetof(tw_attention_prepare_problem, total_kv)},
  {"q_strides", KIND_STRUCT, offsetof(tw_attention_prepare_problem, q_strides), .inner = &kStruct_tw_strides},
  {"k_strides", KIND_STRUCT, offsetof(tw_attention_prepare_problem, k_strides), .inner = &kStruct_tw_strides},
  {"v_strides", KIND_STRUCT, offsetof(tw_attention_prepare_problem, v_strides), .inner = &kStruct_tw_strides},
  {"q8_strides", KIND_STRUCT, offsetof(tw_attention_prepare_problem, q8_strides), .inner = &kStruct_tw_strides},
  {"k8_strides", KIND_STRUCT, offsetof(tw_attention_prepare_problem, k8_strides), .inner = &kStruct_tw_strides},
  {"v8_strides", KIND_STRUCT, offsetof(tw_attention_prepare_problem, v8_strides), .inner = &kStruct_tw_strides},
  {"scales", KIND_WORD, offsetof(tw_attention_prepare_problem, scales), .words = kWords0},
  {"v_layout", KIND_WORD, offsetof(tw_attention_prepare_problem, v_layout), .words = kWords1},
  {"is_rotated", KIND_FLAG, offsetof(tw_attention_prepare_problem, is_rotated)},
  {"sign_seed", KIND_U64, offsetof(tw_attention_prepare_problem, sign_seed)},
  {"rope", KIND_WORD, offsetof(tw_attention_prepare_problem, rope), .words = kWords8},
  {"rotary_dim", KIND_I64, offsetof(tw_attention_prepare_problem, rotary_dim)},
  {"rope_positions", KIND_I64, offsetof(tw_attention_prepare_problem, rope_positions)},
  {"has_positions", KIND_FLAG, offsetof(tw_attention_prepare_problem, has_positions)}};
static PyObject* names_tw_attention_prepare_problem[COUNT(kMembers_tw_attention_prepare_problem)];
static tw_attention_prepare_problem defaults_tw_attention_prepare_problem;
static const Struct kStruct_tw_attention_prepare_problem = {
  "AttentionPrepareProblem", sizeof(tw_attention_prepare_problem), init_tw_attention_prepare_problem, kMembers_tw_attention_prepare_problem,
  COUNT(kMembers_tw_attention_prepare_problem), names_tw_attention_prepare_problem, &defaults_tw_attention_prepare_problem};

static void init_tw_attention_prepare_arguments(void* given) { tw_attention_prepare_arguments_init(given); }
static const Member kMembers_tw_attention_prepare_arguments[] = {
  {"q", KIND_INPUT, offsetof(tw_attention_prepare_arguments, q)},
  {"k", KIND_INPUT, offsetof(tw_attention_prepare_arguments, k)},
  {"v", KIND_INPUT, offsetof(tw_attention_prepare_arguments, v)},
  {"q8", KIND_OUTPUT, offsetof(tw_attention_prepare_arguments, q8)},
  {"k8", KIND_OUTPUT, offsetof(tw_attention_prepare_arguments, k8)},
  {"v8", KIND_OUTPUT, offsetof(tw_attention_prepare_arguments, v8)},
  {"q_descale", KIND_OUTPUT, offsetof(tw_attention_prepare_arguments, q_descale), .element = ELEMENT_F32},
  {"k_descale", KIND_OUTPUT, offsetof(tw_attention_prepare_arguments, k_descale), .element = ELEMENT_F32},
  {"v_descale", KIND_OUTPUT, offsetof(tw_attention_prepare_arguments, v_descale), .element = ELEMENT_F32},
  {"v_descale_max", KIND_OUTPUT, offsetof(tw_attention_prepare_arguments, v_descale_max), .element = ELEMENT_F32},
  {"cu_q", KIND_INPUT, offsetof(tw_attention_prepare_arguments, cu_q), .element = ELEMENT_I32},
  {"cu_kv", KIND_INPUT, offsetof(tw_attention_prepare_arguments, cu_kv), .element = ELEMENT_I32},
  {"rope", KIND_INPUT, offsetof(tw_attention_prepare_arguments, rope), .element = ELEMENT_F32},
  {"q_positions", KIND_INPUT, offsetof(tw_attention_prepare_arguments, q_positions), .element = ELEMENT_I32},
  {"k_positions", KIND_INPUT, offsetof(tw_attention_prepare_arguments, k_positions), .element = ELEMENT_I32},
  {"workspace", KIND_OUTPUT, offsetof(tw_attention_prepare_arguments, workspace)},
  {"stream", KIND_STREAM, offsetof(tw_attention_prepare_arguments, stream)}};
static PyObject* names_tw_attention_prepare_arguments[COUNT(kMembers_tw_attention_prepare_arguments)];
static tw_attention_prepare_arguments defaults_tw_attention_prepare_arguments;
static const Struct kStruct_tw_attention_prepare_arguments = {
  "AttentionPrepareArguments", sizeof(tw_attention_prepare_arguments), init_tw_attention_prepare_arguments, kMembers_tw_attention_prepare_arguments,
  COUNT(kMembers_tw_attention_prepare_arguments), names_tw_attention_prepare_arguments, &defaults_tw_attention_prepare_arguments};

static void init_tw_attention_operand_sizes(void* given) { tw_attention_operand_sizes_init(given); }
static const Member kMembers_tw_attention_operand_sizes[] = {
  {"q8_bytes", KIND_SIZE, offsetof(tw_attention_operand_sizes, q8_bytes)},
  {"k8_bytes", KIND_SIZE, offsetof(tw_attention_operand_sizes, k8_bytes)},
  {"v8_bytes", KIND_SIZE, offsetof(tw_attention_operand_sizes, v8_bytes)},
  {"num_q_descales", KIND_SIZE, offsetof(tw_attention_operand_sizes, num_q_descales)},
  {"num_k_descales", KIND_SIZE, offsetof(tw_attention_operand_sizes, num_k_descales)},
  {"num_v_descales", KIND_SIZE, offsetof(tw_attention_operand_sizes, num_v_descales)},
  {"num_v_descale_max", KIND_SIZE, offsetof(tw_attention_operand_sizes, num_v_descale_max)},
  {"workspace_bytes", KIND_SIZE, offsetof(tw_attention_operand_sizes, workspace_bytes)}};
static PyObject* names_tw_attention_operand_sizes[COUNT(kMembers_tw_attention_operand_sizes)];
static tw_attention_operand_sizes defaults_tw_attention_operand_sizes;
static const Struct kStruct_tw_attention_operand_sizes = {
  "AttentionOperandSizes", sizeof(tw_attention_operand_sizes), init_tw_attention_operand_sizes, kMembers_tw_attention_operand_sizes,
  COUNT(kMembers_tw_attention_operand_sizes), names_tw_attention_operand_sizes, &defaults_tw_attention_operand_sizes};

static void init_tw_decode_append(void* given) { tw_decode_append_init(given); }
static const Member kMembers_tw_decode_append[] = {
  {"is_wanted", KIND_FLAG, offsetof(tw_decode_append, is_wanted)},
  {"rotary", KIND_WORD, offsetof(tw_decode_append, rotary), .words = kWords8},
  {"rotary_dim", KIND_I64, offsetof(tw_decode_append, rotary_dim)},
  {"max_position", KIND_I64, offsetof(tw_decode_append, max_position)}};
static PyObject* names_tw_decode_append[COUNT(kMembers_tw_decode_append)];
static tw_decode_append defaults_tw_decode_append;
static const Struct kStruct_tw_decode_append = {
  "DecodeAppend", sizeof(tw_decode_append), init_tw_decode_append, kMembers_tw_decode_append,
  COUNT(kMembers_tw_decode_append), names_tw_decode_append, &defaults_tw_decode_append};

static void init_tw_attention_decode_problem(void* given) { tw_attention_decode_problem_init(given); }
static const Member kMembers_tw_attention_decode_problem[] = {
  {"dtype", KIND_WORD, offsetof(tw_attention_decode_problem, dtype), .words = kWords7},
  {"kv_dtype", KIND_WORD, offsetof(tw_attention_decode_problem, kv_dtype), .words = kWords3},
  {"batch", KIND_I64, offsetof(tw_attention_decode_problem, batch)},
  {"q_len", KIND_I64, offsetof(tw_attention_decode_problem, q_len)},
  {"heads", KIND_I64, offsetof(tw_attention_decode_problem, heads)},
  {"kv_heads", KIND_I64, offsetof(tw_attention_decode_problem, kv_heads)},
  {"head_dim", KIND_I64, offsetof(tw_attention_decode_problem, head_dim)},
  {"max_len", KIND_I64, offsetof(tw_attention_decode_problem, max_len)},
  {"page_size", KIND_I64, offsetof(tw_attention_decode_problem, page_size)},
  {"num_pages", KIND_I64, offsetof(tw_attention_decode_problem, num_pages)},
  {"max_pages", KIND_I64, offsetof(tw_attention_decode_problem, max_pages)},
  {"table_stride", KIND_I64, offsetof(tw_attention_decode_problem, table_stride)},
  {"scale", KIND_F64, offsetof(tw_attention_decode_problem, scale)},
  {"causal", KIND_FLAG, offsetof(tw_attention_decode_problem, causal)},
  {"window_left", KIND_I64, offsetof(tw_attention_decode_problem, window_left)},
  {"softcap", KIND_F64, offsetof(tw_attention_decode_problem, softcap)},
  {"descale", KIND_WORD, offsetof(tw_attention_decode_problem, descale), .words = kWords9},
  {"has_sink", KIND_FLAG, offsetof(tw_attention_decode_problem, has_sink)},
  {"has_lse", KIND_FLAG, offsetof(tw_attention_decode_problem, has_lse)},
  {"append", KIND_STRUCT, offsetof(tw_attention_decode_problem, append), .inner = &kStruct_tw_decode_append},
  {"q_strides", KIND_STRUCT, offsetof(tw_attention_decode_problem, q_strides), .inner = &kStruct_tw_strides},
  {"out_strides", KIND_STRUCT, offsetof(tw_attention_decode_problem, out_strides), .inner = &kStruct_tw_strides},
  {"new_k_strides", KIND_STRUCT, offsetof(tw_attention_decode_problem, new_k_strides), .inner = &kStruct_tw_strides},
  {"new_v_strides", KIND_STRUCT, offsetof(tw_attention_decode_problem, new_v_strides), .inner = &kStruct_tw_strides},
  {"cache_strides", KIND_STRUCT, offsetof(tw_attention_decode_problem, cache_strides), .inner = &kStruct_tw_strides},
  {"splits", KIND_I64, offsetof(tw_attention_decode_problem, splits)},
  {"kernel", KIND_TEXT, offsetof(tw_attention_decode_problem, kernel)},
  {"chunk", KIND_I64, offsetof(tw_attention_decode_problem, chunk)}};
static PyObject* names_tw_attention_decode_problem[COUNT(kMembers_tw_attention_decode_problem)];
static tw_attention_decode_problem defaults_tw_attention_decode_problem;
static const Struct kStruct_tw_attention_decode_problem = {
  "AttentionDecodeProblem", sizeof(tw_attention_decode_problem), init_tw_attention_decode_problem, kMembers_tw_attention_decode_problem,
  COUNT(kMembers_tw_attention_decode_problem), names_tw_attention_decode_problem, &defaults_tw_attention_decode_problem};

static void init_tw_attention_decode_arguments(void* given) { tw_attention_decode_arguments_init(given); }
static const Member kMembers_tw_attention_decode_arguments[] = {
  {"q", KIND_INPUT, offsetof(tw_attention_decode_arguments, q)},
  {"k_cache", KIND_OUTPUT, offsetof(tw_attention_decode_arguments, k_cache)},
  {"v_cache", KIND_OUTPUT, offsetof(tw_attention_decode_arguments, v_cache)},
  {"lengths", KIND_INPUT, offsetof(tw_attention_decode_arguments, lengths), .element = ELEMENT_I32},
  {"block_table", KIND_INPUT, offsetof(tw_attention_decode_arguments, block_table), .element = ELEMENT_I32},
  {"k_descale", KIND_INPUT, offsetof(tw_attention_decode_arguments, k_descale), .element = ELEMENT_F32},
  {"v_descale", KIND_INPUT, offsetof(tw_attention_decode_arguments, v_descale), .element = ELEMENT_F32},
  {"new_k", KIND_INPUT, offsetof(tw_attention_decode_arguments, new_k)},
  {"new_v", KIND_INPUT, offsetof(tw_attention_decode_arguments, new_v)},
  {"cos", KIND_INPUT, offsetof(tw_attention_decode_arguments, cos), .element = ELEMENT_F32},
  {"sin", KIND_INPUT, offsetof(tw_attention_decode_arguments, sin), .element = ELEMENT_F32},
  {"out", KIND_OUTPUT, offsetof(tw_attention_decode_arguments, out)},
  {"lse", KIND_OUTPUT, offsetof(tw_attention_decode_arguments, lse), .element = ELEMENT_F32},
  {"sink", KIND_INPUT, offsetof(tw_attention_decode_arguments, sink), .element = ELEMENT_F32},
  {"workspace", KIND_OUTPUT, offsetof(tw_attention_decode_arguments, workspace)},
  {"stream", KIND_STREAM, offsetof(tw_attention_decode_arguments, stream)}};
static PyObject* names_tw_attention_decode_arguments[COUNT(kMembers_tw_attention_decode_arguments)];
static tw_attention_decode_arguments defaults_tw_attention_decode_arguments;
static const Struct kStruct_tw_attention_decode_arguments = {
  "AttentionDecodeArguments", sizeof(tw_attention_decode_arguments), init_tw_attention_decode_arguments, kMembers_tw_attention_decode_arguments,
  COUNT(kMembers_tw_attention_decode_arguments), names_tw_attention_decode_arguments, &defaults_tw_attention_decode_arguments};

static void init_tw_cache_append_problem(void* given) { tw_cache_append_problem_init(given); }
static const Member kMembers_tw_cache_append_problem[] = {
  {"dtype", KIND_WORD, offsetof(tw_cache_append_problem, dtype), .words = kWords3},
  {"kv_dtype", KIND_WORD, offsetof(tw_cache_append_problem, kv_dtype), .words = kWords3},
  {"batch", KIND_I64, offsetof(tw_cache_append_problem, batch)},
  {"kv_heads", KIND_I64, offsetof(tw_cache_append_problem, kv_heads)},
  {"new_len", KIND_I64, offsetof(tw_cache_append_problem, new_len)},
  {"head_dim", KIND_I64, offsetof(tw_cache_append_problem, head_dim)},
  {"value_dim", KIND_I64, offsetof(tw_cache_append_problem, value_dim)},
  {"is_packed", KIND_FLAG, offsetof(tw_cache_append_problem, is_packed)},
  {"total_new", KIND_I64, offsetof(tw_cache_append_problem, total_new)},
  {"heads", KIND_I64, offsetof(tw_cache_append_problem, heads)},
  {"q_len", KIND_I64, offsetof(tw_cache_append_problem, q_len)},
  {"is_q_packed", KIND_FLAG, offsetof(tw_cache_append_problem, is_q_packed)},
  {"total_q", KIND_I64, offsetof(tw_cache_append_problem, total_q)},
  {"max_len", KIND_I64, offsetof(tw_cache_append_problem, max_len)},
  {"page_size", KIND_I64, offsetof(tw_cache_append_problem, page_size)},
  {"num_pages", KIND_I64, offsetof(tw_cache_append_problem, num_pages)},
  {"max_pages", KIND_I64, offsetof(tw_cache_append_problem, max_pages)},
  {"table_stride", KIND_I64, offsetof(tw_cache_append_problem, table_stride)},
  {"descale", KIND_WORD, offsetof(tw_cache_append_problem, descale), .words = kWords9},
  {"rotary", KIND_WORD, offsetof(tw_cache_append_problem, rotary), .words = kWords8},
  {"rotary_dim", KIND_I64, offsetof(tw_cache_append_problem, rotary_dim)},
  {"max_position", KIND_I64, offsetof(tw_cache_append_problem, max_position)},
  {"has_rotary_lengths", KIND_FLAG, offsetof(tw_cache_append_problem, has_rotary_lengths)},
  {"is_one_position", KIND_FLAG, offsetof(tw_cache_append_problem, is_one_position)},
  {"has_new_lengths", KIND_FLAG, offsetof(tw_cache_append_problem, has_new_lengths)},
  {"q_strides", KIND_STRUCT, offsetof(tw_cache_append_problem, q_strides), .inner = &kStruct_tw_strides},
  {"turned_q_strides", KIND_STRUCT, offsetof(tw_cache_append_problem, turned_q_strides), .inner = &kStruct_tw_strides},
  {"new_k_strides", KIND_STRUCT, offsetof(tw_cache_append_problem, new_k_strides), .inner = &kStruct_tw_strides},
  {"new_v_strides", KIND_STRUCT, offsetof(tw_cache_append_problem, new_v_strides), .inner = &kStruct_tw_strides},
  {"k_cache_strides", KIND_STRUCT, offsetof(tw_cache_append_problem, k_cache_strides), .inner = &kStruct_tw_strides},
  {"v_cache_strides", KIND_STRUCT, offsetof(tw_cache_append_problem, v_cache_strides), .inner = &kStruct_tw_strides}};
static PyObject* names_tw_cache_append_problem[COUNT(kMembers_tw_cache_append_problem)];
static tw_cache_append_problem defaults_tw_cache_append_problem;
static const Struct kStruct_tw_cache_append_problem = {
  "CacheAppendProblem", sizeof(tw_cache_append_problem), init_tw_cache_append_problem, kMembers_tw_cache_append_problem,
  COUNT(kMembers_tw_cache_append_problem), names_tw_cache_append_problem, &defaults_tw_cache_append_problem};

static void init_tw_cache_append_arguments(void* given) { tw_cache_append_arguments_init(given); }
static const Member kMembers_tw_cache_append_arguments[] = {
  {"q", KIND_INPUT, offsetof(tw_cache_append_arguments, q)},
  {"new_k", KIND_INPUT, offsetof(tw_cache_append_arguments, new_k)},
  {"new_v", KIND_INPUT, offsetof(tw_cache_append_arguments, new_v)},
  {"turned_q", KIND_OUTPUT, offsetof(tw_cache_append_arguments, turned_q)},
  {"k_cache", KIND_OUTPUT, offsetof(tw_cache_append_arguments, k_cache)},
  {"v_cache", KIND_OUTPUT, offsetof(tw_cache_append_arguments, v_cache)},
  {"lengths", KIND_INPUT, offsetof(tw_cache_append_arguments, lengths), .element = ELEMENT_I32},
  {"rotary_lengths", KIND_INPUT, offsetof(tw_cache_append_arguments, rotary_lengths), .element = ELEMENT_I32},
  {"new_lengths", KIND_OUTPUT, offsetof(tw_cache_append_arguments, new_lengths), .element = ELEMENT_I32},
  {"block_table", KIND_INPUT, offsetof(tw_cache_append_arguments, block_table), .element = ELEMENT_I32},
  {"cu_new", KIND_INPUT, offsetof(tw_cache_append_arguments, cu_new), .element = ELEMENT_I32},
  {"cu_q", KIND_INPUT, offsetof(tw_cache_append_arguments, cu_q), .element = ELEMENT_I32},
  {"k_descale", KIND_INPUT, offsetof(tw_cache_append_arguments, k_descale), .element = ELEMENT_F32},
  {"v_descale", KIND_INPUT, offsetof(tw_cache_append_arguments, v_descale), .element = ELEMENT_F32},
  {"cos", KIND_INPUT, offsetof(tw_cache_append_arguments, cos), .element = ELEMENT_F32},
  {"sin", KIND_INPUT, offsetof(tw_cache_append_arguments, sin), .element = ELEMENT_F32},
  {"stream", KIND_STREAM, offsetof(tw_cache_append_arguments, stream)}};
static PyObject* names_tw_cache_append_arguments[COUNT(kMembers_tw_cache_append_arguments)];
static tw_cache_append_arguments defaults_tw_cache_append_arguments;
static const Struct kStruct_tw_cache_append_arguments = {
  "CacheAppendArguments", sizeof(tw_cache_append_arguments), init_tw_cache_append_arguments, kMembers_tw_cache_append_arguments,
  COUNT(kMembers_tw_cache_append_arguments), names_tw_cache_append_arguments, &defaults_tw_cache_append_arguments};

static void init_tw_linear_weight_source(void* given) { tw_linear_weight_source_init(given); }
static const Member kMembers_tw_linear_weight_source[] = {
  {"format", KIND_WORD, offsetof(tw_linear_weight_source, format), .words = kWords10},
  {"activations", KIND_WORD, offsetof(tw_linear_weight_source, activations), .words = kWords11},
  {"n", KIND_I64, offsetof(tw_linear_weight_source, n)},
  {"k", KIND_I64, offsetof(tw_linear_weight_source, k)},
  {"values", KIND_INPUT, offsetof(tw_linear_weight_source, values)},
  {"scales", KIND_INPUT, offsetof(tw_linear_weight_source, scales)},
  {"scale_dtype", KIND_WORD, offsetof(tw_linear_weight_source, scale_dtype), .words = kWords12},
  {"scale_order", KIND_WORD, offsetof(tw_linear_weight_source, scale_order), .words = kWords13},
  {"global_scale", KIND_F32, offsetof(tw_linear_weight_source, global_scale)},
  {"is_global_scale_reciprocal", KIND_FLAG, offsetof(tw_linear_weight_source, is_global_scale_reciprocal)},
  {"accepts_any_global_scale", KIND_FLAG, offsetof(tw_linear_weight_source, accepts_any_global_scale)},
  {"up_values", KIND_INPUT, offsetof(tw_linear_weight_source, up_values)},
  {"up_scales", KIND_INPUT, offsetof(tw_linear_weight_source, up_scales)},
  {"groups", KIND_I64, offsetof(tw_linear_weight_source, groups)}};
static PyObject* names_tw_linear_weight_source[COUNT(kMembers_tw_linear_weight_source)];
static tw_linear_weight_source defaults_tw_linear_weight_source;
static const Struct kStruct_tw_linear_weight_source = {
  "LinearWeightSource", sizeof(tw_linear_weight_source), init_tw_linear_weight_source, kMembers_tw_linear_weight_source,
  COUNT(kMembers_tw_linear_weight_source), names_tw_linear_weight_source, &defaults_tw_linear_weight_source};

static void init_tw_linear_weight_info(void* given) { tw_linear_weight_info_init(given); }
static const Member kMembers_tw_linear_weight_info[] = {
  {"format", KIND_WORD, offsetof(tw_linear_weight_info, format), .words = kWords10},
  {"activations", KIND_WORD, offsetof(tw_linear_weight_info, activations), .words = kWords11},
  {"n", KIND_I64, offsetof(tw_linear_weight_info, n)},
  {"k", KIND_I64, offsetof(tw_linear_weight_info, k)},
  {"groups", KIND_I64, offsetof(tw_linear_weight_info, groups)}};
static PyObject* names_tw_linear_weight_info[COUNT(kMembers_tw_linear_weight_info)];
static tw_linear_weight_info defaults_tw_linear_weight_info;
static const Struct kStruct_tw_linear_weight_info = {
  "LinearWeightInfo", sizeof(tw_linear_weight_info), init_tw_linear_weight_info, kMembers_tw_linear_weight_info,
  COUNT(kMembers_tw_linear_weight_info), names_tw_linear_weight_info, &defaults_tw_linear_weight_info};

static void init_tw_linear_problem(void* given) { tw_linear_problem_init(given); }
static const Member kMembers_tw_linear_problem[] = {
  {"m", KIND_I64, offsetof(tw_linear_problem, m)},
  {"x_dtype", KIND_WORD, offsetof(tw_linear_problem, x_dtype), .words = kWords14},
  {"activation_scales", KIND_WORD, offsetof(tw_linear_problem, activation_scales), .words = kWords15},
  {"out_dtype", KIND_WORD, offsetof(tw_linear_problem, out_dtype), .words = kWords16},
  {"has_bias", KIND_FLAG, offsetof(tw_linear_problem, has_bias)},
  {"x_stride", KIND_I64, offsetof(tw_linear_problem, x_stride)},
  {"out_stride", KIND_I64, offsetof(tw_linear_problem, out_stride)},
  {"kernel", KIND_TEXT, offsetof(tw_linear_problem, kernel)}};
static PyObject* names_tw_linear_problem[COUNT(kMembers_tw_linear_problem)];
static tw_linear_problem defaults_tw_linear_problem;
static const Struct kStruct_tw_linear_problem = {
  "LinearProblem", sizeof(tw_linear_problem), init_tw_linear_problem, kMembers_tw_linear_problem,
  COUNT(kMembers_tw_linear_problem), names_tw_linear_problem, &defaults_tw_linear_problem};

static void init_tw_linear_arguments(void* given) { tw_linear_arguments_init(given); }
static const Member kMembers_tw_linear_arguments[] = {
  {"x", KIND_INPUT, offsetof(tw_linear_arguments, x)},
  {"x_scales", KIND_INPUT, offsetof(tw_linear_arguments, x_scales), .element = ELEMENT_F32},
  {"bias", KIND_INPUT, offsetof(tw_linear_arguments, bias), .element = ELEMENT_F32},
  {"out", KIND_OUTPUT, offsetof(tw_linear_arguments, out)},
  {"workspace", KIND_OUTPUT, offsetof(tw_linear_arguments, workspace)},
  {"stream", KIND_STREAM, offsetof(tw_linear_arguments, stream)}};
static PyObject* names_tw_linear_arguments[COUNT(kMembers_tw_linear_arguments)];
static tw_linear_arguments defaults_tw_linear_arguments;
static const Struct kStruct_tw_linear_arguments = {
  "LinearArguments", sizeof(tw_linear_arguments), init_tw_linear_arguments, kMembers_tw_linear_arguments,
  COUNT(kMembers_tw_linear_arguments), names_tw_linear_arguments, &defaults_tw_linear_arguments};

static void init_tw_block_scaled_weight_info(void* given) { tw_block_scaled_weight_info_init(given); }
static const Member kMembers_tw_block_scaled_weight_info[] = {
  {"format", KIND_WORD, offsetof(tw_block_scaled_weight_info, format), .words = kWords10},
  {"n", KIND_I64, offsetof(tw_block_scaled_weight_info, n)},
  {"k", KIND_I64, offsetof(tw_block_scaled_weight_info, k)},
  {"is_gate_up", KIND_FLAG, offsetof(tw_block_scaled_weight_info, is_gate_up)}};
static PyObject* names_tw_block_scaled_weight_info[COUNT(kMembers_tw_block_scaled_weight_info)];
static tw_block_scaled_weight_info defaults_tw_block_scaled_weight_info;
static const Struct kStruct_tw_block_scaled_weight_info = {
  "BlockScaledWeightInfo", sizeof(tw_block_scaled_weight_info), init_tw_block_scaled_weight_info, kMembers_tw_block_scaled_weight_info,
  COUNT(kMembers_tw_block_scaled_weight_info), names_tw_block_scaled_weight_info, &defaults_tw_block_scaled_weight_info};

static void init_tw_block_scaled_problem(void* given) { tw_block_scaled_problem_init(given); }
static const Member kMembers_tw_block_scaled_problem[] = {
  {"m", KIND_I64, offsetof(tw_block_scaled_problem, m)},
  {"out_dtype", KIND_WORD, offsetof(tw_block_scaled_problem, out_dtype), .words = kWords17},
  {"x_row_bytes", KIND_I64, offsetof(tw_block_scaled_problem, x_row_bytes)},
  {"out_row_bytes", KIND_I64, offsetof(tw_block_scaled_problem, out_row_bytes)},
  {"kernel", KIND_TEXT, offsetof(tw_block_scaled_problem, kernel)},
  {"swiglu_limit", KIND_F64, offsetof(tw_block_scaled_problem, swiglu_limit)}};
static PyObject* names_tw_block_scaled_problem[COUNT(kMembers_tw_block_scaled_problem)];
static tw_block_scaled_problem defaults_tw_block_scaled_problem;
static const Struct kStruct_tw_block_scaled_problem = {
  "BlockScaledProblem", sizeof(tw_block_scaled_problem), init_tw_block_scaled_problem, kMembers_tw_block_scaled_problem,
  COUNT(kMembers_tw_block_scaled_problem), names_tw_block_scaled_problem, &defaults_tw_block_scaled_problem};

static void init_tw_block_scaled_arguments(void* given) { tw_block_scaled_arguments_init(given); }
static const Member kMembers_tw_block_scaled_arguments[] = {
  {"x", KIND_INPUT, offsetof(tw_block_scaled_arguments, x)},
  {"x_scales", KIND_INPUT, offsetof(tw_block_scaled_arguments, x_scales)},
  {"out", KIND_OUTPUT, offsetof(tw_block_scaled_arguments, out)},
  {"out_scales", KIND_OUTPUT, offsetof(tw_block_scaled_arguments, out_scales)},
  {"x_tensor_scale", KIND_F32, offsetof(tw_block_scaled_arguments, x_tensor_scale)},
  {"out_encode_scale", KIND_F32, offsetof(tw_block_scaled_arguments, out_encode_scale)},
  {"stream", KIND_STREAM, offsetof(tw_block_scaled_arguments, stream)}};
static PyObject* names_tw_block_scaled_arguments[COUNT(kMembers_tw_block_scaled_arguments)];
static tw_block_scaled_arguments defaults_tw_block_scaled_arguments;
static const Struct kStruct_tw_block_scaled_arguments = {
  "BlockScaledArguments", sizeof(tw_block_scaled_arguments), init_tw_block_scaled_arguments, kMembers_tw_block_scaled_arguments,
  COUNT(kMembers_tw_block_scaled_arguments), names_tw_block_scaled_arguments, &defaults_tw_block_scaled_arguments};

static void init_tw_quantize_problem(void* given) { tw_quantize_problem_init(given); }
static const Member kMembers_tw_quantize_problem[] = {
  {"format", KIND_TEXT, offsetof(tw_quantize_problem, format)},
  {"scales", KIND_TEXT, offsetof(tw_quantize_problem, scales)},
  {"dtype", KIND_WORD, offsetof(tw_quantize_problem, dtype), .words = kWords18},
  {"rows", KIND_I64, offsetof(tw_quantize_problem, rows)},
  {"cols", KIND_I64, offsetof(tw_quantize_problem, cols)},
  {"row_stride", KIND_I64, offsetof(tw_quantize_problem, row_stride)},
  {"has_row_index", KIND_FLAG, offsetof(tw_quantize_problem, has_row_index)},
  {"out_rows", KIND_I64, offsetof(tw_quantize_problem, out_rows)},
  {"out_cols", KIND_I64, offsetof(tw_quantize_problem, out_cols)},
  {"has_operand_order", KIND_FLAG, offsetof(tw_quantize_problem, has_operand_order)},
  {"has_128x4_scales", KIND_FLAG, offsetof(tw_quantize_problem, has_128x4_scales)},
  {"has_block_major_scales", KIND_FLAG, offsetof(tw_quantize_problem, has_block_major_scales)},
  {"encode_scale", KIND_F32, offsetof(tw_quantize_problem, encode_scale)},
  {"has_encode_scale_address", KIND_FLAG, offsetof(tw_quantize_problem, has_encode_scale_address)}};
static PyObject* names_tw_quantize_problem[COUNT(kMembers_tw_quantize_problem)];
static tw_quantize_problem defaults_tw_quantize_problem;
static const Struct kStruct_tw_quantize_problem = {
  "QuantizeProblem", sizeof(tw_quantize_problem), init_tw_quantize_problem, kMembers_tw_quantize_problem,
  COUNT(kMembers_tw_quantize_problem), names_tw_quantize_problem, &defaults_tw_quantize_problem};

static void init_tw_quantize_arguments(void* given) { tw_quantize_arguments_init(given); }
static const Member kMembers_tw_quantize_arguments[] = {
  {"in_", KIND_INPUT, offsetof(tw_quantize_arguments, in)},
  {"row_index", KIND_INPUT, offsetof(tw_quantize_arguments, row_index), .element = ELEMENT_I32},
  {"codes", KIND_OUTPUT, offsetof(tw_quantize_arguments, codes)},
  {"scales", KIND_OUTPUT, offsetof(tw_quantize_arguments, scales)},
  {"encode_scale", KIND_INPUT, offsetof(tw_quantize_arguments, encode_scale), .element = ELEMENT_F32},
  {"tensor_scale", KIND_OUTPUT, offsetof(tw_quantize_arguments, tensor_scale), .element = ELEMENT_F32},
  {"workspace", KIND_OUTPUT, offsetof(tw_quantize_arguments, workspace)},
  {"stream", KIND_STREAM, offsetof(tw_quantize_arguments, stream)}};
static PyObject* names_tw_quantize_arguments[COUNT(kMembers_tw_quantize_arguments)];
static tw_quantize_arguments defaults_tw_quantize_arguments;
static const Struct kStruct_tw_quantize_arguments = {
  "QuantizeArguments", sizeof(tw_quantize_arguments), init_tw_quantize_arguments, kMembers_tw_quantize_arguments,
  COUNT(kMembers_tw_quantize_arguments), names_tw_quantize_arguments, &defaults_tw_quantize_arguments};

static void init_tw_moe_weights_source(void* given) { tw_moe_weights_source_init(given); }
static const Member kMembers_tw_moe_weights_source[] = {
  {"experts", KIND_I64, offsetof(tw_moe_weights_source, experts)},
  {"gate", KIND_ARRAY, offsetof(tw_moe_weights_source, gate), .inner = &kStruct_tw_linear_weight_source, .count = "experts"},
  {"up", KIND_ARRAY, offsetof(tw_moe_weights_source, up), .inner = &kStruct_tw_linear_weight_source, .count = "experts"},
  {"down", KIND_ARRAY, offsetof(tw_moe_weights_source, down), .inner = &kStruct_tw_linear_weight_source, .count = "experts"},
  {"shared_gate", KIND_ARRAY, offsetof(tw_moe_weights_source, shared_gate), .inner = &kStruct_tw_linear_weight_source},
  {"shared_up", KIND_ARRAY, offsetof(tw_moe_weights_source, shared_up), .inner = &kStruct_tw_linear_weight_source},
  {"shared_down", KIND_ARRAY, offsetof(tw_moe_weights_source, shared_down), .inner = &kStruct_tw_linear_weight_source}};
static PyObject* names_tw_moe_weights_source[COUNT(kMembers_tw_moe_weights_source)];
static tw_moe_weights_source defaults_tw_moe_weights_source;
static const Struct kStruct_tw_moe_weights_source = {
  "MoeWeightsSource", sizeof(tw_moe_weights_source), init_tw_moe_weights_source, kMembers_tw_moe_weights_source,
  COUNT(kMembers_tw_moe_weights_source), names_tw_moe_weights_source, &defaults_tw_moe_weights_source};

static void init_tw_moe_weights_info(void* given) { tw_moe_weights_info_init(given); }
static const Member kMembers_tw_moe_weights_info[] = {
  {"format", KIND_WORD, offsetof(tw_moe_weights_info, format), .words = kWords10},
  {"activations", KIND_WORD, offsetof(tw_moe_weights_info, activations), .words = kWords11},
  {"experts", KIND_I64, offsetof(tw_moe_weights_info, experts)},
  {"hidden", KIND_I64, offsetof(tw_moe_weights_info, hidden)},
  {"inter", KIND_I64, offsetof(tw_moe_weights_info, inter)},
  {"has_shared", KIND_FLAG, offsetof(tw_moe_weights_info, has_shared)}};
static PyObject* names_tw_moe_weights_info[COUNT(kMembers_tw_moe_weights_info)];
static tw_moe_weights_info defaults_tw_moe_weights_info;
static const Struct kStruct_tw_moe_weights_info = {
  "MoeWeightsInfo", sizeof(tw_moe_weights_info), init_tw_moe_weights_info, kMembers_tw_moe_weights_info,
  COUNT(kMembers_tw_moe_weights_info), names_tw_moe_weights_info, &defaults_tw_moe_weights_info};

static void init_tw_moe_problem(void* given) { tw_moe_problem_init(given); }
static const Member kMembers_tw_moe_problem[] = {
  {"tokens", KIND_I64, offsetof(tw_moe_problem, tokens)},
  {"topk", KIND_I64, offsetof(tw_moe_problem, topk)},
  {"routing", KIND_WORD, offsetof(tw_moe_problem, routing), .words = kWords19},
  {"score", KIND_WORD, offsetof(tw_moe_problem, score), .words = kWords20},
  {"normalize", KIND_FLAG, offsetof(tw_moe_problem, normalize)},
  {"has_bias", KIND_FLAG, offsetof(tw_moe_problem, has_bias)},
  {"route_scale", KIND_F64, offsetof(tw_moe_problem, route_scale)},
  {"vocab", KIND_I64, offsetof(tw_moe_problem, vocab)},
  {"logits_stride", KIND_I64, offsetof(tw_moe_problem, logits_stride)},
  {"swiglu_limit", KIND_F64, offsetof(tw_moe_problem, swiglu_limit)},
  {"weight_after_down", KIND_FLAG, offsetof(tw_moe_problem, weight_after_down)},
  {"out_dtype", KIND_WORD, offsetof(tw_moe_problem, out_dtype), .words = kWords16},
  {"kernel", KIND_TEXT, offsetof(tw_moe_problem, kernel)},
  {"expected_tokens", KIND_I64, offsetof(tw_moe_problem, expected_tokens)},
  {"all_experts", KIND_I64, offsetof(tw_moe_problem, all_experts)},
  {"first_expert", KIND_I64, offsetof(tw_moe_problem, first_expert)}};
static PyObject* names_tw_moe_problem[COUNT(kMembers_tw_moe_problem)];
static tw_moe_problem defaults_tw_moe_problem;
static const Struct kStruct_tw_moe_problem = {
  "MoeProblem", sizeof(tw_moe_problem), init_tw_moe_problem, kMembers_tw_moe_problem,
  COUNT(kMembers_tw_moe_problem), names_tw_moe_problem, &defaults_tw_moe_problem};

static void init_tw_moe_arguments(void* given) { tw_moe_arguments_init(given); }
static const Member kMembers_tw_moe_arguments[] = {
  {"x", KIND_INPUT, offsetof(tw_moe_arguments, x)},
  {"ids", KIND_INPUT, offsetof(tw_moe_arguments, ids), .element = ELEMENT_I32},
  {"weights", KIND_INPUT, offsetof(tw_moe_arguments, weights), .element = ELEMENT_F32},
  {"logits", KIND_INPUT, offsetof(tw_moe_arguments, logits), .element = ELEMENT_F32},
  {"bias", KIND_INPUT, offsetof(tw_moe_arguments, bias), .element = ELEMENT_F32},
  {"token_ids", KIND_INPUT, offsetof(tw_moe_arguments, token_ids), .element = ELEMENT_I32},
  {"table", KIND_INPUT, offsetof(tw_moe_arguments, table), .element = ELEMENT_I32},
  {"out", KIND_OUTPUT, offsetof(tw_moe_arguments, out)},
  {"workspace", KIND_OUTPUT, offsetof(tw_moe_arguments, workspace)},
  {"stream", KIND_STREAM, offsetof(tw_moe_arguments, stream)},
  {"counts", KIND_INPUT, offsetof(tw_moe_arguments, counts), .element = ELEMENT_I32}};
static PyObject* names_tw_moe_arguments[COUNT(kMembers_tw_moe_arguments)];
static tw_moe_arguments defaults_tw_moe_arguments;
static const Struct kStruct_tw_moe_arguments = {
  "MoeArguments", sizeof(tw_moe_arguments), init_tw_moe_arguments, kMembers_tw_moe_arguments,
  COUNT(kMembers_tw_moe_arguments), names_tw_moe_arguments, &defaults_tw_moe_arguments};

static void init_tw_kv_layout(void* given) { tw_kv_layout_init(given); }
static const Member kMembers_tw_kv_layout[] = {
  {"format", KIND_WORD, offsetof(tw_kv_layout, format), .words = kWords21},
  {"page_size", KIND_I64, offsetof(tw_kv_layout, page_size)},
  {"num_pages", KIND_I64, offsetof(tw_kv_layout, num_pages)},
  {"page_stride_bytes", KIND_I64, offsetof(tw_kv_layout, page_stride_bytes)}};
static PyObject* names_tw_kv_layout[COUNT(kMembers_tw_kv_layout)];
static tw_kv_layout defaults_tw_kv_layout;
static const Struct kStruct_tw_kv_layout = {
  "KvLayout", sizeof(tw_kv_layout), init_tw_kv_layout, kMembers_tw_kv_layout,
  COUNT(kMembers_tw_kv_layout), names_tw_kv_layout, &defaults_tw_kv_layout};

static void init_tw_sparse_list(void* given) { tw_sparse_list_init(given); }
static const Member kMembers_tw_sparse_list[] = {
  {"cache", KIND_STRUCT, offsetof(tw_sparse_list, cache), .inner = &kStruct_tw_kv_layout},
  {"topk", KIND_I64, offsetof(tw_sparse_list, topk)},
  {"index_stride", KIND_I64, offsetof(tw_sparse_list, index_stride)},
  {"lengths", KIND_WORD, offsetof(tw_sparse_list, lengths), .words = kWords22}};
static PyObject* names_tw_sparse_list[COUNT(kMembers_tw_sparse_list)];
static tw_sparse_list defaults_tw_sparse_list;
static const Struct kStruct_tw_sparse_list = {
  "SparseList", sizeof(tw_sparse_list), init_tw_sparse_list, kMembers_tw_sparse_list,
  COUNT(kMembers_tw_sparse_list), names_tw_sparse_list, &defaults_tw_sparse_list};

static void init_tw_sparse_attention_problem(void* given) { tw_sparse_attention_problem_init(given); }
static const Member kMembers_tw_sparse_attention_problem[] = {
  {"batch", KIND_I64, offsetof(tw_sparse_attention_problem, batch)},
  {"q_len", KIND_I64, offsetof(tw_sparse_attention_problem, q_len)},
  {"heads", KIND_I64, offsetof(tw_sparse_attention_problem, heads)},
  {"scale", KIND_F64, offsetof(tw_sparse_attention_problem, scale)},
  {"window", KIND_STRUCT, offsetof(tw_sparse_attention_problem, window), .inner = &kStruct_tw_sparse_list},
  {"compressed", KIND_STRUCT, offsetof(tw_sparse_attention_problem, compressed), .inner = &kStruct_tw_sparse_list},
  {"has_sink", KIND_FLAG, offsetof(tw_sparse_attention_problem, has_sink)},
  {"has_lse", KIND_FLAG, offsetof(tw_sparse_attention_problem, has_lse)},
  {"has_max_logits", KIND_FLAG, offsetof(tw_sparse_attention_problem, has_max_logits)},
  {"q_strides", KIND_STRUCT, offsetof(tw_sparse_attention_problem, q_strides), .inner = &kStruct_tw_strides},
  {"out_strides", KIND_STRUCT, offsetof(tw_sparse_attention_problem, out_strides), .inner = &kStruct_tw_strides},
  {"lse_strides", KIND_STRUCT, offsetof(tw_sparse_attention_problem, lse_strides), .inner = &kStruct_tw_strides},
  {"kernel", KIND_TEXT, offsetof(tw_sparse_attention_problem, kernel)},
  {"positive_empty_lse", KIND_FLAG, offsetof(tw_sparse_attention_problem, positive_empty_lse)},
  {"head_dim", KIND_I64, offsetof(tw_sparse_attention_problem, head_dim)}};
static PyObject* names_tw_sparse_attention_problem[COUNT(kMembers_tw_sparse_attention_problem)];
static tw_sparse_attention_problem defaults_tw_sparse_attention_problem;
static const Struct kStruct_tw_sparse_attention_problem = {
  "SparseAttentionProblem", sizeof(tw_sparse_attention_problem), init_tw_sparse_attention_problem, kMembers_tw_sparse_attention_problem,
  COUNT(kMembers_tw_sparse_attention_problem), names_tw_sparse_attention_problem, &defaults_tw_sparse_attention_problem};

static void init_tw_sparse_list_arguments(void* given) { tw_sparse_list_arguments_init(given); }
static const Member kMembers_tw_sparse_list_arguments[] = {
  {"pages", KIND_INPUT, offsetof(tw_sparse_list_arguments, pages)},
  {"indices", KIND_INPUT, offsetof(tw_sparse_list_arguments, indices), .element = ELEMENT_I32},
  {"lengths", KIND_INPUT, offsetof(tw_sparse_list_arguments, lengths), .element = ELEMENT_I32}};
static PyObject* names_tw_sparse_list_arguments[COUNT(kMembers_tw_sparse_list_arguments)];
static tw_sparse_list_arguments defaults_tw_sparse_list_arguments;
static const Struct kStruct_tw_sparse_list_arguments = {
  "SparseListArguments", sizeof(tw_sparse_list_arguments), init_tw_sparse_list_arguments, kMembers_tw_sparse_list_arguments,
  COUNT(kMembers_tw_sparse_list_arguments), names_tw_sparse_list_arguments, &defaults_tw_sparse_list_arguments};

static void init_tw_sparse_attention_arguments(void* given) { tw_sparse_attention_arguments_init(given); }
static const Member kMembers_tw_sparse_attention_arguments[] = {
  {"q", KIND_INPUT, offsetof(tw_sparse_attention_arguments, q)},
  {"window", KIND_STRUCT, offsetof(tw_sparse_attention_arguments, window), .inner = &kStruct_tw_sparse_list_arguments},
  {"compressed", KIND_STRUCT, offsetof(tw_sparse_attention_arguments, compressed), .inner = &kStruct_tw_sparse_list_arguments},
  {"out", KIND_OUTPUT, offsetof(tw_sparse_attention_arguments, out)},
  {"lse", KIND_OUTPUT, offsetof(tw_sparse_attention_arguments, lse), .element = ELEMENT_F32},
  {"max_logits", KIND_OUTPUT, offsetof(tw_sparse_attention_arguments, max_logits), .element = ELEMENT_F32},
  {"sink", KIND_INPUT, offsetof(tw_sparse_attention_arguments, sink), .element = ELEMENT_F32},
  {"workspace", KIND_OUTPUT, offsetof(tw_sparse_attention_arguments, workspace)},
  {"reuses_schedule", KIND_FLAG, offsetof(tw_sparse_attention_arguments, reuses_schedule)},
  {"stream", KIND_STREAM, offsetof(tw_sparse_attention_arguments, stream)}};
static PyObject* names_tw_sparse_attention_arguments[COUNT(kMembers_tw_sparse_attention_arguments)];
static tw_sparse_attention_arguments defaults_tw_sparse_attention_arguments;
static const Struct kStruct_tw_sparse_attention_arguments = {
  "SparseAttentionArguments", sizeof(tw_sparse_attention_arguments), init_tw_sparse_attention_arguments, kMembers_tw_sparse_attention_arguments,
  COUNT(kMembers_tw_sparse_attention_arguments), names_tw_sparse_attention_arguments, &defaults_tw_sparse_attention_arguments};

static void init_tw_latent_attention_problem(void* given) { tw_latent_attention_problem_init(given); }
static const Member kMembers_tw_latent_attention_problem[] = {
  {"dtype", KIND_WORD, offsetof(tw_latent_attention_problem, dtype), .words = kWords7},
  {"batch", KIND_I64, offsetof(tw_latent_attention_problem, batch)},
  {"q_len", KIND_I64, offsetof(tw_latent_attention_problem, q_len)},
  {"heads", KIND_I64, offsetof(tw_latent_attention_problem, heads)},
  {"kv_heads", KIND_I64, offsetof(tw_latent_attention_problem, kv_heads)},
  {"value_dim", KIND_I64, offsetof(tw_latent_attention_problem, value_dim)},
  {"has_qv", KIND_FLAG, offsetof(tw_latent_attention_problem, has_qv)},
  {"max_len", KIND_I64, offsetof(tw_latent_attention_problem, max_len)},
  {"page_size", KIND_I64, offsetof(tw_latent_attention_problem, page_size)},
  {"num_pages", KIND_I64, offsetof(tw_latent_attention_problem, num_pages)},
  {"max_pages", KIND_I64, offsetof(tw_latent_attention_problem, max_pages)},
  {"table_stride", KIND_I64, offsetof(tw_latent_attention_problem, table_stride)},
  {"scale", KIND_F64, offsetof(tw_latent_attention_problem, scale)},
  {"causal", KIND_FLAG, offsetof(tw_latent_attention_problem, causal)},
  {"has_sink", KIND_FLAG, offsetof(tw_latent_attention_problem, has_sink)},
  {"has_lse", KIND_FLAG, offsetof(tw_latent_attention_problem, has_lse)},
  {"positive_empty_lse", KIND_FLAG, offsetof(tw_latent_attention_problem, positive_empty_lse)},
  {"q_strides", KIND_STRUCT, offsetof(tw_latent_attention_problem, q_strides), .inner = &kStruct_tw_strides},
  {"qv_strides", KIND_STRUCT, offsetof(tw_latent_attention_problem, qv_strides), .inner = &kStruct_tw_strides},
  {"out_strides", KIND_STRUCT, offsetof(tw_latent_attention_problem, out_strides), .inner = &kStruct_tw_strides},
  {"lse_strides", KIND_STRUCT, offsetof(tw_latent_attention_problem, lse_strides), .inner = &kStruct_tw_strides},
  {"k_strides", KIND_STRUCT, offsetof(tw_latent_attention_problem, k_strides), .inner = &kStruct_tw_strides},
  {"v_strides", KIND_STRUCT, offsetof(tw_latent_attention_problem, v_strides), .inner = &kStruct_tw_strides},
  {"kernel", KIND_TEXT, offsetof(tw_latent_attention_problem, kernel)}};
static PyObject* names_tw_latent_attention_problem[COUNT(kMembers_tw_latent_attention_problem)];
static tw_latent_attention_problem defaults_tw_latent_attention_problem;
static const Struct kStruct_tw_latent_attention_problem = {
  "LatentAttentionProblem", sizeof(tw_latent_attention_problem), init_tw_latent_attention_problem, kMembers_tw_latent_attention_problem,
  COUNT(kMembers_tw_latent_attention_problem), names_tw_latent_attention_problem, &defaults_tw_latent_attention_problem};

static void init_tw_latent_attention_arguments(void* given) { tw_latent_attention_arguments_init(given); }
static const Member kMembers_tw_latent_attention_arguments[] = {
  {"q", KIND_INPUT, offsetof(tw_latent_attention_arguments, q)},
  {"qv", KIND_INPUT, offsetof(tw_latent_attention_arguments, qv)},
  {"k", KIND_INPUT, offsetof(tw_latent_attention_arguments, k)},
  {"v", KIND_INPUT, offsetof(tw_latent_attention_arguments, v)},
  {"lengths", KIND_INPUT, offsetof(tw_latent_attention_arguments, lengths), .element = ELEMENT_I32},
  {"block_table", KIND_INPUT, offsetof(tw_latent_attention_arguments, block_table), .element = ELEMENT_I32},
  {"out", KIND_OUTPUT, offsetof(tw_latent_attention_arguments, out)},
  {"lse", KIND_OUTPUT, offsetof(tw_latent_attention_arguments, lse), .element = ELEMENT_F32},
  {"sink", KIND_INPUT, offsetof(tw_latent_attention_arguments, sink), .element = ELEMENT_F32},
  {"workspace", KIND_OUTPUT, offsetof(tw_latent_attention_arguments, workspace)},
  {"reuses_schedule", KIND_FLAG, offsetof(tw_latent_attention_arguments, reuses_schedule)},
  {"stream", KIND_STREAM, offsetof(tw_latent_attention_arguments, stream)}};
static PyObject* names_tw_latent_attention_arguments[COUNT(kMembers_tw_latent_attention_arguments)];
static tw_latent_attention_arguments defaults_tw_latent_attention_arguments;
static const Struct kStruct_tw_latent_attention_arguments = {
  "LatentAttentionArguments", sizeof(tw_latent_attention_arguments), init_tw_latent_attention_arguments, kMembers_tw_latent_attention_arguments,
  COUNT(kMembers_tw_latent_attention_arguments), names_tw_latent_attention_arguments, &defaults_tw_latent_attention_arguments};

static void init_tw_mask_lists_problem(void* given) { tw_mask_lists_problem_init(given); }
static const Member kMembers_tw_mask_lists_problem[] = {
  {"entry", KIND_WORD, offsetof(tw_mask_lists_problem, entry), .words = kWords23},
  {"batch", KIND_I64, offsetof(tw_mask_lists_problem, batch)},
  {"rows", KIND_I64, offsetof(tw_mask_lists_problem, rows)},
  {"keys", KIND_I64, offsetof(tw_mask_lists_problem, keys)},
  {"query_block", KIND_I64, offsetof(tw_mask_lists_problem, query_block)},
  {"key_block", KIND_I64, offsetof(tw_mask_lists_problem, key_block)},
  {"topk", KIND_I64, offsetof(tw_mask_lists_problem, topk)},
  {"index_stride", KIND_I64, offsetof(tw_mask_lists_problem, index_stride)},
  {"mask_batch_bytes", KIND_I64, offsetof(tw_mask_lists_problem, mask_batch_bytes)},
  {"mask_row_bytes", KIND_I64, offsetof(tw_mask_lists_problem, mask_row_bytes)},
  {"page_size", KIND_I64, offsetof(tw_mask_lists_problem, page_size)},
  {"table_stride", KIND_I64, offsetof(tw_mask_lists_problem, table_stride)},
  {"has_totals", KIND_FLAG, offsetof(tw_mask_lists_problem, has_totals)}};
static PyObject* names_tw_mask_lists_problem[COUNT(kMembers_tw_mask_lists_problem)];
static tw_mask_lists_problem defaults_tw_mask_lists_problem;
static const Struct kStruct_tw_mask_lists_problem = {
  "MaskListsProblem", sizeof(tw_mask_lists_problem), init_tw_mask_lists_problem, kMembers_tw_mask_lists_problem,
  COUNT(kMembers_tw_mask_lists_problem), names_tw_mask_lists_problem, &defaults_tw_mask_lists_problem};

static void init_tw_mask_lists_arguments(void* given) { tw_mask_lists_arguments_init(given); }
static const Member kMembers_tw_mask_lists_arguments[] = {
  {"mask", KIND_INPUT, offsetof(tw_mask_lists_arguments, mask)},
  {"indices", KIND_OUTPUT, offsetof(tw_mask_lists_arguments, indices), .element = ELEMENT_I32},
  {"lengths", KIND_OUTPUT, offsetof(tw_mask_lists_arguments, lengths), .element = ELEMENT_I32},
  {"totals", KIND_OUTPUT, offsetof(tw_mask_lists_arguments, totals), .element = ELEMENT_I32},
  {"block_table", KIND_INPUT, offsetof(tw_mask_lists_arguments, block_table), .element = ELEMENT_I32},
  {"stream", KIND_STREAM, offsetof(tw_mask_lists_arguments, stream)}};
static PyObject* names_tw_mask_lists_arguments[COUNT(kMembers_tw_mask_lists_arguments)];
static tw_mask_lists_arguments defaults_tw_mask_lists_arguments;
static const Struct kStruct_tw_mask_lists_arguments = {
  "MaskListsArguments", sizeof(tw_mask_lists_arguments), init_tw_mask_lists_arguments, kMembers_tw_mask_lists_arguments,
  COUNT(kMembers_tw_mask_lists_arguments), names_tw_mask_lists_arguments, &defaults_tw_mask_lists_arguments};

static void init_tw_rope_options(void* given) { tw_rope_options_init(given); }
static const Member kMembers_tw_rope_options[] = {
  {"theta", KIND_F64, offsetof(tw_rope_options, theta)},
  {"has_yarn", KIND_FLAG, offsetof(tw_rope_options, has_yarn)},
  {"factor", KIND_F64, offsetof(tw_rope_options, factor)},
  {"original_positions", KIND_F64, offsetof(tw_rope_options, original_positions)},
  {"beta_fast", KIND_F64, offsetof(tw_rope_options, beta_fast)},
  {"beta_slow", KIND_F64, offsetof(tw_rope_options, beta_slow)}};
static PyObject* names_tw_rope_options[COUNT(kMembers_tw_rope_options)];
static tw_rope_options defaults_tw_rope_options;
static const Struct kStruct_tw_rope_options = {
  "RopeOptions", sizeof(tw_rope_options), init_tw_rope_options, kMembers_tw_rope_options,
  COUNT(kMembers_tw_rope_options), names_tw_rope_options, &defaults_tw_rope_options};

static void init_tw_sequence_batch(void* given) { tw_sequence_batch_init(given); }
static const Member kMembers_tw_sequence_batch[] = {
  {"batch", KIND_I64, offsetof(tw_sequence_batch, batch)},
  {"q_len", KIND_I64, offsetof(tw_sequence_batch, q_len)},
  {"offsets", KIND_INPUT, offsetof(tw_sequence_batch, offsets), .element = ELEMENT_I32},
  {"starts", KIND_INPUT, offsetof(tw_sequence_batch, starts), .element = ELEMENT_I32}};
static PyObject* names_tw_sequence_batch[COUNT(kMembers_tw_sequence_batch)];
static tw_sequence_batch defaults_tw_sequence_batch;
static const Struct kStruct_tw_sequence_batch = {
  "SequenceBatch", sizeof(tw_sequence_batch), init_tw_sequence_batch, kMembers_tw_sequence_batch,
  COUNT(kMembers_tw_sequence_batch), names_tw_sequence_batch, &defaults_tw_sequence_batch};

static void init_tw_sequence_pages(void* given) { tw_sequence_pages_init(given); }
static const Member kMembers_tw_sequence_pages[] = {
  {"pages", KIND_INPUT, offsetof(tw_sequence_pages, pages), .element = ELEMENT_I32},
  {"blocks", KIND_I64, offsetof(tw_sequence_pages, blocks)},
  {"stride", KIND_I64, offsetof(tw_sequence_pages, stride)}};
static PyObject* names_tw_sequence_pages[COUNT(kMembers_tw_sequence_pages)];
static tw_sequence_pages defaults_tw_sequence_pages;
static const Struct kStruct_tw_sequence_pages = {
  "SequencePages", sizeof(tw_sequence_pages), init_tw_sequence_pages, kMembers_tw_sequence_pages,
  COUNT(kMembers_tw_sequence_pages), names_tw_sequence_pages, &defaults_tw_sequence_pages};

static void init_tw_kv_write_arguments(void* given) { tw_kv_write_arguments_init(given); }
static const Member kMembers_tw_kv_write_arguments[] = {
  {"tokens", KIND_I64, offsetof(tw_kv_write_arguments, tokens)},
  {"heads", KIND_I64, offsetof(tw_kv_write_arguments, heads)},
  {"eps", KIND_F64, offsetof(tw_kv_write_arguments, eps)},
  {"q", KIND_INPUT, offsetof(tw_kv_write_arguments, q)},
  {"q_out", KIND_OUTPUT, offsetof(tw_kv_write_arguments, q_out)},
  {"q_token_stride", KIND_I64, offsetof(tw_kv_write_arguments, q_token_stride)},
  {"q_head_stride", KIND_I64, offsetof(tw_kv_write_arguments, q_head_stride)},
  {"kv", KIND_INPUT, offsetof(tw_kv_write_arguments, kv)},
  {"kv_dtype", KIND_WORD, offsetof(tw_kv_write_arguments, kv_dtype), .words = kWords16},
  {"kv_stride", KIND_I64, offsetof(tw_kv_write_arguments, kv_stride)},
  {"kv_weight", KIND_INPUT, offsetof(tw_kv_write_arguments, kv_weight)},
  {"positions", KIND_INPUT, offsetof(tw_kv_write_arguments, positions), .element = ELEMENT_I32},
  {"rope", KIND_INPUT, offsetof(tw_kv_write_arguments, rope), .element = ELEMENT_F32},
  {"rope_positions", KIND_I64, offsetof(tw_kv_write_arguments, rope_positions)},
  {"slots", KIND_INPUT, offsetof(tw_kv_write_arguments, slots), .element = ELEMENT_I32},
  {"pages", KIND_OUTPUT, offsetof(tw_kv_write_arguments, pages)},
  {"kv_out", KIND_OUTPUT, offsetof(tw_kv_write_arguments, kv_out)},
  {"stream", KIND_STREAM, offsetof(tw_kv_write_arguments, stream)}};
static PyObject* names_tw_kv_write_arguments[COUNT(kMembers_tw_kv_write_arguments)];
static tw_kv_write_arguments defaults_tw_kv_write_arguments;
static const Struct kStruct_tw_kv_write_arguments = {
  "KvWriteArguments", sizeof(tw_kv_write_arguments), init_tw_kv_write_arguments, kMembers_tw_kv_write_arguments,
  COUNT(kMembers_tw_kv_write_arguments), names_tw_kv_write_arguments, &defaults_tw_kv_write_arguments};

static void init_tw_kv_read_arguments(void* given) { tw_kv_read_arguments_init(given); }
static const Member kMembers_tw_kv_read_arguments[] = {
  {"count", KIND_I64, offsetof(tw_kv_read_arguments, count)},
  {"rows", KIND_INPUT, offsetof(tw_kv_read_arguments, rows), .element = ELEMENT_I32},
  {"pages", KIND_INPUT, offsetof(tw_kv_read_arguments, pages)},
  {"out", KIND_OUTPUT, offsetof(tw_kv_read_arguments, out)},
  {"out_stride", KIND_I64, offsetof(tw_kv_read_arguments, out_stride)},
  {"stream", KIND_STREAM, offsetof(tw_kv_read_arguments, stream)}};
static PyObject* names_tw_kv_read_arguments[COUNT(kMembers_tw_kv_read_arguments)];
static tw_kv_read_arguments defaults_tw_kv_read_arguments;
static const Struct kStruct_tw_kv_read_arguments = {
  "KvReadArguments", sizeof(tw_kv_read_arguments), init_tw_kv_read_arguments, kMembers_tw_kv_read_arguments,
  COUNT(kMembers_tw_kv_read_arguments), names_tw_kv_read_arguments, &defaults_tw_kv_read_arguments};

static void init_tw_kv_list_arguments(void* given) { tw_kv_list_arguments_init(given); }
static const Member kMembers_tw_kv_list_arguments[] = {
  {"kind", KIND_WORD, offsetof(tw_kv_list_arguments, kind), .words = kWords24},
  {"tokens", KIND_I64, offsetof(tw_kv_list_arguments, tokens)},
  {"sequences", KIND_STRUCT, offsetof(tw_kv_list_arguments, sequences), .inner = &kStruct_tw_sequence_batch},
  {"table", KIND_STRUCT, offsetof(tw_kv_list_arguments, table), .inner = &kStruct_tw_sequence_pages},
  {"ring", KIND_I64, offsetof(tw_kv_list_arguments, ring)},
  {"window", KIND_I64, offsetof(tw_kv_list_arguments, window)},
  {"ratio", KIND_I64, offsetof(tw_kv_list_arguments, ratio)},
  {"list_len", KIND_I64, offsetof(tw_kv_list_arguments, list_len)},
  {"list_stride", KIND_I64, offsetof(tw_kv_list_arguments, list_stride)},
  {"lists", KIND_OUTPUT, offsetof(tw_kv_list_arguments, lists), .element = ELEMENT_I32},
  {"lengths", KIND_OUTPUT, offsetof(tw_kv_list_arguments, lengths), .element = ELEMENT_I32},
  {"positions", KIND_OUTPUT, offsetof(tw_kv_list_arguments, positions), .element = ELEMENT_I32},
  {"stream", KIND_STREAM, offsetof(tw_kv_list_arguments, stream)}};
static PyObject* names_tw_kv_list_arguments[COUNT(kMembers_tw_kv_list_arguments)];
static tw_kv_list_arguments defaults_tw_kv_list_arguments;
static const Struct kStruct_tw_kv_list_arguments = {
  "KvListArguments", sizeof(tw_kv_list_arguments), init_tw_kv_list_arguments, kMembers_tw_kv_list_arguments,
  COUNT(kMembers_tw_kv_list_arguments), names_tw_kv_list_arguments, &defaults_tw_kv_list_arguments};

static void init_tw_kv_cache_work(void* given) { tw_kv_cache_work_init(given); }
static const Member kMembers_tw_kv_cache_work[] = {
  {"tokens", KIND_I64, offsetof(tw_kv_cache_work, tokens)},
  {"heads", KIND_I64, offsetof(tw_kv_cache_work, heads)},
  {"list_len", KIND_I64, offsetof(tw_kv_cache_work, list_len)},
  {"read_rows", KIND_I64, offsetof(tw_kv_cache_work, read_rows)}};
static PyObject* names_tw_kv_cache_work[COUNT(kMembers_tw_kv_cache_work)];
static tw_kv_cache_work defaults_tw_kv_cache_work;
static const Struct kStruct_tw_kv_cache_work = {
  "KvCacheWork", sizeof(tw_kv_cache_work), init_tw_kv_cache_work, kMembers_tw_kv_cache_work,
  COUNT(kMembers_tw_kv_cache_work), names_tw_kv_cache_work, &defaults_tw_kv_cache_work};

static void init_tw_inverse_rope_arguments(void* given) { tw_inverse_rope_arguments_init(given); }
static const Member kMembers_tw_inverse_rope_arguments[] = {
  {"tokens", KIND_I64, offsetof(tw_inverse_rope_arguments, tokens)},
  {"heads", KIND_I64, offsetof(tw_inverse_rope_arguments, heads)},
  {"out", KIND_OUTPUT, offsetof(tw_inverse_rope_arguments, out)},
  {"token_stride", KIND_I64, offsetof(tw_inverse_rope_arguments, token_stride)},
  {"head_stride", KIND_I64, offsetof(tw_inverse_rope_arguments, head_stride)},
  {"positions", KIND_INPUT, offsetof(tw_inverse_rope_arguments, positions), .element = ELEMENT_I32},
  {"rope", KIND_INPUT, offsetof(tw_inverse_rope_arguments, rope), .element = ELEMENT_F32},
  {"rope_positions", KIND_I64, offsetof(tw_inverse_rope_arguments, rope_positions)},
  {"codes", KIND_OUTPUT, offsetof(tw_inverse_rope_arguments, codes)},
  {"scales", KIND_OUTPUT, offsetof(tw_inverse_rope_arguments, scales)},
  {"has_pow2_scales", KIND_FLAG, offsetof(tw_inverse_rope_arguments, has_pow2_scales)},
  {"has_block_major_scales", KIND_FLAG, offsetof(tw_inverse_rope_arguments, has_block_major_scales)},
  {"has_operand_order", KIND_FLAG, offsetof(tw_inverse_rope_arguments, has_operand_order)},
  {"stream", KIND_STREAM, offsetof(tw_inverse_rope_arguments, stream)}};
static PyObject* names_tw_inverse_rope_arguments[COUNT(kMembers_tw_inverse_rope_arguments)];
static tw_inverse_rope_arguments defaults_tw_inverse_rope_arguments;
static const Struct kStruct_tw_inverse_rope_arguments = {
  "InverseRopeArguments", sizeof(tw_inverse_rope_arguments), init_tw_inverse_rope_arguments, kMembers_tw_inverse_rope_arguments,
  COUNT(kMembers_tw_inverse_rope_arguments), names_tw_inverse_rope_arguments, &defaults_tw_inverse_rope_arguments};

static void init_tw_compressor_problem(void* given) { tw_compressor_problem_init(given); }
static const Member kMembers_tw_compressor_problem[] = {
  {"kind", KIND_WORD, offsetof(tw_compressor_problem, kind), .words = kWords25},
  {"cache", KIND_STRUCT, offsetof(tw_compressor_problem, cache), .inner = &kStruct_tw_kv_layout},
  {"state_slots", KIND_I64, offsetof(tw_compressor_problem, state_slots)},
  {"ring", KIND_I64, offsetof(tw_compressor_problem, ring)},
  {"eps", KIND_F64, offsetof(tw_compressor_problem, eps)}};
static PyObject* names_tw_compressor_problem[COUNT(kMembers_tw_compressor_problem)];
static tw_compressor_problem defaults_tw_compressor_problem;
static const Struct kStruct_tw_compressor_problem = {
  "CompressorProblem", sizeof(tw_compressor_problem), init_tw_compressor_problem, kMembers_tw_compressor_problem,
  COUNT(kMembers_tw_compressor_problem), names_tw_compressor_problem, &defaults_tw_compressor_problem};

static void init_tw_compressor_arguments(void* given) { tw_compressor_arguments_init(given); }
static const Member kMembers_tw_compressor_arguments[] = {
  {"sequences", KIND_STRUCT, offsetof(tw_compressor_arguments, sequences), .inner = &kStruct_tw_sequence_batch},
  {"max_tokens", KIND_I64, offsetof(tw_compressor_arguments, max_tokens)},
  {"kv", KIND_INPUT, offsetof(tw_compressor_arguments, kv), .element = ELEMENT_F32},
  {"gate", KIND_INPUT, offsetof(tw_compressor_arguments, gate), .element = ELEMENT_F32},
  {"kv_stride", KIND_I64, offsetof(tw_compressor_arguments, kv_stride)},
  {"gate_stride", KIND_I64, offsetof(tw_compressor_arguments, gate_stride)},
  {"ape", KIND_INPUT, offsetof(tw_compressor_arguments, ape), .element = ELEMENT_F32},
  {"norm_weight", KIND_INPUT, offsetof(tw_compressor_arguments, norm_weight)},
  {"rope", KIND_INPUT, offsetof(tw_compressor_arguments, rope), .element = ELEMENT_F32},
  {"rope_positions", KIND_I64, offsetof(tw_compressor_arguments, rope_positions)},
  {"state", KIND_OUTPUT, offsetof(tw_compressor_arguments, state)},
  {"state_slots", KIND_INPUT, offsetof(tw_compressor_arguments, state_slots), .element = ELEMENT_I32},
  {"table", KIND_STRUCT, offsetof(tw_compressor_arguments, table), .inner = &kStruct_tw_sequence_pages},
  {"pages", KIND_OUTPUT, offsetof(tw_compressor_arguments, pages)},
  {"stream", KIND_STREAM, offsetof(tw_compressor_arguments, stream)}};
static PyObject* names_tw_compressor_arguments[COUNT(kMembers_tw_compressor_arguments)];
static tw_compressor_arguments defaults_tw_compressor_arguments;
static const Struct kStruct_tw_compressor_arguments = {
  "CompressorArguments", sizeof(tw_compressor_arguments), init_tw_compressor_arguments, kMembers_tw_compressor_arguments,
  COUNT(kMembers_tw_compressor_arguments), names_tw_compressor_arguments, &defaults_tw_compressor_arguments};

static void init_tw_indexer_problem(void* given) { tw_indexer_problem_init(given); }
static const Member kMembers_tw_indexer_problem[] = {
  {"format", KIND_WORD, offsetof(tw_indexer_problem, format), .words = kWords26},
  {"heads", KIND_I64, offsetof(tw_indexer_problem, heads)},
  {"topk", KIND_I64, offsetof(tw_indexer_problem, topk)},
  {"ratio", KIND_I64, offsetof(tw_indexer_problem, ratio)},
  {"max_len", KIND_I64, offsetof(tw_indexer_problem, max_len)},
  {"keys", KIND_STRUCT, offsetof(tw_indexer_problem, keys), .inner = &kStruct_tw_kv_layout},
  {"rows", KIND_STRUCT, offsetof(tw_indexer_problem, rows), .inner = &kStruct_tw_kv_layout},
  {"fill_logits", KIND_FLAG, offsetof(tw_indexer_problem, fill_logits)}};
static PyObject* names_tw_indexer_problem[COUNT(kMembers_tw_indexer_problem)];
static tw_indexer_problem defaults_tw_indexer_problem;
static const Struct kStruct_tw_indexer_problem = {
  "IndexerProblem", sizeof(tw_indexer_problem), init_tw_indexer_problem, kMembers_tw_indexer_problem,
  COUNT(kMembers_tw_indexer_problem), names_tw_indexer_problem, &defaults_tw_indexer_problem};

static void init_tw_indexer_arguments(void* given) { tw_indexer_arguments_init(given); }
static const Member kMembers_tw_indexer_arguments[] = {
  {"tokens", KIND_I64, offsetof(tw_indexer_arguments, tokens)},
  {"sequences", KIND_STRUCT, offsetof(tw_indexer_arguments, sequences), .inner = &kStruct_tw_sequence_batch},
  {"positions", KIND_INPUT, offsetof(tw_indexer_arguments, positions), .element = ELEMENT_I32},
  {"lengths", KIND_INPUT, offsetof(tw_indexer_arguments, lengths), .element = ELEMENT_I32},
  {"q", KIND_INPUT, offsetof(tw_indexer_arguments, q)},
  {"q_token_stride", KIND_I64, offsetof(tw_indexer_arguments, q_token_stride)},
  {"q_head_stride", KIND_I64, offsetof(tw_indexer_arguments, q_head_stride)},
  {"weights", KIND_INPUT, offsetof(tw_indexer_arguments, weights)},
  {"weights_dtype", KIND_WORD, offsetof(tw_indexer_arguments, weights_dtype), .words = kWords16},
  {"weights_stride", KIND_I64, offsetof(tw_indexer_arguments, weights_stride)},
  {"rope", KIND_INPUT, offsetof(tw_indexer_arguments, rope), .element = ELEMENT_F32},
  {"rope_positions", KIND_I64, offsetof(tw_indexer_arguments, rope_positions)},
  {"key_pages", KIND_INPUT, offsetof(tw_indexer_arguments, key_pages)},
  {"key_table", KIND_STRUCT, offsetof(tw_indexer_arguments, key_table), .inner = &kStruct_tw_sequence_pages},
  {"row_table", KIND_STRUCT, offsetof(tw_indexer_arguments, row_table), .inner = &kStruct_tw_sequence_pages},
  {"rows", KIND_OUTPUT, offsetof(tw_indexer_arguments, rows), .element = ELEMENT_I32},
  {"rows_stride", KIND_I64, offsetof(tw_indexer_arguments, rows_stride)},
  {"counts", KIND_OUTPUT, offsetof(tw_indexer_arguments, counts), .element = ELEMENT_I32},
  {"workspace", KIND_OUTPUT, offsetof(tw_indexer_arguments, workspace)},
  {"reuses_schedule", KIND_FLAG, offsetof(tw_indexer_arguments, reuses_schedule)},
  {"stream", KIND_STREAM, offsetof(tw_indexer_arguments, stream)}};
static PyObject* names_tw_indexer_arguments[COUNT(kMembers_tw_indexer_arguments)];
static tw_indexer_arguments defaults_tw_indexer_arguments;
static const Struct kStruct_tw_indexer_arguments = {
  "IndexerArguments", sizeof(tw_indexer_arguments), init_tw_indexer_arguments, kMembers_tw_indexer_arguments,
  COUNT(kMembers_tw_indexer_arguments), names_tw_indexer_arguments, &defaults_tw_indexer_arguments};

static void init_tw_indexer_logits_problem(void* given) { tw_indexer_logits_problem_init(given); }
static const Member kMembers_tw_indexer_logits_problem[] = {
  {"format", KIND_WORD, offsetof(tw_indexer_logits_problem, format), .words = kWords27},
  {"heads", KIND_I64, offsetof(tw_indexer_logits_problem, heads)},
  {"max_len", KIND_I64, offsetof(tw_indexer_logits_problem, max_len)},
  {"keys", KIND_STRUCT, offsetof(tw_indexer_logits_problem, keys), .inner = &kStruct_tw_kv_layout},
  {"is_compressed", KIND_FLAG, offsetof(tw_indexer_logits_problem, is_compressed)},
  {"fill_logits", KIND_FLAG, offsetof(tw_indexer_logits_problem, fill_logits)}};
static PyObject* names_tw_indexer_logits_problem[COUNT(kMembers_tw_indexer_logits_problem)];
static tw_indexer_logits_problem defaults_tw_indexer_logits_problem;
static const Struct kStruct_tw_indexer_logits_problem = {
  "IndexerLogitsProblem", sizeof(tw_indexer_logits_problem), init_tw_indexer_logits_problem, kMembers_tw_indexer_logits_problem,
  COUNT(kMembers_tw_indexer_logits_problem), names_tw_indexer_logits_problem, &defaults_tw_indexer_logits_problem};

static void init_tw_indexer_logits_arguments(void* given) { tw_indexer_logits_arguments_init(given); }
static const Member kMembers_tw_indexer_logits_arguments[] = {
  {"tokens", KIND_I64, offsetof(tw_indexer_logits_arguments, tokens)},
  {"sequences", KIND_STRUCT, offsetof(tw_indexer_logits_arguments, sequences), .inner = &kStruct_tw_sequence_batch},
  {"starts", KIND_INPUT, offsetof(tw_indexer_logits_arguments, starts), .element = ELEMENT_I32},
  {"ends", KIND_INPUT, offsetof(tw_indexer_logits_arguments, ends), .element = ELEMENT_I32},
  {"q", KIND_INPUT, offsetof(tw_indexer_logits_arguments, q)},
  {"q_scales", KIND_INPUT, offsetof(tw_indexer_logits_arguments, q_scales)},
  {"weights", KIND_INPUT, offsetof(tw_indexer_logits_arguments, weights), .element = ELEMENT_F32},
  {"keys", KIND_INPUT, offsetof(tw_indexer_logits_arguments, keys)},
  {"key_scales", KIND_INPUT, offsetof(tw_indexer_logits_arguments, key_scales)},
  {"num_keys", KIND_I64, offsetof(tw_indexer_logits_arguments, num_keys)},
  {"key_table", KIND_STRUCT, offsetof(tw_indexer_logits_arguments, key_table), .inner = &kStruct_tw_sequence_pages},
  {"logits", KIND_OUTPUT, offsetof(tw_indexer_logits_arguments, logits), .element = ELEMENT_F32},
  {"logits_stride", KIND_I64, offsetof(tw_indexer_logits_arguments, logits_stride)},
  {"columns", KIND_I64, offsetof(tw_indexer_logits_arguments, columns)},
  {"workspace", KIND_OUTPUT, offsetof(tw_indexer_logits_arguments, workspace)},
  {"reuses_schedule", KIND_FLAG, offsetof(tw_indexer_logits_arguments, reuses_schedule)},
  {"stream", KIND_STREAM, offsetof(tw_indexer_logits_arguments, stream)}};
static PyObject* names_tw_indexer_logits_arguments[COUNT(kMembers_tw_indexer_logits_arguments)];
static tw_indexer_logits_arguments defaults_tw_indexer_logits_arguments;
static const Struct kStruct_tw_indexer_logits_arguments = {
  "IndexerLogitsArguments", sizeof(tw_indexer_logits_arguments), init_tw_indexer_logits_arguments, kMembers_tw_indexer_logits_arguments,
  COUNT(kMembers_tw_indexer_logits_arguments), names_tw_indexer_logits_arguments, &defaults_tw_indexer_logits_arguments};

static void init_tw_hyper_connection_problem(void* given) { tw_hyper_connection_problem_init(given); }
static const Member kMembers_tw_hyper_connection_problem[] = {
  {"tokens", KIND_I64, offsetof(tw_hyper_connection_problem, tokens)},
  {"hidden", KIND_I64, offsetof(tw_hyper_connection_problem, hidden)},
  {"stream_dtype", KIND_WORD, offsetof(tw_hyper_connection_problem, stream_dtype), .words = kWords16},
  {"has_merge", KIND_FLAG, offsetof(tw_hyper_connection_problem, has_merge)},
  {"has_second", KIND_FLAG, offsetof(tw_hyper_connection_problem, has_second)},
  {"has_mix", KIND_FLAG, offsetof(tw_hyper_connection_problem, has_mix)},
  {"is_head", KIND_FLAG, offsetof(tw_hyper_connection_problem, is_head)},
  {"result_dtype", KIND_WORD, offsetof(tw_hyper_connection_problem, result_dtype), .words = kWords16},
  {"second_dtype", KIND_WORD, offsetof(tw_hyper_connection_problem, second_dtype), .words = kWords16},
  {"iterations", KIND_I32, offsetof(tw_hyper_connection_problem, iterations)},
  {"eps", KIND_F64, offsetof(tw_hyper_connection_problem, eps)},
  {"norm_eps", KIND_F64, offsetof(tw_hyper_connection_problem, norm_eps)}};
static PyObject* names_tw_hyper_connection_problem[COUNT(kMembers_tw_hyper_connection_problem)];
static tw_hyper_connection_problem defaults_tw_hyper_connection_problem;
static const Struct kStruct_tw_hyper_connection_problem = {
  "HyperConnectionProblem", sizeof(tw_hyper_connection_problem), init_tw_hyper_connection_problem, kMembers_tw_hyper_connection_problem,
  COUNT(kMembers_tw_hyper_connection_problem), names_tw_hyper_connection_problem, &defaults_tw_hyper_connection_problem};

static void init_tw_hyper_connection_arguments(void* given) { tw_hyper_connection_arguments_init(given); }
static const Member kMembers_tw_hyper_connection_arguments[] = {
  {"streams", KIND_INPUT, offsetof(tw_hyper_connection_arguments, streams)},
  {"merged", KIND_OUTPUT, offsetof(tw_hyper_connection_arguments, merged)},
  {"mix_before", KIND_INPUT, offsetof(tw_hyper_connection_arguments, mix_before), .element = ELEMENT_F32},
  {"result", KIND_INPUT, offsetof(tw_hyper_connection_arguments, result)},
  {"second_result", KIND_INPUT, offsetof(tw_hyper_connection_arguments, second_result)},
  {"mix_weight", KIND_INPUT, offsetof(tw_hyper_connection_arguments, mix_weight), .element = ELEMENT_F32},
  {"mix_bias", KIND_INPUT, offsetof(tw_hyper_connection_arguments, mix_bias), .element = ELEMENT_F32},
  {"mix_scale", KIND_INPUT, offsetof(tw_hyper_connection_arguments, mix_scale), .element = ELEMENT_F32},
  {"norm_weight", KIND_INPUT, offsetof(tw_hyper_connection_arguments, norm_weight)},
  {"mix", KIND_OUTPUT, offsetof(tw_hyper_connection_arguments, mix), .element = ELEMENT_F32},
  {"out", KIND_OUTPUT, offsetof(tw_hyper_connection_arguments, out)},
  {"workspace", KIND_OUTPUT, offsetof(tw_hyper_connection_arguments, workspace)},
  {"stream", KIND_STREAM, offsetof(tw_hyper_connection_arguments, stream)}};
static PyObject* names_tw_hyper_connection_arguments[COUNT(kMembers_tw_hyper_connection_arguments)];
static tw_hyper_connection_arguments defaults_tw_hyper_connection_arguments;
static const Struct kStruct_tw_hyper_connection_arguments = {
  "HyperConnectionArguments", sizeof(tw_hyper_connection_arguments), init_tw_hyper_connection_arguments, kMembers_tw_hyper_connection_arguments,
  COUNT(kMembers_tw_hyper_connection_arguments), names_tw_hyper_connection_arguments, &defaults_tw_hyper_connection_arguments};

static void init_tw_hyper_embedding_problem(void* given) { tw_hyper_embedding_problem_init(given); }
static const Member kMembers_tw_hyper_embedding_problem[] = {
  {"tokens", KIND_I64, offsetof(tw_hyper_embedding_problem, tokens)},
  {"hidden", KIND_I64, offsetof(tw_hyper_embedding_problem, hidden)},
  {"vocab", KIND_I64, offsetof(tw_hyper_embedding_problem, vocab)},
  {"stream_dtype", KIND_WORD, offsetof(tw_hyper_embedding_problem, stream_dtype), .words = kWords16}};
static PyObject* names_tw_hyper_embedding_problem[COUNT(kMembers_tw_hyper_embedding_problem)];
static tw_hyper_embedding_problem defaults_tw_hyper_embedding_problem;
static const Struct kStruct_tw_hyper_embedding_problem = {
  "HyperEmbeddingProblem", sizeof(tw_hyper_embedding_problem), init_tw_hyper_embedding_problem, kMembers_tw_hyper_embedding_problem,
  COUNT(kMembers_tw_hyper_embedding_problem), names_tw_hyper_embedding_problem, &defaults_tw_hyper_embedding_problem};

static void init_tw_hyper_embedding_arguments(void* given) { tw_hyper_embedding_arguments_init(given); }
static const Member kMembers_tw_hyper_embedding_arguments[] = {
  {"table", KIND_INPUT, offsetof(tw_hyper_embedding_arguments, table)},
  {"ids", KIND_INPUT, offsetof(tw_hyper_embedding_arguments, ids), .element = ELEMENT_I32},
  {"streams", KIND_OUTPUT, offsetof(tw_hyper_embedding_arguments, streams)},
  {"stream", KIND_STREAM, offsetof(tw_hyper_embedding_arguments, stream)}};
static PyObject* names_tw_hyper_embedding_arguments[COUNT(kMembers_tw_hyper_embedding_arguments)];
static tw_hyper_embedding_arguments defaults_tw_hyper_embedding_arguments;
static const Struct kStruct_tw_hyper_embedding_arguments = {
  "HyperEmbeddingArguments", sizeof(tw_hyper_embedding_arguments), init_tw_hyper_embedding_arguments, kMembers_tw_hyper_embedding_arguments,
  COUNT(kMembers_tw_hyper_embedding_arguments), names_tw_hyper_embedding_arguments, &defaults_tw_hyper_embedding_arguments};

static void init_tw_rms_norm_problem(void* given) { tw_rms_norm_problem_init(given); }
static const Member kMembers_tw_rms_norm_problem[] = {
  {"rows", KIND_I64, offsetof(tw_rms_norm_problem, rows)},
  {"cols", KIND_I64, offsetof(tw_rms_norm_problem, cols)},
  {"x_dtype", KIND_WORD, offsetof(tw_rms_norm_problem, x_dtype), .words = kWords16},
  {"x_stride", KIND_I64, offsetof(tw_rms_norm_problem, x_stride)},
  {"out_stride", KIND_I64, offsetof(tw_rms_norm_problem, out_stride)},
  {"has_weight", KIND_FLAG, offsetof(tw_rms_norm_problem, has_weight)},
  {"eps", KIND_F64, offsetof(tw_rms_norm_problem, eps)}};
static PyObject* names_tw_rms_norm_problem[COUNT(kMembers_tw_rms_norm_problem)];
static tw_rms_norm_problem defaults_tw_rms_norm_problem;
static const Struct kStruct_tw_rms_norm_problem = {
  "RmsNormProblem", sizeof(tw_rms_norm_problem), init_tw_rms_norm_problem, kMembers_tw_rms_norm_problem,
  COUNT(kMembers_tw_rms_norm_problem), names_tw_rms_norm_problem, &defaults_tw_rms_norm_problem};

static void init_tw_rms_norm_arguments(void* given) { tw_rms_norm_arguments_init(given); }
static const Member kMembers_tw_rms_norm_arguments[] = {
  {"x", KIND_INPUT, offsetof(tw_rms_norm_arguments, x)},
  {"weight", KIND_INPUT, offsetof(tw_rms_norm_arguments, weight)},
  {"out", KIND_OUTPUT, offsetof(tw_rms_norm_arguments, out)},
  {"stream", KIND_STREAM, offsetof(tw_rms_norm_arguments, stream)}};
static PyObject* names_tw_rms_norm_arguments[COUNT(kMembers_tw_rms_norm_arguments)];
static tw_rms_norm_arguments defaults_tw_rms_norm_arguments;
static const Struct kStruct_tw_rms_norm_arguments = {
  "RmsNormArguments", sizeof(tw_rms_norm_arguments), init_tw_rms_norm_arguments, kMembers_tw_rms_norm_arguments,
  COUNT(kMembers_tw_rms_norm_arguments), names_tw_rms_norm_arguments, &defaults_tw_rms_norm_arguments};

static void init_tw_sample_problem(void* given) { tw_sample_problem_init(given); }
static const Member kMembers_tw_sample_problem[] = {
  {"rows", KIND_I64, offsetof(tw_sample_problem, rows)},
  {"vocab", KIND_I64, offsetof(tw_sample_problem, vocab)},
  {"logits_dtype", KIND_WORD, offsetof(tw_sample_problem, logits_dtype), .words = kWords28},
  {"parts", KIND_I64, offsetof(tw_sample_problem, parts)},
  {"row_stride", KIND_I64, offsetof(tw_sample_problem, row_stride)},
  {"part_stride", KIND_I64, offsetof(tw_sample_problem, part_stride)}};
static PyObject* names_tw_sample_problem[COUNT(kMembers_tw_sample_problem)];
static tw_sample_problem defaults_tw_sample_problem;
static const Struct kStruct_tw_sample_problem = {
  "SampleProblem", sizeof(tw_sample_problem), init_tw_sample_problem, kMembers_tw_sample_problem,
  COUNT(kMembers_tw_sample_problem), names_tw_sample_problem, &defaults_tw_sample_problem};

static void init_tw_sample_arguments(void* given) { tw_sample_arguments_init(given); }
static const Member kMembers_tw_sample_arguments[] = {
  {"logits", KIND_INPUT, offsetof(tw_sample_arguments, logits)},
  {"temperature", KIND_INPUT, offsetof(tw_sample_arguments, temperature), .element = ELEMENT_F32},
  {"top_k", KIND_INPUT, offsetof(tw_sample_arguments, top_k), .element = ELEMENT_I32},
  {"top_p", KIND_INPUT, offsetof(tw_sample_arguments, top_p), .element = ELEMENT_F32},
  {"min_p", KIND_INPUT, offsetof(tw_sample_arguments, min_p), .element = ELEMENT_F32},
  {"seeds", KIND_INPUT, offsetof(tw_sample_arguments, seeds)},
  {"positions", KIND_INPUT, offsetof(tw_sample_arguments, positions), .element = ELEMENT_I32},
  {"ids", KIND_OUTPUT, offsetof(tw_sample_arguments, ids), .element = ELEMENT_I32},
  {"log_probs", KIND_OUTPUT, offsetof(tw_sample_arguments, log_probs), .element = ELEMENT_F32},
  {"stream", KIND_STREAM, offsetof(tw_sample_arguments, stream)}};
static PyObject* names_tw_sample_arguments[COUNT(kMembers_tw_sample_arguments)];
static tw_sample_arguments defaults_tw_sample_arguments;
static const Struct kStruct_tw_sample_arguments = {
  "SampleArguments", sizeof(tw_sample_arguments), init_tw_sample_arguments, kMembers_tw_sample_arguments,
  COUNT(kMembers_tw_sample_arguments), names_tw_sample_arguments, &defaults_tw_sample_arguments};

static void init_tw_gather_rows_problem(void* given) { tw_gather_rows_problem_init(given); }
static const Member kMembers_tw_gather_rows_problem[] = {
  {"rows", KIND_I64, offsetof(tw_gather_rows_problem, rows)},
  {"x_rows", KIND_I64, offsetof(tw_gather_rows_problem, x_rows)},
  {"cols", KIND_I64, offsetof(tw_gather_rows_problem, cols)}};
static PyObject* names_tw_gather_rows_problem[COUNT(kMembers_tw_gather_rows_problem)];
static tw_gather_rows_problem defaults_tw_gather_rows_problem;
static const Struct kStruct_tw_gather_rows_problem = {
  "GatherRowsProblem", sizeof(tw_gather_rows_problem), init_tw_gather_rows_problem, kMembers_tw_gather_rows_problem,
  COUNT(kMembers_tw_gather_rows_problem), names_tw_gather_rows_problem, &defaults_tw_gather_rows_problem};

static void init_tw_gather_rows_arguments(void* given) { tw_gather_rows_arguments_init(given); }
static const Member kMembers_tw_gather_rows_arguments[] = {
  {"x", KIND_INPUT, offsetof(tw_gather_rows_arguments, x)},
  {"index", KIND_INPUT, offsetof(tw_gather_rows_arguments, index), .element = ELEMENT_I32},
  {"out", KIND_OUTPUT, offsetof(tw_gather_rows_arguments, out)},
  {"stream", KIND_STREAM, offsetof(tw_gather_rows_arguments, stream)}};
static PyObject* names_tw_gather_rows_arguments[COUNT(kMembers_tw_gather_rows_arguments)];
static tw_gather_rows_arguments defaults_tw_gather_rows_arguments;
static const Struct kStruct_tw_gather_rows_arguments = {
  "GatherRowsArguments", sizeof(tw_gather_rows_arguments), init_tw_gather_rows_arguments, kMembers_tw_gather_rows_arguments,
  COUNT(kMembers_tw_gather_rows_arguments), names_tw_gather_rows_arguments, &defaults_tw_gather_rows_arguments};

static void init_tw_chat_message(void* given) { tw_chat_message_init(given); }
static const Member kMembers_tw_chat_message[] = {
  {"role", KIND_WORD, offsetof(tw_chat_message, role), .words = kWords29},
  {"content", KIND_TEXT, offsetof(tw_chat_message, content)},
  {"reasoning", KIND_TEXT, offsetof(tw_chat_message, reasoning)}};
static PyObject* names_tw_chat_message[COUNT(kMembers_tw_chat_message)];
static tw_chat_message defaults_tw_chat_message;
static const Struct kStruct_tw_chat_message = {
  "ChatMessage", sizeof(tw_chat_message), init_tw_chat_message, kMembers_tw_chat_message,
  COUNT(kMembers_tw_chat_message), names_tw_chat_message, &defaults_tw_chat_message};

static void init_tw_llm_options(void* given) { tw_llm_options_init(given); }
static const Member kMembers_tw_llm_options[] = {
  {"device", KIND_TEXT, offsetof(tw_llm_options, device)},
  {"kv", KIND_TEXT, offsetof(tw_llm_options, kv)},
  {"index", KIND_TEXT, offsetof(tw_llm_options, index)},
  {"experts", KIND_TEXT, offsetof(tw_llm_options, experts)},
  {"max_tokens", KIND_I64, offsetof(tw_llm_options, max_tokens)},
  {"sequences", KIND_I64, offsetof(tw_llm_options, sequences)},
  {"cache_tokens", KIND_I64, offsetof(tw_llm_options, cache_tokens)},
  {"step_tokens", KIND_I64, offsetof(tw_llm_options, step_tokens)},
  {"has_draft", KIND_FLAG, offsetof(tw_llm_options, has_draft)},
  {"gpus", KIND_I64, offsetof(tw_llm_options, gpus)},
  {"parallel", KIND_TEXT, offsetof(tw_llm_options, parallel)}};
static PyObject* names_tw_llm_options[COUNT(kMembers_tw_llm_options)];
static tw_llm_options defaults_tw_llm_options;
static const Struct kStruct_tw_llm_options = {
  "LlmOptions", sizeof(tw_llm_options), init_tw_llm_options, kMembers_tw_llm_options,
  COUNT(kMembers_tw_llm_options), names_tw_llm_options, &defaults_tw_llm_options};

static void init_tw_llm_sampling(void* given) { tw_llm_sampling_init(given); }
static const Member kMembers_tw_llm_sampling[] = {
  {"temperature", KIND_F64, offsetof(tw_llm_sampling, temperature)},
  {"top_k", KIND_I64, offsetof(tw_llm_sampling, top_k)},
  {"top_p", KIND_F64, offsetof(tw_llm_sampling, top_p)},
  {"seed", KIND_U64, offsetof(tw_llm_sampling, seed)},
  {"max_tokens", KIND_I64, offsetof(tw_llm_sampling, max_tokens)},
  {"ignores_end", KIND_FLAG, offsetof(tw_llm_sampling, ignores_end)},
  {"min_p", KIND_F64, offsetof(tw_llm_sampling, min_p)}};
static PyObject* names_tw_llm_sampling[COUNT(kMembers_tw_llm_sampling)];
static tw_llm_sampling defaults_tw_llm_sampling;
static const Struct kStruct_tw_llm_sampling = {
  "LlmSampling", sizeof(tw_llm_sampling), init_tw_llm_sampling, kMembers_tw_llm_sampling,
  COUNT(kMembers_tw_llm_sampling), names_tw_llm_sampling, &defaults_tw_llm_sampling};

static tw_status create_tw_linear_weight(const void* given, const void* problem, void** handle) {
  return tw_linear_weight_prepare(given, problem, (tw_linear_weight**)handle);
}
static void destroy_tw_linear_weight(void* handle) { tw_linear_weight_destroy(handle); }
static size_t bytes_tw_linear_weight(const void* handle) {
  return tw_linear_weight_bytes(handle);
}
static const Query kQueries_tw_linear_weight[] = {
  {"bytes", "Of the prepared weights on the device.", .size = bytes_tw_linear_weight}};

static tw_status create_tw_block_scaled_weight(const void* given, const void* problem, void** handle) {
  return tw_block_scaled_weight_prepare(given, problem, (tw_block_scaled_weight**)handle);
}
static void destroy_tw_block_scaled_weight(void* handle) { tw_block_scaled_weight_destroy(handle); }
static size_t bytes_tw_block_scaled_weight(const void* handle) {
  return tw_block_scaled_weight_bytes(handle);
}
static const Query kQueries_tw_block_scaled_weight[] = {
  {"bytes", "Of the prepared weights on the device.", .size = bytes_tw_block_scaled_weight}};

static tw_status create_tw_moe_weights(const void* given, const void* problem, void** handle) {
  return tw_moe_weights_prepare(given, problem, (tw_moe_weights**)handle);
}
static void destroy_tw_moe_weights(void* handle) { tw_moe_weights_destroy(handle); }
static size_t bytes_tw_moe_weights(const void* handle) {
  return tw_moe_weights_bytes(handle);
}
static const Query kQueries_tw_moe_weights[] = {
  {"bytes", "Of the prepared weights on the device.", .size = bytes_tw_moe_weights}};

static tw_status create_tw_attention(const void* given, const void* problem, void** handle) {
  return tw_attention_create(given, problem, (tw_attention**)handle);
}
static void destroy_tw_attention(void* handle) { tw_attention_destroy(handle); }
typedef struct inputs_tw_attention {
  tw_attention_problem problem;
} inputs_tw_attention;
static void init_inputs_tw_attention(void* given) { inputs_tw_attention* in = given; tw_attention_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_attention[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_attention, problem), .inner = &kStruct_tw_attention_problem}};
static PyObject* names_inputs_tw_attention[COUNT(kMembers_inputs_tw_attention)];
static inputs_tw_attention defaults_inputs_tw_attention;
static const Struct kStruct_inputs_tw_attention = {
  "AttentionInputs", sizeof(inputs_tw_attention), init_inputs_tw_attention, kMembers_inputs_tw_attention,
  COUNT(kMembers_inputs_tw_attention), names_inputs_tw_attention, &defaults_inputs_tw_attention};
static tw_status plan_tw_attention(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_attention* const in = inputs;
  return tw_attention_plan(device, &in->problem, plan);
}
static const char* plan_text_tw_attention(const void* handle) {
  return tw_attention_plan_text(handle);
}
static const char* kernel_tw_attention(const void* handle) {
  return tw_attention_kernel(handle);
}
static size_t workspace_bytes_tw_attention(const void* handle) {
  return tw_attention_workspace_bytes(handle);
}
static double flops_tw_attention(const void* handle) {
  return tw_attention_flops(handle);
}
static const Query kQueries_tw_attention[] = {
  {"plan_text", "", .text = plan_text_tw_attention},
  {"kernel", "", .text = kernel_tw_attention},
  {"workspace_bytes", "", .size = workspace_bytes_tw_attention},
  {"flops", "2 * (head_dim + value_dim) for every visible score.", .number = flops_tw_attention}};
static const Rule kRules_tw_attention[] = {
  {.member = 0, .dtype_offset = offsetof(tw_attention_problem, dtype), .extents = {{offsetof(tw_attention_problem, batch), 0, 0}, {offsetof(tw_attention_problem, q_len), 0, 0}, {offsetof(tw_attention_problem, heads), 0, 0}, {offsetof(tw_attention_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_problem, q_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_CLEAR, false, offsetof(tw_attention_problem, is_packed)}}},
  {.member = 1, .dtype_offset = offsetof(tw_attention_problem, kv_dtype), .dtype_otherwise = offsetof(tw_attention_problem, dtype), .extents = {{offsetof(tw_attention_problem, batch), 0, 0}, {offsetof(tw_attention_problem, kv_len), 0, 0}, {offsetof(tw_attention_problem, kv_heads), 0, 0}, {offsetof(tw_attention_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_problem, k_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_CLEAR, true, offsetof(tw_attention_problem, page_size)}, {FLAG_CLEAR, false, offsetof(tw_attention_problem, is_packed)}}},
  {.member = 2, .dtype_offset = offsetof(tw_attention_problem, kv_dtype), .dtype_otherwise = offsetof(tw_attention_problem, dtype), .extents = {{offsetof(tw_attention_problem, batch), 0, 0}, {offsetof(tw_attention_problem, kv_len), 0, 0}, {offsetof(tw_attention_problem, kv_heads), 0, 0}, {offsetof(tw_attention_problem, value_dim), 0, offsetof(tw_attention_problem, head_dim)}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_problem, v_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_CLEAR, true, offsetof(tw_attention_problem, page_size)}, {FLAG_CLEAR, false, offsetof(tw_attention_problem, is_packed)}}},
  {.member = 3, .dtype_offset = offsetof(tw_attention_problem, dtype), .extents = {{offsetof(tw_attention_problem, batch), 0, 0}, {offsetof(tw_attention_problem, q_len), 0, 0}, {offsetof(tw_attention_problem, heads), 0, 0}, {offsetof(tw_attention_problem, value_dim), 0, offsetof(tw_attention_problem, head_dim)}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_problem, out_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_CLEAR, false, offsetof(tw_attention_problem, is_packed)}}},
  {.member = 4, .dtype = TW_F32, .extents = {{offsetof(tw_attention_problem, batch), 0, 0}, {offsetof(tw_attention_problem, heads), 0, 0}, {offsetof(tw_attention_problem, q_len), 0, 0}}, .num_extents = 3, .flags = {{FLAG_CLEAR, false, offsetof(tw_attention_problem, is_packed)}}},
  {.member = 0, .dtype_offset = offsetof(tw_attention_problem, dtype), .extents = {{offsetof(tw_attention_problem, total_q), 0, 0}, {offsetof(tw_attention_problem, heads), 0, 0}, {offsetof(tw_attention_problem, head_dim), 0, 0}}, .num_extents = 3, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_problem, q_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_SET, false, offsetof(tw_attention_problem, is_packed)}}},
  {.member = 1, .dtype_offset = offsetof(tw_attention_problem, kv_dtype), .dtype_otherwise = offsetof(tw_attention_problem, dtype), .extents = {{offsetof(tw_attention_problem, total_kv), 0, 0}, {offsetof(tw_attention_problem, kv_heads), 0, 0}, {offsetof(tw_attention_problem, head_dim), 0, 0}}, .num_extents = 3, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_problem, k_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_CLEAR, true, offsetof(tw_attention_problem, page_size)}, {FLAG_SET, false, offsetof(tw_attention_problem, is_packed)}}},
  {.member = 1, .dtype_offset = offsetof(tw_attention_problem, kv_dtype), .dtype_otherwise = offsetof(tw_attention_problem, dtype), .extents = {{offsetof(tw_attention_problem, num_pages), 0, 0}, {offsetof(tw_attention_problem, page_size), 0, 0}, {offsetof(tw_attention_problem, kv_heads), 0, 0}, {offsetof(tw_attention_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_problem, k_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_SET, true, offsetof(tw_attention_problem, page_size)}}},
  {.member = 2, .dtype_offset = offsetof(tw_attention_problem, kv_dtype), .dtype_otherwise = offsetof(tw_attention_problem, dtype), .extents = {{offsetof(tw_attention_problem, total_kv), 0, 0}, {offsetof(tw_attention_problem, kv_heads), 0, 0}, {offsetof(tw_attention_problem, value_dim), 0, offsetof(tw_attention_problem, head_dim)}}, .num_extents = 3, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_problem, v_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_CLEAR, true, offsetof(tw_attention_problem, page_size)}, {FLAG_SET, false, offsetof(tw_attention_problem, is_packed)}}},
  {.member = 2, .dtype_offset = offsetof(tw_attention_problem, kv_dtype), .dtype_otherwise = offsetof(tw_attention_problem, dtype), .extents = {{offsetof(tw_attention_problem, num_pages), 0, 0}, {offsetof(tw_attention_problem, page_size), 0, 0}, {offsetof(tw_attention_problem, kv_heads), 0, 0}, {offsetof(tw_attention_problem, value_dim), 0, offsetof(tw_attention_problem, head_dim)}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_problem, v_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_SET, true, offsetof(tw_attention_problem, page_size)}}},
  {.member = 3, .dtype_offset = offsetof(tw_attention_problem, dtype), .extents = {{offsetof(tw_attention_problem, total_q), 0, 0}, {offsetof(tw_attention_problem, heads), 0, 0}, {offsetof(tw_attention_problem, value_dim), 0, offsetof(tw_attention_problem, head_dim)}}, .num_extents = 3, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_problem, out_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_SET, false, offsetof(tw_attention_problem, is_packed)}}},
  {.member = 4, .dtype = TW_F32, .extents = {{offsetof(tw_attention_problem, heads), 0, 0}, {offsetof(tw_attention_problem, total_q), 0, 0}}, .num_extents = 2, .flags = {{FLAG_SET, false, offsetof(tw_attention_problem, is_packed)}}},
  {.member = 5, .dtype = TW_F32, .extents = {{offsetof(tw_attention_problem, heads), 0, 0}}, .num_extents = 1}};
static tw_status run_tw_attention(const void* handle, const void* arguments) {
  return tw_attention_run(handle, arguments);
}
static const Call kCalls_tw_attention[] = {
  {"run", "Attention.run", "run($self, /, *, q=None, k=None, v=None, out=None, lse=None, sink=None, cu_q=None, cu_kv=None, workspace=None, stream=None, q_descale=None, k_descale=None, v_descale=None, v_descale_max=None, q_lengths=None, kv_lengths=None, block_table=None)\n"
    "--\n"
    "\n"
    "  q: tensor\n"
    "  k: tensor\n"
    "  v: tensor\n"
    "  out: tensor, written\n"
    "  lse: float32 tensor, written; [batch, heads, q_len]; packed [heads, total_q]\n"
    "  sink: float32 tensor; [heads]\n"
    "  cu_q: int32 tensor; [batch + 1]\n"
    "  cu_kv: int32 tensor; [batch + 1]\n"
    "  workspace: tensor, written; 256-byte aligned\n"
    "  stream: None: PyTorch's current stream, else the default one\n"
    "  q_descale: float32 tensor; scales of e4m3 operands\n"
    "  k_descale: float32 tensor; scales of e4m3 operands\n"
    "  v_descale: float32 tensor; scales of e4m3 operands\n"
    "  v_descale_max: float32 tensor; with scales of blocks: [batch, kv_heads]\n"
    "  q_lengths: int32 tensor; [batch]\n"
    "  kv_lengths: int32 tensor; [batch]\n"
    "  block_table: int32 tensor; [batch, max_pages]",
   &kStruct_tw_attention_arguments, run_tw_attention}};

static tw_status create_tw_attention_merge(const void* given, const void* problem, void** handle) {
  return tw_attention_merge_create(given, problem, (tw_attention_merge**)handle);
}
static void destroy_tw_attention_merge(void* handle) { tw_attention_merge_destroy(handle); }
typedef struct inputs_tw_attention_merge {
  tw_attention_merge_problem problem;
} inputs_tw_attention_merge;
static void init_inputs_tw_attention_merge(void* given) { inputs_tw_attention_merge* in = given; tw_attention_merge_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_attention_merge[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_attention_merge, problem), .inner = &kStruct_tw_attention_merge_problem}};
static PyObject* names_inputs_tw_attention_merge[COUNT(kMembers_inputs_tw_attention_merge)];
static inputs_tw_attention_merge defaults_inputs_tw_attention_merge;
static const Struct kStruct_inputs_tw_attention_merge = {
  "AttentionMergeInputs", sizeof(inputs_tw_attention_merge), init_inputs_tw_attention_merge, kMembers_inputs_tw_attention_merge,
  COUNT(kMembers_inputs_tw_attention_merge), names_inputs_tw_attention_merge, &defaults_inputs_tw_attention_merge};
static tw_status plan_tw_attention_merge(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_attention_merge* const in = inputs;
  return tw_attention_merge_plan(device, &in->problem, plan);
}
static const char* plan_text_tw_attention_merge(const void* handle) {
  return tw_attention_merge_plan_text(handle);
}
static double bytes_tw_attention_merge(const void* handle) {
  return tw_attention_merge_bytes(handle);
}
static const Query kQueries_tw_attention_merge[] = {
  {"plan_text", "", .text = plan_text_tw_attention_merge},
  {"bytes", "", .number = bytes_tw_attention_merge}};
static const Rule kRules_tw_attention_merge[] = {
  {.member = 4, .dtype_offset = offsetof(tw_attention_merge_problem, out_dtype), .extents = {{offsetof(tw_attention_merge_problem, batch), 0, 0}, {offsetof(tw_attention_merge_problem, rows), 0, 0}, {offsetof(tw_attention_merge_problem, heads), 0, 0}, {offsetof(tw_attention_merge_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_merge_problem, out_strides), .is_last_contiguous = true},
  {.member = 2, .dtype_offset = offsetof(tw_attention_merge_problem, part_dtype), .extents = {{offsetof(tw_attention_merge_problem, batch), 0, 0}, {offsetof(tw_attention_merge_problem, rows), 0, 0}, {offsetof(tw_attention_merge_problem, heads), 0, 0}, {offsetof(tw_attention_merge_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_merge_problem, other_strides), .is_last_contiguous = true},
  {.member = 6, .dtype = TW_F32, .extents = {{offsetof(tw_attention_merge_problem, heads), 0, 0}}, .num_extents = 1}};
static tw_status run_tw_attention_merge(const void* handle, const void* arguments) {
  return tw_attention_merge_run(handle, arguments);
}
static const Call kCalls_tw_attention_merge[] = {
  {"run", "AttentionMerge.run", "run($self, /, *, part_out=None, part_lse=None, other_out=None, other_lse=None, out=None, lse=None, sink=None, stream=None)\n"
    "--\n"
    "\n"
    "  part_out: tensor; [parts, batch, rows, heads, head_dim], or the first of two\n"
    "  part_lse: float32 tensor; [parts, batch, heads, rows], or the first of two\n"
    "  other_out: tensor; of two parts in memory of their own, the second\n"
    "  other_lse: float32 tensor\n"
    "  out: tensor, written; [batch, rows, heads, head_dim]\n"
    "  lse: float32 tensor, written; [batch, heads, rows]\n"
    "  sink: float32 tensor; [heads]\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_attention_merge_arguments, run_tw_attention_merge}};

static tw_status create_tw_attention_prepare(const void* given, const void* problem, void** handle) {
  return tw_attention_prepare_create(given, problem, (tw_attention_prepare**)handle);
}
static void destroy_tw_attention_prepare(void* handle) { tw_attention_prepare_destroy(handle); }
typedef struct inputs_tw_attention_prepare {
  tw_attention_prepare_problem problem;
} inputs_tw_attention_prepare;
static void init_inputs_tw_attention_prepare(void* given) { inputs_tw_attention_prepare* in = given; tw_attention_prepare_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_attention_prepare[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_attention_prepare, problem), .inner = &kStruct_tw_attention_prepare_problem}};
static PyObject* names_inputs_tw_attention_prepare[COUNT(kMembers_inputs_tw_attention_prepare)];
static inputs_tw_attention_prepare defaults_inputs_tw_attention_prepare;
static const Struct kStruct_inputs_tw_attention_prepare = {
  "AttentionPrepareInputs", sizeof(inputs_tw_attention_prepare), init_inputs_tw_attention_prepare, kMembers_inputs_tw_attention_prepare,
  COUNT(kMembers_inputs_tw_attention_prepare), names_inputs_tw_attention_prepare, &defaults_inputs_tw_attention_prepare};
static tw_status plan_tw_attention_prepare(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_attention_prepare* const in = inputs;
  return tw_attention_prepare_plan(device, &in->problem, plan);
}
static const char* plan_text_tw_attention_prepare(const void* handle) {
  return tw_attention_prepare_plan_text(handle);
}
static const Query kQueries_tw_attention_prepare[] = {
  {"plan_text", "", .text = plan_text_tw_attention_prepare}};
static const Rule kRules_tw_attention_prepare[] = {
  {.member = 0, .dtype_offset = offsetof(tw_attention_prepare_problem, dtype), .extents = {{offsetof(tw_attention_prepare_problem, batch), 0, 0}, {offsetof(tw_attention_prepare_problem, q_len), 0, 0}, {offsetof(tw_attention_prepare_problem, heads), 0, 0}, {offsetof(tw_attention_prepare_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_prepare_problem, q_strides), .is_last_contiguous = true, .flags = {{FLAG_CLEAR, false, offsetof(tw_attention_prepare_problem, is_packed)}}},
  {.member = 1, .dtype_offset = offsetof(tw_attention_prepare_problem, dtype), .extents = {{offsetof(tw_attention_prepare_problem, batch), 0, 0}, {offsetof(tw_attention_prepare_problem, kv_len), 0, 0}, {offsetof(tw_attention_prepare_problem, kv_heads), 0, 0}, {offsetof(tw_attention_prepare_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_prepare_problem, k_strides), .is_last_contiguous = true, .flags = {{FLAG_CLEAR, false, offsetof(tw_attention_prepare_problem, is_packed)}}},
  {.member = 2, .dtype_offset = offsetof(tw_attention_prepare_problem, dtype), .extents = {{offsetof(tw_attention_prepare_problem, batch), 0, 0}, {offsetof(tw_attention_prepare_problem, kv_len), 0, 0}, {offsetof(tw_attention_prepare_problem, kv_heads), 0, 0}, {offsetof(tw_attention_prepare_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_prepare_problem, v_strides), .is_last_contiguous = true, .flags = {{FLAG_CLEAR, false, offsetof(tw_attention_prepare_problem, is_packed)}}},
  {.member = 0, .dtype_offset = offsetof(tw_attention_prepare_problem, dtype), .extents = {{offsetof(tw_attention_prepare_problem, total_q), 0, 0}, {offsetof(tw_attention_prepare_problem, heads), 0, 0}, {offsetof(tw_attention_prepare_problem, head_dim), 0, 0}}, .num_extents = 3, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_prepare_problem, q_strides), .is_last_contiguous = true, .flags = {{FLAG_SET, false, offsetof(tw_attention_prepare_problem, is_packed)}}},
  {.member = 1, .dtype_offset = offsetof(tw_attention_prepare_problem, dtype), .extents = {{offsetof(tw_attention_prepare_problem, total_kv), 0, 0}, {offsetof(tw_attention_prepare_problem, kv_heads), 0, 0}, {offsetof(tw_attention_prepare_problem, head_dim), 0, 0}}, .num_extents = 3, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_prepare_problem, k_strides), .is_last_contiguous = true, .flags = {{FLAG_SET, false, offsetof(tw_attention_prepare_problem, is_packed)}}},
  {.member = 2, .dtype_offset = offsetof(tw_attention_prepare_problem, dtype), .extents = {{offsetof(tw_attention_prepare_problem, total_kv), 0, 0}, {offsetof(tw_attention_prepare_problem, kv_heads), 0, 0}, {offsetof(tw_attention_prepare_problem, head_dim), 0, 0}}, .num_extents = 3, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_prepare_problem, v_strides), .is_last_contiguous = true, .flags = {{FLAG_SET, false, offsetof(tw_attention_prepare_problem, is_packed)}}}};
static tw_status run_tw_attention_prepare(const void* handle, const void* arguments) {
  return tw_attention_prepare_run(handle, arguments);
}
static const Call kCalls_tw_attention_prepare[] = {
  {"run", "AttentionPrepare.run", "run($self, /, *, q=None, k=None, v=None, q8=None, k8=None, v8=None, q_descale=None, k_descale=None, v_descale=None, v_descale_max=None, cu_q=None, cu_kv=None, rope=None, q_positions=None, k_positions=None, workspace=None, stream=None)\n"
    "--\n"
    "\n"
    "  q: tensor\n"
    "  k: tensor\n"
    "  v: tensor\n"
    "  q8: tensor, written\n"
    "  k8: tensor, written\n"
    "  v8: tensor, written\n"
    "  q_descale: float32 tensor, written\n"
    "  k_descale: float32 tensor, written\n"
    "  v_descale: float32 tensor, written\n"
    "  v_descale_max: float32 tensor, written; with scales of blocks\n"
    "  cu_q: int32 tensor; [batch + 1]\n"
    "  cu_kv: int32 tensor; [batch + 1]\n"
    "  rope: float32 tensor; [rope_positions, rotary_dim]: cosines, then sines\n"
    "  q_positions: int32 tensor\n"
    "  k_positions: int32 tensor\n"
    "  workspace: tensor, written; 256-byte aligned\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_attention_prepare_arguments, run_tw_attention_prepare}};

static tw_status create_tw_attention_decode(const void* given, const void* problem, void** handle) {
  return tw_attention_decode_create(given, problem, (tw_attention_decode**)handle);
}
static void destroy_tw_attention_decode(void* handle) { tw_attention_decode_destroy(handle); }
typedef struct inputs_tw_attention_decode {
  tw_attention_decode_problem problem;
} inputs_tw_attention_decode;
static void init_inputs_tw_attention_decode(void* given) { inputs_tw_attention_decode* in = given; tw_attention_decode_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_attention_decode[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_attention_decode, problem), .inner = &kStruct_tw_attention_decode_problem}};
static PyObject* names_inputs_tw_attention_decode[COUNT(kMembers_inputs_tw_attention_decode)];
static inputs_tw_attention_decode defaults_inputs_tw_attention_decode;
static const Struct kStruct_inputs_tw_attention_decode = {
  "AttentionDecodeInputs", sizeof(inputs_tw_attention_decode), init_inputs_tw_attention_decode, kMembers_inputs_tw_attention_decode,
  COUNT(kMembers_inputs_tw_attention_decode), names_inputs_tw_attention_decode, &defaults_inputs_tw_attention_decode};
static tw_status plan_tw_attention_decode(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_attention_decode* const in = inputs;
  return tw_attention_decode_plan(device, &in->problem, plan);
}
static const char* plan_text_tw_attention_decode(const void* handle) {
  return tw_attention_decode_plan_text(handle);
}
static const char* kernel_tw_attention_decode(const void* handle) {
  return tw_attention_decode_kernel(handle);
}
static size_t workspace_bytes_tw_attention_decode(const void* handle) {
  return tw_attention_decode_workspace_bytes(handle);
}
static const Query kQueries_tw_attention_decode[] = {
  {"plan_text", "", .text = plan_text_tw_attention_decode},
  {"kernel", "", .text = kernel_tw_attention_decode},
  {"workspace_bytes", "", .size = workspace_bytes_tw_attention_decode}};
static const Rule kRules_tw_attention_decode[] = {
  {.member = 0, .dtype_offset = offsetof(tw_attention_decode_problem, dtype), .extents = {{offsetof(tw_attention_decode_problem, batch), 0, 0}, {offsetof(tw_attention_decode_problem, q_len), 0, 0}, {offsetof(tw_attention_decode_problem, heads), 0, 0}, {offsetof(tw_attention_decode_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_decode_problem, q_strides), .is_last_contiguous = true},
  {.member = 11, .dtype_offset = offsetof(tw_attention_decode_problem, dtype), .extents = {{offsetof(tw_attention_decode_problem, batch), 0, 0}, {offsetof(tw_attention_decode_problem, q_len), 0, 0}, {offsetof(tw_attention_decode_problem, heads), 0, 0}, {offsetof(tw_attention_decode_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_decode_problem, out_strides), .is_last_contiguous = true},
  {.member = 7, .dtype_offset = offsetof(tw_attention_decode_problem, dtype), .extents = {{offsetof(tw_attention_decode_problem, batch), 0, 0}, {offsetof(tw_attention_decode_problem, q_len), 0, 0}, {offsetof(tw_attention_decode_problem, kv_heads), 0, 0}, {offsetof(tw_attention_decode_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_decode_problem, new_k_strides), .is_last_contiguous = true},
  {.member = 8, .dtype_offset = offsetof(tw_attention_decode_problem, dtype), .extents = {{offsetof(tw_attention_decode_problem, batch), 0, 0}, {offsetof(tw_attention_decode_problem, q_len), 0, 0}, {offsetof(tw_attention_decode_problem, kv_heads), 0, 0}, {offsetof(tw_attention_decode_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_decode_problem, new_v_strides), .is_last_contiguous = true},
  {.member = 1, .dtype_offset = offsetof(tw_attention_decode_problem, kv_dtype), .extents = {{offsetof(tw_attention_decode_problem, num_pages), 0, 0}, {offsetof(tw_attention_decode_problem, page_size), 0, 0}, {offsetof(tw_attention_decode_problem, kv_heads), 0, 0}, {offsetof(tw_attention_decode_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_decode_problem, cache_strides), .is_last_contiguous = true, .flags = {{FLAG_SET, true, offsetof(tw_attention_decode_problem, page_size)}}},
  {.member = 2, .dtype_offset = offsetof(tw_attention_decode_problem, kv_dtype), .extents = {{offsetof(tw_attention_decode_problem, num_pages), 0, 0}, {offsetof(tw_attention_decode_problem, page_size), 0, 0}, {offsetof(tw_attention_decode_problem, kv_heads), 0, 0}, {offsetof(tw_attention_decode_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_decode_problem, cache_strides), .is_last_contiguous = true, .flags = {{FLAG_SET, true, offsetof(tw_attention_decode_problem, page_size)}}},
  {.member = 1, .dtype_offset = offsetof(tw_attention_decode_problem, kv_dtype), .extents = {{offsetof(tw_attention_decode_problem, batch), 0, 0}, {offsetof(tw_attention_decode_problem, max_len), 0, 0}, {offsetof(tw_attention_decode_problem, kv_heads), 0, 0}, {offsetof(tw_attention_decode_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_decode_problem, cache_strides), .is_last_contiguous = true, .flags = {{FLAG_CLEAR, true, offsetof(tw_attention_decode_problem, page_size)}}},
  {.member = 2, .dtype_offset = offsetof(tw_attention_decode_problem, kv_dtype), .extents = {{offsetof(tw_attention_decode_problem, batch), 0, 0}, {offsetof(tw_attention_decode_problem, max_len), 0, 0}, {offsetof(tw_attention_decode_problem, kv_heads), 0, 0}, {offsetof(tw_attention_decode_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_attention_decode_problem, cache_strides), .is_last_contiguous = true, .flags = {{FLAG_CLEAR, true, offsetof(tw_attention_decode_problem, page_size)}}},
  {.member = 12, .dtype = TW_F32, .extents = {{offsetof(tw_attention_decode_problem, batch), 0, 0}, {offsetof(tw_attention_decode_problem, heads), 0, 0}, {offsetof(tw_attention_decode_problem, q_len), 0, 0}}, .num_extents = 3},
  {.member = 13, .dtype = TW_F32, .extents = {{offsetof(tw_attention_decode_problem, heads), 0, 0}}, .num_extents = 1}};
static tw_status run_tw_attention_decode(const void* handle, const void* arguments) {
  return tw_attention_decode_run(handle, arguments);
}
static const Call kCalls_tw_attention_decode[] = {
  {"run", "AttentionDecode.run", "run($self, /, *, q=None, k_cache=None, v_cache=None, lengths=None, block_table=None, k_descale=None, v_descale=None, new_k=None, new_v=None, cos=None, sin=None, out=None, lse=None, sink=None, workspace=None, stream=None)\n"
    "--\n"
    "\n"
    "  q: tensor\n"
    "  k_cache: tensor, written\n"
    "  v_cache: tensor, written\n"
    "  lengths: int32 tensor\n"
    "  block_table: int32 tensor\n"
    "  k_descale: float32 tensor\n"
    "  v_descale: float32 tensor\n"
    "  new_k: tensor\n"
    "  new_v: tensor\n"
    "  cos: float32 tensor; with append and rotary pairs [max_position, rotary_dim / 2]\n"
    "  sin: float32 tensor\n"
    "  out: tensor, written\n"
    "  lse: float32 tensor, written\n"
    "  sink: float32 tensor\n"
    "  workspace: tensor, written; 256-byte aligned\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_attention_decode_arguments, run_tw_attention_decode}};

static tw_status create_tw_cache_append(const void* given, const void* problem, void** handle) {
  return tw_cache_append_create(given, problem, (tw_cache_append**)handle);
}
static void destroy_tw_cache_append(void* handle) { tw_cache_append_destroy(handle); }
typedef struct inputs_tw_cache_append {
  tw_cache_append_problem problem;
} inputs_tw_cache_append;
static void init_inputs_tw_cache_append(void* given) { inputs_tw_cache_append* in = given; tw_cache_append_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_cache_append[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_cache_append, problem), .inner = &kStruct_tw_cache_append_problem}};
static PyObject* names_inputs_tw_cache_append[COUNT(kMembers_inputs_tw_cache_append)];
static inputs_tw_cache_append defaults_inputs_tw_cache_append;
static const Struct kStruct_inputs_tw_cache_append = {
  "CacheAppendInputs", sizeof(inputs_tw_cache_append), init_inputs_tw_cache_append, kMembers_inputs_tw_cache_append,
  COUNT(kMembers_inputs_tw_cache_append), names_inputs_tw_cache_append, &defaults_inputs_tw_cache_append};
static tw_status plan_tw_cache_append(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_cache_append* const in = inputs;
  return tw_cache_append_plan(device, &in->problem, plan);
}
static const char* plan_text_tw_cache_append(const void* handle) {
  return tw_cache_append_plan_text(handle);
}
static double bytes_tw_cache_append(const void* handle) {
  return tw_cache_append_bytes(handle);
}
static const Query kQueries_tw_cache_append[] = {
  {"plan_text", "", .text = plan_text_tw_cache_append},
  {"bytes", "", .number = bytes_tw_cache_append}};
static const Rule kRules_tw_cache_append[] = {
  {.member = 0, .dtype_offset = offsetof(tw_cache_append_problem, dtype), .extents = {{offsetof(tw_cache_append_problem, batch), 0, 0}, {offsetof(tw_cache_append_problem, q_len), 0, 0}, {offsetof(tw_cache_append_problem, heads), 0, 0}, {offsetof(tw_cache_append_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_cache_append_problem, q_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_CLEAR, false, offsetof(tw_cache_append_problem, is_q_packed)}}},
  {.member = 3, .dtype_offset = offsetof(tw_cache_append_problem, dtype), .extents = {{offsetof(tw_cache_append_problem, batch), 0, 0}, {offsetof(tw_cache_append_problem, q_len), 0, 0}, {offsetof(tw_cache_append_problem, heads), 0, 0}, {offsetof(tw_cache_append_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_cache_append_problem, turned_q_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_CLEAR, false, offsetof(tw_cache_append_problem, is_q_packed)}}},
  {.member = 1, .dtype_offset = offsetof(tw_cache_append_problem, dtype), .extents = {{offsetof(tw_cache_append_problem, batch), 0, 0}, {offsetof(tw_cache_append_problem, new_len), 0, 0}, {offsetof(tw_cache_append_problem, kv_heads), 0, 0}, {offsetof(tw_cache_append_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_cache_append_problem, new_k_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_CLEAR, false, offsetof(tw_cache_append_problem, is_packed)}}},
  {.member = 2, .dtype_offset = offsetof(tw_cache_append_problem, dtype), .extents = {{offsetof(tw_cache_append_problem, batch), 0, 0}, {offsetof(tw_cache_append_problem, new_len), 0, 0}, {offsetof(tw_cache_append_problem, kv_heads), 0, 0}, {offsetof(tw_cache_append_problem, value_dim), 0, offsetof(tw_cache_append_problem, head_dim)}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_cache_append_problem, new_v_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_CLEAR, false, offsetof(tw_cache_append_problem, is_packed)}}},
  {.member = 0, .dtype_offset = offsetof(tw_cache_append_problem, dtype), .extents = {{offsetof(tw_cache_append_problem, total_q), 0, 0}, {offsetof(tw_cache_append_problem, heads), 0, 0}, {offsetof(tw_cache_append_problem, head_dim), 0, 0}}, .num_extents = 3, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_cache_append_problem, q_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_SET, false, offsetof(tw_cache_append_problem, is_q_packed)}}},
  {.member = 3, .dtype_offset = offsetof(tw_cache_append_problem, dtype), .extents = {{offsetof(tw_cache_append_problem, total_q), 0, 0}, {offsetof(tw_cache_append_problem, heads), 0, 0}, {offsetof(tw_cache_append_problem, head_dim), 0, 0}}, .num_extents = 3, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_cache_append_problem, turned_q_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_SET, false, offsetof(tw_cache_append_problem, is_q_packed)}}},
  {.member = 1, .dtype_offset = offsetof(tw_cache_append_problem, dtype), .extents = {{offsetof(tw_cache_append_problem, total_new), 0, 0}, {offsetof(tw_cache_append_problem, kv_heads), 0, 0}, {offsetof(tw_cache_append_problem, head_dim), 0, 0}}, .num_extents = 3, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_cache_append_problem, new_k_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_SET, false, offsetof(tw_cache_append_problem, is_packed)}}},
  {.member = 2, .dtype_offset = offsetof(tw_cache_append_problem, dtype), .extents = {{offsetof(tw_cache_append_problem, total_new), 0, 0}, {offsetof(tw_cache_append_problem, kv_heads), 0, 0}, {offsetof(tw_cache_append_problem, value_dim), 0, offsetof(tw_cache_append_problem, head_dim)}}, .num_extents = 3, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_cache_append_problem, new_v_strides), .is_last_contiguous = true, .is_16_bit = true, .flags = {{FLAG_SET, false, offsetof(tw_cache_append_problem, is_packed)}}},
  {.member = 4, .dtype_offset = offsetof(tw_cache_append_problem, kv_dtype), .extents = {{offsetof(tw_cache_append_problem, num_pages), 0, 0}, {offsetof(tw_cache_append_problem, page_size), 0, 0}, {offsetof(tw_cache_append_problem, kv_heads), 0, 0}, {offsetof(tw_cache_append_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_cache_append_problem, k_cache_strides), .is_last_contiguous = true, .flags = {{FLAG_SET, true, offsetof(tw_cache_append_problem, page_size)}}},
  {.member = 5, .dtype_offset = offsetof(tw_cache_append_problem, kv_dtype), .extents = {{offsetof(tw_cache_append_problem, num_pages), 0, 0}, {offsetof(tw_cache_append_problem, page_size), 0, 0}, {offsetof(tw_cache_append_problem, kv_heads), 0, 0}, {offsetof(tw_cache_append_problem, value_dim), 0, offsetof(tw_cache_append_problem, head_dim)}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_cache_append_problem, v_cache_strides), .is_last_contiguous = true, .flags = {{FLAG_SET, true, offsetof(tw_cache_append_problem, page_size)}}},
  {.member = 4, .dtype_offset = offsetof(tw_cache_append_problem, kv_dtype), .extents = {{offsetof(tw_cache_append_problem, batch), 0, 0}, {offsetof(tw_cache_append_problem, max_len), 0, 0}, {offsetof(tw_cache_append_problem, kv_heads), 0, 0}, {offsetof(tw_cache_append_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_cache_append_problem, k_cache_strides), .is_last_contiguous = true, .flags = {{FLAG_CLEAR, true, offsetof(tw_cache_append_problem, page_size)}}},
  {.member = 5, .dtype_offset = offsetof(tw_cache_append_problem, kv_dtype), .extents = {{offsetof(tw_cache_append_problem, batch), 0, 0}, {offsetof(tw_cache_append_problem, max_len), 0, 0}, {offsetof(tw_cache_append_problem, kv_heads), 0, 0}, {offsetof(tw_cache_append_problem, value_dim), 0, offsetof(tw_cache_append_problem, head_dim)}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_cache_append_problem, v_cache_strides), .is_last_contiguous = true, .flags = {{FLAG_CLEAR, true, offsetof(tw_cache_append_problem, page_size)}}}};
static tw_status run_tw_cache_append(const void* handle, const void* arguments) {
  return tw_cache_append_run(handle, arguments);
}
static const Call kCalls_tw_cache_append[] = {
  {"run", "CacheAppend.run", "run($self, /, *, q=None, new_k=None, new_v=None, turned_q=None, k_cache=None, v_cache=None, lengths=None, rotary_lengths=None, new_lengths=None, block_table=None, cu_new=None, cu_q=None, k_descale=None, v_descale=None, cos=None, sin=None, stream=None)\n"
    "--\n"
    "\n"
    "  q: tensor\n"
    "  new_k: tensor\n"
    "  new_v: tensor\n"
    "  turned_q: tensor, written\n"
    "  k_cache: tensor, written\n"
    "  v_cache: tensor, written\n"
    "  lengths: int32 tensor\n"
    "  rotary_lengths: int32 tensor\n"
    "  new_lengths: int32 tensor, written\n"
    "  block_table: int32 tensor\n"
    "  cu_new: int32 tensor; [batch + 1]\n"
    "  cu_q: int32 tensor; [batch + 1]\n"
    "  k_descale: float32 tensor\n"
    "  v_descale: float32 tensor\n"
    "  cos: float32 tensor; [max_position, rotary_dim / 2]\n"
    "  sin: float32 tensor\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_cache_append_arguments, run_tw_cache_append}};

static tw_status create_tw_linear(const void* given, const void* problem, void** handle) {
  return tw_linear_create(given, problem, (tw_linear**)handle);
}
static void destroy_tw_linear(void* handle) { tw_linear_destroy(handle); }
typedef struct inputs_tw_linear {
  tw_linear_weight_info weight;
  tw_linear_problem problem;
} inputs_tw_linear;
static void init_inputs_tw_linear(void* given) { inputs_tw_linear* in = given; tw_linear_weight_info_init(&in->weight); tw_linear_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_linear[] = {
  {"weight", KIND_STRUCT, offsetof(inputs_tw_linear, weight), .inner = &kStruct_tw_linear_weight_info},
  {"problem", KIND_STRUCT, offsetof(inputs_tw_linear, problem), .inner = &kStruct_tw_linear_problem}};
static PyObject* names_inputs_tw_linear[COUNT(kMembers_inputs_tw_linear)];
static inputs_tw_linear defaults_inputs_tw_linear;
static const Struct kStruct_inputs_tw_linear = {
  "LinearInputs", sizeof(inputs_tw_linear), init_inputs_tw_linear, kMembers_inputs_tw_linear,
  COUNT(kMembers_inputs_tw_linear), names_inputs_tw_linear, &defaults_inputs_tw_linear};
static tw_status plan_tw_linear(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_linear* const in = inputs;
  return tw_linear_plan(device, &in->weight, &in->problem, plan);
}
static const char* plan_text_tw_linear(const void* handle) {
  return tw_linear_plan_text(handle);
}
static const char* kernel_tw_linear(const void* handle) {
  return tw_linear_kernel(handle);
}
static size_t workspace_bytes_tw_linear(const void* handle) {
  return tw_linear_workspace_bytes(handle);
}
static double flops_tw_linear(const void* handle) {
  return tw_linear_flops(handle);
}
static double bytes_tw_linear(const void* handle) {
  return tw_linear_bytes(handle);
}
static const Query kQueries_tw_linear[] = {
  {"plan_text", "", .text = plan_text_tw_linear},
  {"kernel", "", .text = kernel_tw_linear},
  {"workspace_bytes", "", .size = workspace_bytes_tw_linear},
  {"flops", "2 m n k.", .number = flops_tw_linear},
  {"bytes", "Weight, x and out, each once.", .number = bytes_tw_linear}};
static tw_status run_tw_linear(const void* handle, const void* arguments) {
  return tw_linear_run(handle, arguments);
}
static const Call kCalls_tw_linear[] = {
  {"run", "Linear.run", "run($self, /, *, x=None, x_scales=None, bias=None, out=None, workspace=None, stream=None)\n"
    "--\n"
    "\n"
    "  x: tensor\n"
    "  x_scales: float32 tensor\n"
    "  bias: float32 tensor; [n]\n"
    "  out: tensor, written\n"
    "  workspace: tensor, written; 256-byte aligned\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_linear_arguments, run_tw_linear}};

static tw_status create_tw_block_scaled_linear(const void* given, const void* problem, void** handle) {
  return tw_block_scaled_linear_create(given, problem, (tw_block_scaled_linear**)handle);
}
static void destroy_tw_block_scaled_linear(void* handle) { tw_block_scaled_linear_destroy(handle); }
typedef struct inputs_tw_block_scaled_linear {
  tw_block_scaled_weight_info weight;
  tw_block_scaled_problem problem;
} inputs_tw_block_scaled_linear;
static void init_inputs_tw_block_scaled_linear(void* given) { inputs_tw_block_scaled_linear* in = given; tw_block_scaled_weight_info_init(&in->weight); tw_block_scaled_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_block_scaled_linear[] = {
  {"weight", KIND_STRUCT, offsetof(inputs_tw_block_scaled_linear, weight), .inner = &kStruct_tw_block_scaled_weight_info},
  {"problem", KIND_STRUCT, offsetof(inputs_tw_block_scaled_linear, problem), .inner = &kStruct_tw_block_scaled_problem}};
static PyObject* names_inputs_tw_block_scaled_linear[COUNT(kMembers_inputs_tw_block_scaled_linear)];
static inputs_tw_block_scaled_linear defaults_inputs_tw_block_scaled_linear;
static const Struct kStruct_inputs_tw_block_scaled_linear = {
  "BlockScaledLinearInputs", sizeof(inputs_tw_block_scaled_linear), init_inputs_tw_block_scaled_linear, kMembers_inputs_tw_block_scaled_linear,
  COUNT(kMembers_inputs_tw_block_scaled_linear), names_inputs_tw_block_scaled_linear, &defaults_inputs_tw_block_scaled_linear};
static tw_status plan_tw_block_scaled_linear(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_block_scaled_linear* const in = inputs;
  return tw_block_scaled_linear_plan(device, &in->weight, &in->problem, plan);
}
static const char* plan_text_tw_block_scaled_linear(const void* handle) {
  return tw_block_scaled_linear_plan_text(handle);
}
static const char* kernel_tw_block_scaled_linear(const void* handle) {
  return tw_block_scaled_linear_kernel(handle);
}
static size_t x_bytes_tw_block_scaled_linear(const void* handle) {
  return tw_block_scaled_linear_x_bytes(handle);
}
static size_t x_scales_bytes_tw_block_scaled_linear(const void* handle) {
  return tw_block_scaled_linear_x_scales_bytes(handle);
}
static size_t out_bytes_tw_block_scaled_linear(const void* handle) {
  return tw_block_scaled_linear_out_bytes(handle);
}
static size_t out_scales_bytes_tw_block_scaled_linear(const void* handle) {
  return tw_block_scaled_linear_out_scales_bytes(handle);
}
static double flops_tw_block_scaled_linear(const void* handle) {
  return tw_block_scaled_linear_flops(handle);
}
static double bytes_tw_block_scaled_linear(const void* handle) {
  return tw_block_scaled_linear_bytes(handle);
}
static const Query kQueries_tw_block_scaled_linear[] = {
  {"plan_text", "", .text = plan_text_tw_block_scaled_linear},
  {"kernel", "", .text = kernel_tw_block_scaled_linear},
  {"x_bytes", "What a call reads.", .size = x_bytes_tw_block_scaled_linear},
  {"x_scales_bytes", "", .size = x_scales_bytes_tw_block_scaled_linear},
  {"out_bytes", "What it writes.", .size = out_bytes_tw_block_scaled_linear},
  {"out_scales_bytes", "", .size = out_scales_bytes_tw_block_scaled_linear},
  {"flops", "2 m n k.", .number = flops_tw_block_scaled_linear},
  {"bytes", "Weight, x, out and scales, each once.", .number = bytes_tw_block_scaled_linear}};
static tw_status run_tw_block_scaled_linear(const void* handle, const void* arguments) {
  return tw_block_scaled_linear_run(handle, arguments);
}
static const Call kCalls_tw_block_scaled_linear[] = {
  {"run", "BlockScaledLinear.run", "run($self, /, *, x=None, x_scales=None, out=None, out_scales=None, x_tensor_scale=1.0, out_encode_scale=1.0, stream=None)\n"
    "--\n"
    "\n"
    "  x: tensor; codes as the weight's format wants them: e2m1 for nvfp4, else e4m3\n"
    "  x_scales: tensor; e4m3 for 16, or ue8m0 for 32\n"
    "  out: tensor, written\n"
    "  out_scales: tensor, written; of 'f4' and 'e4m3'\n"
    "  x_tensor_scale: scale of x\n"
    "  out_encode_scale: 'f4': out is stored times this\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_block_scaled_arguments, run_tw_block_scaled_linear}};

static tw_status create_tw_quantize(const void* given, const void* problem, void** handle) {
  return tw_quantize_create(given, problem, (tw_quantize**)handle);
}
static void destroy_tw_quantize(void* handle) { tw_quantize_destroy(handle); }
typedef struct inputs_tw_quantize {
  tw_quantize_problem problem;
} inputs_tw_quantize;
static void init_inputs_tw_quantize(void* given) { inputs_tw_quantize* in = given; tw_quantize_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_quantize[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_quantize, problem), .inner = &kStruct_tw_quantize_problem}};
static PyObject* names_inputs_tw_quantize[COUNT(kMembers_inputs_tw_quantize)];
static inputs_tw_quantize defaults_inputs_tw_quantize;
static const Struct kStruct_inputs_tw_quantize = {
  "QuantizeInputs", sizeof(inputs_tw_quantize), init_inputs_tw_quantize, kMembers_inputs_tw_quantize,
  COUNT(kMembers_inputs_tw_quantize), names_inputs_tw_quantize, &defaults_inputs_tw_quantize};
static tw_status plan_tw_quantize(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_quantize* const in = inputs;
  return tw_quantize_plan(device, &in->problem, plan);
}
static const char* plan_text_tw_quantize(const void* handle) {
  return tw_quantize_plan_text(handle);
}
static size_t workspace_bytes_tw_quantize(const void* handle) {
  return tw_quantize_workspace_bytes(handle);
}
static const Query kQueries_tw_quantize[] = {
  {"plan_text", "", .text = plan_text_tw_quantize},
  {"workspace_bytes", "", .size = workspace_bytes_tw_quantize}};
static const Rule kRules_tw_quantize[] = {
  {.member = 0, .dtype_offset = offsetof(tw_quantize_problem, dtype), .extents = {{offsetof(tw_quantize_problem, rows), 0, 0}, {offsetof(tw_quantize_problem, cols), 0, 0}}, .num_extents = 2, .strides = STRIDES_ROW, .strides_offset = offsetof(tw_quantize_problem, row_stride), .is_last_contiguous = true, .flags = {{FLAG_CLEAR, false, offsetof(tw_quantize_problem, has_row_index)}}}};
static tw_status run_tw_quantize(const void* handle, const void* arguments) {
  return tw_quantize_run(handle, arguments);
}
static const Call kCalls_tw_quantize[] = {
  {"run", "Quantize.run", "run($self, /, *, in_=None, row_index=None, codes=None, scales=None, encode_scale=None, tensor_scale=None, workspace=None, stream=None)\n"
    "--\n"
    "\n"
    "  in_: tensor\n"
    "  row_index: int32 tensor; [rows]\n"
    "  codes: tensor, written\n"
    "  scales: tensor, written\n"
    "  encode_scale: float32 tensor\n"
    "  tensor_scale: float32 tensor, written; nvfp4: where 1 / G goes, or None\n"
    "  workspace: tensor, written; 256-byte aligned\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_quantize_arguments, run_tw_quantize}};

static tw_status create_tw_moe(const void* given, const void* problem, void** handle) {
  return tw_moe_create(given, problem, (tw_moe**)handle);
}
static void destroy_tw_moe(void* handle) { tw_moe_destroy(handle); }
typedef struct inputs_tw_moe {
  tw_moe_weights_info weights;
  tw_moe_problem problem;
} inputs_tw_moe;
static void init_inputs_tw_moe(void* given) { inputs_tw_moe* in = given; tw_moe_weights_info_init(&in->weights); tw_moe_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_moe[] = {
  {"weights", KIND_STRUCT, offsetof(inputs_tw_moe, weights), .inner = &kStruct_tw_moe_weights_info},
  {"problem", KIND_STRUCT, offsetof(inputs_tw_moe, problem), .inner = &kStruct_tw_moe_problem}};
static PyObject* names_inputs_tw_moe[COUNT(kMembers_inputs_tw_moe)];
static inputs_tw_moe defaults_inputs_tw_moe;
static const Struct kStruct_inputs_tw_moe = {
  "MoeInputs", sizeof(inputs_tw_moe), init_inputs_tw_moe, kMembers_inputs_tw_moe,
  COUNT(kMembers_inputs_tw_moe), names_inputs_tw_moe, &defaults_inputs_tw_moe};
static tw_status plan_tw_moe(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_moe* const in = inputs;
  return tw_moe_plan(device, &in->weights, &in->problem, plan);
}
static const char* plan_text_tw_moe(const void* handle) {
  return tw_moe_plan_text(handle);
}
static const char* kernel_tw_moe(const void* handle) {
  return tw_moe_kernel(handle);
}
static size_t workspace_bytes_tw_moe(const void* handle) {
  return tw_moe_workspace_bytes(handle);
}
static const Query kQueries_tw_moe[] = {
  {"plan_text", "", .text = plan_text_tw_moe},
  {"kernel", "", .text = kernel_tw_moe},
  {"workspace_bytes", "", .size = workspace_bytes_tw_moe}};
static tw_status run_tw_moe(const void* handle, const void* arguments) {
  return tw_moe_run(handle, arguments);
}
static tw_status check_tw_moe(const void* handle, const void* arguments) {
  return tw_moe_check(handle, arguments);
}
static const Call kCalls_tw_moe[] = {
  {"run", "Moe.run", "run($self, /, *, x=None, ids=None, weights=None, logits=None, bias=None, token_ids=None, table=None, out=None, workspace=None, stream=None, counts=None)\n"
    "--\n"
    "\n"
    "  x: tensor; bf16 [tokens, hidden]\n"
    "  ids: int32 tensor; [tokens, topk]\n"
    "  weights: float32 tensor; [tokens, topk]\n"
    "  logits: float32 tensor; [tokens, experts]\n"
    "  bias: float32 tensor; [experts]\n"
    "  token_ids: int32 tensor; [tokens]\n"
    "  table: int32 tensor; [vocab, topk]\n"
    "  out: tensor, written; [tokens, hidden]\n"
    "  workspace: tensor, written; 256-byte aligned\n"
    "  stream: None: PyTorch's current stream, else the default one\n"
    "  counts: int32 tensor; [experts], of grouped tokens",
   &kStruct_tw_moe_arguments, run_tw_moe},
  {"check", "Moe.check", "check($self, /, *, x=None, ids=None, weights=None, logits=None, bias=None, token_ids=None, table=None, out=None, workspace=None, stream=None, counts=None)\n"
    "--\n"
    "\n"
    "Waits for the stream; InvalidArgument if the last run with these arguments dropped ids that\n"
    "are no experts, or that stand twice in a token's row, or if counts of grouped tokens were\n"
    "out of range.\n"
    "\n"
    "  x: tensor; bf16 [tokens, hidden]\n"
    "  ids: int32 tensor; [tokens, topk]\n"
    "  weights: float32 tensor; [tokens, topk]\n"
    "  logits: float32 tensor; [tokens, experts]\n"
    "  bias: float32 tensor; [experts]\n"
    "  token_ids: int32 tensor; [tokens]\n"
    "  table: int32 tensor; [vocab, topk]\n"
    "  out: tensor, written; [tokens, hidden]\n"
    "  workspace: tensor, written; 256-byte aligned\n"
    "  stream: None: PyTorch's current stream, else the default one\n"
    "  counts: int32 tensor; [experts], of grouped tokens",
   &kStruct_tw_moe_arguments, check_tw_moe}};

static tw_status create_tw_sparse_attention(const void* given, const void* problem, void** handle) {
  return tw_sparse_attention_create(given, problem, (tw_sparse_attention**)handle);
}
static void destroy_tw_sparse_attention(void* handle) { tw_sparse_attention_destroy(handle); }
typedef struct inputs_tw_sparse_attention {
  tw_sparse_attention_problem problem;
} inputs_tw_sparse_attention;
static void init_inputs_tw_sparse_attention(void* given) { inputs_tw_sparse_attention* in = given; tw_sparse_attention_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_sparse_attention[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_sparse_attention, problem), .inner = &kStruct_tw_sparse_attention_problem}};
static PyObject* names_inputs_tw_sparse_attention[COUNT(kMembers_inputs_tw_sparse_attention)];
static inputs_tw_sparse_attention defaults_inputs_tw_sparse_attention;
static const Struct kStruct_inputs_tw_sparse_attention = {
  "SparseAttentionInputs", sizeof(inputs_tw_sparse_attention), init_inputs_tw_sparse_attention, kMembers_inputs_tw_sparse_attention,
  COUNT(kMembers_inputs_tw_sparse_attention), names_inputs_tw_sparse_attention, &defaults_inputs_tw_sparse_attention};
static tw_status plan_tw_sparse_attention(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_sparse_attention* const in = inputs;
  return tw_sparse_attention_plan(device, &in->problem, plan);
}
static const char* plan_text_tw_sparse_attention(const void* handle) {
  return tw_sparse_attention_plan_text(handle);
}
static const char* kernel_tw_sparse_attention(const void* handle) {
  return tw_sparse_attention_kernel(handle);
}
static size_t workspace_bytes_tw_sparse_attention(const void* handle) {
  return tw_sparse_attention_workspace_bytes(handle);
}
static const Query kQueries_tw_sparse_attention[] = {
  {"plan_text", "", .text = plan_text_tw_sparse_attention},
  {"kernel", "", .text = kernel_tw_sparse_attention},
  {"workspace_bytes", "", .size = workspace_bytes_tw_sparse_attention}};
static const Rule kRules_tw_sparse_attention[] = {
  {.member = 0, .dtype = TW_BF16, .extents = {{offsetof(tw_sparse_attention_problem, batch), 0, 0}, {offsetof(tw_sparse_attention_problem, q_len), 0, 0}, {offsetof(tw_sparse_attention_problem, heads), 0, 0}, {offsetof(tw_sparse_attention_problem, head_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_sparse_attention_problem, q_strides), .is_last_contiguous = true},
  {.member = 3, .dtype = TW_BF16, .extents = {{offsetof(tw_sparse_attention_problem, batch), 0, 0}, {offsetof(tw_sparse_attention_problem, q_len), 0, 0}, {offsetof(tw_sparse_attention_problem, heads), 0, 0}, {0, 512, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_sparse_attention_problem, out_strides), .is_last_contiguous = true},
  {.member = 4, .dtype = TW_F32, .extents = {{offsetof(tw_sparse_attention_problem, batch), 0, 0}, {offsetof(tw_sparse_attention_problem, q_len), 0, 0}, {offsetof(tw_sparse_attention_problem, heads), 0, 0}}, .num_extents = 3, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_sparse_attention_problem, lse_strides), .is_last_contiguous = false},
  {.member = 5, .dtype = TW_F32, .extents = {{offsetof(tw_sparse_attention_problem, batch), 0, 0}, {offsetof(tw_sparse_attention_problem, q_len), 0, 0}, {offsetof(tw_sparse_attention_problem, heads), 0, 0}}, .num_extents = 3, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_sparse_attention_problem, lse_strides), .is_last_contiguous = false},
  {.member = 6, .dtype = TW_F32, .extents = {{offsetof(tw_sparse_attention_problem, heads), 0, 0}}, .num_extents = 1}};
static tw_status run_tw_sparse_attention(const void* handle, const void* arguments) {
  return tw_sparse_attention_run(handle, arguments);
}
static const Call kCalls_tw_sparse_attention[] = {
  {"run", "SparseAttention.run", "run($self, /, *, q=None, window=None, compressed=None, out=None, lse=None, max_logits=None, sink=None, workspace=None, reuses_schedule=False, stream=None)\n"
    "--\n"
    "\n"
    "  q: tensor; bf16 [batch, q_len, heads, head_dim]\n"
    "  window: {pages, indices, lengths}\n"
    "  compressed: {pages, indices, lengths}\n"
    "  out: tensor, written; bf16 [batch, q_len, heads, 512]\n"
    "  lse: float32 tensor, written; [batch, q_len, heads]\n"
    "  max_logits: float32 tensor, written; [batch, q_len, heads]\n"
    "  sink: float32 tensor; [heads]\n"
    "  workspace: tensor, written; 256-byte aligned\n"
    "  reuses_schedule: 1: the workspace holds the schedule of the same lengths\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_sparse_attention_arguments, run_tw_sparse_attention}};

static tw_status create_tw_latent_attention(const void* given, const void* problem, void** handle) {
  return tw_latent_attention_create(given, problem, (tw_latent_attention**)handle);
}
static void destroy_tw_latent_attention(void* handle) { tw_latent_attention_destroy(handle); }
typedef struct inputs_tw_latent_attention {
  tw_latent_attention_problem problem;
} inputs_tw_latent_attention;
static void init_inputs_tw_latent_attention(void* given) { inputs_tw_latent_attention* in = given; tw_latent_attention_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_latent_attention[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_latent_attention, problem), .inner = &kStruct_tw_latent_attention_problem}};
static PyObject* names_inputs_tw_latent_attention[COUNT(kMembers_inputs_tw_latent_attention)];
static inputs_tw_latent_attention defaults_inputs_tw_latent_attention;
static const Struct kStruct_inputs_tw_latent_attention = {
  "LatentAttentionInputs", sizeof(inputs_tw_latent_attention), init_inputs_tw_latent_attention, kMembers_inputs_tw_latent_attention,
  COUNT(kMembers_inputs_tw_latent_attention), names_inputs_tw_latent_attention, &defaults_inputs_tw_latent_attention};
static tw_status plan_tw_latent_attention(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_latent_attention* const in = inputs;
  return tw_latent_attention_plan(device, &in->problem, plan);
}
static const char* plan_text_tw_latent_attention(const void* handle) {
  return tw_latent_attention_plan_text(handle);
}
static const char* kernel_tw_latent_attention(const void* handle) {
  return tw_latent_attention_kernel(handle);
}
static size_t workspace_bytes_tw_latent_attention(const void* handle) {
  return tw_latent_attention_workspace_bytes(handle);
}
static const Query kQueries_tw_latent_attention[] = {
  {"plan_text", "", .text = plan_text_tw_latent_attention},
  {"kernel", "", .text = kernel_tw_latent_attention},
  {"workspace_bytes", "", .size = workspace_bytes_tw_latent_attention}};
static const Rule kRules_tw_latent_attention[] = {
  {.member = 0, .dtype_offset = offsetof(tw_latent_attention_problem, dtype), .extents = {{offsetof(tw_latent_attention_problem, batch), 0, 0}, {offsetof(tw_latent_attention_problem, q_len), 0, 0}, {offsetof(tw_latent_attention_problem, heads), 0, 0}, {0, 64, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_latent_attention_problem, q_strides), .is_last_contiguous = true},
  {.member = 1, .dtype_offset = offsetof(tw_latent_attention_problem, dtype), .extents = {{offsetof(tw_latent_attention_problem, batch), 0, 0}, {offsetof(tw_latent_attention_problem, q_len), 0, 0}, {offsetof(tw_latent_attention_problem, heads), 0, 0}, {offsetof(tw_latent_attention_problem, value_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_latent_attention_problem, qv_strides), .is_last_contiguous = true, .flags = {{FLAG_SET, false, offsetof(tw_latent_attention_problem, has_qv)}}},
  {.member = 6, .dtype_offset = offsetof(tw_latent_attention_problem, dtype), .extents = {{offsetof(tw_latent_attention_problem, batch), 0, 0}, {offsetof(tw_latent_attention_problem, q_len), 0, 0}, {offsetof(tw_latent_attention_problem, heads), 0, 0}, {offsetof(tw_latent_attention_problem, value_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_latent_attention_problem, out_strides), .is_last_contiguous = true},
  {.member = 2, .dtype_offset = offsetof(tw_latent_attention_problem, dtype), .extents = {{offsetof(tw_latent_attention_problem, num_pages), 0, 0}, {offsetof(tw_latent_attention_problem, page_size), 0, 0}, {offsetof(tw_latent_attention_problem, kv_heads), 0, 0}, {0, 64, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_latent_attention_problem, k_strides), .is_last_contiguous = true, .flags = {{FLAG_SET, true, offsetof(tw_latent_attention_problem, page_size)}}},
  {.member = 3, .dtype_offset = offsetof(tw_latent_attention_problem, dtype), .extents = {{offsetof(tw_latent_attention_problem, num_pages), 0, 0}, {offsetof(tw_latent_attention_problem, page_size), 0, 0}, {offsetof(tw_latent_attention_problem, kv_heads), 0, 0}, {offsetof(tw_latent_attention_problem, value_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_latent_attention_problem, v_strides), .is_last_contiguous = true, .flags = {{FLAG_SET, true, offsetof(tw_latent_attention_problem, page_size)}}},
  {.member = 2, .dtype_offset = offsetof(tw_latent_attention_problem, dtype), .extents = {{offsetof(tw_latent_attention_problem, batch), 0, 0}, {offsetof(tw_latent_attention_problem, max_len), 0, 0}, {offsetof(tw_latent_attention_problem, kv_heads), 0, 0}, {0, 64, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_latent_attention_problem, k_strides), .is_last_contiguous = true, .flags = {{FLAG_CLEAR, true, offsetof(tw_latent_attention_problem, page_size)}}},
  {.member = 3, .dtype_offset = offsetof(tw_latent_attention_problem, dtype), .extents = {{offsetof(tw_latent_attention_problem, batch), 0, 0}, {offsetof(tw_latent_attention_problem, max_len), 0, 0}, {offsetof(tw_latent_attention_problem, kv_heads), 0, 0}, {offsetof(tw_latent_attention_problem, value_dim), 0, 0}}, .num_extents = 4, .strides = STRIDES_STRUCT, .strides_offset = offsetof(tw_latent_attention_problem, v_strides), .is_last_contiguous = true, .flags = {{FLAG_CLEAR, true, offsetof(tw_latent_attention_problem, page_size)}}},
  {.member = 8, .dtype = TW_F32, .extents = {{offsetof(tw_latent_attention_problem, heads), 0, 0}}, .num_extents = 1}};
static tw_status run_tw_latent_attention(const void* handle, const void* arguments) {
  return tw_latent_attention_run(handle, arguments);
}
static const Call kCalls_tw_latent_attention[] = {
  {"run", "LatentAttention.run", "run($self, /, *, q=None, qv=None, k=None, v=None, lengths=None, block_table=None, out=None, lse=None, sink=None, workspace=None, reuses_schedule=False, stream=None)\n"
    "--\n"
    "\n"
    "  q: tensor; [batch, q_len, heads, 64]\n"
    "  qv: tensor; [batch, q_len, heads, value_dim]\n"
    "  k: tensor\n"
    "  v: tensor\n"
    "  lengths: int32 tensor; [batch]\n"
    "  block_table: int32 tensor; [batch, max_pages]\n"
    "  out: tensor, written; [batch, q_len, heads, value_dim]\n"
    "  lse: float32 tensor, written; [batch, heads, q_len]\n"
    "  sink: float32 tensor; [heads]\n"
    "  workspace: tensor, written; 256-byte aligned\n"
    "  reuses_schedule: 1: the workspace holds the schedule of the same lengths\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_latent_attention_arguments, run_tw_latent_attention}};

static tw_status create_tw_mask_lists(const void* given, const void* problem, void** handle) {
  return tw_mask_lists_create(given, problem, (tw_mask_lists**)handle);
}
static void destroy_tw_mask_lists(void* handle) { tw_mask_lists_destroy(handle); }
typedef struct inputs_tw_mask_lists {
  tw_mask_lists_problem problem;
} inputs_tw_mask_lists;
static void init_inputs_tw_mask_lists(void* given) { inputs_tw_mask_lists* in = given; tw_mask_lists_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_mask_lists[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_mask_lists, problem), .inner = &kStruct_tw_mask_lists_problem}};
static PyObject* names_inputs_tw_mask_lists[COUNT(kMembers_inputs_tw_mask_lists)];
static inputs_tw_mask_lists defaults_inputs_tw_mask_lists;
static const Struct kStruct_inputs_tw_mask_lists = {
  "MaskListsInputs", sizeof(inputs_tw_mask_lists), init_inputs_tw_mask_lists, kMembers_inputs_tw_mask_lists,
  COUNT(kMembers_inputs_tw_mask_lists), names_inputs_tw_mask_lists, &defaults_inputs_tw_mask_lists};
static tw_status plan_tw_mask_lists(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_mask_lists* const in = inputs;
  return tw_mask_lists_plan(device, &in->problem, plan);
}
static const char* plan_text_tw_mask_lists(const void* handle) {
  return tw_mask_lists_plan_text(handle);
}
static double bytes_tw_mask_lists(const void* handle) {
  return tw_mask_lists_bytes(handle);
}
static const Query kQueries_tw_mask_lists[] = {
  {"plan_text", "", .text = plan_text_tw_mask_lists},
  {"bytes", "", .number = bytes_tw_mask_lists}};
static tw_status run_tw_mask_lists(const void* handle, const void* arguments) {
  return tw_mask_lists_run(handle, arguments);
}
static const Call kCalls_tw_mask_lists[] = {
  {"run", "MaskLists.run", "run($self, /, *, mask=None, indices=None, lengths=None, totals=None, block_table=None, stream=None)\n"
    "--\n"
    "\n"
    "  mask: tensor; [batch, ceil(rows / query_block), ceil(keys / key_block)] entries\n"
    "  indices: int32 tensor, written; [batch, rows, topk]; -1 behind the last key\n"
    "  lengths: int32 tensor, written; [batch, rows]: keys of a list, at most topk\n"
    "  totals: int32 tensor, written; [batch, rows]: keys that the mask shows\n"
    "  block_table: int32 tensor; [batch, ceil(keys / page_size)]\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_mask_lists_arguments, run_tw_mask_lists}};

static tw_status create_tw_kv_cache(const void* given, const void* problem, void** handle) {
  return tw_kv_cache_create(given, problem, (tw_kv_cache**)handle);
}
static void destroy_tw_kv_cache(void* handle) { tw_kv_cache_destroy(handle); }
typedef struct inputs_tw_kv_cache {
  tw_kv_layout layout;
  tw_kv_cache_work work;
} inputs_tw_kv_cache;
static void init_inputs_tw_kv_cache(void* given) { inputs_tw_kv_cache* in = given; tw_kv_layout_init(&in->layout); tw_kv_cache_work_init(&in->work); }
static const Member kMembers_inputs_tw_kv_cache[] = {
  {"layout", KIND_STRUCT, offsetof(inputs_tw_kv_cache, layout), .inner = &kStruct_tw_kv_layout},
  {"work", KIND_STRUCT, offsetof(inputs_tw_kv_cache, work), .inner = &kStruct_tw_kv_cache_work}};
static PyObject* names_inputs_tw_kv_cache[COUNT(kMembers_inputs_tw_kv_cache)];
static inputs_tw_kv_cache defaults_inputs_tw_kv_cache;
static const Struct kStruct_inputs_tw_kv_cache = {
  "KvCacheInputs", sizeof(inputs_tw_kv_cache), init_inputs_tw_kv_cache, kMembers_inputs_tw_kv_cache,
  COUNT(kMembers_inputs_tw_kv_cache), names_inputs_tw_kv_cache, &defaults_inputs_tw_kv_cache};
static tw_status plan_tw_kv_cache(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_kv_cache* const in = inputs;
  return tw_kv_cache_plan(device, &in->layout, &in->work, plan);
}
static tw_status write_tw_kv_cache(const void* handle, const void* arguments) {
  return tw_kv_cache_write(handle, arguments);
}
static tw_status read_tw_kv_cache(const void* handle, const void* arguments) {
  return tw_kv_cache_read(handle, arguments);
}
static tw_status list_tw_kv_cache(const void* handle, const void* arguments) {
  return tw_kv_cache_list(handle, arguments);
}
static const Call kCalls_tw_kv_cache[] = {
  {"write", "KvCache.write", "write($self, /, *, tokens=0, heads=0, eps=1e-06, q=None, q_out=None, q_token_stride=0, q_head_stride=0, kv=None, kv_dtype='bf16', kv_stride=0, kv_weight=None, positions=None, rope=None, rope_positions=0, slots=None, pages=None, kv_out=None, stream=None)\n"
    "--\n"
    "\n"
    "  tokens\n"
    "  heads\n"
    "  eps\n"
    "  q: tensor\n"
    "  q_out: tensor, written\n"
    "  q_token_stride\n"
    "  q_head_stride\n"
    "  kv: tensor\n"
    "  kv_dtype: 'bf16', 'f32'\n"
    "  kv_stride\n"
    "  kv_weight: tensor\n"
    "  positions: int32 tensor\n"
    "  rope: float32 tensor\n"
    "  rope_positions\n"
    "  slots: int32 tensor\n"
    "  pages: tensor, written\n"
    "  kv_out: tensor, written\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_kv_write_arguments, write_tw_kv_cache},
  {"read", "KvCache.read", "read($self, /, *, count=0, rows=None, pages=None, out=None, out_stride=0, stream=None)\n"
    "--\n"
    "\n"
    "  count\n"
    "  rows: int32 tensor; [count]\n"
    "  pages: tensor\n"
    "  out: tensor, written; bf16 [count, 512]\n"
    "  out_stride: elements; 0: 512\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_kv_read_arguments, read_tw_kv_cache},
  {"list", "KvCache.list", "list($self, /, *, kind='write', tokens=0, sequences=None, table=None, ring=0, window=128, ratio=4, list_len=1, list_stride=0, lists=None, lengths=None, positions=None, stream=None)\n"
    "--\n"
    "\n"
    "  kind: 'write', 'window', 'entries'\n"
    "  tokens\n"
    "  sequences: {batch, q_len, offsets, starts}\n"
    "  table: {pages, blocks, stride}\n"
    "  ring\n"
    "  window\n"
    "  ratio\n"
    "  list_len\n"
    "  list_stride\n"
    "  lists: int32 tensor, written\n"
    "  lengths: int32 tensor, written\n"
    "  positions: int32 tensor, written\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_kv_list_arguments, list_tw_kv_cache}};

static tw_status create_tw_inverse_rope(const void* given, const void* problem, void** handle) {
  (void)problem;
  return tw_inverse_rope_create(given, (tw_inverse_rope**)handle);
}
static void destroy_tw_inverse_rope(void* handle) { tw_inverse_rope_destroy(handle); }
typedef struct inputs_tw_inverse_rope {
  int64_t tokens;
  int64_t heads;
  int32_t has_codes;
} inputs_tw_inverse_rope;
static void init_inputs_tw_inverse_rope(void* given) { inputs_tw_inverse_rope* in = given; in->tokens = 0; in->heads = 0; in->has_codes = 0; }
static const Member kMembers_inputs_tw_inverse_rope[] = {
  {"tokens", KIND_I64, offsetof(inputs_tw_inverse_rope, tokens)},
  {"heads", KIND_I64, offsetof(inputs_tw_inverse_rope, heads)},
  {"has_codes", KIND_I32, offsetof(inputs_tw_inverse_rope, has_codes)}};
static PyObject* names_inputs_tw_inverse_rope[COUNT(kMembers_inputs_tw_inverse_rope)];
static inputs_tw_inverse_rope defaults_inputs_tw_inverse_rope;
static const Struct kStruct_inputs_tw_inverse_rope = {
  "InverseRopeInputs", sizeof(inputs_tw_inverse_rope), init_inputs_tw_inverse_rope, kMembers_inputs_tw_inverse_rope,
  COUNT(kMembers_inputs_tw_inverse_rope), names_inputs_tw_inverse_rope, &defaults_inputs_tw_inverse_rope};
static tw_status plan_tw_inverse_rope(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_inverse_rope* const in = inputs;
  return tw_inverse_rope_plan(device, in->tokens, in->heads, in->has_codes, plan);
}
static tw_status run_tw_inverse_rope(const void* handle, const void* arguments) {
  return tw_inverse_rope_run(handle, arguments);
}
static const Call kCalls_tw_inverse_rope[] = {
  {"run", "InverseRope.run", "run($self, /, *, tokens=0, heads=0, out=None, token_stride=0, head_stride=0, positions=None, rope=None, rope_positions=0, codes=None, scales=None, has_pow2_scales=False, has_block_major_scales=False, has_operand_order=False, stream=None)\n"
    "--\n"
    "\n"
    "  tokens\n"
    "  heads\n"
    "  out: tensor, written\n"
    "  token_stride\n"
    "  head_stride\n"
    "  positions: int32 tensor\n"
    "  rope: float32 tensor\n"
    "  rope_positions\n"
    "  codes: tensor, written\n"
    "  scales: tensor, written\n"
    "  has_pow2_scales\n"
    "  has_block_major_scales\n"
    "  has_operand_order\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_inverse_rope_arguments, run_tw_inverse_rope}};

static tw_status create_tw_compressor(const void* given, const void* problem, void** handle) {
  return tw_compressor_create(given, problem, (tw_compressor**)handle);
}
static void destroy_tw_compressor(void* handle) { tw_compressor_destroy(handle); }
typedef struct inputs_tw_compressor {
  tw_compressor_problem problem;
  int64_t batch;
  int64_t max_tokens;
} inputs_tw_compressor;
static void init_inputs_tw_compressor(void* given) { inputs_tw_compressor* in = given; tw_compressor_problem_init(&in->problem); in->batch = 0; in->max_tokens = 0; }
static const Member kMembers_inputs_tw_compressor[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_compressor, problem), .inner = &kStruct_tw_compressor_problem},
  {"batch", KIND_I64, offsetof(inputs_tw_compressor, batch)},
  {"max_tokens", KIND_I64, offsetof(inputs_tw_compressor, max_tokens)}};
static PyObject* names_inputs_tw_compressor[COUNT(kMembers_inputs_tw_compressor)];
static inputs_tw_compressor defaults_inputs_tw_compressor;
static const Struct kStruct_inputs_tw_compressor = {
  "CompressorInputs", sizeof(inputs_tw_compressor), init_inputs_tw_compressor, kMembers_inputs_tw_compressor,
  COUNT(kMembers_inputs_tw_compressor), names_inputs_tw_compressor, &defaults_inputs_tw_compressor};
static tw_status plan_tw_compressor(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_compressor* const in = inputs;
  return tw_compressor_plan(device, &in->problem, in->batch, in->max_tokens, plan);
}
static size_t state_bytes_tw_compressor(const void* handle) {
  return tw_compressor_state_bytes(handle);
}
static size_t cache_bytes_tw_compressor(const void* handle) {
  return tw_compressor_cache_bytes(handle);
}
static const Query kQueries_tw_compressor[] = {
  {"state_bytes", "", .size = state_bytes_tw_compressor},
  {"cache_bytes", "", .size = cache_bytes_tw_compressor}};
static tw_status run_tw_compressor(const void* handle, const void* arguments) {
  return tw_compressor_run(handle, arguments);
}
static const Call kCalls_tw_compressor[] = {
  {"run", "Compressor.run", "run($self, /, *, sequences=None, max_tokens=1, kv=None, gate=None, kv_stride=0, gate_stride=0, ape=None, norm_weight=None, rope=None, rope_positions=0, state=None, state_slots=None, table=None, pages=None, stream=None)\n"
    "--\n"
    "\n"
    "  sequences: {batch, q_len, offsets, starts}\n"
    "  max_tokens\n"
    "  kv: float32 tensor\n"
    "  gate: float32 tensor\n"
    "  kv_stride\n"
    "  gate_stride\n"
    "  ape: float32 tensor\n"
    "  norm_weight: tensor\n"
    "  rope: float32 tensor\n"
    "  rope_positions\n"
    "  state: tensor, written\n"
    "  state_slots: int32 tensor\n"
    "  table: {pages, blocks, stride}\n"
    "  pages: tensor, written\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_compressor_arguments, run_tw_compressor}};

static tw_status create_tw_indexer(const void* given, const void* problem, void** handle) {
  return tw_indexer_create(given, problem, (tw_indexer**)handle);
}
static void destroy_tw_indexer(void* handle) { tw_indexer_destroy(handle); }
typedef struct inputs_tw_indexer {
  tw_indexer_problem problem;
  int64_t tokens;
  int64_t batch;
} inputs_tw_indexer;
static void init_inputs_tw_indexer(void* given) { inputs_tw_indexer* in = given; tw_indexer_problem_init(&in->problem); in->tokens = 0; in->batch = 0; }
static const Member kMembers_inputs_tw_indexer[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_indexer, problem), .inner = &kStruct_tw_indexer_problem},
  {"tokens", KIND_I64, offsetof(inputs_tw_indexer, tokens)},
  {"batch", KIND_I64, offsetof(inputs_tw_indexer, batch)}};
static PyObject* names_inputs_tw_indexer[COUNT(kMembers_inputs_tw_indexer)];
static inputs_tw_indexer defaults_inputs_tw_indexer;
static const Struct kStruct_inputs_tw_indexer = {
  "IndexerInputs", sizeof(inputs_tw_indexer), init_inputs_tw_indexer, kMembers_inputs_tw_indexer,
  COUNT(kMembers_inputs_tw_indexer), names_inputs_tw_indexer, &defaults_inputs_tw_indexer};
static tw_status plan_tw_indexer(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_indexer* const in = inputs;
  return tw_indexer_plan(device, &in->problem, in->tokens, in->batch, plan);
}
static size_t key_cache_bytes_tw_indexer(const void* handle) {
  return tw_indexer_key_cache_bytes(handle);
}
static const Query kQueries_tw_indexer[] = {
  {"key_cache_bytes", "", .size = key_cache_bytes_tw_indexer}};
static tw_status run_tw_indexer(const void* handle, const void* arguments) {
  return tw_indexer_run(handle, arguments);
}
static const Call kCalls_tw_indexer[] = {
  {"run", "Indexer.run", "run($self, /, *, tokens=0, sequences=None, positions=None, lengths=None, q=None, q_token_stride=0, q_head_stride=0, weights=None, weights_dtype='bf16', weights_stride=0, rope=None, rope_positions=0, key_pages=None, key_table=None, row_table=None, rows=None, rows_stride=0, counts=None, workspace=None, reuses_schedule=False, stream=None)\n"
    "--\n"
    "\n"
    "  tokens\n"
    "  sequences: {batch, q_len, offsets, starts}; starts are not used\n"
    "  positions: int32 tensor\n"
    "  lengths: int32 tensor; None: by the positions\n"
    "  q: tensor\n"
    "  q_token_stride\n"
    "  q_head_stride\n"
    "  weights: tensor\n"
    "  weights_dtype: 'bf16', 'f32'\n"
    "  weights_stride\n"
    "  rope: float32 tensor\n"
    "  rope_positions\n"
    "  key_pages: tensor\n"
    "  key_table: {pages, blocks, stride}\n"
    "  row_table: {pages, blocks, stride}\n"
    "  rows: int32 tensor, written\n"
    "  rows_stride\n"
    "  counts: int32 tensor, written; or None\n"
    "  workspace: tensor, written\n"
    "  reuses_schedule\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_indexer_arguments, run_tw_indexer}};

static tw_status create_tw_indexer_logits(const void* given, const void* problem, void** handle) {
  return tw_indexer_logits_create(given, problem, (tw_indexer_logits**)handle);
}
static void destroy_tw_indexer_logits(void* handle) { tw_indexer_logits_destroy(handle); }
typedef struct inputs_tw_indexer_logits {
  tw_indexer_logits_problem problem;
  int64_t tokens;
  int64_t batch;
} inputs_tw_indexer_logits;
static void init_inputs_tw_indexer_logits(void* given) { inputs_tw_indexer_logits* in = given; tw_indexer_logits_problem_init(&in->problem); in->tokens = 0; in->batch = 0; }
static const Member kMembers_inputs_tw_indexer_logits[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_indexer_logits, problem), .inner = &kStruct_tw_indexer_logits_problem},
  {"tokens", KIND_I64, offsetof(inputs_tw_indexer_logits, tokens)},
  {"batch", KIND_I64, offsetof(inputs_tw_indexer_logits, batch)}};
static PyObject* names_inputs_tw_indexer_logits[COUNT(kMembers_inputs_tw_indexer_logits)];
static inputs_tw_indexer_logits defaults_inputs_tw_indexer_logits;
static const Struct kStruct_inputs_tw_indexer_logits = {
  "IndexerLogitsInputs", sizeof(inputs_tw_indexer_logits), init_inputs_tw_indexer_logits, kMembers_inputs_tw_indexer_logits,
  COUNT(kMembers_inputs_tw_indexer_logits), names_inputs_tw_indexer_logits, &defaults_inputs_tw_indexer_logits};
static tw_status plan_tw_indexer_logits(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_indexer_logits* const in = inputs;
  return tw_indexer_logits_plan(device, &in->problem, in->tokens, in->batch, plan);
}
static tw_status run_tw_indexer_logits(const void* handle, const void* arguments) {
  return tw_indexer_logits_run(handle, arguments);
}
static const Call kCalls_tw_indexer_logits[] = {
  {"run", "IndexerLogits.run", "run($self, /, *, tokens=0, sequences=None, starts=None, ends=None, q=None, q_scales=None, weights=None, keys=None, key_scales=None, num_keys=0, key_table=None, logits=None, logits_stride=0, columns=0, workspace=None, reuses_schedule=False, stream=None)\n"
    "--\n"
    "\n"
    "  tokens\n"
    "  sequences: {batch, q_len, offsets, starts}; with pages; starts are not used\n"
    "  starts: int32 tensor; [tokens], without pages; None: all 0\n"
    "  ends: int32 tensor; [tokens]\n"
    "  q: tensor; codes [tokens, heads, 128 or 64 bytes]\n"
    "  q_scales: tensor; MXFP4: ue8m0 [tokens, heads, 4]\n"
    "  weights: float32 tensor; [tokens, heads]\n"
    "  keys: tensor; pages, or codes [num_keys, 128 or 64 bytes]\n"
    "  key_scales: tensor; without pages: [num_keys] of 4 bytes\n"
    "  num_keys: without pages\n"
    "  key_table: {pages, blocks, stride}; with pages\n"
    "  logits: float32 tensor, written; [tokens, columns]\n"
    "  logits_stride: elements; 0: columns\n"
    "  columns: 0: max_len\n"
    "  workspace: tensor, written\n"
    "  reuses_schedule\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_indexer_logits_arguments, run_tw_indexer_logits}};

static tw_status create_tw_hyper_connection(const void* given, const void* problem, void** handle) {
  return tw_hyper_connection_create(given, problem, (tw_hyper_connection**)handle);
}
static void destroy_tw_hyper_connection(void* handle) { tw_hyper_connection_destroy(handle); }
typedef struct inputs_tw_hyper_connection {
  tw_hyper_connection_problem problem;
} inputs_tw_hyper_connection;
static void init_inputs_tw_hyper_connection(void* given) { inputs_tw_hyper_connection* in = given; tw_hyper_connection_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_hyper_connection[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_hyper_connection, problem), .inner = &kStruct_tw_hyper_connection_problem}};
static PyObject* names_inputs_tw_hyper_connection[COUNT(kMembers_inputs_tw_hyper_connection)];
static inputs_tw_hyper_connection defaults_inputs_tw_hyper_connection;
static const Struct kStruct_inputs_tw_hyper_connection = {
  "HyperConnectionInputs", sizeof(inputs_tw_hyper_connection), init_inputs_tw_hyper_connection, kMembers_inputs_tw_hyper_connection,
  COUNT(kMembers_inputs_tw_hyper_connection), names_inputs_tw_hyper_connection, &defaults_inputs_tw_hyper_connection};
static tw_status plan_tw_hyper_connection(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_hyper_connection* const in = inputs;
  return tw_hyper_connection_plan(device, &in->problem, plan);
}
static size_t workspace_bytes_tw_hyper_connection(const void* handle) {
  return tw_hyper_connection_workspace_bytes(handle);
}
static const Query kQueries_tw_hyper_connection[] = {
  {"workspace_bytes", "", .size = workspace_bytes_tw_hyper_connection}};
static const Rule kRules_tw_hyper_connection[] = {
  {.member = 0, .dtype_offset = offsetof(tw_hyper_connection_problem, stream_dtype), .extents = {{offsetof(tw_hyper_connection_problem, tokens), 0, 0}, {0, 4, 0}, {offsetof(tw_hyper_connection_problem, hidden), 0, 0}}, .num_extents = 3},
  {.member = 1, .dtype_offset = offsetof(tw_hyper_connection_problem, stream_dtype), .extents = {{offsetof(tw_hyper_connection_problem, tokens), 0, 0}, {0, 4, 0}, {offsetof(tw_hyper_connection_problem, hidden), 0, 0}}, .num_extents = 3},
  {.member = 3, .dtype_offset = offsetof(tw_hyper_connection_problem, result_dtype), .extents = {{offsetof(tw_hyper_connection_problem, tokens), 0, 0}, {offsetof(tw_hyper_connection_problem, hidden), 0, 0}}, .num_extents = 2},
  {.member = 4, .dtype_offset = offsetof(tw_hyper_connection_problem, second_dtype), .extents = {{offsetof(tw_hyper_connection_problem, tokens), 0, 0}, {offsetof(tw_hyper_connection_problem, hidden), 0, 0}}, .num_extents = 2},
  {.member = 10, .dtype = TW_BF16, .extents = {{offsetof(tw_hyper_connection_problem, tokens), 0, 0}, {offsetof(tw_hyper_connection_problem, hidden), 0, 0}}, .num_extents = 2}};
static tw_status run_tw_hyper_connection(const void* handle, const void* arguments) {
  return tw_hyper_connection_run(handle, arguments);
}
static const Call kCalls_tw_hyper_connection[] = {
  {"run", "HyperConnection.run", "run($self, /, *, streams=None, merged=None, mix_before=None, result=None, second_result=None, mix_weight=None, mix_bias=None, mix_scale=None, norm_weight=None, mix=None, out=None, workspace=None, stream=None)\n"
    "--\n"
    "\n"
    "  streams: tensor\n"
    "  merged: tensor, written\n"
    "  mix_before: float32 tensor\n"
    "  result: tensor\n"
    "  second_result: tensor\n"
    "  mix_weight: float32 tensor\n"
    "  mix_bias: float32 tensor\n"
    "  mix_scale: float32 tensor\n"
    "  norm_weight: tensor\n"
    "  mix: float32 tensor, written\n"
    "  out: tensor, written\n"
    "  workspace: tensor, written\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_hyper_connection_arguments, run_tw_hyper_connection}};

static tw_status create_tw_hyper_embedding(const void* given, const void* problem, void** handle) {
  return tw_hyper_embedding_create(given, problem, (tw_hyper_embedding**)handle);
}
static void destroy_tw_hyper_embedding(void* handle) { tw_hyper_embedding_destroy(handle); }
typedef struct inputs_tw_hyper_embedding {
  tw_hyper_embedding_problem problem;
} inputs_tw_hyper_embedding;
static void init_inputs_tw_hyper_embedding(void* given) { inputs_tw_hyper_embedding* in = given; tw_hyper_embedding_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_hyper_embedding[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_hyper_embedding, problem), .inner = &kStruct_tw_hyper_embedding_problem}};
static PyObject* names_inputs_tw_hyper_embedding[COUNT(kMembers_inputs_tw_hyper_embedding)];
static inputs_tw_hyper_embedding defaults_inputs_tw_hyper_embedding;
static const Struct kStruct_inputs_tw_hyper_embedding = {
  "HyperEmbeddingInputs", sizeof(inputs_tw_hyper_embedding), init_inputs_tw_hyper_embedding, kMembers_inputs_tw_hyper_embedding,
  COUNT(kMembers_inputs_tw_hyper_embedding), names_inputs_tw_hyper_embedding, &defaults_inputs_tw_hyper_embedding};
static tw_status plan_tw_hyper_embedding(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_hyper_embedding* const in = inputs;
  return tw_hyper_embedding_plan(device, &in->problem, plan);
}
static const Rule kRules_tw_hyper_embedding[] = {
  {.member = 0, .dtype = TW_BF16, .extents = {{offsetof(tw_hyper_embedding_problem, vocab), 0, 0}, {offsetof(tw_hyper_embedding_problem, hidden), 0, 0}}, .num_extents = 2},
  {.member = 2, .dtype_offset = offsetof(tw_hyper_embedding_problem, stream_dtype), .extents = {{offsetof(tw_hyper_embedding_problem, tokens), 0, 0}, {0, 4, 0}, {offsetof(tw_hyper_embedding_problem, hidden), 0, 0}}, .num_extents = 3}};
static tw_status run_tw_hyper_embedding(const void* handle, const void* arguments) {
  return tw_hyper_embedding_run(handle, arguments);
}
static const Call kCalls_tw_hyper_embedding[] = {
  {"run", "HyperEmbedding.run", "run($self, /, *, table=None, ids=None, streams=None, stream=None)\n"
    "--\n"
    "\n"
    "  table: tensor; bf16 [vocab, hidden]\n"
    "  ids: int32 tensor; [tokens]\n"
    "  streams: tensor, written; [tokens, 4, hidden]\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_hyper_embedding_arguments, run_tw_hyper_embedding}};

static tw_status create_tw_rms_norm(const void* given, const void* problem, void** handle) {
  return tw_rms_norm_create(given, problem, (tw_rms_norm**)handle);
}
static void destroy_tw_rms_norm(void* handle) { tw_rms_norm_destroy(handle); }
typedef struct inputs_tw_rms_norm {
  tw_rms_norm_problem problem;
} inputs_tw_rms_norm;
static void init_inputs_tw_rms_norm(void* given) { inputs_tw_rms_norm* in = given; tw_rms_norm_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_rms_norm[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_rms_norm, problem), .inner = &kStruct_tw_rms_norm_problem}};
static PyObject* names_inputs_tw_rms_norm[COUNT(kMembers_inputs_tw_rms_norm)];
static inputs_tw_rms_norm defaults_inputs_tw_rms_norm;
static const Struct kStruct_inputs_tw_rms_norm = {
  "RmsNormInputs", sizeof(inputs_tw_rms_norm), init_inputs_tw_rms_norm, kMembers_inputs_tw_rms_norm,
  COUNT(kMembers_inputs_tw_rms_norm), names_inputs_tw_rms_norm, &defaults_inputs_tw_rms_norm};
static tw_status plan_tw_rms_norm(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_rms_norm* const in = inputs;
  return tw_rms_norm_plan(device, &in->problem, plan);
}
static const Rule kRules_tw_rms_norm[] = {
  {.member = 0, .dtype_offset = offsetof(tw_rms_norm_problem, x_dtype), .extents = {{offsetof(tw_rms_norm_problem, rows), 0, 0}, {offsetof(tw_rms_norm_problem, cols), 0, 0}}, .num_extents = 2, .strides = STRIDES_ROW, .strides_offset = offsetof(tw_rms_norm_problem, x_stride), .is_last_contiguous = true},
  {.member = 2, .dtype = TW_BF16, .extents = {{offsetof(tw_rms_norm_problem, rows), 0, 0}, {offsetof(tw_rms_norm_problem, cols), 0, 0}}, .num_extents = 2, .strides = STRIDES_ROW, .strides_offset = offsetof(tw_rms_norm_problem, out_stride), .is_last_contiguous = true},
  {.member = 1, .dtype = TW_BF16, .extents = {{offsetof(tw_rms_norm_problem, cols), 0, 0}}, .num_extents = 1}};
static tw_status run_tw_rms_norm(const void* handle, const void* arguments) {
  return tw_rms_norm_run(handle, arguments);
}
static const Call kCalls_tw_rms_norm[] = {
  {"run", "RmsNorm.run", "run($self, /, *, x=None, weight=None, out=None, stream=None)\n"
    "--\n"
    "\n"
    "  x: tensor; [rows, cols]\n"
    "  weight: tensor; bf16 [cols]\n"
    "  out: tensor, written; bf16 [rows, cols]\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_rms_norm_arguments, run_tw_rms_norm}};

static tw_status create_tw_sample(const void* given, const void* problem, void** handle) {
  return tw_sample_create(given, problem, (tw_sample**)handle);
}
static void destroy_tw_sample(void* handle) { tw_sample_destroy(handle); }
typedef struct inputs_tw_sample {
  tw_sample_problem problem;
} inputs_tw_sample;
static void init_inputs_tw_sample(void* given) { inputs_tw_sample* in = given; tw_sample_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_sample[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_sample, problem), .inner = &kStruct_tw_sample_problem}};
static PyObject* names_inputs_tw_sample[COUNT(kMembers_inputs_tw_sample)];
static inputs_tw_sample defaults_inputs_tw_sample;
static const Struct kStruct_inputs_tw_sample = {
  "SampleInputs", sizeof(inputs_tw_sample), init_inputs_tw_sample, kMembers_inputs_tw_sample,
  COUNT(kMembers_inputs_tw_sample), names_inputs_tw_sample, &defaults_inputs_tw_sample};
static tw_status plan_tw_sample(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_sample* const in = inputs;
  return tw_sample_plan(device, &in->problem, plan);
}
static const char* plan_text_tw_sample(const void* handle) {
  return tw_sample_plan_text(handle);
}
static const char* kernel_tw_sample(const void* handle) {
  return tw_sample_kernel(handle);
}
static const Query kQueries_tw_sample[] = {
  {"plan_text", "", .text = plan_text_tw_sample},
  {"kernel", "", .text = kernel_tw_sample}};
static tw_status run_tw_sample(const void* handle, const void* arguments) {
  return tw_sample_run(handle, arguments);
}
static const Call kCalls_tw_sample[] = {
  {"run", "Sample.run", "run($self, /, *, logits=None, temperature=None, top_k=None, top_p=None, min_p=None, seeds=None, positions=None, ids=None, log_probs=None, stream=None)\n"
    "--\n"
    "\n"
    "  logits: tensor; [parts, rows, vocab / parts]\n"
    "  temperature: float32 tensor; [rows]; 0: the token with the largest logit. Default 0\n"
    "  top_k: int32 tensor; [rows]; 0: all. Default 0\n"
    "  top_p: float32 tensor; [rows]; above 0. Default 1\n"
    "  min_p: float32 tensor; [rows]; at most 1. Default 0\n"
    "  seeds: tensor; [rows, 2]. Default 0\n"
    "  positions: int32 tensor; [rows]; below 0: the row takes no part. Default 0\n"
    "  ids: int32 tensor, written; [rows]\n"
    "  log_probs: float32 tensor, written; [rows]; None: not wanted\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_sample_arguments, run_tw_sample}};

static tw_status create_tw_gather_rows(const void* given, const void* problem, void** handle) {
  return tw_gather_rows_create(given, problem, (tw_gather_rows**)handle);
}
static void destroy_tw_gather_rows(void* handle) { tw_gather_rows_destroy(handle); }
typedef struct inputs_tw_gather_rows {
  tw_gather_rows_problem problem;
} inputs_tw_gather_rows;
static void init_inputs_tw_gather_rows(void* given) { inputs_tw_gather_rows* in = given; tw_gather_rows_problem_init(&in->problem); }
static const Member kMembers_inputs_tw_gather_rows[] = {
  {"problem", KIND_STRUCT, offsetof(inputs_tw_gather_rows, problem), .inner = &kStruct_tw_gather_rows_problem}};
static PyObject* names_inputs_tw_gather_rows[COUNT(kMembers_inputs_tw_gather_rows)];
static inputs_tw_gather_rows defaults_inputs_tw_gather_rows;
static const Struct kStruct_inputs_tw_gather_rows = {
  "GatherRowsInputs", sizeof(inputs_tw_gather_rows), init_inputs_tw_gather_rows, kMembers_inputs_tw_gather_rows,
  COUNT(kMembers_inputs_tw_gather_rows), names_inputs_tw_gather_rows, &defaults_inputs_tw_gather_rows};
static tw_status plan_tw_gather_rows(const tw_device* device, const void* inputs, tw_plan** plan) {
  const inputs_tw_gather_rows* const in = inputs;
  return tw_gather_rows_plan(device, &in->problem, plan);
}
static const char* plan_text_tw_gather_rows(const void* handle) {
  return tw_gather_rows_plan_text(handle);
}
static const Query kQueries_tw_gather_rows[] = {
  {"plan_text", "", .text = plan_text_tw_gather_rows}};
static tw_status run_tw_gather_rows(const void* handle, const void* arguments) {
  return tw_gather_rows_run(handle, arguments);
}
static const Call kCalls_tw_gather_rows[] = {
  {"run", "GatherRows.run", "run($self, /, *, x=None, index=None, out=None, stream=None)\n"
    "--\n"
    "\n"
    "  x: tensor; bf16 [x_rows, cols]\n"
    "  index: int32 tensor; [rows]\n"
    "  out: tensor, written; bf16 [rows, cols]\n"
    "  stream: None: PyTorch's current stream, else the default one",
   &kStruct_tw_gather_rows_arguments, run_tw_gather_rows}};

const Class kClasses[] = {
  {"LinearWeight",
    "LinearWeight(device, /, *, format='nvfp4', activations='bf16', n=0, k=0, values=None, scales=None, scale_dtype='f32', scale_order='plain', global_scale=0.0, is_global_scale_reciprocal=False, accepts_any_global_scale=False, up_values=None, up_scales=None, groups=1)\n"
    "--\n"
    "\n"
    "Checks and reorders the weight and copies it to the device.\n"
    "\n"
    "  format: 'bf16', 'fp8', 'mxfp4', 'nvfp4'\n"
    "  activations: 'bf16', 'fp8', 'block_scaled'\n"
    "  n: out and in features\n"
    "  k: out and in features\n"
    "  values: tensor; [n, k]: bf16, e4m3, or two e2m1 in a byte\n"
    "  scales: tensor; None for bf16\n"
    "  scale_dtype: 'f32', 'e8m0'; of fp8\n"
    "  scale_order: 'plain', '128x4'; of the 4-bit formats\n"
    "  global_scale: of nvfp4; 0: missing\n"
    "  is_global_scale_reciprocal\n"
    "  accepts_any_global_scale\n"
    "  up_values: tensor; for block-scaled weights: values are a gate's, these those of up; or\n"
    "      None\n"
    "  up_scales: tensor; the same for scales\n"
    "  groups: of rows, each of which takes k columns of x of its own; for tw_linear",
    "Device", &kStruct_tw_linear_weight_source, NULL, NULL,
    create_tw_linear_weight, destroy_tw_linear_weight,
    kQueries_tw_linear_weight, COUNT(kQueries_tw_linear_weight), NULL, 0, NULL, 0},
  {"BlockScaledWeight",
    "BlockScaledWeight(device, /, *, format='nvfp4', activations='bf16', n=0, k=0, values=None, scales=None, scale_dtype='f32', scale_order='plain', global_scale=0.0, is_global_scale_reciprocal=False, accepts_any_global_scale=False, up_values=None, up_scales=None, groups=1)\n"
    "--\n"
    "\n"
    "Checks a weight, pads and reorders it for Blackwell's tensor cores, and copies it to the\n"
    "device; `activations` does not count.\n"
    "\n"
    "  format: 'bf16', 'fp8', 'mxfp4', 'nvfp4'\n"
    "  activations: 'bf16', 'fp8', 'block_scaled'\n"
    "  n: out and in features\n"
    "  k: out and in features\n"
    "  values: tensor; [n, k]: bf16, e4m3, or two e2m1 in a byte\n"
    "  scales: tensor; None for bf16\n"
    "  scale_dtype: 'f32', 'e8m0'; of fp8\n"
    "  scale_order: 'plain', '128x4'; of the 4-bit formats\n"
    "  global_scale: of nvfp4; 0: missing\n"
    "  is_global_scale_reciprocal\n"
    "  accepts_any_global_scale\n"
    "  up_values: tensor; for block-scaled weights: values are a gate's, these those of up; or\n"
    "      None\n"
    "  up_scales: tensor; the same for scales\n"
    "  groups: of rows, each of which takes k columns of x of its own; for tw_linear",
    "Device", &kStruct_tw_linear_weight_source, NULL, NULL,
    create_tw_block_scaled_weight, destroy_tw_block_scaled_weight,
    kQueries_tw_block_scaled_weight, COUNT(kQueries_tw_block_scaled_weight), NULL, 0, NULL, 0},
  {"MoeWeights",
    "MoeWeights(device, /, *, experts=0, gate=None, up=None, down=None, shared_gate=None, shared_up=None, shared_down=None)\n"
    "--\n"
    "\n"
    "Checks and reorders all experts and copies them to the device.\n"
    "\n"
    "  experts\n"
    "  gate: a list of {format, activations, n, k, values, scales, scale_dtype, scale_order,\n"
    "      global_scale, is_global_scale_reciprocal, accepts_any_global_scale, up_values,\n"
    "      up_scales, groups}; w1, w3 [inter, hidden], w2 [hidden, inter]\n"
    "  up: a list of {format, activations, n, k, values, scales, scale_dtype, scale_order,\n"
    "      global_scale, is_global_scale_reciprocal, accepts_any_global_scale, up_values,\n"
    "      up_scales, groups}; w1, w3 [inter, hidden], w2 [hidden, inter]\n"
    "  down: a list of {format, activations, n, k, values, scales, scale_dtype, scale_order,\n"
    "      global_scale, is_global_scale_reciprocal, accepts_any_global_scale, up_values,\n"
    "      up_scales, groups}; w1, w3 [inter, hidden], w2 [hidden, inter]\n"
    "  shared_gate: {format, activations, n, k, values, scales, scale_dtype, scale_order,\n"
    "      global_scale, is_global_scale_reciprocal, accepts_any_global_scale, up_values,\n"
    "      up_scales, groups}\n"
    "  shared_up: {format, activations, n, k, values, scales, scale_dtype, scale_order,\n"
    "      global_scale, is_global_scale_reciprocal, accepts_any_global_scale, up_values,\n"
    "      up_scales, groups}\n"
    "  shared_down: {format, activations, n, k, values, scales, scale_dtype, scale_order,\n"
    "      global_scale, is_global_scale_reciprocal, accepts_any_global_scale, up_values,\n"
    "      up_scales, groups}",
    "Device", &kStruct_tw_moe_weights_source, NULL, NULL,
    create_tw_moe_weights, destroy_tw_moe_weights,
    kQueries_tw_moe_weights, COUNT(kQueries_tw_moe_weights), NULL, 0, NULL, 0},
  {"Attention",
    "Attention(device, /, *, dtype='bf16', batch=1, heads=1, kv_heads=1, q_len=0, kv_len=0, head_dim=0, scale=0.0, causal=False, window_left=-1, window_right=-1, softcap=0.0, has_sink=False, has_lse=False, is_packed=False, total_q=0, total_kv=0, q_strides=None, k_strides=None, v_strides=None, out_strides=None, kernel=None, out_dtype='absent', fp8=None, has_q_lengths=False, has_kv_lengths=False, page_size=0, num_pages=0, max_pages=0, table_stride=0, value_dim=0, chunk=0, kv_dtype='absent')\n"
    "--\n"
    "\n"
    "Attention over whole sequences.\n"
    "\n"
    "  dtype: 'bf16', 'f16', 'e4m3'; of q, k and v\n"
    "  batch\n"
    "  heads\n"
    "  kv_heads\n"
    "  q_len: of every sequence; of the longest if packed\n"
    "  kv_len: of every sequence; of the longest if packed\n"
    "  head_dim\n"
    "  scale: 0: head_dim^-0.5\n"
    "  causal\n"
    "  window_left: visible keys before and after; -1: all\n"
    "  window_right: visible keys before and after; -1: all\n"
    "  softcap: 0: none; at most 4096\n"
    "  has_sink\n"
    "  has_lse\n"
    "  is_packed: lengths come as cu_q and cu_kv\n"
    "  total_q: rows of packed tensors\n"
    "  total_kv: rows of packed tensors\n"
    "  q_strides: {batch, row, head}\n"
    "  k_strides: {batch, row, head}\n"
    "  v_strides: {batch, row, head}\n"
    "  out_strides: {batch, row, head}\n"
    "  kernel: None or \"auto\", or a name such as \"k6\"\n"
    "  out_dtype: 'bf16', 'f16', 'absent'; of e4m3 operands; 'absent': bf16, or dtype\n"
    "  fp8: {scales, v_layout, accumulation}\n"
    "  has_q_lengths: lengths that only the device knows\n"
    "  has_kv_lengths: lengths that only the device knows\n"
    "  page_size: keys; 0: no pages\n"
    "  num_pages: in all, and of a sequence\n"
    "  max_pages: in all, and of a sequence\n"
    "  table_stride: 0: max_pages\n"
    "  value_dim: of v and out; 0: head_dim\n"
    "  chunk: keys of a chunk: a query sees those of its own alone; 0: all keys are one\n"
    "  kv_dtype: 'bf16', 'f16', 'e4m3', 'absent'; of k and v: 'absent' for dtype, or 'e4m3'\n"
    "      beside queries of 16 bits",
    "Device", &kStruct_tw_attention_problem, &kStruct_inputs_tw_attention, plan_tw_attention,
    create_tw_attention, destroy_tw_attention,
    kQueries_tw_attention, COUNT(kQueries_tw_attention), kRules_tw_attention, COUNT(kRules_tw_attention), kCalls_tw_attention, COUNT(kCalls_tw_attention)},
  {"AttentionMerge",
    "AttentionMerge(device, /, *, part_dtype='f32', out_dtype='bf16', parts=2, batch=1, rows=0, heads=1, head_dim=0, has_sink=False, has_lse=False, part_stride=0, lse_part_stride=0, part_strides=None, out_strides=None, lse_part_strides=None, lse_strides=None, other_strides=None, lse_other_strides=None)\n"
    "--\n"
    "\n"
    "Partial results of attention over parts of the keys, merged into that over all of them.\n"
    "\n"
    "  part_dtype: 'f32', 'bf16', 'f16'; of parts\n"
    "  out_dtype: 'f32', 'bf16', 'f16'\n"
    "  parts: 1 to 1024\n"
    "  batch\n"
    "  rows\n"
    "  heads\n"
    "  head_dim: a multiple of 8 up to 4096\n"
    "  has_sink\n"
    "  has_lse\n"
    "  part_stride: elements from part to part; 0: contiguous\n"
    "  lse_part_stride: elements from part to part; 0: contiguous\n"
    "  part_strides: {batch, row, head}\n"
    "  out_strides: {batch, row, head}\n"
    "  lse_part_strides: {batch, row, head}; all 0: contiguous, [.., heads, rows]\n"
    "  lse_strides: {batch, row, head}; all 0: contiguous, [.., heads, rows]\n"
    "  other_strides: {batch, row, head}; of a second part elsewhere; all 0: as the first\n"
    "  lse_other_strides: {batch, row, head}; of a second part elsewhere; all 0: as the first",
    "Device", &kStruct_tw_attention_merge_problem, &kStruct_inputs_tw_attention_merge, plan_tw_attention_merge,
    create_tw_attention_merge, destroy_tw_attention_merge,
    kQueries_tw_attention_merge, COUNT(kQueries_tw_attention_merge), kRules_tw_attention_merge, COUNT(kRules_tw_attention_merge), kCalls_tw_attention_merge, COUNT(kCalls_tw_attention_merge)},
  {"AttentionPrepare",
    "AttentionPrepare(device, /, *, dtype='bf16', batch=1, heads=1, kv_heads=1, q_len=0, kv_len=0, head_dim=0, is_packed=False, total_q=0, total_kv=0, q_strides=None, k_strides=None, v_strides=None, q8_strides=None, k8_strides=None, v8_strides=None, scales='block', v_layout='columns', is_rotated=True, sign_seed=0, rope='none', rotary_dim=0, rope_positions=0, has_positions=False)\n"
    "--\n"
    "\n"
    "E4m3 operands of attention: rotated, scaled, quantised.\n"
    "\n"
    "  dtype: 'bf16', 'f16'; of what is read\n"
    "  batch\n"
    "  heads\n"
    "  kv_heads\n"
    "  q_len: of every sequence; of the longest if packed\n"
    "  kv_len: of every sequence; of the longest if packed\n"
    "  head_dim: 64, 128 or 256\n"
    "  is_packed: lengths come as cu_q and cu_kv\n"
    "  total_q: rows of packed tensors\n"
    "  total_kv: rows of packed tensors\n"
    "  q_strides: {batch, row, head}\n"
    "  k_strides: {batch, row, head}\n"
    "  v_strides: {batch, row, head}\n"
    "  q8_strides: {batch, row, head}; of the quantised values\n"
    "  k8_strides: {batch, row, head}; of the quantised values\n"
    "  v8_strides: {batch, row, head}; of the quantised values\n"
    "  scales: 'tensor', 'head', 'block'\n"
    "  v_layout: 'rows', 'columns'\n"
    "  is_rotated\n"
    "  sign_seed\n"
    "  rope: 'none', 'interleaved', 'halves'\n"
    "  rotary_dim: 0: head_dim\n"
    "  rope_positions: rows of the table of angles\n"
    "  has_positions: positions come as lists",
    "Device", &kStruct_tw_attention_prepare_problem, &kStruct_inputs_tw_attention_prepare, plan_tw_attention_prepare,
    create_tw_attention_prepare, destroy_tw_attention_prepare,
    kQueries_tw_attention_prepare, COUNT(kQueries_tw_attention_prepare), kRules_tw_attention_prepare, COUNT(kRules_tw_attention_prepare), kCalls_tw_attention_prepare, COUNT(kCalls_tw_attention_prepare)},
  {"AttentionDecode",
    "AttentionDecode(device, /, *, dtype='bf16', kv_dtype='bf16', batch=1, q_len=1, heads=1, kv_heads=1, head_dim=0, max_len=0, page_size=0, num_pages=0, max_pages=0, table_stride=0, scale=0.0, causal=True, window_left=-1, softcap=0.0, descale='none', has_sink=False, has_lse=False, append=None, q_strides=None, out_strides=None, new_k_strides=None, new_v_strides=None, cache_strides=None, splits=0, kernel=None, chunk=0)\n"
    "--\n"
    "\n"
    "Attention of a few new tokens over long caches.\n"
    "\n"
    "  dtype: 'bf16', 'f16'; of q, out, new_k and new_v\n"
    "  kv_dtype: 'bf16', 'f16', 'e4m3'; dtype or 'e4m3'\n"
    "  batch\n"
    "  q_len\n"
    "  heads\n"
    "  kv_heads\n"
    "  head_dim\n"
    "  max_len: without pages\n"
    "  page_size: 0: no pages\n"
    "  num_pages\n"
    "  max_pages\n"
    "  table_stride: 0: max_pages\n"
    "  scale: 0: head_dim^-0.5\n"
    "  causal\n"
    "  window_left: -1: all\n"
    "  softcap: 0: none\n"
    "  descale: 'none', 'tensor', 'head'; of an e4m3 cache\n"
    "  has_sink\n"
    "  has_lse\n"
    "  append: {is_wanted, rotary, rotary_dim, max_position}\n"
    "  q_strides: {batch, row, head}\n"
    "  out_strides: {batch, row, head}\n"
    "  new_k_strides: {batch, row, head}\n"
    "  new_v_strides: {batch, row, head}\n"
    "  cache_strides: {batch, row, head}; batch: from page to page\n"
    "  splits: 0: by the lengths\n"
    "  kernel: None or \"auto\", or a name that the plan's text lists\n"
    "  chunk: keys of a chunk: a query sees those of its own alone; 0: all keys are one",
    "Device", &kStruct_tw_attention_decode_problem, &kStruct_inputs_tw_attention_decode, plan_tw_attention_decode,
    create_tw_attention_decode, destroy_tw_attention_decode,
    kQueries_tw_attention_decode, COUNT(kQueries_tw_attention_decode), kRules_tw_attention_decode, COUNT(kRules_tw_attention_decode), kCalls_tw_attention_decode, COUNT(kCalls_tw_attention_decode)},
  {"CacheAppend",
    "CacheAppend(device, /, *, dtype='bf16', kv_dtype='bf16', batch=1, kv_heads=1, new_len=0, head_dim=0, value_dim=0, is_packed=False, total_new=0, heads=0, q_len=0, is_q_packed=False, total_q=0, max_len=0, page_size=0, num_pages=0, max_pages=0, table_stride=0, descale='none', rotary='none', rotary_dim=0, max_position=0, has_rotary_lengths=False, is_one_position=False, has_new_lengths=False, q_strides=None, turned_q_strides=None, new_k_strides=None, new_v_strides=None, k_cache_strides=None, v_cache_strides=None)\n"
    "--\n"
    "\n"
    "New keys and values written to caches, any number of them for any number of queries.\n"
    "\n"
    "  dtype: 'bf16', 'f16', 'e4m3'; of q, new_k and new_v; 'e4m3': codes, copied as they are\n"
    "  kv_dtype: 'bf16', 'f16', 'e4m3'; dtype or 'e4m3'\n"
    "  batch\n"
    "  kv_heads\n"
    "  new_len: new tokens of every sequence; 0 if they are packed\n"
    "  head_dim: multiples of 8; value_dim 0: head_dim\n"
    "  value_dim: multiples of 8; value_dim 0: head_dim\n"
    "  is_packed: cu_new says whose the new tokens are\n"
    "  total_new: rows of packed new_k\n"
    "  heads: of q; 0: no queries are turned\n"
    "  q_len: of every sequence; 0 if they are packed\n"
    "  is_q_packed\n"
    "  total_q: rows of packed q\n"
    "  max_len: without pages\n"
    "  page_size: 0: no pages\n"
    "  num_pages\n"
    "  max_pages\n"
    "  table_stride: 0: max_pages\n"
    "  descale: 'none', 'tensor', 'head'; of an e4m3 cache\n"
    "  rotary: 'none', 'interleaved', 'halves'\n"
    "  rotary_dim: a multiple of 16 up to head_dim\n"
    "  max_position: rows of cos and sin\n"
    "  has_rotary_lengths: positions count from rotary_lengths\n"
    "  is_one_position: all queries of a sequence turn as its first\n"
    "  has_new_lengths: new_lengths is written\n"
    "  q_strides: {batch, row, head}\n"
    "  turned_q_strides: {batch, row, head}\n"
    "  new_k_strides: {batch, row, head}\n"
    "  new_v_strides: {batch, row, head}\n"
    "  k_cache_strides: {batch, row, head}; batch: from page to page\n"
    "  v_cache_strides: {batch, row, head}; batch: from page to page",
    "Device", &kStruct_tw_cache_append_problem, &kStruct_inputs_tw_cache_append, plan_tw_cache_append,
    create_tw_cache_append, destroy_tw_cache_append,
    kQueries_tw_cache_append, COUNT(kQueries_tw_cache_append), kRules_tw_cache_append, COUNT(kRules_tw_cache_append), kCalls_tw_cache_append, COUNT(kCalls_tw_cache_append)},
  {"Linear",
    "Linear(weight, /, *, m=0, x_dtype='bf16', activation_scales='auto', out_dtype='bf16', has_bias=False, x_stride=0, out_stride=0, kernel=None)\n"
    "--\n"
    "\n"
    "Linear layers with weights of 4, 8 or 16 bits.\n"
    "\n"
    "  m\n"
    "  x_dtype: 'bf16', 'e4m3'; 'e4m3': with x_scales, for FP8 activations\n"
    "  activation_scales: 'auto', 'row', 'block'; of FP8 activations; blocks of 128\n"
    "  out_dtype: 'bf16', 'f32'\n"
    "  has_bias\n"
    "  x_stride: elements from row to row; 0: contiguous\n"
    "  out_stride: elements from row to row; 0: contiguous\n"
    "  kernel: None or \"auto\", or a name that the plan's text lists",
    "LinearWeight", &kStruct_tw_linear_problem, &kStruct_inputs_tw_linear, plan_tw_linear,
    create_tw_linear, destroy_tw_linear,
    kQueries_tw_linear, COUNT(kQueries_tw_linear), NULL, 0, kCalls_tw_linear, COUNT(kCalls_tw_linear)},
  {"BlockScaledLinear",
    "BlockScaledLinear(weight, /, *, m=0, out_dtype='bf16', x_row_bytes=0, out_row_bytes=0, kernel=None, swiglu_limit=0.0)\n"
    "--\n"
    "\n"
    "Linear layers on Blackwell's block-scaled tensor cores: activations and weights as they are.\n"
    "\n"
    "  m\n"
    "  out_dtype: 'bf16', 'f4', 'e4m3'; 'f4': NVFP4, 'e4m3': MXFP8 of a gate and up, with scales\n"
    "  x_row_bytes: from row to row; 0: contiguous\n"
    "  out_row_bytes: from row to row; 0: contiguous\n"
    "  kernel: None or \"auto\", or a name that the plan's text lists\n"
    "  swiglu_limit: of a gate and up; 0: none",
    "BlockScaledWeight", &kStruct_tw_block_scaled_problem, &kStruct_inputs_tw_block_scaled_linear, plan_tw_block_scaled_linear,
    create_tw_block_scaled_linear, destroy_tw_block_scaled_linear,
    kQueries_tw_block_scaled_linear, COUNT(kQueries_tw_block_scaled_linear), NULL, 0, kCalls_tw_block_scaled_linear, COUNT(kCalls_tw_block_scaled_linear)},
  {"Quantize",
    "Quantize(device, /, *, format=None, scales=None, dtype='bf16', rows=0, cols=0, row_stride=0, has_row_index=False, out_rows=0, out_cols=0, has_operand_order=False, has_128x4_scales=False, has_block_major_scales=False, encode_scale=0.0, has_encode_scale_address=False)\n"
    "--\n"
    "\n"
    "Rows of numbers to codes and block scales.\n"
    "\n"
    "  format: None: \"nvfp4\"; \"mxfp4\", \"fp8_1x128\", \"fp8_token\", \"fp8_128x128\", ...\n"
    "  scales: nvfp4: None or \"nearest\", \"four_over_six\", \"exact_nearest\", \"exact_best\"\n"
    "  dtype: 'bf16', 'f16', 'f32'; of the numbers\n"
    "  rows\n"
    "  cols\n"
    "  row_stride: elements; 0: cols\n"
    "  has_row_index\n"
    "  out_rows: 0: rounded up to whole blocks\n"
    "  out_cols: 0: rounded up to whole blocks\n"
    "  has_operand_order\n"
    "  has_128x4_scales\n"
    "  has_block_major_scales\n"
    "  encode_scale: nvfp4: G; 0: found from the largest magnitude\n"
    "  has_encode_scale_address",
    "Device", &kStruct_tw_quantize_problem, &kStruct_inputs_tw_quantize, plan_tw_quantize,
    create_tw_quantize, destroy_tw_quantize,
    kQueries_tw_quantize, COUNT(kQueries_tw_quantize), kRules_tw_quantize, COUNT(kRules_tw_quantize), kCalls_tw_quantize, COUNT(kCalls_tw_quantize)},
  {"Moe",
    "Moe(weights, /, *, tokens=0, topk=0, routing='given', score='softmax', normalize=True, has_bias=False, route_scale=1.0, vocab=0, logits_stride=0, swiglu_limit=0.0, weight_after_down=False, out_dtype='bf16', kernel=None, expected_tokens=0, all_experts=0, first_expert=0)\n"
    "--\n"
    "\n"
    "Experts chosen for each token, and their sum.\n"
    "\n"
    "  tokens\n"
    "  topk\n"
    "  routing: 'given', 'logits', 'hash', 'grouped', 'contiguous', 'single'\n"
    "  score: 'softmax', 'sqrt_softplus'\n"
    "  normalize\n"
    "  has_bias\n"
    "  route_scale\n"
    "  vocab: rows of the table of 'hash'\n"
    "  logits_stride: elements from token to token of the logits; 0: experts\n"
    "  swiglu_limit: 0: none\n"
    "  weight_after_down\n"
    "  out_dtype: 'bf16', 'f32'\n"
    "  kernel: None or \"auto\", or a name that the plan's text lists\n"
    "  expected_tokens: grouped tokens: of an expert, for the choice of a kernel; 0: as many as\n"
    "      fit\n"
    "  all_experts: experts that are routed over, if the weights are a share of them; 0: the\n"
    "      weights are those of all\n"
    "  first_expert: of the weights, with all_experts",
    "MoeWeights", &kStruct_tw_moe_problem, &kStruct_inputs_tw_moe, plan_tw_moe,
    create_tw_moe, destroy_tw_moe,
    kQueries_tw_moe, COUNT(kQueries_tw_moe), NULL, 0, kCalls_tw_moe, COUNT(kCalls_tw_moe)},
  {"SparseAttention",
    "SparseAttention(device, /, *, batch=1, q_len=1, heads=0, scale=0.0, window=None, compressed=None, has_sink=False, has_lse=False, has_max_logits=False, q_strides=None, out_strides=None, lse_strides=None, kernel=None, positive_empty_lse=False, head_dim=512)\n"
    "--\n"
    "\n"
    "Attention over rows of paged caches that lists choose.\n"
    "\n"
    "  batch\n"
    "  q_len\n"
    "  heads\n"
    "  scale: 0: head_dim^-0.5\n"
    "  window: {cache, topk, index_stride, lengths}\n"
    "  compressed: {cache, topk, index_stride, lengths}\n"
    "  has_sink\n"
    "  has_lse\n"
    "  has_max_logits\n"
    "  q_strides: {batch, row, head}\n"
    "  out_strides: {batch, row, head}\n"
    "  lse_strides: {batch, row, head}; of lse and max_logits\n"
    "  kernel: None or \"auto\", or a name that the plan's text lists\n"
    "  positive_empty_lse: 1: lse of a query without a valid row is +inf, not -inf\n"
    "  head_dim: of q and of the rows as keys: 512, or 576 (DeepSeek-V3)",
    "Device", &kStruct_tw_sparse_attention_problem, &kStruct_inputs_tw_sparse_attention, plan_tw_sparse_attention,
    create_tw_sparse_attention, destroy_tw_sparse_attention,
    kQueries_tw_sparse_attention, COUNT(kQueries_tw_sparse_attention), kRules_tw_sparse_attention, COUNT(kRules_tw_sparse_attention), kCalls_tw_sparse_attention, COUNT(kCalls_tw_sparse_attention)},
  {"LatentAttention",
    "LatentAttention(device, /, *, dtype='bf16', batch=1, q_len=1, heads=1, kv_heads=1, value_dim=512, has_qv=True, max_len=0, page_size=0, num_pages=0, max_pages=0, table_stride=0, scale=0.0, causal=True, has_sink=False, has_lse=False, positive_empty_lse=False, q_strides=None, qv_strides=None, out_strides=None, lse_strides=None, k_strides=None, v_strides=None, kernel=None)\n"
    "--\n"
    "\n"
    "Attention over all keys, of values that make scores beside narrow keys: MLA, qv.\n"
    "\n"
    "  dtype: 'bf16', 'f16'\n"
    "  batch\n"
    "  q_len\n"
    "  heads\n"
    "  kv_heads\n"
    "  value_dim: 256 or 512\n"
    "  has_qv: 0: k alone makes scores\n"
    "  max_len: without pages\n"
    "  page_size: 8, 16, 32 or a multiple of 64; 0: no pages\n"
    "  num_pages\n"
    "  max_pages\n"
    "  table_stride: 0: max_pages\n"
    "  scale: 0: (64 + value_dim)^-0.5, without qv 1/8\n"
    "  causal\n"
    "  has_sink\n"
    "  has_lse\n"
    "  positive_empty_lse: 1: lse of a row without a visible key is +inf, not -inf\n"
    "  q_strides: {batch, row, head}\n"
    "  qv_strides: {batch, row, head}\n"
    "  out_strides: {batch, row, head}\n"
    "  lse_strides: {batch, row, head}\n"
    "  k_strides: {batch, row, head}; batch: from page to page\n"
    "  v_strides: {batch, row, head}; batch: from page to page\n"
    "  kernel: None or \"auto\", or a name that the plan's text lists",
    "Device", &kStruct_tw_latent_attention_problem, &kStruct_inputs_tw_latent_attention, plan_tw_latent_attention,
    create_tw_latent_attention, destroy_tw_latent_attention,
    kQueries_tw_latent_attention, COUNT(kQueries_tw_latent_attention), kRules_tw_latent_attention, COUNT(kRules_tw_latent_attention), kCalls_tw_latent_attention, COUNT(kCalls_tw_latent_attention)},
  {"MaskLists",
    "MaskLists(device, /, *, entry='bytes', batch=1, rows=0, keys=0, query_block=1, key_block=1, topk=0, index_stride=0, mask_batch_bytes=0, mask_row_bytes=0, page_size=0, table_stride=0, has_totals=False)\n"
    "--\n"
    "\n"
    "Masks of keys made into lists of them.\n"
    "\n"
    "  entry: 'bytes', 'bits'\n"
    "  batch\n"
    "  rows\n"
    "  keys\n"
    "  query_block: rows that share an entry\n"
    "  key_block: keys that share an entry\n"
    "  topk: entries of a list\n"
    "  index_stride: elements from list to list; 0: topk\n"
    "  mask_batch_bytes: strides; 0: contiguous\n"
    "  mask_row_bytes: strides; 0: contiguous\n"
    "  page_size: 0: indices are keys, else slots of a paged cache\n"
    "  table_stride: elements from batch to batch; 0: contiguous\n"
    "  has_totals",
    "Device", &kStruct_tw_mask_lists_problem, &kStruct_inputs_tw_mask_lists, plan_tw_mask_lists,
    create_tw_mask_lists, destroy_tw_mask_lists,
    kQueries_tw_mask_lists, COUNT(kQueries_tw_mask_lists), NULL, 0, kCalls_tw_mask_lists, COUNT(kCalls_tw_mask_lists)},
  {"KvCache",
    "KvCache(device, /, *, format='fp8', page_size=64, num_pages=0, page_stride_bytes=0)\n"
    "--\n"
    "\n"
    "Rows of a paged cache: written, read, listed for attention.\n"
    "\n"
    "  format: 'bf16', 'fp8', 'nvfp4'\n"
    "  page_size\n"
    "  num_pages\n"
    "  page_stride_bytes: 0: that of the format",
    "Device", &kStruct_tw_kv_layout, &kStruct_inputs_tw_kv_cache, plan_tw_kv_cache,
    create_tw_kv_cache, destroy_tw_kv_cache,
    NULL, 0, NULL, 0, kCalls_tw_kv_cache, COUNT(kCalls_tw_kv_cache)},
  {"InverseRope",
    "InverseRope(device, /)\n"
    "--\n"
    "\n"
    "Takes the rotation out of what attention gives, and quantises it if codes are wanted.",
    "Device", NULL, &kStruct_inputs_tw_inverse_rope, plan_tw_inverse_rope,
    create_tw_inverse_rope, destroy_tw_inverse_rope,
    NULL, 0, NULL, 0, kCalls_tw_inverse_rope, COUNT(kCalls_tw_inverse_rope)},
  {"Compressor",
    "Compressor(device, /, *, kind='csa', cache=None, state_slots=0, ring=0, eps=1e-06)\n"
    "--\n"
    "\n"
    "Pools tokens to rows of a compressed cache, or to keys of the indexer.\n"
    "\n"
    "  kind: 'csa', 'hca', 'index_fp8', 'index_mxfp4'\n"
    "  cache: {format, page_size, num_pages, page_stride_bytes}\n"
    "  state_slots\n"
    "  ring\n"
    "  eps",
    "Device", &kStruct_tw_compressor_problem, &kStruct_inputs_tw_compressor, plan_tw_compressor,
    create_tw_compressor, destroy_tw_compressor,
    kQueries_tw_compressor, COUNT(kQueries_tw_compressor), NULL, 0, kCalls_tw_compressor, COUNT(kCalls_tw_compressor)},
  {"Indexer",
    "Indexer(device, /, *, format='mxfp4', heads=64, topk=512, ratio=4, max_len=0, keys=None, rows=None, fill_logits=False)\n"
    "--\n"
    "\n"
    "Which compressed entries a token attends to.\n"
    "\n"
    "  format: 'mxfp4', 'fp8'\n"
    "  heads\n"
    "  topk\n"
    "  ratio\n"
    "  max_len\n"
    "  keys: {format, page_size, num_pages, page_stride_bytes}; its format does not count\n"
    "  rows: {format, page_size, num_pages, page_stride_bytes}; only sizes count; num_pages 0:\n"
    "      rows are entries\n"
    "  fill_logits",
    "Device", &kStruct_tw_indexer_problem, &kStruct_inputs_tw_indexer, plan_tw_indexer,
    create_tw_indexer, destroy_tw_indexer,
    kQueries_tw_indexer, COUNT(kQueries_tw_indexer), NULL, 0, kCalls_tw_indexer, COUNT(kCalls_tw_indexer)},
  {"IndexerLogits",
    "IndexerLogits(device, /, *, format='fp8', heads=64, max_len=0, keys=None, is_compressed=False, fill_logits=False)\n"
    "--\n"
    "\n"
    "Logits of the indexer from queries and keys that are quantised already.\n"
    "\n"
    "  format: 'fp8', 'mxfp4'\n"
    "  heads\n"
    "  max_len: most logits of a token\n"
    "  keys: {format, page_size, num_pages, page_stride_bytes}; its format does not count;\n"
    "      num_pages 0: keys have no pages\n"
    "  is_compressed: without pages: column 0 is the first key that a token sees\n"
    "  fill_logits: with -inf, where there is no key",
    "Device", &kStruct_tw_indexer_logits_problem, &kStruct_inputs_tw_indexer_logits, plan_tw_indexer_logits,
    create_tw_indexer_logits, destroy_tw_indexer_logits,
    NULL, 0, NULL, 0, kCalls_tw_indexer_logits, COUNT(kCalls_tw_indexer_logits)},
  {"HyperConnection",
    "HyperConnection(device, /, *, tokens=0, hidden=0, stream_dtype='bf16', has_merge=False, has_second=False, has_mix=True, is_head=False, result_dtype='bf16', second_dtype='bf16', iterations=20, eps=1e-06, norm_eps=1e-06)\n"
    "--\n"
    "\n"
    "From one sub-layer to the next through four streams.\n"
    "\n"
    "  tokens\n"
    "  hidden\n"
    "  stream_dtype: 'bf16', 'f32'\n"
    "  has_merge\n"
    "  has_second\n"
    "  has_mix\n"
    "  is_head\n"
    "  result_dtype: 'bf16', 'f32'\n"
    "  second_dtype: 'bf16', 'f32'\n"
    "  iterations\n"
    "  eps\n"
    "  norm_eps",
    "Device", &kStruct_tw_hyper_connection_problem, &kStruct_inputs_tw_hyper_connection, plan_tw_hyper_connection,
    create_tw_hyper_connection, destroy_tw_hyper_connection,
    kQueries_tw_hyper_connection, COUNT(kQueries_tw_hyper_connection), kRules_tw_hyper_connection, COUNT(kRules_tw_hyper_connection), kCalls_tw_hyper_connection, COUNT(kCalls_tw_hyper_connection)},
  {"HyperEmbedding",
    "HyperEmbedding(device, /, *, tokens=0, hidden=0, vocab=0, stream_dtype='bf16')\n"
    "--\n"
    "\n"
    "Rows of a table into the streams.\n"
    "\n"
    "  tokens\n"
    "  hidden\n"
    "  vocab\n"
    "  stream_dtype: 'bf16', 'f32'",
    "Device", &kStruct_tw_hyper_embedding_problem, &kStruct_inputs_tw_hyper_embedding, plan_tw_hyper_embedding,
    create_tw_hyper_embedding, destroy_tw_hyper_embedding,
    NULL, 0, kRules_tw_hyper_embedding, COUNT(kRules_tw_hyper_embedding), kCalls_tw_hyper_embedding, COUNT(kCalls_tw_hyper_embedding)},
  {"RmsNorm",
    "RmsNorm(device, /, *, rows=0, cols=0, x_dtype='bf16', x_stride=0, out_stride=0, has_weight=True, eps=1e-06)\n"
    "--\n"
    "\n"
    "Rows divided by their root mean square.\n"
    "\n"
    "  rows\n"
    "  cols\n"
    "  x_dtype: 'bf16', 'f32'\n"
    "  x_stride\n"
    "  out_stride\n"
    "  has_weight\n"
    "  eps",
    "Device", &kStruct_tw_rms_norm_problem, &kStruct_inputs_tw_rms_norm, plan_tw_rms_norm,
    create_tw_rms_norm, destroy_tw_rms_norm,
    NULL, 0, kRules_tw_rms_norm, COUNT(kRules_tw_rms_norm), kCalls_tw_rms_norm, COUNT(kCalls_tw_rms_norm)},
  {"Sample",
    "Sample(device, /, *, rows=0, vocab=0, logits_dtype='f32', parts=1, row_stride=0, part_stride=0)\n"
    "--\n"
    "\n"
    "The next tokens of rows of logits.\n"
    "\n"
    "  rows\n"
    "  vocab\n"
    "  logits_dtype: 'f32', 'bf16'\n"
    "  parts: arrays that divide the vocabulary\n"
    "  row_stride: elements; 0: vocab / parts, rounded up to a multiple of 4\n"
    "  part_stride: elements; 0: rows * row_stride",
    "Device", &kStruct_tw_sample_problem, &kStruct_inputs_tw_sample, plan_tw_sample,
    create_tw_sample, destroy_tw_sample,
    kQueries_tw_sample, COUNT(kQueries_tw_sample), NULL, 0, kCalls_tw_sample, COUNT(kCalls_tw_sample)},
  {"GatherRows",
    "GatherRows(device, /, *, rows=0, x_rows=0, cols=0)\n"
    "--\n"
    "\n"
    "Rows of a matrix that a list chooses; zeros for an index outside of it.\n"
    "\n"
    "  rows\n"
    "  x_rows\n"
    "  cols: a multiple of 8",
    "Device", &kStruct_tw_gather_rows_problem, &kStruct_inputs_tw_gather_rows, plan_tw_gather_rows,
    create_tw_gather_rows, destroy_tw_gather_rows,
    kQueries_tw_gather_rows, COUNT(kQueries_tw_gather_rows), NULL, 0, kCalls_tw_gather_rows, COUNT(kCalls_tw_gather_rows)},
};
const int kNumClasses = COUNT(kClasses);

const Struct* const kStructs[] = {
  &kStruct_tw_reason,
  &kStruct_tw_candidate,
  &kStruct_tw_launch,
  &kStruct_tw_strides,
  &kStruct_tw_fp8_options,
  &kStruct_tw_attention_problem,
  &kStruct_tw_attention_arguments,
  &kStruct_tw_attention_merge_problem,
  &kStruct_tw_attention_merge_arguments,
  &kStruct_tw_attention_prepare_problem,
  &kStruct_tw_attention_prepare_arguments,
  &kStruct_tw_attention_operand_sizes,
  &kStruct_tw_decode_append,
  &kStruct_tw_attention_decode_problem,
  &kStruct_tw_attention_decode_arguments,
  &kStruct_tw_cache_append_problem,
  &kStruct_tw_cache_append_arguments,
  &kStruct_tw_linear_weight_source,
  &kStruct_tw_linear_weight_info,
  &kStruct_tw_linear_problem,
  &kStruct_tw_linear_arguments,
  &kStruct_tw_block_scaled_weight_info,
  &kStruct_tw_block_scaled_problem,
  &kStruct_tw_block_scaled_arguments,
  &kStruct_tw_quantize_problem,
  &kStruct_tw_quantize_arguments,
  &kStruct_tw_moe_weights_source,
  &kStruct_tw_moe_weights_info,
  &kStruct_tw_moe_problem,
  &kStruct_tw_moe_arguments,
  &kStruct_tw_kv_layout,
  &kStruct_tw_sparse_list,
  &kStruct_tw_sparse_attention_problem,
  &kStruct_tw_sparse_list_arguments,
  &kStruct_tw_sparse_attention_arguments,
  &kStruct_tw_latent_attention_problem,
  &kStruct_tw_latent_attention_arguments,
  &kStruct_tw_mask_lists_problem,
  &kStruct_tw_mask_lists_arguments,
  &kStruct_tw_rope_options,
  &kStruct_tw_sequence_batch,
  &kStruct_tw_sequence_pages,
  &kStruct_tw_kv_write_arguments,
  &kStruct_tw_kv_read_arguments,
  &kStruct_tw_kv_list_arguments,
  &kStruct_tw_kv_cache_work,
  &kStruct_tw_inverse_rope_arguments,
  &kStruct_tw_compressor_problem,
  &kStruct_tw_compressor_arguments,
  &kStruct_tw_indexer_problem,
  &kStruct_tw_indexer_arguments,
  &kStruct_tw_indexer_logits_problem,
  &kStruct_tw_indexer_logits_arguments,
  &kStruct_tw_hyper_connection_problem,
  &kStruct_tw_hyper_connection_arguments,
  &kStruct_tw_hyper_embedding_problem,
  &kStruct_tw_hyper_embedding_arguments,
  &kStruct_tw_rms_norm_problem,
  &kStruct_tw_rms_norm_arguments,
  &kStruct_tw_sample_problem,
  &kStruct_tw_sample_arguments,
  &kStruct_tw_gather_rows_problem,
  &kStruct_tw_gather_rows_arguments,
  &kStruct_tw_chat_message,
  &kStruct_tw_llm_options,
  &kStruct_tw_llm_sampling,
  &kStruct_inputs_tw_attention,
  &kStruct_inputs_tw_attention_merge,
  &kStruct_inputs_tw_attention_prepare,
  &kStruct_inputs_tw_attention_decode,
  &kStruct_inputs_tw_cache_append,
  &kStruct_inputs_tw_linear,
  &kStruct_inputs_tw_block_scaled_linear,
  &kStruct_inputs_tw_quantize,
  &kStruct_inputs_tw_moe,
  &kStruct_inputs_tw_sparse_attention,
  &kStruct_inputs_tw_latent_attention,
  &kStruct_inputs_tw_mask_lists,
  &kStruct_inputs_tw_kv_cache,
  &kStruct_inputs_tw_inverse_rope,
  &kStruct_inputs_tw_compressor,
  &kStruct_inputs_tw_indexer,
  &kStruct_inputs_tw_indexer_logits,
  &kStruct_inputs_tw_hyper_connection,
  &kStruct_inputs_tw_hyper_embedding,
  &kStruct_inputs_tw_rms_norm,
  &kStruct_inputs_tw_sample,
  &kStruct_inputs_tw_gather_rows,
};
const int kNumStructs = COUNT(kStructs);

_Static_assert(sizeof(tw_attention_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_attention_decode_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_attention_merge_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_attention_prepare_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_block_scaled_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_cache_append_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_compressor_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_gather_rows_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_hyper_connection_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_hyper_embedding_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_indexer_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_indexer_logits_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_inverse_rope_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_kv_list_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_kv_read_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_kv_write_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_latent_attention_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_linear_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_mask_lists_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_moe_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_quantize_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_rms_norm_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_sample_arguments) <= sizeof(AnyArguments), "make it larger");
_Static_assert(sizeof(tw_sparse_attention_arguments) <= sizeof(AnyArguments), "make it larger");
