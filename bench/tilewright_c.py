# Made by tools/make_c_api.py from tools/c_api; edit that.
"""The C interface of libtilewright.so for ctypes: structs, constants and the types of its functions."""

import ctypes


def load(path):
    """The library, with types for all functions."""
    lib = ctypes.CDLL(str(path))
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def make(lib, kind, **members):
    """A struct with its defaults and these members; {...} sets members of a struct inside."""
    made = kind()
    _set_sizes(made)
    getattr(lib, f"{kind.__name__}_set_defaults")(ctypes.byref(made))
    _set(made, members)
    return made


def _set(struct, members):
    known = {field[0] for field in struct._fields_}
    for name, value in members.items():
        if name not in known:
            raise AttributeError(f"{type(struct).__name__} has no member {name}")
        if isinstance(value, dict):
            _set(getattr(struct, name), value)
        else:
            setattr(struct, name, value)


def _set_sizes(struct):
    struct.struct_bytes = ctypes.sizeof(struct)
    for name, kind in struct._fields_:
        if issubclass(kind, ctypes.Structure):
            _set_sizes(getattr(struct, name))


# tw_status
TW_OK = 0
TW_INVALID_ARGUMENT = 1
TW_UNSUPPORTED = 2
TW_OUT_OF_MEMORY = 3
TW_DEVICE_ERROR = 4
TW_PARSE_ERROR = 5
TW_CHECK_FAILED = 6
TW_INTERNAL = 7

# tw_dtype
TW_BF16 = 0
TW_F16 = 1
TW_F32 = 2
TW_E4M3 = 3
TW_E8M0 = 4
TW_ABSENT = -1

# tw_scale_sharing
TW_SCALE_SHARING_AUTO = 0
TW_SCALE_SHARING_NONE = 1
TW_SCALE_SHARING_TENSOR = 2
TW_SCALE_SHARING_HEAD = 3
TW_SCALE_SHARING_ROW = 4
TW_SCALE_SHARING_BLOCK = 5

# tw_fp8_value_layout
TW_FP8_VALUE_LAYOUT_ROWS = 0
TW_FP8_VALUE_LAYOUT_COLUMNS = 1

# tw_fp8_accumulation
TW_FP8_ACCUMULATION_AUTO = 0
TW_FP8_ACCUMULATION_ONE_LEVEL = 1
TW_FP8_ACCUMULATION_TWO_LEVEL = 2

# tw_rotary_pairs
TW_ROTARY_PAIRS_NONE = 0
TW_ROTARY_PAIRS_INTERLEAVED = 1
TW_ROTARY_PAIRS_HALVES = 2

# tw_number_format
TW_NUMBER_FORMAT_BF16 = 0
TW_NUMBER_FORMAT_FP8 = 1
TW_NUMBER_FORMAT_MXFP4 = 2
TW_NUMBER_FORMAT_NVFP4 = 3

# tw_linear_activations
TW_LINEAR_ACTIVATIONS_BF16 = 0
TW_LINEAR_ACTIVATIONS_FP8 = 1

# tw_scale_order
TW_SCALE_ORDER_PLAIN = 0
TW_SCALE_ORDER_128X4 = 1

# tw_moe_routing
TW_MOE_ROUTING_GIVEN = 0
TW_MOE_ROUTING_LOGITS = 1
TW_MOE_ROUTING_HASH = 2

# tw_moe_score
TW_MOE_SCORE_SOFTMAX = 0
TW_MOE_SCORE_SQRT_SOFTPLUS = 1

# tw_sparse_lengths
TW_SPARSE_LENGTHS_FULL = 0
TW_SPARSE_LENGTHS_PER_BATCH = 1
TW_SPARSE_LENGTHS_PER_QUERY = 2

# tw_kv_list_kind
TW_KV_LIST_KIND_WRITE = 0
TW_KV_LIST_KIND_WINDOW = 1
TW_KV_LIST_KIND_ENTRIES = 2

# tw_compressor_kind
TW_COMPRESSOR_KIND_CSA = 0
TW_COMPRESSOR_KIND_HCA = 1
TW_COMPRESSOR_KIND_INDEX_FP8 = 2
TW_COMPRESSOR_KIND_INDEX_MXFP4 = 3


class tw_reason(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("field", ctypes.c_char_p),
        ("value", ctypes.c_char_p),
        ("rule", ctypes.c_char_p),
        ("fix", ctypes.c_char_p),
    ]


