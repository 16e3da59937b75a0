"""Settings: precedence by presence, typed errors with the nearest key, one source for the file."""

import re
from pathlib import Path

import pytest

from eventlake.errors import SetupError
from eventlake.settings import (
    Secret,
    Settings,
    Spark,
    Stage,
    StoreSettings,
    Sync,
    check_source_settings,
    for_source,
    known_keys,
    load,
    render_reference,
)


def write(folder: Path, text: str) -> None:
    (folder / "eventlake.toml").write_text(text, encoding="utf-8")


def refusal(folder: Path, text: str = "", env: dict[str, str] | None = None) -> SetupError:
    write(folder, text)
    with pytest.raises(SetupError) as caught:
        load(None, env or {}, {}, cwd=folder)
    return caught.value


def test_without_a_file_all_is_default(tmp_path: Path) -> None:
    settings = load(None, {}, {}, cwd=tmp_path)
    assert settings.lake.url == str(tmp_path / "lake")
    assert (settings.store, settings.stage) == (StoreSettings(), Stage())
    assert (settings.sync, settings.spark) == (Sync(), Spark())


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    write(tmp_path, "[sync]\ndedup_days = 1\nmax_depth = 1\nmax_columns = 100\n")
    env = {"EVENTLAKE_SYNC_MAX_DEPTH": "2", "EVENTLAKE_SYNC_MAX_COLUMNS": "200"}
    sync = load(None, env, {"sync.max_columns": 300}, cwd=tmp_path).sync
    assert (sync.file_mb, sync.dedup_days, sync.max_depth, sync.max_columns) == (128, 1, 2, 300)


def test_presence_counts_not_truth(tmp_path: Path) -> None:
    write(tmp_path, "[sync]\ndedup_days = 3\n[store]\nallow_http = true\nregion = 'x'\n")
    env = {
        "EVENTLAKE_SYNC_DEDUP_DAYS": "0",
        "EVENTLAKE_STORE_ALLOW_HTTP": "false",
        "EVENTLAKE_STORE_REGION": "",
    }
    settings = load(None, env, {}, cwd=tmp_path)
    assert settings.sync.dedup_days == 0
    assert settings.store.allow_http is False
    assert settings.store.region == ""


def test_the_file_is_found_in_a_folder_above_and_its_lake_lies_beside_it(tmp_path: Path) -> None:
    write(tmp_path, "[lake]\nurl = 'data/lake'\n")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert load(None, {}, {}, cwd=below).lake.url == str(tmp_path / "data" / "lake")
    assert load(None, {"EVENTLAKE_LAKE_URL": "x"}, {}, cwd=below).lake.url == str(below / "x")


@pytest.mark.parametrize(
    "url", ["s3://bucket/pre/fix", "abfss://c@a.dfs.core.windows.net/p", "gs://b", "file:///a/b"]
)
def test_urls_stay_as_they_are(tmp_path: Path, url: str) -> None:
    assert load(None, {}, {"lake.url": url}, cwd=tmp_path).lake.url == url


@pytest.mark.parametrize(
    ("text", "env", "named"),
    [
        ("[lke]\n", {}, "did you mean `lake`?"),
        ("[lake]\nurll = 'x'", {}, "did you mean `lake.url`?"),
        (
            "",
            {"EVENTLAKE_SYNC_DEDUPDAYS": "1"},
            "did you mean `EVENTLAKE_SYNC_DEDUP_DAYS`?",
        ),
    ],
)
def test_an_unknown_key_names_the_nearest(
    tmp_path: Path, text: str, env: dict[str, str], named: str
) -> None:
    error = refusal(tmp_path, text, env)
    assert (error.code, error.hint) == ("INVALID_SETTING", named)


