# Made by tools/make_c_api.py from tools/c_api; what is not of an operator from tools/c_api/stub_begin.pyi.
import builtins
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

from typing_extensions import Self

from ._plan import Plan

class SupportsDLPack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

class SupportsArrayInterface(Protocol):
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

class HasItemsize(Protocol):
    @property
    def itemsize(self) -> int: ...

class SupportsCudaStream(Protocol):
    def __cuda_stream__(self) -> tuple[int, int]: ...

class TorchStream(Protocol):
    @property
    def cuda_stream(self) -> int: ...

Tensor: TypeAlias = SupportsDLPack | SupportsArrayInterface | builtins.bytes | bytearray | memoryview | int
"""PyTorch, CuPy, JAX, numpy, anything with DLPack or the buffer protocol; or an address."""
Stream: TypeAlias = SupportsCudaStream | TorchStream | int
"""A stream of PyTorch or CuPy, anything with __cuda_stream__, or a CUstream as an int."""
DType: TypeAlias = HasItemsize | type[Any]
"""A type of elements of PyTorch, numpy or ml_dtypes."""

__version__: str
COMMIT: str
CLASSES: tuple[str, ...]

class Device:
    """"auto", "cuda", "cuda:N", "sim:h200", "sim:b200", "sim:b300", and to plan alone "plan:h200", ...;
    "auto" is what TILEWRIGHT_DEVICE says, else a GPU if there is one. The primary context is used: addresses and streams of PyTorch,
    CuPy, ... can be passed as they are."""
    def __new__(cls, spec: str = "auto") -> Self: ...
    @property
    def description(self) -> str:
        """Name, compute capability, SMs, memory, driver."""
        ...
    @property
    def is_simulated(self) -> bool:
        """Whether kernels run on the CPU; their time then says nothing about a GPU."""
        ...
    @property
    def can_run(self) -> bool:
        """Whether kernels can be launched; "plan:h200" plans alone."""
        ...
    @property
    def context(self) -> int:
        """Its CUcontext."""
        ...
    @property
    def spec(self) -> str:
        """"cuda:0", "sim:h200" """
        ...
    @property
    def ordinal(self) -> int | None:
        """N of cuda:N; None if it is simulated."""
        ...
    def synchronize(self) -> None:
        """Waits for all work on the device."""
        ...
    def close(self) -> None:
        """Operators made on the device stay valid."""
        ...
    def driver_function(self, name: str, /) -> int | None:
        """The address of a function of its driver ("cuMemAlloc_v2"), None if the driver lacks it."""
        ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None, /) -> None: ...

