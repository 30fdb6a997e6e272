"""Run the tests on every other supported Python that this machine has.

Each gets its own `.venv-3.X` beside the main `.venv`, set up again only when what it is made from changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
SUPPORTED = ("3.10", "3.11", "3.12", "3.13")
SELECTION = "not extended and not strands"

say = partial(print, flush=True)


def main() -> int:
    """Return the exit code: zero unless a Python that was found failed."""
    pythons = [(minor, find_python(minor)) for minor in other_minors()]
    for minor, python in pythons:
        say(f"Python {minor}: {python or 'not found'}")
    outcomes = [(version_of(python), try_out(minor, python)) for minor, python in pythons if python]
    for version, outcome in outcomes:
        say(f"{version:<8} {outcome}")
    return int(any(outcome != "passed" for _, outcome in outcomes))


def other_minors() -> list[str]:
    """The supported versions without the one that runs this."""
    running = "{}.{}".format(*sys.version_info)
    return [minor for minor in SUPPORTED if minor != running]


def find_python(minor: str) -> Path | None:
    """The first interpreter of *minor* that really runs."""
    usable = (python for python in candidates(minor) if (version_of(python) or "").startswith(f"{minor}."))
    return next(usable, None)


def candidates(minor: str) -> Iterator[Path]:
    """Where *minor* may be: by name on PATH, then under pyenv, newest patch first."""
    yield from (Path(folder) / f"python{minor}" for folder in os.get_exec_path())
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    releases = [path for path in (pyenv / "versions").glob(f"{minor}.*") if re.search(r"\.\d+$", path.name)]
    for release in sorted(releases, key=lambda path: int(path.suffix[1:]), reverse=True):
        yield release / "bin" / "python"


def version_of(python: Path) -> str | None:
    """The full version, or None when *python* cannot run or cannot make an environment."""
    # Being there is not enough: a pyenv shim may answer 127, and Debian ships Pythons without ensurepip.
    probe = "import ensurepip, platform; print(platform.python_version())"
    try:
        return subprocess.check_output([python, "-c", probe], stderr=subprocess.DEVNULL, text=True).strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def try_out(minor: str, python: Path) -> str:
    """Set up *minor*, run its tests, and say how it went."""
    venv = ROOT / f".venv-{minor}"
    try:
        set_up(venv, python)
    except subprocess.CalledProcessError:
        return "setup failed"
    say(f"testing on Python {minor} …")
    tests = subprocess.run([venv / "bin" / "pytest", "-q", "-m", SELECTION], cwd=ROOT)
    return "passed" if tests.returncode == 0 else "tests failed"


def set_up(venv: Path, python: Path) -> None:
    """Make *venv* what pyproject.toml and constraints.txt ask for; free when it already is."""
    stamp, wanted = venv / ".ready", fingerprint(python)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    say(f"setting up {venv.name} (once) …")
    if version_of(venv / "bin" / "python") != version_of(python):
        subprocess.run([python, "-m", "venv", "--clear", venv], check=True)
    install(venv)
    stamp.write_text(wanted)


def install(venv: Path) -> None:
    """Install the checkout and its test requirements, all of them pinned, those of its build too."""
    # The same two variables as in the Makefile, for the same reasons.
    pins = {"PIP_CONSTRAINT": CONSTRAINTS.as_uri(), "PIP_BUILD_CONSTRAINT": CONSTRAINTS.as_uri()}
    command = ["-m", "pip", "install", "-qq", "--disable-pip-version-check", "-e", ".[core-test]"]
    subprocess.run([venv / "bin" / "python", *command], cwd=ROOT, env=os.environ | pins, check=True)


def fingerprint(python: Path) -> str:
    """Changes when an environment made from *python* has to be set up again."""
    sources = [bytes(python), (ROOT / "pyproject.toml").read_bytes(), CONSTRAINTS.read_bytes()]
    return hashlib.sha256(b"".join(sources)).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