@pytest.mark.parametrize(
    ("text", "env", "key"),
    [
        ("[lake]\nurl = 3", {}, "lake.url"),
        ("[lake]\nurl = ''", {}, "lake.url"),
        ("[lake]\nurl = 'hdfs://x/y'", {}, "lake.url"),
        ("[lake]\nurl = 's3://'", {}, "lake.url"),
        ("[lake]\nprofile = 'segmant'", {}, "lake.profile"),
        ("[lake]\ntrack_prefix = 'Track '", {}, "lake.track_prefix"),
        ("lake = 3", {}, "lake"),
        ("[sync]\ndedup_days = '7'", {}, "sync.dedup_days"),
        ("[sync]\ndedup_days = true", {}, "sync.dedup_days"),
        ("[sync]\ndedup_days = -2", {}, "sync.dedup_days"),
        ("[sync]\nrejected_threshold = nan", {}, "sync.rejected_threshold"),
        ("[stage]\nobject_mb = 0", {}, "stage.object_mb"),
        ("[store]\nwrapper = 'no colon'", {}, "store.wrapper"),
        ("[spark]\nconf = {x = 1}", {}, "spark.conf"),
        ("", {"EVENTLAKE_SYNC_DEDUP_DAYS": "many"}, "sync.dedup_days"),
        ("", {"EVENTLAKE_STORE_ALLOW_HTTP": "maybe"}, "store.allow_http"),
        ("", {"EVENTLAKE_SPARK_CONF": "[1]"}, "spark.conf"),
    ],
)
def test_a_wrong_value_names_its_setting(
    tmp_path: Path, text: str, env: dict[str, str], key: str
) -> None:
    error = refusal(tmp_path, text, env)
    assert (error.code, error.on) == ("INVALID_SETTING", key)


@pytest.mark.parametrize("text", ["x", "[lake]\nurl = s3", "[lake]\nurl='a'\nurl='b'"])
def test_what_is_not_toml_names_the_file(tmp_path: Path, text: str) -> None:
    error = refusal(tmp_path, text)
    assert error.code == "INVALID_SETTING"
    assert error.on == str(tmp_path / "eventlake.toml")


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(SetupError) as caught:
        load(tmp_path / "none.toml", {}, {}, cwd=tmp_path)
    assert caught.value.code == "SETTINGS_NOT_FOUND"


def test_variables_of_the_command_line_itself_are_no_settings(tmp_path: Path) -> None:
    env = {"EVENTLAKE_CONFIG": "x", "EVENTLAKE_DEBUG": "1", "PATH": "y"}
    assert load(None, env, {}, cwd=tmp_path).sync == Sync()


def test_free_tables_are_flattened_to_text(tmp_path: Path) -> None:
    write(tmp_path, "[spark.conf]\nspark.executor.memory = '1g'\n'spark.a' = 1\nspark.b = true\n")
    assert dict(load(None, {}, {}, cwd=tmp_path).spark.conf) == {
        "spark.executor.memory": "1g",
        "spark.a": "1",
        "spark.b": "true",
    }


def test_the_reference_explains_every_key_and_holds_the_defaults(tmp_path: Path) -> None:
    text = render_reference()
    for dotted, item in known_keys():
        assert item.metadata["help"] in text, dotted
    write(tmp_path, re.sub(r"(?m)^# (\w+ = )", r"\1", text))
    settings = load(None, {}, {}, cwd=tmp_path)
    assert settings == Settings(lake=settings.lake)
    assert settings.lake.url == str(tmp_path / "lake")


def test_the_reference_sets_what_is_overridden(tmp_path: Path) -> None:
    write(tmp_path, render_reference({"lake.url": 's3://b/"q"', "lake.profile": "warehouse"}))
    lake = load(None, {}, {}, cwd=tmp_path).lake
    assert (lake.url, lake.profile) == ('s3://b/"q"', "warehouse")


def test_a_secret_is_shown_nowhere(tmp_path: Path) -> None:
    env = {"EVENTLAKE_STORE_SECRET_ACCESS_KEY": "hush"}
    settings = load(None, env, {}, cwd=tmp_path)
    assert settings.store.secret_access_key.reveal() == "hush"
    assert "hush" not in f"{settings} {settings!r} {Secret('hush')}"


def test_a_source_may_differ_in_its_sync_and_layout_only(tmp_path: Path) -> None:
    settings = load(None, {}, {}, cwd=tmp_path)
    own = check_source_settings({"sync.dedup_days": "30", "lake.track_prefix": "track_"})
    assert own == {"sync.dedup_days": 30, "lake.track_prefix": "track_"}
    mine = for_source(settings, own)
    assert (mine.sync.dedup_days, mine.lake.track_prefix) == (30, "track_")
    assert mine.lake.url == settings.lake.url
    with pytest.raises(SetupError, match=r"lake\.url"):
        check_source_settings({"lake.url": "elsewhere"})
