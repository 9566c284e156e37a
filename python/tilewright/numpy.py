"""Calls on a GPU with tensors of the host, which op.run() refuses there: each is copied to the device and back.

    tilewright.numpy.run(op, q=q, k=k, v=v, out=out)

For trying things out and for tests: the copies cost more than most kernels. `copied_bytes()` counts them.
"""

from __future__ import annotations

from typing import Any

from . import _core, _staging


def run(op: _core.Operator, method: str = "run", /, **arguments: Any) -> None:
    """op.run(**arguments), or another method of it, with numpy arrays or other memory of the host. Waits until the
    work is done; a workspace that is not given is allocated."""
    _staging.call(op, method, arguments)


def copied_bytes() -> int:
    """To devices and back, since the process began; calls on simulated devices included."""
    return _staging.copied