class Buffer:
    """Uninitialised memory of a device, contiguous, 256-byte aligned. PyTorch, CuPy, ... take it by
    DLPack if the device is a GPU; it is freed with the last reference."""
    def __new__(cls, device: Device, shape: int | Sequence[int], dtype: str | DType = "u8") -> Self: ...
    @property
    def address(self) -> int:
        """On the device; not for use by the host."""
        ...
    @property
    def nbytes(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str:
        """Its word: "bf16"."""
        ...
    @property
    def device(self) -> Device: ...
    def upload(self, source: Tensor, offset: int = 0) -> None:
        """Copies contiguous host memory (numpy, PyTorch, bytes, ...) to `offset` bytes."""
        ...
    def download(self, offset: int = 0, size: int = -1) -> bytearray:
        """Its bytes; -1: all behind offset."""
        ...
    def fill(self, value: int, /) -> None:
        """Every byte becomes `value`; 0xff makes a NaN of every number."""
        ...
    def numpy(self) -> Any:
        """A copy as a numpy array; bf16 and 8-bit types need ml_dtypes."""
        ...
    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class Operator:
    """What operators and prepared weights have in common."""
    @property
    def problem(self) -> dict[str, Any]:
        """Its members."""
        ...
    @property
    def plan(self) -> Plan:
        """Kernel, workspace_bytes, text."""
        ...
    @property
    def device(self) -> Device: ...
    @property
    def on(self) -> Device | Operator:
        """What it was made on: a device, or weights."""
        ...
    @property
    def handle(self) -> int:
        """Of the C interface."""
        ...

class View(TypedDict):
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    place: str
    is_read_only: bool
    begin: int
    bytes: int
    is_contiguous: bool

def view(tensor: Tensor, /) -> View:
    """Where a tensor of any library lies: strides in elements; begin and bytes of the memory that its
    elements span."""
    ...
def describe(tensor: Tensor, /) -> str:
    """The words of messages: "a Tensor, bf16 (2, 3), strides (3, 1), on cuda:0"."""
    ...
def host_bytes(address: int, bytes: int, /) -> memoryview:
    """Memory of the host."""
    ...
def members(operator: Operator | type[Operator], method: str | None = None, /) -> dict[str, Any]:
    """{name: kind} of the arguments of a method, or of the problem of an operator or its class."""
    ...
def plan(operator: type[Operator], device: Device, inputs: Mapping[str, Any], /) -> dict[str, Any]:
    """What tw_NAME_plan() says. Inputs: {"problem": {...}}, and what else it takes."""
    ...
def read_call(operator: Operator, /, **arguments: Any) -> None:
    """Checks and converts the arguments of its first method, and calls nothing: what a call costs."""
    ...
def library_path() -> str:
    """The libtilewright.so that this module calls."""
    ...
def loaded_libraries() -> list[str]:
    """Every libtilewright.so of this process."""
    ...
def signature(*tensors: Tensor | None) -> builtins.bytes:
    """Device, type, shape and strides of each tensor or None, as a key."""
    ...
class Calls:
    """Calls that were made before, by the devices, types, shapes and strides of their first `tensors` arguments,
    which are tensors or None, and by the options behind them. `plain`: types of tensors; `guards`: functions that
    give 0 or None if nothing but the kernel wants to see a call; `allocate(bytes, like)`: a workspace."""
    is_dry: bool
    """Whether run() stops before the kernel: to measure it."""
    def __new__(cls, tensors: int, limit: int, plain: tuple[type[Any], type[Any]],
                guards: tuple[Callable[[], Any], ...], grad_enabled: Callable[[], bool],
                is_capturing: Callable[[], bool], allocate: Callable[[int, Any], Any]) -> Self: ...
    def run(self, *arguments: Any) -> Any:
        """What add() has made known: its result, or a tuple of them; None for any other call."""
        ...
    def add(self, arguments: tuple[Any, ...], operator: Operator, workspace_bytes: int, names: dict[str, int],
            results: dict[int, Callable[[Any], Any]], members: dict[str, Any], /) -> bool:
        """names: {member: argument}; results: {argument: function(first tensor) that makes it if it is None};
        members: {member: value} of those that are no tensors."""
        ...
    def addresses(self, *arguments: Any) -> dict[str, int] | None:
        """{member: address} that run() would hand over, or None."""
        ...
    def clear(self) -> None:
        """Forgets all calls, and frees workspaces."""
        ...
    def __len__(self) -> int: ...
def torch_open(path: str, to_tensors: Callable[[Any], Any], from_tensor: Callable[[Any], Any],
               examples: tuple[Any, ...], /) -> bool:
    """Finds torch's C interface in libtorch_cpu.so, which is loaded; False: it lacks something. The functions
    turn capsules of at::Tensor* into tensors, and a tensor into one; examples: a tensor of each dtype."""
    ...
def torch_op(library: str, name: str, kinds: str, calls: Calls, kernel: Callable[..., Any],
             rule: Callable[..., Any] | None, /) -> bool:
    """Kernels in C for an operator that is defined: known calls, and kernel(*arguments) for the others, which
    gives (results, None or what makes the next one known). kinds: a letter for each argument. With a rule also
    that for autograd, which calls it, with the same result, where somebody wants to see the call; False: this
    torch does not say where."""
    ...
def attention_signs(seed: int, head_dim: int, /) -> bytearray:
    """The signs of the rotation of AttentionPrepare, for who rotates elsewhere: float32."""
    ...
def rope_table(positions: int, first: int, /, *, theta: float = 10000.0, has_yarn: bool = False, factor: float = 0.0,
               original_positions: float = 0.0, beta_fast: float = 0.0, beta_slow: float = 0.0) -> bytearray:
    """Of each position from `first` on 32 cosines, 32 sines: float32."""
    ...
def quantize_sizes(**problem: Any) -> tuple[int, int]:
    """Bytes of codes and of scales that a problem of Quantize gives."""
    ...
def quantize_on_host(problem: Mapping[str, Any], arguments: Mapping[str, Any], num_threads: int = 0) -> None:
    """As Quantize, of host memory by the host, with the same bytes. num_threads 0: all."""
    ...
def torch_shortcut(calls: Calls, original: Callable[..., Any], /) -> Callable[..., Any]:
    """What takes the place of torch's way to call an operator from Python, `original`, and makes known calls by
    itself; `original` where this torch does not say what has to be asked first."""
    ...
def xla_call(text: str, operator: Operator, names: dict[str, int], inputs: int, outputs: int,
             make: Callable[[int], Operator], on_host: Callable[..., None], /) -> None:
    """Makes a call known to the handlers under a text. names: {member: buffer}, arguments of the program first,
    then results; make(ordinal): the operator of another device; on_host(*addresses): the call with buffers of the
    host."""
    ...
def xla_handlers() -> tuple[Any, Any]:
    """The handlers for GPUs and for the host, as capsules."""
    ...
class Strides(TypedDict, total=False):
    """Elements from one batch, row, head to the next; all 0: contiguous, head_dim innermost.

      batch
      row
      head
    """
    batch: int
    row: int
    head: int

class Fp8Options(TypedDict, total=False):
    """scales: 'tensor', 'head', 'block'; of e4m3 operands
    v_layout: 'rows', 'columns'; of e4m3 operands
    accumulation: 'auto', 'one_level', 'two_level'; whenever a kernel computes in e4m3
    """
    scales: Literal["tensor", "head", "block"]
    v_layout: Literal["rows", "columns"]
    accumulation: Literal["auto", "one_level", "two_level"]

class DecodeAppend(TypedDict, total=False):
    """New keys and values, which are written before attention.

      is_wanted
      rotary: 'none', 'interleaved', 'halves'
      rotary_dim
      max_position: rows of cos and sin
    """
    is_wanted: bool
    rotary: Literal["none", "interleaved", "halves"]
    rotary_dim: int
    max_position: int

class LinearWeightSource(TypedDict, total=False):
    """As tilewright::LinearWeightSource and the activations that the weight is prepared for. Addresses
    are host addresses, or all of the device.

      format: 'bf16', 'fp8', 'mxfp4', 'nvfp4'
      activations: 'bf16', 'fp8', 'block_scaled'
      n: out and in features
      k: out and in features
      values: tensor; [n, k]: bf16, e4m3, or two e2m1 in a byte
      scales: tensor; None for bf16
      scale_dtype: 'f32', 'e8m0'; of fp8
      scale_order: 'plain', '128x4'; of the 4-bit formats
      global_scale: of nvfp4; 0: missing
      is_global_scale_reciprocal
      accepts_any_global_scale
      up_values: tensor; for block-scaled weights: values are a gate's, these those of up; or
          None
      up_scales: tensor; the same for scales
      groups: of rows, each of which takes k columns of x of its own; for tw_linear
    """
    format: Literal["bf16", "fp8", "mxfp4", "nvfp4"]
    activations: Literal["bf16", "fp8", "block_scaled"]
    n: int
    k: int
    values: Tensor | None
    scales: Tensor | None
    scale_dtype: Literal["f32", "e8m0"] | DType
    scale_order: Literal["plain", "128x4"]
    global_scale: float
    is_global_scale_reciprocal: bool
    accepts_any_global_scale: bool
    up_values: Tensor | None
    up_scales: Tensor | None
    groups: int

class KvLayout(TypedDict, total=False):
    """A paged cache; cache.h has the bytes of a page.

      format: 'bf16', 'fp8', 'nvfp4'
      page_size
      num_pages
      page_stride_bytes: 0: that of the format
    """
    format: Literal["bf16", "fp8", "nvfp4"]
    page_size: int
    num_pages: int
    page_stride_bytes: int

class SparseList(TypedDict, total=False):
    """cache: {format, page_size, num_pages, page_stride_bytes}; of one format in both lists
    topk: entries of each query's list; 0: there is no such list
    index_stride: elements from query to query; 0: topk
    lengths: 'full', 'per_batch', 'per_query'
    """
    cache: KvLayout | tuple[Any, ...]
    topk: int
    index_stride: int
    lengths: Literal["full", "per_batch", "per_query"]

class SparseListArguments(TypedDict, total=False):
    """pages: tensor
    indices: int32 tensor
    lengths: int32 tensor
    """
    pages: Tensor | None
    indices: Tensor | None
    lengths: Tensor | None

class SequenceBatch(TypedDict, total=False):
    """batch
    q_len
    offsets: int32 tensor; [batch + 1]
    starts: int32 tensor; [batch]
    """
    batch: int
    q_len: int
    offsets: Tensor | None
    starts: Tensor | None

class SequencePages(TypedDict, total=False):
    """pages: int32 tensor; [batch, blocks]
    blocks
    stride
    """
    pages: Tensor | None
    blocks: int
    stride: int

class LinearWeight(Operator):
    """Checks and reorders the weight and copies it to the device.

      format: 'bf16', 'fp8', 'mxfp4', 'nvfp4'
      activations: 'bf16', 'fp8', 'block_scaled'
      n: out and in features
      k: out and in features
      values: tensor; [n, k]: bf16, e4m3, or two e2m1 in a byte
      scales: tensor; None for bf16
      scale_dtype: 'f32', 'e8m0'; of fp8
      scale_order: 'plain', '128x4'; of the 4-bit formats
      global_scale: of nvfp4; 0: missing
      is_global_scale_reciprocal
      accepts_any_global_scale
      up_values: tensor; for block-scaled weights: values are a gate's, these those of up; or
          None
      up_scales: tensor; the same for scales
      groups: of rows, each of which takes k columns of x of its own; for tw_linear
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        format: Literal["bf16", "fp8", "mxfp4", "nvfp4"] = 'nvfp4',
        activations: Literal["bf16", "fp8", "block_scaled"] = 'bf16',
        n: int = 0,
        k: int = 0,
        values: Tensor | None = None,
        scales: Tensor | None = None,
        scale_dtype: Literal["f32", "e8m0"] | DType = 'f32',
        scale_order: Literal["plain", "128x4"] = 'plain',
        global_scale: float = 0.0,
        is_global_scale_reciprocal: bool = False,
        accepts_any_global_scale: bool = False,
        up_values: Tensor | None = None,
        up_scales: Tensor | None = None,
        groups: int = 1,
    ) -> Self: ...
    @property
    def bytes(self) -> int:
        """Of the prepared weights on the device."""
        ...

class BlockScaledWeight(Operator):
    """Checks a weight, pads and reorders it for Blackwell's tensor cores, and copies it to the
    device; `activations` does not count.

      format: 'bf16', 'fp8', 'mxfp4', 'nvfp4'
      activations: 'bf16', 'fp8', 'block_scaled'
      n: out and in features
      k: out and in features
      values: tensor; [n, k]: bf16, e4m3, or two e2m1 in a byte
      scales: tensor; None for bf16
      scale_dtype: 'f32', 'e8m0'; of fp8
      scale_order: 'plain', '128x4'; of the 4-bit formats
      global_scale: of nvfp4; 0: missing
      is_global_scale_reciprocal
      accepts_any_global_scale
      up_values: tensor; for block-scaled weights: values are a gate's, these those of up; or
          None
      up_scales: tensor; the same for scales
      groups: of rows, each of which takes k columns of x of its own; for tw_linear
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        format: Literal["bf16", "fp8", "mxfp4", "nvfp4"] = 'nvfp4',
        activations: Literal["bf16", "fp8", "block_scaled"] = 'bf16',
        n: int = 0,
        k: int = 0,
        values: Tensor | None = None,
        scales: Tensor | None = None,
        scale_dtype: Literal["f32", "e8m0"] | DType = 'f32',
        scale_order: Literal["plain", "128x4"] = 'plain',
        global_scale: float = 0.0,
        is_global_scale_reciprocal: bool = False,
        accepts_any_global_scale: bool = False,
        up_values: Tensor | None = None,
        up_scales: Tensor | None = None,
        groups: int = 1,
    ) -> Self: ...
    @property
    def bytes(self) -> int:
        """Of the prepared weights on the device."""
        ...

