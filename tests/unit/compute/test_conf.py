from pathlib import Path

import pytest

from eventlake.compute import conf


def effective(master: str, given: dict[str, str], package: str = "/app/src") -> dict[str, str]:
    return conf.effective(
        master, given, usable=2, driver_memory="1g", package=Path(package), folder=Path("/run/x")
    )


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local[*]", "local[2,4]"),
        ("local[3]", "local[3,4]"),
        ("local", "local[1,4]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://host:7077", "spark://host:7077"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
    ],
)
def test_local_tasks_are_tried_again_and_use_the_cores_there_are(
    master: str, expected: str
) -> None:
    assert effective(master, {})["spark.master"] == expected


def test_what_the_user_gives_wins_over_every_default_but_the_master() -> None:
    given = {"spark.ui.enabled": "true", "spark.driver.memory": "4g", "spark.master": "yarn"}
    settings = effective("local[2,1]", given)
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.driver.memory"] == "4g"
    assert settings["spark.master"] == "local[2,1]"


def test_a_cluster_gets_no_loopback_address_and_no_folder_of_this_machine() -> None:
    settings = effective("spark://host:7077", {})
    assert not {"spark.driver.host", "spark.local.dir", "spark.sql.warehouse.dir"} & set(settings)


def test_workers_are_told_where_a_source_checkout_is() -> None:
    assert effective("local", {})["spark.executorEnv.PYTHONPATH"] == "/app/src"


def test_workers_find_an_installed_package_themselves() -> None:
    installed = "/usr/lib/python3.11/site-packages"
    assert "spark.executorEnv.PYTHONPATH" not in effective("local", {}, installed)
