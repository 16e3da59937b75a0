"""Runs the `sh` blocks of a page and compares what the page shows."""

import os
import re
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 180
_FENCE = re.compile(r"^(<!-- output -->\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "@@@ block"


@dataclass(frozen=True)
class Block:
    """A fenced block; `is_output`: it shows what the `sh` block before it prints."""

    language: str
    text: str
    is_output: bool


def blocks(page: Path) -> list[Block]:
    found = _FENCE.findall(page.read_text("utf-8"))
    return [Block(language, text, bool(mark)) for mark, language, text in found]


def environment(folder: Path) -> dict[str, str]:
    """As of a user who has installed eventlake: it is on the PATH, and nothing is set."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    for name, command in {"eventlake": "-m eventlake", "python": ""}.items():
        shim = programs / name
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n')
        shim.chmod(shim.stat().st_mode | stat.S_IXUSR)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("EVENTLAKE_") or "CACHE" in k}
    source = str(ROOT / "src")
    return kept | {"PATH": f"{programs}:{kept['PATH']}", "PYTHONPATH": source, "COLUMNS": "120"}


def run(scripts: list[str], folder: Path) -> list[str]:
    """What each script prints, run one after the other in one shell that stops at a failure."""
    env = environment(folder / "env")
    work = folder / "work"
    work.mkdir()
    text = "set -e\n" + "".join(f"{script}\necho '{_MARK}'\n" for script in scripts)
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=work,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout.split(f"{_MARK}\n")[:-1]


def same(shown: str, printed: str) -> bool:
    """Whether the output is the one shown; `…` stands for anything within a line."""
    wanted = [line.rstrip() for line in shown.strip().splitlines()]
    got = [line.rstrip() for line in printed.strip().splitlines()]
    patterns = [".*".join(map(re.escape, line.split("…"))) for line in wanted]
    return len(wanted) == len(got) and all(
        re.fullmatch(pattern, line) for pattern, line in zip(patterns, got, strict=True)
    )