class MoeWeights(Operator):
    """Checks and reorders all experts and copies them to the device.

      experts
      gate: a list of {format, activations, n, k, values, scales, scale_dtype, scale_order,
          global_scale, is_global_scale_reciprocal, accepts_any_global_scale, up_values,
          up_scales, groups}; w1, w3 [inter, hidden], w2 [hidden, inter]
      up: a list of {format, activations, n, k, values, scales, scale_dtype, scale_order,
          global_scale, is_global_scale_reciprocal, accepts_any_global_scale, up_values,
          up_scales, groups}; w1, w3 [inter, hidden], w2 [hidden, inter]
      down: a list of {format, activations, n, k, values, scales, scale_dtype, scale_order,
          global_scale, is_global_scale_reciprocal, accepts_any_global_scale, up_values,
          up_scales, groups}; w1, w3 [inter, hidden], w2 [hidden, inter]
      shared_gate: {format, activations, n, k, values, scales, scale_dtype, scale_order,
          global_scale, is_global_scale_reciprocal, accepts_any_global_scale, up_values,
          up_scales, groups}
      shared_up: {format, activations, n, k, values, scales, scale_dtype, scale_order,
          global_scale, is_global_scale_reciprocal, accepts_any_global_scale, up_values,
          up_scales, groups}
      shared_down: {format, activations, n, k, values, scales, scale_dtype, scale_order,
          global_scale, is_global_scale_reciprocal, accepts_any_global_scale, up_values,
          up_scales, groups}
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        experts: int = 0,
        gate: Sequence[LinearWeightSource] | None = None,
        up: Sequence[LinearWeightSource] | None = None,
        down: Sequence[LinearWeightSource] | None = None,
        shared_gate: LinearWeightSource | Sequence[LinearWeightSource] | None = None,
        shared_up: LinearWeightSource | Sequence[LinearWeightSource] | None = None,
        shared_down: LinearWeightSource | Sequence[LinearWeightSource] | None = None,
    ) -> Self: ...
    @property
    def bytes(self) -> int:
        """Of the prepared weights on the device."""
        ...

class Attention(Operator):
    """Attention over whole sequences.

      dtype: 'bf16', 'f16', 'e4m3'; of q, k and v
      batch
      heads
      kv_heads
      q_len: of every sequence; of the longest if packed
      kv_len: of every sequence; of the longest if packed
      head_dim
      scale: 0: head_dim^-0.5
      causal
      window_left: visible keys before and after; -1: all
      window_right: visible keys before and after; -1: all
      softcap: 0: none; at most 4096
      has_sink
      has_lse
      is_packed: lengths come as cu_q and cu_kv
      total_q: rows of packed tensors
      total_kv: rows of packed tensors
      q_strides: {batch, row, head}
      k_strides: {batch, row, head}
      v_strides: {batch, row, head}
      out_strides: {batch, row, head}
      kernel: None or "auto", or a name such as "k6"
      out_dtype: 'bf16', 'f16', 'absent'; of e4m3 operands; 'absent': bf16, or dtype
      fp8: {scales, v_layout, accumulation}
      has_q_lengths: lengths that only the device knows
      has_kv_lengths: lengths that only the device knows
      page_size: keys; 0: no pages
      num_pages: in all, and of a sequence
      max_pages: in all, and of a sequence
      table_stride: 0: max_pages
      value_dim: of v and out; 0: head_dim
      chunk: keys of a chunk: a query sees those of its own alone; 0: all keys are one
      kv_dtype: 'bf16', 'f16', 'e4m3', 'absent'; of k and v: 'absent' for dtype, or 'e4m3'
          beside queries of 16 bits
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        dtype: Literal["bf16", "f16", "e4m3"] | DType = 'bf16',
        batch: int = 1,
        heads: int = 1,
        kv_heads: int = 1,
        q_len: int = 0,
        kv_len: int = 0,
        head_dim: int = 0,
        scale: float = 0.0,
        causal: bool = False,
        window_left: int = -1,
        window_right: int = -1,
        softcap: float = 0.0,
        has_sink: bool = False,
        has_lse: bool = False,
        is_packed: bool = False,
        total_q: int = 0,
        total_kv: int = 0,
        q_strides: Strides | tuple[Any, ...] = ...,
        k_strides: Strides | tuple[Any, ...] = ...,
        v_strides: Strides | tuple[Any, ...] = ...,
        out_strides: Strides | tuple[Any, ...] = ...,
        kernel: str | None = None,
        out_dtype: Literal["bf16", "f16", "absent"] | DType = 'absent',
        fp8: Fp8Options | tuple[Any, ...] = ...,
        has_q_lengths: bool = False,
        has_kv_lengths: bool = False,
        page_size: int = 0,
        num_pages: int = 0,
        max_pages: int = 0,
        table_stride: int = 0,
        value_dim: int = 0,
        chunk: int = 0,
        kv_dtype: Literal["bf16", "f16", "e4m3", "absent"] | DType = 'absent',
    ) -> Self: ...
    @property
    def plan_text(self) -> str:
        ...
    @property
    def kernel(self) -> str:
        ...
    @property
    def workspace_bytes(self) -> int:
        ...
    @property
    def flops(self) -> float:
        """2 * (head_dim + value_dim) for every visible score."""
        ...
    def run(
        self,
        *,
        q: Tensor | None = None,
        k: Tensor | None = None,
        v: Tensor | None = None,
        out: Tensor | None = None,
        lse: Tensor | None = None,
        sink: Tensor | None = None,
        cu_q: Tensor | None = None,
        cu_kv: Tensor | None = None,
        workspace: Tensor | None = None,
        stream: Stream | None = None,
        q_descale: Tensor | None = None,
        k_descale: Tensor | None = None,
        v_descale: Tensor | None = None,
        v_descale_max: Tensor | None = None,
        q_lengths: Tensor | None = None,
        kv_lengths: Tensor | None = None,
        block_table: Tensor | None = None,
    ) -> None:
        """q: tensor
        k: tensor
        v: tensor
        out: tensor, written
        lse: float32 tensor, written; [batch, heads, q_len]; packed [heads, total_q]
        sink: float32 tensor; [heads]
        cu_q: int32 tensor; [batch + 1]
        cu_kv: int32 tensor; [batch + 1]
        workspace: tensor, written; 256-byte aligned
        stream: None: PyTorch's current stream, else the default one
        q_descale: float32 tensor; scales of e4m3 operands
        k_descale: float32 tensor; scales of e4m3 operands
        v_descale: float32 tensor; scales of e4m3 operands
        v_descale_max: float32 tensor; with scales of blocks: [batch, kv_heads]
        q_lengths: int32 tensor; [batch]
        kv_lengths: int32 tensor; [batch]
        block_table: int32 tensor; [batch, max_pages]
        """
        ...

class AttentionMerge(Operator):
    """Partial results of attention over parts of the keys, merged into that over all of them.

      part_dtype: 'f32', 'bf16', 'f16'; of parts
      out_dtype: 'f32', 'bf16', 'f16'
      parts: 1 to 1024
      batch
      rows
      heads
      head_dim: a multiple of 8 up to 4096
      has_sink
      has_lse
      part_stride: elements from part to part; 0: contiguous
      lse_part_stride: elements from part to part; 0: contiguous
      part_strides: {batch, row, head}
      out_strides: {batch, row, head}
      lse_part_strides: {batch, row, head}; all 0: contiguous, [.., heads, rows]
      lse_strides: {batch, row, head}; all 0: contiguous, [.., heads, rows]
      other_strides: {batch, row, head}; of a second part elsewhere; all 0: as the first
      lse_other_strides: {batch, row, head}; of a second part elsewhere; all 0: as the first
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        part_dtype: Literal["f32", "bf16", "f16"] | DType = 'f32',
        out_dtype: Literal["f32", "bf16", "f16"] | DType = 'bf16',
        parts: int = 2,
        batch: int = 1,
        rows: int = 0,
        heads: int = 1,
        head_dim: int = 0,
        has_sink: bool = False,
        has_lse: bool = False,
        part_stride: int = 0,
        lse_part_stride: int = 0,
        part_strides: Strides | tuple[Any, ...] = ...,
        out_strides: Strides | tuple[Any, ...] = ...,
        lse_part_strides: Strides | tuple[Any, ...] = ...,
        lse_strides: Strides | tuple[Any, ...] = ...,
        other_strides: Strides | tuple[Any, ...] = ...,
        lse_other_strides: Strides | tuple[Any, ...] = ...,
    ) -> Self: ...
    @property
    def plan_text(self) -> str:
        ...
    @property
    def bytes(self) -> float:
        ...
    def run(
        self,
        *,
        part_out: Tensor | None = None,
        part_lse: Tensor | None = None,
        other_out: Tensor | None = None,
        other_lse: Tensor | None = None,
        out: Tensor | None = None,
        lse: Tensor | None = None,
        sink: Tensor | None = None,
        stream: Stream | None = None,
    ) -> None:
        """part_out: tensor; [parts, batch, rows, heads, head_dim], or the first of two
        part_lse: float32 tensor; [parts, batch, heads, rows], or the first of two
        other_out: tensor; of two parts in memory of their own, the second
        other_lse: float32 tensor
        out: tensor, written; [batch, rows, heads, head_dim]
        lse: float32 tensor, written; [batch, heads, rows]
        sink: float32 tensor; [heads]
        stream: None: PyTorch's current stream, else the default one
        """
        ...

class AttentionPrepare(Operator):
    """E4m3 operands of attention: rotated, scaled, quantised.

      dtype: 'bf16', 'f16'; of what is read
      batch
      heads
      kv_heads
      q_len: of every sequence; of the longest if packed
      kv_len: of every sequence; of the longest if packed
      head_dim: 64, 128 or 256
      is_packed: lengths come as cu_q and cu_kv
      total_q: rows of packed tensors
      total_kv: rows of packed tensors
      q_strides: {batch, row, head}
      k_strides: {batch, row, head}
      v_strides: {batch, row, head}
      q8_strides: {batch, row, head}; of the quantised values
      k8_strides: {batch, row, head}; of the quantised values
      v8_strides: {batch, row, head}; of the quantised values
      scales: 'tensor', 'head', 'block'
      v_layout: 'rows', 'columns'
      is_rotated
      sign_seed
      rope: 'none', 'interleaved', 'halves'
      rotary_dim: 0: head_dim
      rope_positions: rows of the table of angles
      has_positions: positions come as lists
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        dtype: Literal["bf16", "f16"] | DType = 'bf16',
        batch: int = 1,
        heads: int = 1,
        kv_heads: int = 1,
        q_len: int = 0,
        kv_len: int = 0,
        head_dim: int = 0,
        is_packed: bool = False,
        total_q: int = 0,
        total_kv: int = 0,
        q_strides: Strides | tuple[Any, ...] = ...,
        k_strides: Strides | tuple[Any, ...] = ...,
        v_strides: Strides | tuple[Any, ...] = ...,
        q8_strides: Strides | tuple[Any, ...] = ...,
        k8_strides: Strides | tuple[Any, ...] = ...,
        v8_strides: Strides | tuple[Any, ...] = ...,
        scales: Literal["tensor", "head", "block"] = 'block',
        v_layout: Literal["rows", "columns"] = 'columns',
        is_rotated: bool = True,
        sign_seed: int = 0,
        rope: Literal["none", "interleaved", "halves"] = 'none',
        rotary_dim: int = 0,
        rope_positions: int = 0,
        has_positions: bool = False,
    ) -> Self: ...
    @property
    def plan_text(self) -> str:
        ...
    def run(
        self,
        *,
        q: Tensor | None = None,
        k: Tensor | None = None,
        v: Tensor | None = None,
        q8: Tensor | None = None,
        k8: Tensor | None = None,
        v8: Tensor | None = None,
        q_descale: Tensor | None = None,
        k_descale: Tensor | None = None,
        v_descale: Tensor | None = None,
        v_descale_max: Tensor | None = None,
        cu_q: Tensor | None = None,
        cu_kv: Tensor | None = None,
        rope: Tensor | None = None,
        q_positions: Tensor | None = None,
        k_positions: Tensor | None = None,
        workspace: Tensor | None = None,
        stream: Stream | None = None,
    ) -> None:
        """q: tensor
        k: tensor
        v: tensor
        q8: tensor, written
        k8: tensor, written
        v8: tensor, written
        q_descale: float32 tensor, written
        k_descale: float32 tensor, written
        v_descale: float32 tensor, written
        v_descale_max: float32 tensor, written; with scales of blocks
        cu_q: int32 tensor; [batch + 1]
        cu_kv: int32 tensor; [batch + 1]
        rope: float32 tensor; [rope_positions, rotary_dim]: cosines, then sines
        q_positions: int32 tensor
        k_positions: int32 tensor
        workspace: tensor, written; 256-byte aligned
        stream: None: PyTorch's current stream, else the default one
        """
        ...
    def sizes(self) -> dict[str, int]:
        """What its results need: bytes of values, numbers of scales, workspace_bytes."""
        ...

