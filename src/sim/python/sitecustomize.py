"""Python imports this at start if `tilewright sim exec` put its folder first; then the one it hides, if any."""

import importlib.machinery
import importlib.util
import pathlib
import sys

import tilewright_simulator  # noqa: F401

here = pathlib.Path(__file__).resolve().parent
others = [entry for entry in sys.path if pathlib.Path(entry or ".").resolve() != here]
hidden = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
if hidden is not None and hidden.loader is not None:
    hidden.loader.exec_module(importlib.util.module_from_spec(hidden))
