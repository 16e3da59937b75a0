"""Unpacks the Go toolchain into a folder: `python3 .ci/go.py FOLDER`. Standard library only."""

import io
import os
import platform
import sys
import urllib.request
import zipfile
from pathlib import Path

GO = "go1.26.8"
CPUS = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def main(folder: Path) -> None:
    """Downloads the toolchain as a module, which is how Go itself switches versions."""
    name = f"v0.0.1-{GO}.{sys.platform}-{CPUS[platform.machine()]}"
    proxy = os.environ.get("GOPROXY", "").split(",")[0]
    base = proxy if proxy.startswith("http") else "https://proxy.golang.org"
    with urllib.request.urlopen(f"{base}/golang.org/toolchain/@v/{name}.zip") as answer:
        archive = zipfile.ZipFile(io.BytesIO(answer.read()))
    for entry in archive.infolist():
        target = folder / entry.filename.removeprefix(f"golang.org/toolchain@{name}/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(archive.read(entry))
        # Modules carry no permissions; the programs are in these folders.
        if {"bin", "tool"} & set(target.parts):
            target.chmod(0o755)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