class AttentionDecode(Operator):
    """Attention of a few new tokens over long caches.

      dtype: 'bf16', 'f16'; of q, out, new_k and new_v
      kv_dtype: 'bf16', 'f16', 'e4m3'; dtype or 'e4m3'
      batch
      q_len
      heads
      kv_heads
      head_dim
      max_len: without pages
      page_size: 0: no pages
      num_pages
      max_pages
      table_stride: 0: max_pages
      scale: 0: head_dim^-0.5
      causal
      window_left: -1: all
      softcap: 0: none
      descale: 'none', 'tensor', 'head'; of an e4m3 cache
      has_sink
      has_lse
      append: {is_wanted, rotary, rotary_dim, max_position}
      q_strides: {batch, row, head}
      out_strides: {batch, row, head}
      new_k_strides: {batch, row, head}
      new_v_strides: {batch, row, head}
      cache_strides: {batch, row, head}; batch: from page to page
      splits: 0: by the lengths
      kernel: None or "auto", or a name that the plan's text lists
      chunk: keys of a chunk: a query sees those of its own alone; 0: all keys are one
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        dtype: Literal["bf16", "f16"] | DType = 'bf16',
        kv_dtype: Literal["bf16", "f16", "e4m3"] | DType = 'bf16',
        batch: int = 1,
        q_len: int = 1,
        heads: int = 1,
        kv_heads: int = 1,
        head_dim: int = 0,
        max_len: int = 0,
        page_size: int = 0,
        num_pages: int = 0,
        max_pages: int = 0,
        table_stride: int = 0,
        scale: float = 0.0,
        causal: bool = True,
        window_left: int = -1,
        softcap: float = 0.0,
        descale: Literal["none", "tensor", "head"] = 'none',
        has_sink: bool = False,
        has_lse: bool = False,
        append: DecodeAppend | tuple[Any, ...] = ...,
        q_strides: Strides | tuple[Any, ...] = ...,
        out_strides: Strides | tuple[Any, ...] = ...,
        new_k_strides: Strides | tuple[Any, ...] = ...,
        new_v_strides: Strides | tuple[Any, ...] = ...,
        cache_strides: Strides | tuple[Any, ...] = ...,
        splits: int = 0,
        kernel: str | None = None,
        chunk: int = 0,
    ) -> Self: ...
    @property
    def plan_text(self) -> str:
        ...
    @property
    def kernel(self) -> str:
        ...
    @property
    def workspace_bytes(self) -> int:
        ...
    def run(
        self,
        *,
        q: Tensor | None = None,
        k_cache: Tensor | None = None,
        v_cache: Tensor | None = None,
        lengths: Tensor | None = None,
        block_table: Tensor | None = None,
        k_descale: Tensor | None = None,
        v_descale: Tensor | None = None,
        new_k: Tensor | None = None,
        new_v: Tensor | None = None,
        cos: Tensor | None = None,
        sin: Tensor | None = None,
        out: Tensor | None = None,
        lse: Tensor | None = None,
        sink: Tensor | None = None,
        workspace: Tensor | None = None,
        stream: Stream | None = None,
    ) -> None:
        """q: tensor
        k_cache: tensor, written
        v_cache: tensor, written
        lengths: int32 tensor
        block_table: int32 tensor
        k_descale: float32 tensor
        v_descale: float32 tensor
        new_k: tensor
        new_v: tensor
        cos: float32 tensor; with append and rotary pairs [max_position, rotary_dim / 2]
        sin: float32 tensor
        out: tensor, written
        lse: float32 tensor, written
        sink: float32 tensor
        workspace: tensor, written; 256-byte aligned
        stream: None: PyTorch's current stream, else the default one
        """
        ...

class CacheAppend(Operator):
    """New keys and values written to caches, any number of them for any number of queries.

      dtype: 'bf16', 'f16', 'e4m3'; of q, new_k and new_v; 'e4m3': codes, copied as they are
      kv_dtype: 'bf16', 'f16', 'e4m3'; dtype or 'e4m3'
      batch
      kv_heads
      new_len: new tokens of every sequence; 0 if they are packed
      head_dim: multiples of 8; value_dim 0: head_dim
      value_dim: multiples of 8; value_dim 0: head_dim
      is_packed: cu_new says whose the new tokens are
      total_new: rows of packed new_k
      heads: of q; 0: no queries are turned
      q_len: of every sequence; 0 if they are packed
      is_q_packed
      total_q: rows of packed q
      max_len: without pages
      page_size: 0: no pages
      num_pages
      max_pages
      table_stride: 0: max_pages
      descale: 'none', 'tensor', 'head'; of an e4m3 cache
      rotary: 'none', 'interleaved', 'halves'
      rotary_dim: a multiple of 16 up to head_dim
      max_position: rows of cos and sin
      has_rotary_lengths: positions count from rotary_lengths
      is_one_position: all queries of a sequence turn as its first
      has_new_lengths: new_lengths is written
      q_strides: {batch, row, head}
      turned_q_strides: {batch, row, head}
      new_k_strides: {batch, row, head}
      new_v_strides: {batch, row, head}
      k_cache_strides: {batch, row, head}; batch: from page to page
      v_cache_strides: {batch, row, head}; batch: from page to page
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        dtype: Literal["bf16", "f16", "e4m3"] | DType = 'bf16',
        kv_dtype: Literal["bf16", "f16", "e4m3"] | DType = 'bf16',
        batch: int = 1,
        kv_heads: int = 1,
        new_len: int = 0,
        head_dim: int = 0,
        value_dim: int = 0,
        is_packed: bool = False,
        total_new: int = 0,
        heads: int = 0,
        q_len: int = 0,
        is_q_packed: bool = False,
        total_q: int = 0,
        max_len: int = 0,
        page_size: int = 0,
        num_pages: int = 0,
        max_pages: int = 0,
        table_stride: int = 0,
        descale: Literal["none", "tensor", "head"] = 'none',
        rotary: Literal["none", "interleaved", "halves"] = 'none',
        rotary_dim: int = 0,
        max_position: int = 0,
        has_rotary_lengths: bool = False,
        is_one_position: bool = False,
        has_new_lengths: bool = False,
        q_strides: Strides | tuple[Any, ...] = ...,
        turned_q_strides: Strides | tuple[Any, ...] = ...,
        new_k_strides: Strides | tuple[Any, ...] = ...,
        new_v_strides: Strides | tuple[Any, ...] = ...,
        k_cache_strides: Strides | tuple[Any, ...] = ...,
        v_cache_strides: Strides | tuple[Any, ...] = ...,
    ) -> Self: ...
    @property
    def plan_text(self) -> str:
        ...
    @property
    def bytes(self) -> float:
        ...
    def run(
        self,
        *,
        q: Tensor | None = None,
        new_k: Tensor | None = None,
        new_v: Tensor | None = None,
        turned_q: Tensor | None = None,
        k_cache: Tensor | None = None,
        v_cache: Tensor | None = None,
        lengths: Tensor | None = None,
        rotary_lengths: Tensor | None = None,
        new_lengths: Tensor | None = None,
        block_table: Tensor | None = None,
        cu_new: Tensor | None = None,
        cu_q: Tensor | None = None,
        k_descale: Tensor | None = None,
        v_descale: Tensor | None = None,
        cos: Tensor | None = None,
        sin: Tensor | None = None,
        stream: Stream | None = None,
    ) -> None:
        """q: tensor
        new_k: tensor
        new_v: tensor
        turned_q: tensor, written
        k_cache: tensor, written
        v_cache: tensor, written
        lengths: int32 tensor
        rotary_lengths: int32 tensor
        new_lengths: int32 tensor, written
        block_table: int32 tensor
        cu_new: int32 tensor; [batch + 1]
        cu_q: int32 tensor; [batch + 1]
        k_descale: float32 tensor
        v_descale: float32 tensor
        cos: float32 tensor; [max_position, rotary_dim / 2]
        sin: float32 tensor
        stream: None: PyTorch's current stream, else the default one
        """
        ...

