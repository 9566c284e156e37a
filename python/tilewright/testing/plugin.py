"""pytest: kernels of Triton run on a simulated GPU, checked.

    pytest --tilewright-sim=b200 --tilewright-check=all

Each test has a context of its own. A launch with findings raises tilewright.CheckFailed. Programs that open CUDA's
driver by name (numba.cuda, cuda-python) get the simulator, too; what the checks find in their launches fails the
test when it ends.

    @pytest.mark.tilewright(check="all,-race", device="h200", seed=3, timing="late")   for one test
    @pytest.mark.tilewright(check="none")                                              nothing is checked
    def test_it(tilewright_sim): tilewright_sim.reports[-1].by_line()                  what its launches did
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import pathlib
import sys
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..sim import Report

_SETTINGS = ("device", "check", "seed", "timing", "exact_mma")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tilewright", "kernels on a simulated GPU")
    group.addoption("--tilewright-sim", metavar="DEVICE", default=None, help="h200, b200 or b300")
    group.addoption("--tilewright-check", metavar="LIST", default="all",
                    help="mem, init, sync, race, proxy, mma, tmem, strict; all, default, none; all,-race (all)")
    group.addoption("--tilewright-seed", metavar="N", type=int, default=0,
                    help="another order of warps and CTAs (0)")


class Session:
    """What the fixture tilewright_sim gives."""

    def __init__(self, device: str, check: str) -> None:
        self.device, self.check = device, check
        self.reports: list[Report] = []


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "tilewright(device, check, seed, timing, exact_mma): how this test's "
                                       "kernels run on the simulated GPU")
    device = config.getoption("--tilewright-sim")
    if device is not None:
        config.pluginmanager.register(_Runner(config, device), "tilewright-runner")


@pytest.fixture
def tilewright_sim(request: pytest.FixtureRequest) -> Session:
    """The simulated GPU of this test, with the reports of its launches so far."""
    runner = request.config.pluginmanager.get_plugin("tilewright-runner")
    if runner is None:
        pytest.skip("needs --tilewright-sim=DEVICE")
    session: Session = runner.session
    return session


class _Runner:
    """Only there with --tilewright-sim."""

    def __init__(self, config: pytest.Config, device: str) -> None:
        from ..sim._driver import CAPABILITIES, driver, library_path

        self.settings: dict[str, Any] = {"device": device, "check": config.getoption("--tilewright-check"),
                                         "seed": config.getoption("--tilewright-seed")}
        if device not in CAPABILITIES:
            raise pytest.UsageError(f"--tilewright-sim={device}: expected one of {', '.join(CAPABILITIES)}")
        # For those that ask the driver for its first device.
        others = [name for name in CAPABILITIES if name != device]
        os.environ.setdefault("TILEWRIGHT_SIM_DEVICE", ",".join([device, *others]))
        _install_hooks(library_path().parent / "python")
        self.driver = driver(stands_for_cuda=True)
        self.session = Session(device, self.settings["check"])
        self.launches = 0
        self._check(self.settings)

    def _check(self, settings: dict[str, Any]) -> None:
        """Wrong words are told before the first test."""
        from .._errors import Error
        from ..sim import Simulator

        try:
            Simulator(**settings).close()
        except Error as error:
            raise pytest.UsageError(f"--tilewright-check={settings['check']}: {error}") from None

    def pytest_report_header(self) -> str:
        return f"tilewright: kernels run on a simulated {self.settings['device']}, check: {self.settings['check']}"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        settings = dict(self.settings)
        for mark in reversed(list(item.iter_markers("tilewright"))):
            unknown = set(mark.kwargs) - set(_SETTINGS)
            if unknown or mark.args:
                raise pytest.UsageError(f"{item.nodeid}: mark tilewright takes {', '.join(_SETTINGS)}")
            settings.update(mark.kwargs)
        self.session = Session(settings["device"], settings["check"])
        with _triton_driver(settings, self.session), self._other_launches(settings):
            return (yield)

    @contextlib.contextmanager
    def _other_launches(self, settings: dict[str, Any]) -> Iterator[None]:
        """Of programs that use the driver themselves: the same checks, findings kept for the end of the test."""
        self.ordinal = self.driver.ordinal(settings["device"])
        given = {"check": settings["check"], "seed": settings["seed"], "report_only": True, "quiet": True}
        before = self.driver.configure(self.ordinal, given)
        self.driver.text("take_findings", self.ordinal)
        try:
            yield
        finally:
            self.driver.configure(self.ordinal, before)
            self.launches += len(self.session.reports)

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Iterator[Any]:
        from .._errors import CheckFailed
        from ..sim import Finding
        from ..sim._report import check_failed

        __tracebackhide__ = True
        try:
            result = yield
        except CheckFailed as error:
            raise error.with_traceback(_without_ours(error.__traceback__)) from None
        except Exception:
            if said := self.driver.text("take_messages"):
                pyfuncitem.add_report_section("call", "simulator", said)
            raise
        findings = [Finding.of(each) for each in json.loads(self.driver.text("take_findings", self.ordinal))]
        if findings:
            raise check_failed(findings)
        return result

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        count = f"{self.launches} launch{'es' * (self.launches != 1)}"
        terminalreporter.write_line(f"tilewright: {count} of Triton kernels on a simulated "
                                    f"{self.settings['device']}; this says nothing about their time on a GPU")


def _without_ours(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """Without the frames of Triton and of this package: what is left is the test."""
    hidden = ("/triton/runtime/", "/triton/compiler/", "/tilewright/sim/", "/tilewright/testing/")
    kept = []
    while traceback is not None:
        if not any(part in traceback.tb_frame.f_code.co_filename for part in hidden):
            kept.append(traceback)
        traceback = traceback.tb_next
    out = None
    for entry in reversed(kept):
        out = types.TracebackType(out, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return out


@contextlib.contextmanager
def _triton_driver(settings: dict[str, Any], session: Session) -> Iterator[None]:
    """Nothing where Triton is not installed."""
    if importlib.util.find_spec("triton") is None:
        yield
        return
    from ..sim import triton

    with triton.driver(**settings) as active:
        session.reports = active.reports
        yield


def _install_hooks(folder: pathlib.Path) -> None:
    """numba.cuda and CuTe DSL hand over PTX: what `tilewright sim exec` does for a program."""
    if folder.is_dir() and "tilewright_simulator" not in sys.modules:
        sys.path.append(str(folder))
        importlib.import_module("tilewright_simulator")
