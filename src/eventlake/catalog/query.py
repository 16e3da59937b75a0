"""SQL over the lake with DuckDB.

A schema per source, a view per table, the ledger's files behind each.

A view always has the table's full schema, whichever files it reads, and the partition columns,
which prune the files. All bytes come through the lake's store. No query engine of ours: the SQL
is DuckDB's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from eventlake.catalog.files import LakeFiles, location
from eventlake.errors import InputError
from eventlake.ledger.state import State
from eventlake.model.layout import PartitionLayout
from eventlake.model.schema import Column
from eventlake.model.types import ColumnType
from eventlake.store import Store

# Statements that look at the schemas themselves need all views, others only those they name.
_LOOKS_AROUND = re.compile(
    r"\b(information_schema|duckdb_\w+|pg_catalog|show|describe|summarize)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Database:
    """A source's tables, by the name of its schema."""

    name: str
    state: State
    layout: PartitionLayout


def run_query(
    store: Store, databases: list[Database], reports: Callable[[], pa.Table], sql: str
) -> duckdb.DuckDBPyRelation | None:
    """The result of one statement. `reports` gives the table of sync reports, when it is asked for.

    Raises InputError QUERY_FAILED.
    """
    connection = duckdb.connect()
    connection.register_filesystem(LakeFiles(store))
    try:
        wanted = None if _LOOKS_AROUND.search(sql) else _tables_named(connection, sql)
        for database in databases:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(database.name)}")
            for table in sorted(database.state.schemas):
                if wanted is None or table.lower() in wanted:
                    _view(connection, store, database, table)
        if wanted is None or "sync_reports" in wanted:
            connection.execute("CREATE SCHEMA __segment_datalake")
            connection.register("_reports", reports())
            connection.execute(
                "CREATE VIEW __segment_datalake.sync_reports AS SELECT * FROM _reports"
            )
        if len(databases) == 1:
            connection.execute(f"SET schema = {_literal(databases[0].name)}")
        return connection.sql(sql)
    except duckdb.Error as error:
        known = [f"{d.name}.{t}" for d in databases for t in sorted(d.state.schemas)]
        listed = ", ".join(known[:10]) + (", …" if len(known) > 10 else "")
        raise InputError(
            "QUERY_FAILED",
            str(error).strip(),
            f"tables of this lake: {listed or 'none yet'}",
            sql[:200],
        ) from error


def _view(
    connection: duckdb.DuckDBPyConnection, store: Store, database: Database, table: str
) -> None:
    columns = database.state.schemas[table].columns
    files = database.state.files.get(table, ())
    keys = ", ".join(map(_quoted, database.layout.keys))
    if files:
        every = ", ".join(_literal(location(store, file.key)) for file in files)
        types = ", ".join(f"{_quoted(key)}: VARCHAR" for key in database.layout.keys)
        shown = ", ".join(map(_shown, columns))
        options = f"union_by_name = true, hive_partitioning = true, hive_types = {{{types}}}"
        found = f"SELECT {shown}, {keys} FROM read_parquet([{every}], {options})"  # noqa: S608  # quoted
    else:
        nothing = [f"NULL::{_SQL[column.type]} AS {_quoted(column.name)}" for column in columns]
        nothing += [f"NULL::VARCHAR AS {_quoted(key)}" for key in database.layout.keys]
        found = f"SELECT {', '.join(nothing)} WHERE false"
    connection.execute(f"CREATE VIEW {_quoted(database.name)}.{_quoted(table)} AS {found}")


def _shown(column: Column) -> str:
    # DuckDB shows a zoned timestamp in the session's zone, with an extension its wheel lacks: here
    # they are plain, and UTC
    name = _quoted(column.name)
    return f"{name}::TIMESTAMP AS {name}" if column.type is ColumnType.TIMESTAMP else name


_SQL = {
    ColumnType.BIGINT: "BIGINT",
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.DECIMAL: "DECIMAL(38, 6)",
    ColumnType.STRING: "VARCHAR",
    ColumnType.TIMESTAMP: "TIMESTAMP",
}


def _tables_named(connection: duckdb.DuckDBPyConnection, sql: str) -> set[str] | None:
    try:
        return {
            name.rpartition(".")[2].strip('"').lower() for name in connection.get_table_names(sql)
        }
    except duckdb.Error:
        return None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