class Linear(Operator):
    """Linear layers with weights of 4, 8 or 16 bits.

      m
      x_dtype: 'bf16', 'e4m3'; 'e4m3': with x_scales, for FP8 activations
      activation_scales: 'auto', 'row', 'block'; of FP8 activations; blocks of 128
      out_dtype: 'bf16', 'f32'
      has_bias
      x_stride: elements from row to row; 0: contiguous
      out_stride: elements from row to row; 0: contiguous
      kernel: None or "auto", or a name that the plan's text lists
    """
    def __new__(
        cls,
        weight: LinearWeight,
        /,
        *,
        m: int = 0,
        x_dtype: Literal["bf16", "e4m3"] | DType = 'bf16',
        activation_scales: Literal["auto", "row", "block"] = 'auto',
        out_dtype: Literal["bf16", "f32"] | DType = 'bf16',
        has_bias: bool = False,
        x_stride: int = 0,
        out_stride: int = 0,
        kernel: str | None = None,
    ) -> Self: ...
    @property
    def plan_text(self) -> str:
        ...
    @property
    def kernel(self) -> str:
        ...
    @property
    def workspace_bytes(self) -> int:
        ...
    @property
    def flops(self) -> float:
        """2 m n k."""
        ...
    @property
    def bytes(self) -> float:
        """Weight, x and out, each once."""
        ...
    def run(
        self,
        *,
        x: Tensor | None = None,
        x_scales: Tensor | None = None,
        bias: Tensor | None = None,
        out: Tensor | None = None,
        workspace: Tensor | None = None,
        stream: Stream | None = None,
    ) -> None:
        """x: tensor
        x_scales: float32 tensor
        bias: float32 tensor; [n]
        out: tensor, written
        workspace: tensor, written; 256-byte aligned
        stream: None: PyTorch's current stream, else the default one
        """
        ...

class BlockScaledLinear(Operator):
    """Linear layers on Blackwell's block-scaled tensor cores: activations and weights as they are.

      m
      out_dtype: 'bf16', 'f4', 'e4m3'; 'f4': NVFP4, 'e4m3': MXFP8 of a gate and up, with scales
      x_row_bytes: from row to row; 0: contiguous
      out_row_bytes: from row to row; 0: contiguous
      kernel: None or "auto", or a name that the plan's text lists
      swiglu_limit: of a gate and up; 0: none
    """
    def __new__(
        cls,
        weight: BlockScaledWeight,
        /,
        *,
        m: int = 0,
        out_dtype: Literal["bf16", "f4", "e4m3"] | DType = 'bf16',
        x_row_bytes: int = 0,
        out_row_bytes: int = 0,
        kernel: str | None = None,
        swiglu_limit: float = 0.0,
    ) -> Self: ...
    @property
    def plan_text(self) -> str:
        ...
    @property
    def kernel(self) -> str:
        ...
    @property
    def x_bytes(self) -> int:
        """What a call reads."""
        ...
    @property
    def x_scales_bytes(self) -> int:
        ...
    @property
    def out_bytes(self) -> int:
        """What it writes."""
        ...
    @property
    def out_scales_bytes(self) -> int:
        ...
    @property
    def flops(self) -> float:
        """2 m n k."""
        ...
    @property
    def bytes(self) -> float:
        """Weight, x, out and scales, each once."""
        ...
    def run(
        self,
        *,
        x: Tensor | None = None,
        x_scales: Tensor | None = None,
        out: Tensor | None = None,
        out_scales: Tensor | None = None,
        x_tensor_scale: float = 1.0,
        out_encode_scale: float = 1.0,
        stream: Stream | None = None,
    ) -> None:
        """x: tensor; codes as the weight's format wants them: e2m1 for nvfp4, else e4m3
        x_scales: tensor; e4m3 for 16, or ue8m0 for 32
        out: tensor, written
        out_scales: tensor, written; of 'f4' and 'e4m3'
        x_tensor_scale: scale of x
        out_encode_scale: 'f4': out is stored times this
        stream: None: PyTorch's current stream, else the default one
        """
        ...

