"""The command line as a user meets it: output, exit codes, and nothing heavy on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO

import pytest

from archives import events, gz
from services import S3

COMMAND = [sys.executable, "-m", "eventlake"]
# What only commands that need it may import, because each costs a tenth of a second or more.
HEAVY = ("pyarrow", "pyspark", "duckdb", "pandas", "numpy", "rich")


class Cli:
    """Runs `eventlake` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("EVENTLAKE_")}

    def __call__(
        self, *args: str | Path, stdin: bytes = b"", **env: str
    ) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            [*COMMAND, *map(os.fspath, args)],
            cwd=self.folder,
            env=self.env | env,
            input=stdin,
            capture_output=True,
            check=False,
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in err or "--debug" in args, err
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def test_init_writes_one_file_that_works_and_never_overwrites_it(cli: Cli) -> None:
    assert cli("init", "--profile", "warehouse").returncode == 0
    assert [path.name for path in cli.folder.iterdir()] == ["eventlake.toml"]
    text = (cli.folder / "eventlake.toml").read_text()
    assert 'profile = "warehouse"' in text
    again = cli("init", "--lake", "s3://other")
    assert again.returncode == 1
    assert again.stderr.startswith("error SETTINGS_EXIST: ")
    assert "hint: " in again.stderr
    assert (cli.folder / "eventlake.toml").read_text() == text
    assert cli("source", "list").returncode == 0


def test_init_refuses_what_cannot_be_a_lake(cli: Cli) -> None:
    done = cli("init", "--lake", "hdfs://x/y")
    assert (done.returncode, "INVALID_SETTING" in done.stderr) == (1, True)
    assert list(cli.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["sourec"], "Did you mean 'source'?"),
        (["source", "lst"], "Did you mean 'list'?"),
        (["send"], "send --help"),
        (["send", "--source", "web"], "PATH"),
        (["init", "--profile", "x"], "'segment', 'warehouse', 'rudderstack'"),
        (["--nope"], "--help"),
        (["source", "add", "web", "--set", "x"], "KEY=VALUE"),
    ],
)
def test_wrong_use_exits_2_and_says_what_is_right(cli: Cli, args: list[str], hint: str) -> None:
    done = cli(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error WRONG_USAGE: ")
    assert hint in done.stderr


def test_help_names_every_command_and_imports_nothing_heavy(cli: Cli) -> None:
    code = (
        "import sys\nfrom eventlake.cli.main import COMMANDS, main\n"
        "try:\n    main(['--help'])\nexcept SystemExit: pass\n"
        f"print([m for m in {(*HEAVY, 'obstore')!r} if m in sys.modules])\n"
        "print(*COMMANDS)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=cli.env
    )
    *help_text, loaded, commands = done.stdout.splitlines()
    assert loaded == "[]"
    assert all(f"  {name} " in "\n".join(help_text) for name in commands.split())


@pytest.mark.parametrize("command", [["source", "list"], ["send", "--source", "web", "e.json"]])
def test_light_commands_import_nothing_heavy(cli: Cli, command: list[str]) -> None:
    cli("source", "add", "web")
    (cli.folder / "e.json").write_bytes(events(2))
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "eventlake", *command],
        cwd=cli.folder,
        env=cli.env,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not loaded.intersection(HEAVY)


def test_a_source_lives_through_all_its_commands(cli: Cli) -> None:
    added = json.loads(cli("source", "add", "web", "--name", "Wéb", "--json").stdout)
    assert len(added["write_key"]) == 32
    shown = json.loads(cli("source", "show", "web", "--json").stdout)
    assert shown == {key: value for key, value in added.items() if key != "write_key"}
    rotated = json.loads(cli("source", "rotate-key", "web", "--json").stdout)
    assert rotated["write_key"] != added["write_key"]
    assert json.loads(cli("source", "disable", "web", "--json").stdout)["enabled"] is False
    (cli.folder / "e.json").write_bytes(events(1))
    refused = cli("send", "--source", "web", "e.json")
    assert (refused.returncode, "SOURCE_DISABLED" in refused.stderr) == (1, True)
    assert json.loads(cli("source", "enable", added["id"], "--json").stdout)["enabled"] is True
    cli("source", "add", "ios", "--id", "Old1", "--set", "lake.track_prefix=track_")
    copied = json.loads(cli("source", "copy-settings", "ios", "web", "--json").stdout)
    assert copied["settings"] == {"lake.track_prefix": "track_"}
    listed = json.loads(cli("source", "list", "--json").stdout)
    assert [(each["slug"], each["name"]) for each in listed] == [("ios", "ios"), ("web", "Wéb")]
    table = cli("source", "list").stdout.splitlines()
    assert table[0].split() == ["slug", "id", "name", "enabled", "created"]
    assert added["write_key"] not in cli("source", "show", "web").stdout


def test_global_options_may_stand_before_or_after_the_command(cli: Cli) -> None:
    cli("source", "add", "web", "--lake", "here")
    assert "web" in cli("--lake", "here", "source", "list").stdout
    assert "web" in cli("source", "list", EVENTLAKE_LAKE_URL="here").stdout
    (cli.folder / "my.toml").write_text("[lake]\nurl = 'here'")
    assert "web" in cli("source", "list", "--config", "my.toml").stdout
    assert "web" in cli("source", "list", EVENTLAKE_CONFIG="my.toml").stdout
    assert json.loads(cli("source", "list", "--json").stdout) == []


