"""Run the tests on this Python, the oldest and the newest supported one, as many suites at once as there are cores.

With --all, they run on every supported Python that this machine has. What passes at both ends and fails in between is
rare, and each Python takes minutes.

The Python that runs this is the main one. It runs every test, in two suites that share the work. Each other one gets
its own `.venv-3.X` beside the main `.venv`, set up again only when what it is made from changed. There the tests
marked `extended` or `strands` are left out, and properties are tried on fewer examples (see `tests/conftest.py`): the
main Python has tried the same code on all of them. What a suite prints is shown as a whole when it ends.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
SUPPORTED = ("3.10", "3.11", "3.12", "3.13")
ON_THE_MAIN_PYTHON = ("extended", "not extended")
ON_THE_OTHERS = "not extended and not strands"
FEWER_EXAMPLES = {"HOLDFAST_EXAMPLES": "fewer", "HOLDFAST_HISTORIES": "2000"}
HANGS_AFTER_SECONDS = 1_500

say = partial(print, flush=True)


def main() -> int:
    """Return the exit code: zero unless a suite failed on a Python that was found."""
    pythons = [(minor, find_python(minor)) for minor in other_minors(every="--all" in sys.argv)]
    for minor, python in pythons:
        say(f"Python {minor}: {python or 'not found'}")
    suites = [
        *(partial(run_tests, Path(sys.prefix), selection, {}) for selection in ON_THE_MAIN_PYTHON),
        *(partial(try_out, minor, python) for minor, python in pythons if python),
    ]
    outcomes = run_all(suites)
    say(*outcomes, sep="\n")
    return int(any(not outcome.endswith(" passed") for outcome in outcomes))


def run_all(suites: Sequence[Callable[[], str]]) -> list[str]:
    """Run the suites, each on a core of its own, the first ones first; return how each of them went."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda suite: suite(), suites))


def other_minors(*, every: bool) -> list[str]:
    """The supported versions, or the oldest and the newest of them, without the one that runs this."""
    running = "{}.{}".format(*sys.version_info)
    return [minor for minor in (SUPPORTED if every else (SUPPORTED[0], SUPPORTED[-1])) if minor != running]


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
        return f"{version_of(python)}: setup failed"
    return run_tests(venv, ON_THE_OTHERS, FEWER_EXAMPLES)


def run_tests(venv: Path, selection: str, environment: dict[str, str]) -> str:
    """Run the tests that *selection* marks, show what they print, and say how it went."""
    name = f"{version_of(venv / 'bin' / 'python')}, {selection}"
    say(f"testing on Python {name} …")
    # Without pytest's cache: of suites that run at once, the last would overwrite what the others noted there.
    options = ["-q", "-p", "no:cacheprovider", "-o", f"faulthandler_timeout={HANGS_AFTER_SECONDS // 4}"]
    printed, outcome = watched([str(venv / "bin" / "pytest"), *options, "-m", selection], os.environ | environment)
    say(f"\n{printed}\n{name}: {outcome}")
    return f"{name}: {outcome}"


def watched(command: list[str], environment: dict[str, str]) -> tuple[str, str]:
    """Run *command*; return all that it printed, and how it went. One that hangs is killed."""
    with TemporaryFile() as output:
        try:
            code = subprocess.run(
                command, cwd=ROOT, env=environment, stdout=output, stderr=output, timeout=HANGS_AFTER_SECONDS
            ).returncode
            outcome = "tests failed" if code else "passed"
        except subprocess.TimeoutExpired:
            outcome = f"still running after {HANGS_AFTER_SECONDS} seconds"
        output.seek(0)
        return output.read().decode(errors="replace"), outcome


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