class Quantize(Operator):
    """Rows of numbers to codes and block scales.

      format: None: "nvfp4"; "mxfp4", "fp8_1x128", "fp8_token", "fp8_128x128", ...
      scales: nvfp4: None or "nearest", "four_over_six", "exact_nearest", "exact_best"
      dtype: 'bf16', 'f16', 'f32'; of the numbers
      rows
      cols
      row_stride: elements; 0: cols
      has_row_index
      out_rows: 0: rounded up to whole blocks
      out_cols: 0: rounded up to whole blocks
      has_operand_order
      has_128x4_scales
      has_block_major_scales
      encode_scale: nvfp4: G; 0: found from the largest magnitude
      has_encode_scale_address
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        format: str | None = None,
        scales: str | None = None,
        dtype: Literal["bf16", "f16", "f32"] | DType = 'bf16',
        rows: int = 0,
        cols: int = 0,
        row_stride: int = 0,
        has_row_index: bool = False,
        out_rows: int = 0,
        out_cols: int = 0,
        has_operand_order: bool = False,
        has_128x4_scales: bool = False,
        has_block_major_scales: bool = False,
        encode_scale: float = 0.0,
        has_encode_scale_address: bool = False,
    ) -> Self: ...
    @property
    def plan_text(self) -> str:
        ...
    @property
    def workspace_bytes(self) -> int:
        ...
    def run(
        self,
        *,
        in_: Tensor | None = None,
        row_index: Tensor | None = None,
        codes: Tensor | None = None,
        scales: Tensor | None = None,
        encode_scale: Tensor | None = None,
        tensor_scale: Tensor | None = None,
        workspace: Tensor | None = None,
        stream: Stream | None = None,
    ) -> None:
        """in_: tensor
        row_index: int32 tensor; [rows]
        codes: tensor, written
        scales: tensor, written
        encode_scale: float32 tensor
        tensor_scale: float32 tensor, written; nvfp4: where 1 / G goes, or None
        workspace: tensor, written; 256-byte aligned
        stream: None: PyTorch's current stream, else the default one
        """
        ...

class Moe(Operator):
    """Experts chosen for each token, and their sum.

      tokens
      topk
      routing: 'given', 'logits', 'hash', 'grouped', 'contiguous', 'single'
      score: 'softmax', 'sqrt_softplus'
      normalize
      has_bias
      route_scale
      vocab: rows of the table of 'hash'
      logits_stride: elements from token to token of the logits; 0: experts
      swiglu_limit: 0: none
      weight_after_down
      out_dtype: 'bf16', 'f32'
      kernel: None or "auto", or a name that the plan's text lists
      expected_tokens: grouped tokens: of an expert, for the choice of a kernel; 0: as many as
          fit
      all_experts: experts that are routed over, if the weights are a share of them; 0: the
          weights are those of all
      first_expert: of the weights, with all_experts
    """
    def __new__(
        cls,
        weights: MoeWeights,
        /,
        *,
        tokens: int = 0,
        topk: int = 0,
        routing: Literal["given", "logits", "hash", "grouped", "contiguous", "single"] = 'given',
        score: Literal["softmax", "sqrt_softplus"] = 'softmax',
        normalize: bool = True,
        has_bias: bool = False,
        route_scale: float = 1.0,
        vocab: int = 0,
        logits_stride: int = 0,
        swiglu_limit: float = 0.0,
        weight_after_down: bool = False,
        out_dtype: Literal["bf16", "f32"] | DType = 'bf16',
        kernel: str | None = None,
        expected_tokens: int = 0,
        all_experts: int = 0,
        first_expert: int = 0,
    ) -> Self: ...
    @property
    def plan_text(self) -> str:
        ...
    @property
    def kernel(self) -> str:
        ...
    @property
    def workspace_bytes(self) -> int:
        ...
    def run(
        self,
        *,
        x: Tensor | None = None,
        ids: Tensor | None = None,
        weights: Tensor | None = None,
        logits: Tensor | None = None,
        bias: Tensor | None = None,
        token_ids: Tensor | None = None,
        table: Tensor | None = None,
        out: Tensor | None = None,
        workspace: Tensor | None = None,
        stream: Stream | None = None,
        counts: Tensor | None = None,
    ) -> None:
        """x: tensor; bf16 [tokens, hidden]
        ids: int32 tensor; [tokens, topk]
        weights: float32 tensor; [tokens, topk]
        logits: float32 tensor; [tokens, experts]
        bias: float32 tensor; [experts]
        token_ids: int32 tensor; [tokens]
        table: int32 tensor; [vocab, topk]
        out: tensor, written; [tokens, hidden]
        workspace: tensor, written; 256-byte aligned
        stream: None: PyTorch's current stream, else the default one
        counts: int32 tensor; [experts], of grouped tokens
        """
        ...
    def check(
        self,
        *,
        x: Tensor | None = None,
        ids: Tensor | None = None,
        weights: Tensor | None = None,
        logits: Tensor | None = None,
        bias: Tensor | None = None,
        token_ids: Tensor | None = None,
        table: Tensor | None = None,
        out: Tensor | None = None,
        workspace: Tensor | None = None,
        stream: Stream | None = None,
        counts: Tensor | None = None,
    ) -> None:
        """Waits for the stream; InvalidArgument if the last run with these arguments dropped ids that
        are no experts, or that stand twice in a token's row, or if counts of grouped tokens were
        out of range.

          x: tensor; bf16 [tokens, hidden]
          ids: int32 tensor; [tokens, topk]
          weights: float32 tensor; [tokens, topk]
          logits: float32 tensor; [tokens, experts]
          bias: float32 tensor; [experts]
          token_ids: int32 tensor; [tokens]
          table: int32 tensor; [vocab, topk]
          out: tensor, written; [tokens, hidden]
          workspace: tensor, written; 256-byte aligned
          stream: None: PyTorch's current stream, else the default one
          counts: int32 tensor; [experts], of grouped tokens
        """
        ...

class SparseAttention(Operator):
    """Attention over rows of paged caches that lists choose.

      batch
      q_len
      heads
      scale: 0: head_dim^-0.5
      window: {cache, topk, index_stride, lengths}
      compressed: {cache, topk, index_stride, lengths}
      has_sink
      has_lse
      has_max_logits
      q_strides: {batch, row, head}
      out_strides: {batch, row, head}
      lse_strides: {batch, row, head}; of lse and max_logits
      kernel: None or "auto", or a name that the plan's text lists
      positive_empty_lse: 1: lse of a query without a valid row is +inf, not -inf
      head_dim: of q and of the rows as keys: 512, or 576 (DeepSeek-V3)
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        batch: int = 1,
        q_len: int = 1,
        heads: int = 0,
        scale: float = 0.0,
        window: SparseList | tuple[Any, ...] = ...,
        compressed: SparseList | tuple[Any, ...] = ...,
        has_sink: bool = False,
        has_lse: bool = False,
        has_max_logits: bool = False,
        q_strides: Strides | tuple[Any, ...] = ...,
        out_strides: Strides | tuple[Any, ...] = ...,
        lse_strides: Strides | tuple[Any, ...] = ...,
        kernel: str | None = None,
        positive_empty_lse: bool = False,
        head_dim: int = 512,
    ) -> Self: ...
    @property
    def plan_text(self) -> str:
        ...
    @property
    def kernel(self) -> str:
        ...
    @property
    def workspace_bytes(self) -> int:
        ...
    def run(
        self,
        *,
        q: Tensor | None = None,
        window: SparseListArguments | tuple[Any, ...] = ...,
        compressed: SparseListArguments | tuple[Any, ...] = ...,
        out: Tensor | None = None,
        lse: Tensor | None = None,
        max_logits: Tensor | None = None,
        sink: Tensor | None = None,
        workspace: Tensor | None = None,
        reuses_schedule: bool = False,
        stream: Stream | None = None,
    ) -> None:
        """q: tensor; bf16 [batch, q_len, heads, head_dim]
        window: {pages, indices, lengths}
        compressed: {pages, indices, lengths}
        out: tensor, written; bf16 [batch, q_len, heads, 512]
        lse: float32 tensor, written; [batch, q_len, heads]
        max_logits: float32 tensor, written; [batch, q_len, heads]
        sink: float32 tensor; [heads]
        workspace: tensor, written; 256-byte aligned
        reuses_schedule: 1: the workspace holds the schedule of the same lengths
        stream: None: PyTorch's current stream, else the default one
        """
        ...

class LatentAttention(Operator):
    """Attention over all keys, of values that make scores beside narrow keys: MLA, qv.

      dtype: 'bf16', 'f16'
      batch
      q_len
      heads
      kv_heads
      value_dim: 256 or 512
      has_qv: 0: k alone makes scores
      max_len: without pages
      page_size: 8, 16, 32 or a multiple of 64; 0: no pages
      num_pages
      max_pages
      table_stride: 0: max_pages
      scale: 0: (64 + value_dim)^-0.5, without qv 1/8
      causal
      has_sink
      has_lse
      positive_empty_lse: 1: lse of a row without a visible key is +inf, not -inf
      q_strides: {batch, row, head}
      qv_strides: {batch, row, head}
      out_strides: {batch, row, head}
      lse_strides: {batch, row, head}
      k_strides: {batch, row, head}; batch: from page to page
      v_strides: {batch, row, head}; batch: from page to page
      kernel: None or "auto", or a name that the plan's text lists
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        dtype: Literal["bf16", "f16"] | DType = 'bf16',
        batch: int = 1,
        q_len: int = 1,
        heads: int = 1,
        kv_heads: int = 1,
        value_dim: int = 512,
        has_qv: bool = True,
        max_len: int = 0,
        page_size: int = 0,
        num_pages: int = 0,
        max_pages: int = 0,
        table_stride: int = 0,
        scale: float = 0.0,
        causal: bool = True,
        has_sink: bool = False,
        has_lse: bool = False,
        positive_empty_lse: bool = False,
        q_strides: Strides | tuple[Any, ...] = ...,
        qv_strides: Strides | tuple[Any, ...] = ...,
        out_strides: Strides | tuple[Any, ...] = ...,
        lse_strides: Strides | tuple[Any, ...] = ...,
        k_strides: Strides | tuple[Any, ...] = ...,
        v_strides: Strides | tuple[Any, ...] = ...,
        kernel: str | None = None,
    ) -> Self: ...
    @property
    def plan_text(self) -> str:
        ...
    @property
    def kernel(self) -> str:
        ...
    @property
    def workspace_bytes(self) -> int:
        ...
    def run(
        self,
        *,
        q: Tensor | None = None,
        qv: Tensor | None = None,
        k: Tensor | None = None,
        v: Tensor | None = None,
        lengths: Tensor | None = None,
        block_table: Tensor | None = None,
        out: Tensor | None = None,
        lse: Tensor | None = None,
        sink: Tensor | None = None,
        workspace: Tensor | None = None,
        reuses_schedule: bool = False,
        stream: Stream | None = None,
    ) -> None:
        """q: tensor; [batch, q_len, heads, 64]
        qv: tensor; [batch, q_len, heads, value_dim]
        k: tensor
        v: tensor
        lengths: int32 tensor; [batch]
        block_table: int32 tensor; [batch, max_pages]
        out: tensor, written; [batch, q_len, heads, value_dim]
        lse: float32 tensor, written; [batch, heads, q_len]
        sink: float32 tensor; [heads]
        workspace: tensor, written; 256-byte aligned
        reuses_schedule: 1: the workspace holds the schedule of the same lengths
        stream: None: PyTorch's current stream, else the default one
        """
        ...

class MaskLists(Operator):
    """Masks of keys made into lists of them.

      entry: 'bytes', 'bits'
      batch
      rows
      keys
      query_block: rows that share an entry
      key_block: keys that share an entry
      topk: entries of a list
      index_stride: elements from list to list; 0: topk
      mask_batch_bytes: strides; 0: contiguous
      mask_row_bytes: strides; 0: contiguous
      page_size: 0: indices are keys, else slots of a paged cache
      table_stride: elements from batch to batch; 0: contiguous
      has_totals
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        entry: Literal["bytes", "bits"] = 'bytes',
        batch: int = 1,
        rows: int = 0,
        keys: int = 0,
        query_block: int = 1,
        key_block: int = 1,
        topk: int = 0,
        index_stride: int = 0,
        mask_batch_bytes: int = 0,
        mask_row_bytes: int = 0,
        page_size: int = 0,
        table_stride: int = 0,
        has_totals: bool = False,
    ) -> Self: ...
    @property
    def plan_text(self) -> str:
        ...
    @property
    def bytes(self) -> float:
        ...
    def run(
        self,
        *,
        mask: Tensor | None = None,
        indices: Tensor | None = None,
        lengths: Tensor | None = None,
        totals: Tensor | None = None,
        block_table: Tensor | None = None,
        stream: Stream | None = None,
    ) -> None:
        """mask: tensor; [batch, ceil(rows / query_block), ceil(keys / key_block)] entries
        indices: int32 tensor, written; [batch, rows, topk]; -1 behind the last key
        lengths: int32 tensor, written; [batch, rows]: keys of a list, at most topk
        totals: int32 tensor, written; [batch, rows]: keys that the mask shows
        block_table: int32 tensor; [batch, ceil(keys / page_size)]
        stream: None: PyTorch's current stream, else the default one
        """
        ...