def test_send_says_what_became_of_each_input(cli: Cli) -> None:
    cli("source", "add", "web")
    (cli.folder / "a.json").write_bytes(events(3))
    (cli.folder / "b.json").write_text("[1]")
    (cli.folder / "c.gz").write_bytes(gz(events(3000))[:-500])
    done = cli("send", "--source", "web", "a.json", "b.json", "c.gz", "none", "--json")
    assert done.returncode == 1
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["file"], each["status"]) for each in found] == [
        ("a.json", "staged"),
        ("b.json", "failed"),
        ("c.gz", "staged"),
        ("none", "failed"),
    ]
    assert found[1]["error"]["code"] == "INPUT_IS_JSON_ARRAY"
    assert found[2]["damage"]["reason"] == "the gzip stream ends early"
    for word in (
        "IS_JSON_ARRAY",
        "INPUT_NOT_FOUND",
        "warning: c.gz is damaged",
        "INPUT_INCOMPLETE",
    ):
        assert word in done.stderr
    again = cli("send", "--source", "web", "a.json")
    assert (again.returncode, again.stdout.startswith("already staged  a.json: 3")) == (0, True)


def test_send_reads_standard_input_and_pipes(cli: Cli) -> None:
    cli("source", "add", "web")
    done = cli("send", "--source", "web", "-", stdin=gz(events(5)))
    assert done.stdout.startswith("staged  standard input: 5 lines")
    assert cli("send", "--source", "web", "/dev/stdin", stdin=events(5)).returncode == 0


def test_an_s3_lake_is_reached_through_the_usual_environment_alone(cli: Cli, versitygw: S3) -> None:
    cli.env |= versitygw.env
    cli("init", "--lake", versitygw.bucket() + "/a/prefix")
    cli("source", "add", "web", "--id", "W1")
    done = cli("send", "--source", "web", "-", stdin=events(5))
    assert (done.returncode, done.stdout.startswith("staged")) == (0, True)
    stage = versitygw.folder.glob("*/a/prefix/segment-stage/W1/*.ndjson")
    assert len(list(stage)) == 1
    wrong = cli("source", "list", AWS_SECRET_ACCESS_KEY="x")
    assert wrong.stderr.startswith("error INSUFFICIENT_PERMISSIONS: ")


def test_nothing_to_stage_is_an_error(cli: Cli) -> None:
    cli("source", "add", "web")
    (cli.folder / "e.json").write_bytes(b"")
    done = cli("send", "--source", "web", "e.json")
    assert (done.returncode, "INPUT_EMPTY" in done.stderr) == (1, True)


def test_one_failed_input_alone_is_its_own_error(cli: Cli) -> None:
    cli("source", "add", "web")
    done = cli("send", "--source", "web", "none.json")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0].startswith("error INPUT_NOT_FOUND: ")
    unknown = cli("send", "--source", "wbe", "none.json")
    assert "did you mean `web`?" in unknown.stderr


def test_the_unforeseen_is_one_line_unless_debug_is_on(cli: Cli) -> None:
    lake = {"EVENTLAKE_STORE_WRAPPER": "builtins:len", "EVENTLAKE_LAKE_URL": "x"}
    done = cli("source", "list", **lake)
    assert done.returncode == 1
    assert done.stderr.startswith("error INTERNAL: TypeError: ")
    assert "run again with --debug" in done.stderr
    assert "Traceback" in cli("source", "list", "--debug", **lake).stderr


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_send_quietly(cli: Cli, sent: signal.Signals, code: int) -> None:
    cli("source", "add", "web")
    os.mkfifo(cli.folder / "pipe")
    command = [*COMMAND, "send", "--source", "web", "pipe"]
    err = subprocess.PIPE
    with subprocess.Popen(command, cwd=cli.folder, env=cli.env, stderr=err) as sender:
        with _opened(cli.folder / "pipe") as pipe:
            pipe.write(events(10))
            pipe.flush()
            sender.send_signal(sent)
            assert sender.wait(10) == code
        assert sender.stderr is not None
        assert b"Traceback" not in sender.stderr.read()


def _opened(pipe: Path) -> BinaryIO:
    """The pipe's end for writing, as soon as the reader is there: in the middle of its work."""
    deadline = time.monotonic() + 10
    while True:
        try:
            return os.fdopen(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), "wb")
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def test_a_closed_pipe_is_no_error(cli: Cli) -> None:
    cli("source", "add", "web")
    paths = []
    for number in range(200):
        paths.append(f"{number}.json")
        (cli.folder / paths[-1]).write_bytes(events(1, number))
    with subprocess.Popen(
        [*COMMAND, "send", "--source", "web", *paths],
        cwd=cli.folder,
        env=cli.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as sender:
        assert sender.stdout is not None
        assert sender.stderr is not None
        sender.stdout.close()
        assert sender.stderr.read() == b""
    assert sender.returncode == 141
