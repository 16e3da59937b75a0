"""The demo shows what it says, on data that is the same everywhere, and touches no other lake."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.shell import environment
from eventlake.cli import shop

TIMEOUT_S = 180
# What the demo's days hold: lines sent, and what became of them.
SENT, ROWS, DUPLICATES, REJECTED = 878, 876, 1, 1


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def env(place: Path) -> dict[str, str]:
    return environment(place / "env")


@pytest.fixture(scope="module")
def tour(place: Path, env: dict[str, str]) -> str:
    """The demo, beside a lake of the user's that all his settings point to."""
    own = place / "own"
    own.mkdir()
    config = own / "eventlake.toml"
    config.write_text('[lake]\nurl = "lake"\nprofile = "warehouse"\n')
    hers = {"EVENTLAKE_CONFIG": str(config), "EVENTLAKE_LAKE_URL": str(own / "lake")}
    return done(["demo"], place, env | hers)


def done(args: list[str], place: Path, env: dict[str, str], code: int = 0) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "eventlake", *args],
        cwd=place,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
        check=False,
        text=True,
    )
    assert ended.returncode == code, ended.stdout
    assert "Traceback" not in ended.stdout
    return ended.stdout


def test_the_days_of_the_shop_are_the_same_every_time() -> None:
    assert shop.days() == shop.days()
    lines = [line for files in shop.days().values() for lines in files.values() for line in lines]
    assert len(lines) == SENT


def test_only_one_line_of_the_shop_is_no_event() -> None:
    broken = []
    for files in shop.days().values():
        for line in (line for lines in files.values() for line in lines):
            try:
                json.loads(line)
            except ValueError:
                broken.append(line)
    assert len(broken) == REJECTED


@pytest.mark.slow
def test_the_rescued_value_is_shown_with_its_row(tour: str) -> None:
    kept = re.escape('{"properties.price":"n/a"}')
    row = rf"│ {shop.RESCUED} │ Glass pot │ +NULL │ {kept} │"
    assert re.search(row, tour), tour


@pytest.mark.slow
def test_the_message_sent_twice_is_one_row(tour: str) -> None:
    assert re.search(rf"message_id = '{shop.TWICE}'.*?│ +1 │", tour, re.DOTALL), tour


@pytest.mark.slow
def test_the_rejected_line_has_its_reason(tour: str) -> None:
    assert re.search(r"^shop +not_json +segment-stage/shop/", tour, re.MULTILINE), tour


@pytest.mark.slow
def test_the_late_event_lies_where_it_was_received(tour: str) -> None:
    assert re.search(rf"│ {shop.LATE} │ 2026-03-02 22:.*│ 2026-03-03 │ 08", tour), tour


@pytest.mark.slow
def test_the_account_balances(tour: str) -> None:
    account = f"{SENT} read = {ROWS} rows + {DUPLICATES} duplicates + {REJECTED} rejected"
    assert account in tour
    assert f"rows in the 6 tables: {ROWS}" in tour


@pytest.mark.slow
def test_the_three_commands_work_as_printed(tour: str, place: Path, env: dict[str, str]) -> None:
    following = tour.partition("Try next")[2].splitlines()
    commands = [line for line in following if "--config" in line]
    assert len(commands) == 3
    for command in commands:
        ended = subprocess.run(
            ["sh", "-c", command],
            cwd=place,
            env=env,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
            text=True,
        )
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.strip()


@pytest.mark.slow
def test_the_lake_that_the_settings_name_is_left_alone(tour: str, place: Path) -> None:
    assert tour
    assert [path.name for path in (place / "own").iterdir()] == ["eventlake.toml"]


def test_a_folder_in_use_is_refused_and_left_alone(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    said = done(["demo", "--folder", "mine"], tmp_path, env, code=2)
    assert "must be new or empty" in said
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]


@pytest.mark.slow
def test_a_second_demo_takes_the_next_folder(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "demo-lake").mkdir()
    (tmp_path / "demo-lake" / "file").touch()
    said = done(["demo"], tmp_path, env)
    assert "in demo-lake-2." in said
    assert [path.name for path in (tmp_path / "demo-lake").iterdir()] == ["file"]