class KvCache(Operator):
    """Rows of a paged cache: written, read, listed for attention.

      format: 'bf16', 'fp8', 'nvfp4'
      page_size
      num_pages
      page_stride_bytes: 0: that of the format
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        format: Literal["bf16", "fp8", "nvfp4"] = 'fp8',
        page_size: int = 64,
        num_pages: int = 0,
        page_stride_bytes: int = 0,
    ) -> Self: ...
    def write(
        self,
        *,
        tokens: int = 0,
        heads: int = 0,
        eps: float = 1e-06,
        q: Tensor | None = None,
        q_out: Tensor | None = None,
        q_token_stride: int = 0,
        q_head_stride: int = 0,
        kv: Tensor | None = None,
        kv_dtype: Literal["bf16", "f32"] | DType = 'bf16',
        kv_stride: int = 0,
        kv_weight: Tensor | None = None,
        positions: Tensor | None = None,
        rope: Tensor | None = None,
        rope_positions: int = 0,
        slots: Tensor | None = None,
        pages: Tensor | None = None,
        kv_out: Tensor | None = None,
        stream: Stream | None = None,
    ) -> None:
        """tokens
        heads
        eps
        q: tensor
        q_out: tensor, written
        q_token_stride
        q_head_stride
        kv: tensor
        kv_dtype: 'bf16', 'f32'
        kv_stride
        kv_weight: tensor
        positions: int32 tensor
        rope: float32 tensor
        rope_positions
        slots: int32 tensor
        pages: tensor, written
        kv_out: tensor, written
        stream: None: PyTorch's current stream, else the default one
        """
        ...
    def read(
        self,
        *,
        count: int = 0,
        rows: Tensor | None = None,
        pages: Tensor | None = None,
        out: Tensor | None = None,
        out_stride: int = 0,
        stream: Stream | None = None,
    ) -> None:
        """count
        rows: int32 tensor; [count]
        pages: tensor
        out: tensor, written; bf16 [count, 512]
        out_stride: elements; 0: 512
        stream: None: PyTorch's current stream, else the default one
        """
        ...
    def list(
        self,
        *,
        kind: Literal["write", "window", "entries"] = 'write',
        tokens: int = 0,
        sequences: SequenceBatch | tuple[Any, ...] = ...,
        table: SequencePages | tuple[Any, ...] = ...,
        ring: int = 0,
        window: int = 128,
        ratio: int = 4,
        list_len: int = 1,
        list_stride: int = 0,
        lists: Tensor | None = None,
        lengths: Tensor | None = None,
        positions: Tensor | None = None,
        stream: Stream | None = None,
    ) -> None:
        """kind: 'write', 'window', 'entries'
        tokens
        sequences: {batch, q_len, offsets, starts}
        table: {pages, blocks, stride}
        ring
        window
        ratio
        list_len
        list_stride
        lists: int32 tensor, written
        lengths: int32 tensor, written
        positions: int32 tensor, written
        stream: None: PyTorch's current stream, else the default one
        """
        ...
    def bytes(self) -> int:
        """Of all pages: what the caller allocates."""
        ...

class InverseRope(Operator):
    """Takes the rotation out of what attention gives, and quantises it if codes are wanted."""
    def __new__(
        cls,
        device: Device,
        /,
    ) -> Self: ...
    def run(
        self,
        *,
        tokens: int = 0,
        heads: int = 0,
        out: Tensor | None = None,
        token_stride: int = 0,
        head_stride: int = 0,
        positions: Tensor | None = None,
        rope: Tensor | None = None,
        rope_positions: int = 0,
        codes: Tensor | None = None,
        scales: Tensor | None = None,
        has_pow2_scales: bool = False,
        has_block_major_scales: bool = False,
        has_operand_order: bool = False,
        stream: Stream | None = None,
    ) -> None:
        """tokens
        heads
        out: tensor, written
        token_stride
        head_stride
        positions: int32 tensor
        rope: float32 tensor
        rope_positions
        codes: tensor, written
        scales: tensor, written
        has_pow2_scales
        has_block_major_scales
        has_operand_order
        stream: None: PyTorch's current stream, else the default one
        """
        ...

class Compressor(Operator):
    """Pools tokens to rows of a compressed cache, or to keys of the indexer.

      kind: 'csa', 'hca', 'index_fp8', 'index_mxfp4'
      cache: {format, page_size, num_pages, page_stride_bytes}
      state_slots
      ring
      eps
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        kind: Literal["csa", "hca", "index_fp8", "index_mxfp4"] = 'csa',
        cache: KvLayout | tuple[Any, ...] = ...,
        state_slots: int = 0,
        ring: int = 0,
        eps: float = 1e-06,
    ) -> Self: ...
    @property
    def state_bytes(self) -> int:
        ...
    @property
    def cache_bytes(self) -> int:
        ...
    def run(
        self,
        *,
        sequences: SequenceBatch | tuple[Any, ...] = ...,
        max_tokens: int = 1,
        kv: Tensor | None = None,
        gate: Tensor | None = None,
        kv_stride: int = 0,
        gate_stride: int = 0,
        ape: Tensor | None = None,
        norm_weight: Tensor | None = None,
        rope: Tensor | None = None,
        rope_positions: int = 0,
        state: Tensor | None = None,
        state_slots: Tensor | None = None,
        table: SequencePages | tuple[Any, ...] = ...,
        pages: Tensor | None = None,
        stream: Stream | None = None,
    ) -> None:
        """sequences: {batch, q_len, offsets, starts}
        max_tokens
        kv: float32 tensor
        gate: float32 tensor
        kv_stride
        gate_stride
        ape: float32 tensor
        norm_weight: tensor
        rope: float32 tensor
        rope_positions
        state: tensor, written
        state_slots: int32 tensor
        table: {pages, blocks, stride}
        pages: tensor, written
        stream: None: PyTorch's current stream, else the default one
        """
        ...

class Indexer(Operator):
    """Which compressed entries a token attends to.

      format: 'mxfp4', 'fp8'
      heads
      topk
      ratio
      max_len
      keys: {format, page_size, num_pages, page_stride_bytes}; its format does not count
      rows: {format, page_size, num_pages, page_stride_bytes}; only sizes count; num_pages 0:
          rows are entries
      fill_logits
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        format: Literal["mxfp4", "fp8"] = 'mxfp4',
        heads: int = 64,
        topk: int = 512,
        ratio: int = 4,
        max_len: int = 0,
        keys: KvLayout | tuple[Any, ...] = ...,
        rows: KvLayout | tuple[Any, ...] = ...,
        fill_logits: bool = False,
    ) -> Self: ...
    @property
    def key_cache_bytes(self) -> int:
        ...
    def run(
        self,
        *,
        tokens: int = 0,
        sequences: SequenceBatch | tuple[Any, ...] = ...,
        positions: Tensor | None = None,
        lengths: Tensor | None = None,
        q: Tensor | None = None,
        q_token_stride: int = 0,
        q_head_stride: int = 0,
        weights: Tensor | None = None,
        weights_dtype: Literal["bf16", "f32"] | DType = 'bf16',
        weights_stride: int = 0,
        rope: Tensor | None = None,
        rope_positions: int = 0,
        key_pages: Tensor | None = None,
        key_table: SequencePages | tuple[Any, ...] = ...,
        row_table: SequencePages | tuple[Any, ...] = ...,
        rows: Tensor | None = None,
        rows_stride: int = 0,
        counts: Tensor | None = None,
        workspace: Tensor | None = None,
        reuses_schedule: bool = False,
        stream: Stream | None = None,
    ) -> None:
        """tokens
        sequences: {batch, q_len, offsets, starts}; starts are not used
        positions: int32 tensor
        lengths: int32 tensor; None: by the positions
        q: tensor
        q_token_stride
        q_head_stride
        weights: tensor
        weights_dtype: 'bf16', 'f32'
        weights_stride
        rope: float32 tensor
        rope_positions
        key_pages: tensor
        key_table: {pages, blocks, stride}
        row_table: {pages, blocks, stride}
        rows: int32 tensor, written
        rows_stride
        counts: int32 tensor, written; or None
        workspace: tensor, written
        reuses_schedule
        stream: None: PyTorch's current stream, else the default one
        """
        ...
    def workspace_bytes(self, tokens: int, batch: int) -> int:
        """Of a call; 0 if a number makes no sense."""
        ...

class IndexerLogits(Operator):
    """Logits of the indexer from queries and keys that are quantised already.

      format: 'fp8', 'mxfp4'
      heads
      max_len: most logits of a token
      keys: {format, page_size, num_pages, page_stride_bytes}; its format does not count;
          num_pages 0: keys have no pages
      is_compressed: without pages: column 0 is the first key that a token sees
      fill_logits: with -inf, where there is no key
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        format: Literal["fp8", "mxfp4"] = 'fp8',
        heads: int = 64,
        max_len: int = 0,
        keys: KvLayout | tuple[Any, ...] = ...,
        is_compressed: bool = False,
        fill_logits: bool = False,
    ) -> Self: ...
    def run(
        self,
        *,
        tokens: int = 0,
        sequences: SequenceBatch | tuple[Any, ...] = ...,
        starts: Tensor | None = None,
        ends: Tensor | None = None,
        q: Tensor | None = None,
        q_scales: Tensor | None = None,
        weights: Tensor | None = None,
        keys: Tensor | None = None,
        key_scales: Tensor | None = None,
        num_keys: int = 0,
        key_table: SequencePages | tuple[Any, ...] = ...,
        logits: Tensor | None = None,
        logits_stride: int = 0,
        columns: int = 0,
        workspace: Tensor | None = None,
        reuses_schedule: bool = False,
        stream: Stream | None = None,
    ) -> None:
        """tokens
        sequences: {batch, q_len, offsets, starts}; with pages; starts are not used
        starts: int32 tensor; [tokens], without pages; None: all 0
        ends: int32 tensor; [tokens]
        q: tensor; codes [tokens, heads, 128 or 64 bytes]
        q_scales: tensor; MXFP4: ue8m0 [tokens, heads, 4]
        weights: float32 tensor; [tokens, heads]
        keys: tensor; pages, or codes [num_keys, 128 or 64 bytes]
        key_scales: tensor; without pages: [num_keys] of 4 bytes
        num_keys: without pages
        key_table: {pages, blocks, stride}; with pages
        logits: float32 tensor, written; [tokens, columns]
        logits_stride: elements; 0: columns
        columns: 0: max_len
        workspace: tensor, written
        reuses_schedule
        stream: None: PyTorch's current stream, else the default one
        """
        ...
    def workspace_bytes(self, tokens: int, batch: int) -> int:
        """Of a call; 0 if a number makes no sense. Without pages the batch does not count."""
        ...

