"""Releases of other libraries whose insides a plug-in was written against."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from tilewright._errors import Unsupported


def require_release(package: str, known: tuple[str, ...]) -> str:
    """The installed version, if it belongs to one of the releases ("0.33"); else Unsupported."""
    releases = " or ".join(f"{release}.*" for release in known)
    remedy = f"install {package} {releases}, or leave the plug-in off"
    try:
        found = version(package)
    except PackageNotFoundError as error:
        raise Unsupported(f"{package} is not installed; {remedy}") from error
    if not any(found == release or found.startswith(f"{release}.") for release in known):
        raise Unsupported(
            f"{package} {found}: Tilewright's plug-in is written against {releases} and knows no "
            f"other release, whose classes may mean something else; {remedy}"
        )
    return found
