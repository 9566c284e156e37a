"""Plug-ins refuse releases that they do not know, and do nothing unless they are asked to."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Any

import pytest

import tilewright
from tilewright.integrations import _versions, vllm

@pytest.mark.parametrize("found", ["0.33.0", "0.33.2.dev5+g1", "0.33"])
def test_known_releases(found: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(_versions, "version", lambda package: found)
    assert _versions.require_release("vllm", ("0.32", "0.33")) == found


@pytest.mark.parametrize("found", ["0.34.0", "0.3.3", "0.330.0", "1.0"])
def test_unknown_releases(found: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(_versions, "version", lambda package: found)
    with pytest.raises(tilewright.Unsupported) as told:
        _versions.require_release("vllm", ("0.33",))
    assert f"vllm {found}" in str(told.value) and "install vllm 0.33.*" in str(told.value)


def test_absent_packages(monkeypatch: Any) -> None:
    def absent(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(_versions, "version", absent)
    with pytest.raises(tilewright.Unsupported, match="vllm is not installed"):
        _versions.require_release("vllm", ("0.33",))


@pytest.mark.parametrize("setting", ["", "0"])
def test_nothing_happens_unasked(setting: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("TILEWRIGHT_VLLM", setting)
    monkeypatch.setitem(sys.modules, "vllm", None)  # an import of it would fail
    vllm.register()


@pytest.mark.parametrize(
    "setting,parts",
    [
        ("1", {"attention", "quantization"}),
        ("attention", {"attention"}),
        ("1, deepseek_v4", {"attention", "quantization", "deepseek_v4"}),
        ("deepseek_v4,deepseek_v4_layers", {"deepseek_v4", "deepseek_v4_layers"}),
    ],
)
def test_what_may_be_asked_for(setting: str, parts: set[str]) -> None:
    assert vllm._wanted(setting) == parts


def test_unknown_parts() -> None:
    with pytest.raises(tilewright.InvalidArgument, match="sampler is nothing that can be registered"):
        vllm._wanted("attention,sampler")


def test_an_unknown_vllm_is_refused(monkeypatch: Any) -> None:
    monkeypatch.setenv("TILEWRIGHT_VLLM", "1")
    monkeypatch.setattr(_versions, "version", lambda package: "0.99.0")
    with pytest.raises(tilewright.Unsupported, match="vllm 0.99.0: Tilewright's plug-in"):
        vllm.register()