class HyperConnection(Operator):
    """From one sub-layer to the next through four streams.

      tokens
      hidden
      stream_dtype: 'bf16', 'f32'
      has_merge
      has_second
      has_mix
      is_head
      result_dtype: 'bf16', 'f32'
      second_dtype: 'bf16', 'f32'
      iterations
      eps
      norm_eps
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        tokens: int = 0,
        hidden: int = 0,
        stream_dtype: Literal["bf16", "f32"] | DType = 'bf16',
        has_merge: bool = False,
        has_second: bool = False,
        has_mix: bool = True,
        is_head: bool = False,
        result_dtype: Literal["bf16", "f32"] | DType = 'bf16',
        second_dtype: Literal["bf16", "f32"] | DType = 'bf16',
        iterations: int = 20,
        eps: float = 1e-06,
        norm_eps: float = 1e-06,
    ) -> Self: ...
    @property
    def workspace_bytes(self) -> int:
        ...
    def run(
        self,
        *,
        streams: Tensor | None = None,
        merged: Tensor | None = None,
        mix_before: Tensor | None = None,
        result: Tensor | None = None,
        second_result: Tensor | None = None,
        mix_weight: Tensor | None = None,
        mix_bias: Tensor | None = None,
        mix_scale: Tensor | None = None,
        norm_weight: Tensor | None = None,
        mix: Tensor | None = None,
        out: Tensor | None = None,
        workspace: Tensor | None = None,
        stream: Stream | None = None,
    ) -> None:
        """streams: tensor
        merged: tensor, written
        mix_before: float32 tensor
        result: tensor
        second_result: tensor
        mix_weight: float32 tensor
        mix_bias: float32 tensor
        mix_scale: float32 tensor
        norm_weight: tensor
        mix: float32 tensor, written
        out: tensor, written
        workspace: tensor, written
        stream: None: PyTorch's current stream, else the default one
        """
        ...

class HyperEmbedding(Operator):
    """Rows of a table into the streams.

      tokens
      hidden
      vocab
      stream_dtype: 'bf16', 'f32'
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        tokens: int = 0,
        hidden: int = 0,
        vocab: int = 0,
        stream_dtype: Literal["bf16", "f32"] | DType = 'bf16',
    ) -> Self: ...
    def run(
        self,
        *,
        table: Tensor | None = None,
        ids: Tensor | None = None,
        streams: Tensor | None = None,
        stream: Stream | None = None,
    ) -> None:
        """table: tensor; bf16 [vocab, hidden]
        ids: int32 tensor; [tokens]
        streams: tensor, written; [tokens, 4, hidden]
        stream: None: PyTorch's current stream, else the default one
        """
        ...

class RmsNorm(Operator):
    """Rows divided by their root mean square.

      rows
      cols
      x_dtype: 'bf16', 'f32'
      x_stride
      out_stride
      has_weight
      eps
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        rows: int = 0,
        cols: int = 0,
        x_dtype: Literal["bf16", "f32"] | DType = 'bf16',
        x_stride: int = 0,
        out_stride: int = 0,
        has_weight: bool = True,
        eps: float = 1e-06,
    ) -> Self: ...
    def run(
        self,
        *,
        x: Tensor | None = None,
        weight: Tensor | None = None,
        out: Tensor | None = None,
        stream: Stream | None = None,
    ) -> None:
        """x: tensor; [rows, cols]
        weight: tensor; bf16 [cols]
        out: tensor, written; bf16 [rows, cols]
        stream: None: PyTorch's current stream, else the default one
        """
        ...

class Sample(Operator):
    """The next tokens of rows of logits.

      rows
      vocab
      logits_dtype: 'f32', 'bf16'
      parts: arrays that divide the vocabulary
      row_stride: elements; 0: vocab / parts, rounded up to a multiple of 4
      part_stride: elements; 0: rows * row_stride
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        rows: int = 0,
        vocab: int = 0,
        logits_dtype: Literal["f32", "bf16"] | DType = 'f32',
        parts: int = 1,
        row_stride: int = 0,
        part_stride: int = 0,
    ) -> Self: ...
    @property
    def plan_text(self) -> str:
        ...
    @property
    def kernel(self) -> str:
        ...
    def run(
        self,
        *,
        logits: Tensor | None = None,
        temperature: Tensor | None = None,
        top_k: Tensor | None = None,
        top_p: Tensor | None = None,
        min_p: Tensor | None = None,
        seeds: Tensor | None = None,
        positions: Tensor | None = None,
        ids: Tensor | None = None,
        log_probs: Tensor | None = None,
        stream: Stream | None = None,
    ) -> None:
        """logits: tensor; [parts, rows, vocab / parts]
        temperature: float32 tensor; [rows]; 0: the token with the largest logit. Default 0
        top_k: int32 tensor; [rows]; 0: all. Default 0
        top_p: float32 tensor; [rows]; above 0. Default 1
        min_p: float32 tensor; [rows]; at most 1. Default 0
        seeds: tensor; [rows, 2]. Default 0
        positions: int32 tensor; [rows]; below 0: the row takes no part. Default 0
        ids: int32 tensor, written; [rows]
        log_probs: float32 tensor, written; [rows]; None: not wanted
        stream: None: PyTorch's current stream, else the default one
        """
        ...

class GatherRows(Operator):
    """Rows of a matrix that a list chooses; zeros for an index outside of it.

      rows
      x_rows
      cols: a multiple of 8
    """
    def __new__(
        cls,
        device: Device,
        /,
        *,
        rows: int = 0,
        x_rows: int = 0,
        cols: int = 0,
    ) -> Self: ...
    @property
    def plan_text(self) -> str:
        ...
    def run(
        self,
        *,
        x: Tensor | None = None,
        index: Tensor | None = None,
        out: Tensor | None = None,
        stream: Stream | None = None,
    ) -> None:
        """x: tensor; bf16 [x_rows, cols]
        index: int32 tensor; [rows]
        out: tensor, written; bf16 [rows, cols]
        stream: None: PyTorch's current stream, else the default one
        """
        ...

__all__ = [
    "Device",
    "Buffer",
    "Operator",
    "attention_signs",
    "quantize_on_host",
    "quantize_sizes",
    "rope_table",
    "LinearWeight",
    "BlockScaledWeight",
    "MoeWeights",
    "Attention",
    "AttentionMerge",
    "AttentionPrepare",
    "AttentionDecode",
    "CacheAppend",
    "Linear",
    "BlockScaledLinear",
    "Quantize",
    "Moe",
    "SparseAttention",
    "LatentAttention",
    "MaskLists",
    "KvCache",
    "InverseRope",
    "Compressor",
    "Indexer",
    "IndexerLogits",
    "HyperConnection",
    "HyperEmbedding",
    "RmsNorm",
    "Sample",
    "GatherRows",
]
