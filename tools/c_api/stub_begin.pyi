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