class tw_candidate(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("reason", ctypes.c_char_p),
        ("is_possible", ctypes.c_int32),
        ("is_automatic", ctypes.c_int32),
        ("is_chosen", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("cost_us", ctypes.c_double),
    ]


class tw_launch(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("step", ctypes.c_char_p),
        ("entry", ctypes.c_char_p),
        ("grid_x", ctypes.c_int32),
        ("grid_y", ctypes.c_int32),
        ("grid_z", ctypes.c_int32),
        ("block_x", ctypes.c_int32),
        ("block_y", ctypes.c_int32),
        ("block_z", ctypes.c_int32),
        ("cluster", ctypes.c_int32),
        ("shared_bytes", ctypes.c_int32),
    ]


class tw_strides(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("batch", ctypes.c_int64),
        ("row", ctypes.c_int64),
        ("head", ctypes.c_int64),
    ]


class tw_fp8_options(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("scales", ctypes.c_int32),
        ("v_layout", ctypes.c_int32),
        ("accumulation", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class tw_attention_problem(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("dtype", ctypes.c_int32),
        ("batch", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("kv_heads", ctypes.c_int64),
        ("q_len", ctypes.c_int64),
        ("kv_len", ctypes.c_int64),
        ("head_dim", ctypes.c_int64),
        ("scale", ctypes.c_double),
        ("causal", ctypes.c_int32),
        ("window_left", ctypes.c_int64),
        ("window_right", ctypes.c_int64),
        ("softcap", ctypes.c_double),
        ("has_sink", ctypes.c_int32),
        ("has_lse", ctypes.c_int32),
        ("is_packed", ctypes.c_int32),
        ("total_q", ctypes.c_int64),
        ("total_kv", ctypes.c_int64),
        ("q_strides", tw_strides),
        ("k_strides", tw_strides),
        ("v_strides", tw_strides),
        ("out_strides", tw_strides),
        ("kernel", ctypes.c_char_p),
        ("out_dtype", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("fp8", tw_fp8_options),
    ]


class tw_attention_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("q", ctypes.c_void_p),
        ("k", ctypes.c_void_p),
        ("v", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("lse", ctypes.c_void_p),
        ("sink", ctypes.c_void_p),
        ("cu_q", ctypes.c_void_p),
        ("cu_kv", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("q_descale", ctypes.c_void_p),
        ("k_descale", ctypes.c_void_p),
        ("v_descale", ctypes.c_void_p),
        ("v_descale_max", ctypes.c_void_p),
    ]


class tw_attention_prepare_problem(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("dtype", ctypes.c_int32),
        ("batch", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("kv_heads", ctypes.c_int64),
        ("q_len", ctypes.c_int64),
        ("kv_len", ctypes.c_int64),
        ("head_dim", ctypes.c_int64),
        ("is_packed", ctypes.c_int32),
        ("total_q", ctypes.c_int64),
        ("total_kv", ctypes.c_int64),
        ("q_strides", tw_strides),
        ("k_strides", tw_strides),
        ("v_strides", tw_strides),
        ("q8_strides", tw_strides),
        ("k8_strides", tw_strides),
        ("v8_strides", tw_strides),
        ("scales", ctypes.c_int32),
        ("v_layout", ctypes.c_int32),
        ("is_rotated", ctypes.c_int32),
        ("sign_seed", ctypes.c_uint64),
        ("rope", ctypes.c_int32),
        ("rotary_dim", ctypes.c_int64),
        ("rope_positions", ctypes.c_int64),
        ("has_positions", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class tw_attention_prepare_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("q", ctypes.c_void_p),
        ("k", ctypes.c_void_p),
        ("v", ctypes.c_void_p),
        ("q8", ctypes.c_void_p),
        ("k8", ctypes.c_void_p),
        ("v8", ctypes.c_void_p),
        ("q_descale", ctypes.c_void_p),
        ("k_descale", ctypes.c_void_p),
        ("v_descale", ctypes.c_void_p),
        ("v_descale_max", ctypes.c_void_p),
        ("cu_q", ctypes.c_void_p),
        ("cu_kv", ctypes.c_void_p),
        ("rope", ctypes.c_void_p),
        ("q_positions", ctypes.c_void_p),
        ("k_positions", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


class tw_attention_operand_sizes(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("q8_bytes", ctypes.c_size_t),
        ("k8_bytes", ctypes.c_size_t),
        ("v8_bytes", ctypes.c_size_t),
        ("num_q_descales", ctypes.c_size_t),
        ("num_k_descales", ctypes.c_size_t),
        ("num_v_descales", ctypes.c_size_t),
        ("num_v_descale_max", ctypes.c_size_t),
        ("workspace_bytes", ctypes.c_size_t),
    ]


class tw_decode_append(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("is_wanted", ctypes.c_int32),
        ("rotary", ctypes.c_int32),
        ("rotary_dim", ctypes.c_int64),
        ("max_position", ctypes.c_int64),
    ]


class tw_attention_decode_problem(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("dtype", ctypes.c_int32),
        ("kv_dtype", ctypes.c_int32),
        ("batch", ctypes.c_int64),
        ("q_len", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("kv_heads", ctypes.c_int64),
        ("head_dim", ctypes.c_int64),
        ("max_len", ctypes.c_int64),
        ("page_size", ctypes.c_int64),
        ("num_pages", ctypes.c_int64),
        ("max_pages", ctypes.c_int64),
        ("table_stride", ctypes.c_int64),
        ("scale", ctypes.c_double),
        ("causal", ctypes.c_int32),
        ("window_left", ctypes.c_int64),
        ("softcap", ctypes.c_double),
        ("descale", ctypes.c_int32),
        ("has_sink", ctypes.c_int32),
        ("has_lse", ctypes.c_int32),
        ("append", tw_decode_append),
        ("q_strides", tw_strides),
        ("out_strides", tw_strides),
        ("new_k_strides", tw_strides),
        ("new_v_strides", tw_strides),
        ("cache_strides", tw_strides),
        ("splits", ctypes.c_int64),
        ("kernel", ctypes.c_char_p),
    ]


class tw_attention_decode_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("q", ctypes.c_void_p),
        ("k_cache", ctypes.c_void_p),
        ("v_cache", ctypes.c_void_p),
        ("lengths", ctypes.c_void_p),
        ("block_table", ctypes.c_void_p),
        ("k_descale", ctypes.c_void_p),
        ("v_descale", ctypes.c_void_p),
        ("new_k", ctypes.c_void_p),
        ("new_v", ctypes.c_void_p),
        ("cos", ctypes.c_void_p),
        ("sin", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("lse", ctypes.c_void_p),
        ("sink", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


class tw_linear_weight_source(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("format", ctypes.c_int32),
        ("activations", ctypes.c_int32),
        ("n", ctypes.c_int64),
        ("k", ctypes.c_int64),
        ("values", ctypes.c_void_p),
        ("scales", ctypes.c_void_p),
        ("scale_dtype", ctypes.c_int32),
        ("scale_order", ctypes.c_int32),
        ("global_scale", ctypes.c_float),
        ("is_global_scale_reciprocal", ctypes.c_int32),
        ("accepts_any_global_scale", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class tw_linear_weight_info(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("format", ctypes.c_int32),
        ("activations", ctypes.c_int32),
        ("n", ctypes.c_int64),
        ("k", ctypes.c_int64),
    ]


class tw_linear_problem(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("m", ctypes.c_int64),
        ("x_dtype", ctypes.c_int32),
        ("activation_scales", ctypes.c_int32),
        ("out_dtype", ctypes.c_int32),
        ("has_bias", ctypes.c_int32),
        ("x_stride", ctypes.c_int64),
        ("out_stride", ctypes.c_int64),
        ("kernel", ctypes.c_char_p),
    ]


class tw_linear_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("x", ctypes.c_void_p),
        ("x_scales", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


class tw_quantize_problem(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("format", ctypes.c_char_p),
        ("scales", ctypes.c_char_p),
        ("dtype", ctypes.c_int32),
        ("rows", ctypes.c_int64),
        ("cols", ctypes.c_int64),
        ("row_stride", ctypes.c_int64),
        ("has_row_index", ctypes.c_int32),
        ("out_rows", ctypes.c_int64),
        ("out_cols", ctypes.c_int64),
        ("has_operand_order", ctypes.c_int32),
        ("has_128x4_scales", ctypes.c_int32),
        ("has_block_major_scales", ctypes.c_int32),
        ("encode_scale", ctypes.c_float),
        ("has_encode_scale_address", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class tw_quantize_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("in", ctypes.c_void_p),
        ("row_index", ctypes.c_void_p),
        ("codes", ctypes.c_void_p),
        ("scales", ctypes.c_void_p),
        ("encode_scale", ctypes.c_void_p),
        ("tensor_scale", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


class tw_moe_weights_source(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("experts", ctypes.c_int64),
        ("gate", ctypes.c_void_p),
        ("up", ctypes.c_void_p),
        ("down", ctypes.c_void_p),
        ("shared_gate", ctypes.c_void_p),
        ("shared_up", ctypes.c_void_p),
        ("shared_down", ctypes.c_void_p),
    ]


class tw_moe_weights_info(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("format", ctypes.c_int32),
        ("activations", ctypes.c_int32),
        ("experts", ctypes.c_int64),
        ("hidden", ctypes.c_int64),
        ("inter", ctypes.c_int64),
        ("has_shared", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class tw_moe_problem(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("tokens", ctypes.c_int64),
        ("topk", ctypes.c_int64),
        ("routing", ctypes.c_int32),
        ("score", ctypes.c_int32),
        ("normalize", ctypes.c_int32),
        ("has_bias", ctypes.c_int32),
        ("route_scale", ctypes.c_double),
        ("vocab", ctypes.c_int64),
        ("logits_stride", ctypes.c_int64),
        ("swiglu_limit", ctypes.c_double),
        ("weight_after_down", ctypes.c_int32),
        ("out_dtype", ctypes.c_int32),
        ("kernel", ctypes.c_char_p),
    ]


class tw_moe_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("x", ctypes.c_void_p),
        ("ids", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("logits", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("token_ids", ctypes.c_void_p),
        ("table", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


class tw_kv_layout(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("format", ctypes.c_int32),
        ("page_size", ctypes.c_int64),
        ("num_pages", ctypes.c_int64),
        ("page_stride_bytes", ctypes.c_int64),
    ]


class tw_sparse_list(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("cache", tw_kv_layout),
        ("topk", ctypes.c_int64),
        ("index_stride", ctypes.c_int64),
        ("lengths", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class tw_sparse_attention_problem(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("batch", ctypes.c_int64),
        ("q_len", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("scale", ctypes.c_double),
        ("window", tw_sparse_list),
        ("compressed", tw_sparse_list),
        ("has_sink", ctypes.c_int32),
        ("has_lse", ctypes.c_int32),
        ("has_max_logits", ctypes.c_int32),
        ("q_strides", tw_strides),
        ("out_strides", tw_strides),
        ("lse_strides", tw_strides),
        ("kernel", ctypes.c_char_p),
        ("positive_empty_lse", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class tw_sparse_list_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("pages", ctypes.c_void_p),
        ("indices", ctypes.c_void_p),
        ("lengths", ctypes.c_void_p),
    ]


class tw_sparse_attention_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("q", ctypes.c_void_p),
        ("window", tw_sparse_list_arguments),
        ("compressed", tw_sparse_list_arguments),
        ("out", ctypes.c_void_p),
        ("lse", ctypes.c_void_p),
        ("max_logits", ctypes.c_void_p),
        ("sink", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("reuses_schedule", ctypes.c_int32),
        ("stream", ctypes.c_void_p),
    ]


class tw_rope_options(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("theta", ctypes.c_double),
        ("has_yarn", ctypes.c_int32),
        ("factor", ctypes.c_double),
        ("original_positions", ctypes.c_double),
        ("beta_fast", ctypes.c_double),
        ("beta_slow", ctypes.c_double),
    ]


class tw_sequence_batch(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("batch", ctypes.c_int64),
        ("q_len", ctypes.c_int64),
        ("offsets", ctypes.c_void_p),
        ("starts", ctypes.c_void_p),
    ]


class tw_sequence_pages(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("pages", ctypes.c_void_p),
        ("blocks", ctypes.c_int64),
        ("stride", ctypes.c_int64),
    ]


class tw_kv_write_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("tokens", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("eps", ctypes.c_double),
        ("q", ctypes.c_void_p),
        ("q_out", ctypes.c_void_p),
        ("q_token_stride", ctypes.c_int64),
        ("q_head_stride", ctypes.c_int64),
        ("kv", ctypes.c_void_p),
        ("kv_dtype", ctypes.c_int32),
        ("kv_stride", ctypes.c_int64),
        ("kv_weight", ctypes.c_void_p),
        ("positions", ctypes.c_void_p),
        ("rope", ctypes.c_void_p),
        ("rope_positions", ctypes.c_int64),
        ("slots", ctypes.c_void_p),
        ("pages", ctypes.c_void_p),
        ("kv_out", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


class tw_kv_read_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("count", ctypes.c_int64),
        ("rows", ctypes.c_void_p),
        ("pages", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("out_stride", ctypes.c_int64),
        ("stream", ctypes.c_void_p),
    ]


class tw_kv_list_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("kind", ctypes.c_int32),
        ("tokens", ctypes.c_int64),
        ("sequences", tw_sequence_batch),
        ("table", tw_sequence_pages),
        ("ring", ctypes.c_int64),
        ("window", ctypes.c_int64),
        ("ratio", ctypes.c_int64),
        ("list_len", ctypes.c_int64),
        ("list_stride", ctypes.c_int64),
        ("lists", ctypes.c_void_p),
        ("lengths", ctypes.c_void_p),
        ("positions", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


class tw_kv_cache_work(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("tokens", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("list_len", ctypes.c_int64),
        ("read_rows", ctypes.c_int64),
    ]


class tw_inverse_rope_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("tokens", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("out", ctypes.c_void_p),
        ("token_stride", ctypes.c_int64),
        ("head_stride", ctypes.c_int64),
        ("positions", ctypes.c_void_p),
        ("rope", ctypes.c_void_p),
        ("rope_positions", ctypes.c_int64),
        ("codes", ctypes.c_void_p),
        ("scales", ctypes.c_void_p),
        ("has_pow2_scales", ctypes.c_int32),
        ("has_block_major_scales", ctypes.c_int32),
        ("has_operand_order", ctypes.c_int32),
        ("stream", ctypes.c_void_p),
    ]


class tw_compressor_problem(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("kind", ctypes.c_int32),
        ("cache", tw_kv_layout),
        ("state_slots", ctypes.c_int64),
        ("ring", ctypes.c_int64),
        ("eps", ctypes.c_double),
    ]


class tw_compressor_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("sequences", tw_sequence_batch),
        ("max_tokens", ctypes.c_int64),
        ("kv", ctypes.c_void_p),
        ("gate", ctypes.c_void_p),
        ("kv_stride", ctypes.c_int64),
        ("gate_stride", ctypes.c_int64),
        ("ape", ctypes.c_void_p),
        ("norm_weight", ctypes.c_void_p),
        ("rope", ctypes.c_void_p),
        ("rope_positions", ctypes.c_int64),
        ("state", ctypes.c_void_p),
        ("state_slots", ctypes.c_void_p),
        ("table", tw_sequence_pages),
        ("pages", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


class tw_indexer_problem(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("format", ctypes.c_int32),
        ("heads", ctypes.c_int64),
        ("topk", ctypes.c_int64),
        ("ratio", ctypes.c_int64),
        ("max_len", ctypes.c_int64),
        ("keys", tw_kv_layout),
        ("rows", tw_kv_layout),
        ("fill_logits", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class tw_indexer_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("tokens", ctypes.c_int64),
        ("sequences", tw_sequence_batch),
        ("positions", ctypes.c_void_p),
        ("lengths", ctypes.c_void_p),
        ("q", ctypes.c_void_p),
        ("q_token_stride", ctypes.c_int64),
        ("q_head_stride", ctypes.c_int64),
        ("weights", ctypes.c_void_p),
        ("weights_dtype", ctypes.c_int32),
        ("weights_stride", ctypes.c_int64),
        ("rope", ctypes.c_void_p),
        ("rope_positions", ctypes.c_int64),
        ("key_pages", ctypes.c_void_p),
        ("key_table", tw_sequence_pages),
        ("row_table", tw_sequence_pages),
        ("rows", ctypes.c_void_p),
        ("rows_stride", ctypes.c_int64),
        ("counts", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("reuses_schedule", ctypes.c_int32),
        ("stream", ctypes.c_void_p),
    ]


class tw_hyper_connection_problem(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("tokens", ctypes.c_int64),
        ("hidden", ctypes.c_int64),
        ("stream_dtype", ctypes.c_int32),
        ("has_merge", ctypes.c_int32),
        ("has_second", ctypes.c_int32),
        ("has_mix", ctypes.c_int32),
        ("is_head", ctypes.c_int32),
        ("result_dtype", ctypes.c_int32),
        ("second_dtype", ctypes.c_int32),
        ("iterations", ctypes.c_int32),
        ("eps", ctypes.c_double),
        ("norm_eps", ctypes.c_double),
    ]


class tw_hyper_connection_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("streams", ctypes.c_void_p),
        ("merged", ctypes.c_void_p),
        ("mix_before", ctypes.c_void_p),
        ("result", ctypes.c_void_p),
        ("second_result", ctypes.c_void_p),
        ("mix_weight", ctypes.c_void_p),
        ("mix_bias", ctypes.c_void_p),
        ("mix_scale", ctypes.c_void_p),
        ("norm_weight", ctypes.c_void_p),
        ("mix", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("workspace", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


class tw_hyper_embedding_problem(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("tokens", ctypes.c_int64),
        ("hidden", ctypes.c_int64),
        ("vocab", ctypes.c_int64),
        ("stream_dtype", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class tw_hyper_embedding_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("table", ctypes.c_void_p),
        ("ids", ctypes.c_void_p),
        ("streams", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


class tw_rms_norm_problem(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("rows", ctypes.c_int64),
        ("cols", ctypes.c_int64),
        ("x_dtype", ctypes.c_int32),
        ("x_stride", ctypes.c_int64),
        ("out_stride", ctypes.c_int64),
        ("has_weight", ctypes.c_int32),
        ("eps", ctypes.c_double),
    ]


class tw_rms_norm_arguments(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("x", ctypes.c_void_p),
        ("weight", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


FUNCTIONS = {
    "tw_reason_set_defaults": (None, [ctypes.POINTER(tw_reason)]),
    "tw_candidate_set_defaults": (None, [ctypes.POINTER(tw_candidate)]),
    "tw_launch_set_defaults": (None, [ctypes.POINTER(tw_launch)]),
    "tw_strides_set_defaults": (None, [ctypes.POINTER(tw_strides)]),
    "tw_fp8_options_set_defaults": (None, [ctypes.POINTER(tw_fp8_options)]),
    "tw_attention_problem_set_defaults": (None, [ctypes.POINTER(tw_attention_problem)]),
    "tw_attention_arguments_set_defaults": (None, [ctypes.POINTER(tw_attention_arguments)]),
    "tw_attention_prepare_problem_set_defaults": (None, [ctypes.POINTER(tw_attention_prepare_problem)]),
    "tw_attention_prepare_arguments_set_defaults": (None, [ctypes.POINTER(tw_attention_prepare_arguments)]),
    "tw_attention_operand_sizes_set_defaults": (None, [ctypes.POINTER(tw_attention_operand_sizes)]),
    "tw_decode_append_set_defaults": (None, [ctypes.POINTER(tw_decode_append)]),
    "tw_attention_decode_problem_set_defaults": (None, [ctypes.POINTER(tw_attention_decode_problem)]),
    "tw_attention_decode_arguments_set_defaults": (None, [ctypes.POINTER(tw_attention_decode_arguments)]),
    "tw_linear_weight_source_set_defaults": (None, [ctypes.POINTER(tw_linear_weight_source)]),
    "tw_linear_weight_info_set_defaults": (None, [ctypes.POINTER(tw_linear_weight_info)]),
    "tw_linear_problem_set_defaults": (None, [ctypes.POINTER(tw_linear_problem)]),
    "tw_linear_arguments_set_defaults": (None, [ctypes.POINTER(tw_linear_arguments)]),
    "tw_quantize_problem_set_defaults": (None, [ctypes.POINTER(tw_quantize_problem)]),
    "tw_quantize_arguments_set_defaults": (None, [ctypes.POINTER(tw_quantize_arguments)]),
    "tw_moe_weights_source_set_defaults": (None, [ctypes.POINTER(tw_moe_weights_source)]),
    "tw_moe_weights_info_set_defaults": (None, [ctypes.POINTER(tw_moe_weights_info)]),
    "tw_moe_problem_set_defaults": (None, [ctypes.POINTER(tw_moe_problem)]),
    "tw_moe_arguments_set_defaults": (None, [ctypes.POINTER(tw_moe_arguments)]),
    "tw_kv_layout_set_defaults": (None, [ctypes.POINTER(tw_kv_layout)]),
    "tw_sparse_list_set_defaults": (None, [ctypes.POINTER(tw_sparse_list)]),
    "tw_sparse_attention_problem_set_defaults": (None, [ctypes.POINTER(tw_sparse_attention_problem)]),
    "tw_sparse_list_arguments_set_defaults": (None, [ctypes.POINTER(tw_sparse_list_arguments)]),
    "tw_sparse_attention_arguments_set_defaults": (None, [ctypes.POINTER(tw_sparse_attention_arguments)]),
    "tw_rope_options_set_defaults": (None, [ctypes.POINTER(tw_rope_options)]),
    "tw_sequence_batch_set_defaults": (None, [ctypes.POINTER(tw_sequence_batch)]),
    "tw_sequence_pages_set_defaults": (None, [ctypes.POINTER(tw_sequence_pages)]),
    "tw_kv_write_arguments_set_defaults": (None, [ctypes.POINTER(tw_kv_write_arguments)]),
    "tw_kv_read_arguments_set_defaults": (None, [ctypes.POINTER(tw_kv_read_arguments)]),
    "tw_kv_list_arguments_set_defaults": (None, [ctypes.POINTER(tw_kv_list_arguments)]),
    "tw_kv_cache_work_set_defaults": (None, [ctypes.POINTER(tw_kv_cache_work)]),
    "tw_inverse_rope_arguments_set_defaults": (None, [ctypes.POINTER(tw_inverse_rope_arguments)]),
    "tw_compressor_problem_set_defaults": (None, [ctypes.POINTER(tw_compressor_problem)]),
    "tw_compressor_arguments_set_defaults": (None, [ctypes.POINTER(tw_compressor_arguments)]),
    "tw_indexer_problem_set_defaults": (None, [ctypes.POINTER(tw_indexer_problem)]),
    "tw_indexer_arguments_set_defaults": (None, [ctypes.POINTER(tw_indexer_arguments)]),
    "tw_hyper_connection_problem_set_defaults": (None, [ctypes.POINTER(tw_hyper_connection_problem)]),
    "tw_hyper_connection_arguments_set_defaults": (None, [ctypes.POINTER(tw_hyper_connection_arguments)]),
    "tw_hyper_embedding_problem_set_defaults": (None, [ctypes.POINTER(tw_hyper_embedding_problem)]),
    "tw_hyper_embedding_arguments_set_defaults": (None, [ctypes.POINTER(tw_hyper_embedding_arguments)]),
    "tw_rms_norm_problem_set_defaults": (None, [ctypes.POINTER(tw_rms_norm_problem)]),
    "tw_rms_norm_arguments_set_defaults": (None, [ctypes.POINTER(tw_rms_norm_arguments)]),
    "tw_last_error": (ctypes.c_char_p, []),
    "tw_version": (ctypes.c_char_p, []),
    "tw_commit": (ctypes.c_char_p, []),
    "tw_device_open": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]),
    "tw_device_close": (None, [ctypes.c_void_p]),
    "tw_device_description": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tw_device_is_simulated": (ctypes.c_int, [ctypes.c_void_p]),
    "tw_device_can_run": (ctypes.c_int, [ctypes.c_void_p]),
    "tw_device_context": (ctypes.c_void_p, [ctypes.c_void_p]),
    "tw_device_driver_function": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]),
    "tw_device_synchronize": (ctypes.c_int, [ctypes.c_void_p]),
    "tw_plan_destroy": (None, [ctypes.c_void_p]),
    "tw_plan_status": (ctypes.c_int, [ctypes.c_void_p]),
    "tw_plan_text": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tw_plan_kernel": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tw_plan_workspace_bytes": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_plan_flops": (ctypes.c_double, [ctypes.c_void_p]),
    "tw_plan_bytes": (ctypes.c_double, [ctypes.c_void_p]),
    "tw_plan_assumption": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tw_plan_num_reasons": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_plan_reason": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(tw_reason)]),
    "tw_plan_num_candidates": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_plan_candidate": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(tw_candidate)]),
    "tw_plan_num_launches": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_plan_launch": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(tw_launch)]),
    "tw_attention_create": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_attention_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_attention_plan": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_attention_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_attention_destroy": (None, [ctypes.c_void_p]),
    "tw_attention_plan_text": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tw_attention_kernel": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tw_attention_workspace_bytes": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_attention_flops": (ctypes.c_double, [ctypes.c_void_p]),
    "tw_attention_run": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_attention_arguments)]),
    "tw_attention_prepare_create": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_attention_prepare_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_attention_prepare_plan": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_attention_prepare_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_attention_prepare_destroy": (None, [ctypes.c_void_p]),
    "tw_attention_prepare_plan_text": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tw_attention_prepare_run": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_attention_prepare_arguments)]),
    "tw_attention_prepare_sizes": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_attention_operand_sizes)]),
    "tw_attention_prepare_signs": (ctypes.c_int, [ctypes.c_uint64, ctypes.c_int64, ctypes.c_void_p]),
    "tw_attention_decode_create": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_attention_decode_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_attention_decode_plan": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_attention_decode_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_attention_decode_destroy": (None, [ctypes.c_void_p]),
    "tw_attention_decode_plan_text": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tw_attention_decode_kernel": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tw_attention_decode_workspace_bytes": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_attention_decode_run": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_attention_decode_arguments)]),
    "tw_linear_weight_prepare": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_linear_weight_source), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_linear_weight_destroy": (None, [ctypes.c_void_p]),
    "tw_linear_weight_bytes": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_linear_create": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_linear_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_linear_plan": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_linear_weight_info), ctypes.POINTER(tw_linear_problem),
        ctypes.POINTER(ctypes.c_void_p)]),
    "tw_linear_destroy": (None, [ctypes.c_void_p]),
    "tw_linear_plan_text": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tw_linear_kernel": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tw_linear_workspace_bytes": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_linear_flops": (ctypes.c_double, [ctypes.c_void_p]),
    "tw_linear_bytes": (ctypes.c_double, [ctypes.c_void_p]),
    "tw_linear_run": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_linear_arguments)]),
    "tw_quantize_create": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_quantize_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_quantize_plan": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_quantize_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_quantize_destroy": (None, [ctypes.c_void_p]),
    "tw_quantize_plan_text": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tw_quantize_workspace_bytes": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_quantize_run": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_quantize_arguments)]),
    "tw_quantize_sizes": (ctypes.c_int, [
        ctypes.POINTER(tw_quantize_problem), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)]),
    "tw_quantize_on_host": (ctypes.c_int, [
        ctypes.POINTER(tw_quantize_problem), ctypes.POINTER(tw_quantize_arguments), ctypes.c_int32]),
    "tw_moe_weights_prepare": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_moe_weights_source), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_moe_weights_destroy": (None, [ctypes.c_void_p]),
    "tw_moe_weights_bytes": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_moe_create": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_moe_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_moe_plan": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_moe_weights_info), ctypes.POINTER(tw_moe_problem),
        ctypes.POINTER(ctypes.c_void_p)]),
    "tw_moe_destroy": (None, [ctypes.c_void_p]),
    "tw_moe_plan_text": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tw_moe_kernel": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tw_moe_workspace_bytes": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_moe_run": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_moe_arguments)]),
    "tw_moe_check": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_moe_arguments)]),
    "tw_sparse_attention_create": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_sparse_attention_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_sparse_attention_plan": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_sparse_attention_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_sparse_attention_destroy": (None, [ctypes.c_void_p]),
    "tw_sparse_attention_plan_text": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tw_sparse_attention_kernel": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tw_sparse_attention_workspace_bytes": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_sparse_attention_run": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_sparse_attention_arguments)]),
    "tw_rope_table": (ctypes.c_int, [
        ctypes.POINTER(tw_rope_options), ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]),
    "tw_kv_cache_create": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_kv_layout), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_kv_cache_plan": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_kv_layout), ctypes.POINTER(tw_kv_cache_work),
        ctypes.POINTER(ctypes.c_void_p)]),
    "tw_kv_cache_destroy": (None, [ctypes.c_void_p]),
    "tw_kv_cache_write": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_kv_write_arguments)]),
    "tw_kv_cache_read": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_kv_read_arguments)]),
    "tw_kv_cache_list": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_kv_list_arguments)]),
    "tw_kv_cache_bytes": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_inverse_rope_create": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
    "tw_inverse_rope_plan": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)]),
    "tw_inverse_rope_destroy": (None, [ctypes.c_void_p]),
    "tw_inverse_rope_run": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_inverse_rope_arguments)]),
    "tw_compressor_create": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_compressor_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_compressor_plan": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_compressor_problem), ctypes.c_int64, ctypes.c_int64,
        ctypes.POINTER(ctypes.c_void_p)]),
    "tw_compressor_destroy": (None, [ctypes.c_void_p]),
    "tw_compressor_state_bytes": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_compressor_cache_bytes": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_compressor_run": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_compressor_arguments)]),
    "tw_indexer_create": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_indexer_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_indexer_plan": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_indexer_problem), ctypes.c_int64, ctypes.c_int64,
        ctypes.POINTER(ctypes.c_void_p)]),
    "tw_indexer_destroy": (None, [ctypes.c_void_p]),
    "tw_indexer_key_cache_bytes": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_indexer_run": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_indexer_arguments)]),
    "tw_indexer_workspace_bytes": (ctypes.c_size_t, [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]),
    "tw_hyper_connection_create": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_hyper_connection_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_hyper_connection_plan": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_hyper_connection_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_hyper_connection_destroy": (None, [ctypes.c_void_p]),
    "tw_hyper_connection_workspace_bytes": (ctypes.c_size_t, [ctypes.c_void_p]),
    "tw_hyper_connection_run": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_hyper_connection_arguments)]),
    "tw_hyper_embedding_create": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_hyper_embedding_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_hyper_embedding_plan": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_hyper_embedding_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_hyper_embedding_destroy": (None, [ctypes.c_void_p]),
    "tw_hyper_embedding_run": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_hyper_embedding_arguments)]),
    "tw_rms_norm_create": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_rms_norm_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_rms_norm_plan": (ctypes.c_int, [
        ctypes.c_void_p, ctypes.POINTER(tw_rms_norm_problem), ctypes.POINTER(ctypes.c_void_p)]),
    "tw_rms_norm_destroy": (None, [ctypes.c_void_p]),
    "tw_rms_norm_run": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(tw_rms_norm_arguments)]),
    "tw_layout_evaluate": (ctypes.c_int, [
        ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]),
    "tw_layout_values": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_int64, ctypes.c_size_t, ctypes.c_void_p]),
    "tw_layout_draw": (ctypes.c_int, [
        ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p,
        ctypes.POINTER(ctypes.c_void_p)]),
    "tw_layout_atoms": (ctypes.c_int, [ctypes.POINTER(ctypes.c_void_p)]),
    "tw_layout_handoff": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]),
    "tw_layout_draw_handoff": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]),
    "tw_formats": (ctypes.c_int, [ctypes.POINTER(ctypes.c_void_p)]),
    "tw_format_encode": (ctypes.c_int, [
        ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]),
    "tw_format_decode": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]),
    "tw_block_quantize_sizes": (ctypes.c_int, [
        ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(ctypes.c_size_t)]),
    "tw_block_quantize": (ctypes.c_int, [
        ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_float, ctypes.c_char_p,
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]),
    "tw_block_dequantize": (ctypes.c_int, [
        ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_float, ctypes.c_int64, ctypes.c_int64,
        ctypes.c_void_p]),
    "tw_codes_pack": (ctypes.c_int, [ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]),
    "tw_codes_unpack": (ctypes.c_int, [ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]),
}
