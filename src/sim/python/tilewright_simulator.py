"""Lets Python programs that compile kernels at run time use the simulator: it gets PTX instead of machine code.

`tilewright sim exec -- python program.py` imports this module before the program; without that command,
`import tilewright_simulator` as the first line does the same. It needs lib/sim/python on PYTHONPATH.

A function below changes one library, right after the library's own module was loaded:

    Triton       the step that assembles PTX returns the PTX
    numba-cuda   the step that links PTX returns the PTX
    CuTe DSL     asks the driver, not NVIDIA's runtime, for devices

CuTe DSL is also told to keep its PTX in a folder of this process, where the simulator's driver finds it. Nothing
else of a library is changed, and none is imported that the program does not import.
"""

import atexit
import importlib.abc
import os
import pathlib
import shutil
import sys
import tempfile


def change_triton(module):
    """triton.backends.nvidia.compiler"""
    module.CUDABackend.make_cubin = lambda self, src, *arguments, **options: src.encode()


def change_numba(module):
    """numba.cuda.codegen"""

    def get_cubin(self, cc=None):
        from cuda.core import ObjectCode  # what numba-cuda loads kernels with

        cc = self._ensure_cc(cc)
        if self._linking_files:
            raise RuntimeError(
                "the simulator runs PTX, and linking further files gives machine code: "
                f"{', '.join(map(str, self._linking_files))}; put their device code into the kernel's module")
        return ObjectCode.from_ptx(self.get_asm_str(cc=cc).encode())

    module.CUDACodeLibrary.get_cubin = get_cubin


class DriverForRuntime:
    """What CuTe DSL calls of cuda.bindings.runtime, which has NVIDIA's runtime inside, by the driver's API."""

    def __init__(self, runtime):
        self.runtime = runtime

    def __getattr__(self, name):
        return getattr(self.runtime, name)

    def cudaGetDeviceCount(self):
        from cuda.bindings import driver

        return driver.cuDeviceGetCount()

    def cudaLibraryUnload(self, library):
        from cuda.bindings import driver

        return driver.cuLibraryUnload(driver.CUlibrary(int(library)))


def change_cute(module):
    """cutlass.cutlass_dsl.cuda_jit_executor"""
    module.cuda_runtime = DriverForRuntime(module.cuda_runtime)


CHANGES = {
    "cutlass.cutlass_dsl.cuda_jit_executor": change_cute,
    "triton.backends.nvidia.compiler": change_triton,
    "numba.cuda.codegen": change_numba,
    "numba_cuda.numba.cuda.codegen": change_numba,
}


class ChangingLoader(importlib.abc.Loader):
    """A module's own loader, and then the change."""

    def __init__(self, loader, change):
        self.loader, self.change = loader, change

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        self.change(module)

    def __getattr__(self, name):  # what resource readers and inspect ask a loader for
        return getattr(self.loader, name)


class ChangingFinder(importlib.abc.MetaPathFinder):
    """Finds the modules of CHANGES where the finders behind it find them."""

    def find_spec(self, name, path=None, target=None):
        if name not in CHANGES:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = ChangingLoader(spec.loader, CHANGES[name])
                return spec
        return None


def keep_cute_ptx():
    """In a folder that goes away with the process. The driver reads its variable at each load."""
    if "CUTE_DSL_KEEP_PTX" in os.environ or "TILEWRIGHT_SIM_PTX" in os.environ:
        return
    folder = tempfile.mkdtemp(prefix="tilewright-ptx-")
    owner = os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder, ignore_errors=True))
    os.environ.update(CUTE_DSL_KEEP_PTX="1", CUTE_DSL_DUMP_DIR=folder, TILEWRIGHT_SIM_PTX=folder)


def install():
    """Once for a process. A kernel that is cached as PTX must not be taken for machine code by a run on a GPU."""
    if any(isinstance(finder, ChangingFinder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, ChangingFinder())
    keep_cute_ptx()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "tilewright"
    os.environ.setdefault("TRITON_CACHE_DIR", str(cache / "triton"))
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache / "numba"))


install()
