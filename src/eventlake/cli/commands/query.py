"""`eventlake query`: SQL over the lake."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eventlake.cli.context import Context
from eventlake.errors import InputError, UsageError

if TYPE_CHECKING:
    import duckdb

_ROWS_SHOWN = 200


@click.command(epilog='Example: eventlake query "SELECT day, count(*) FROM web.page GROUP BY day"')
@click.argument("sql")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "parquet"]),
    default="table",
    show_default=True,
    help="json: one object per line.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="Write to this file instead of printing.",
)
@click.pass_obj
def query(context: Context, sql: str, form: str, output: Path | None) -> None:
    """Run one SQL statement with DuckDB: a schema per source, a view per table.

    Views have the full schema of their table and the partition columns `day` and `hr`, which
    prune the files read. With one source, its tables need no schema in front. Sync reports are
    in __segment_datalake.sync_reports.
    """
    import duckdb

    from eventlake.catalog.query import Database, run_query
    from eventlake.ledger import log
    from eventlake.report.table import reports_table
    from eventlake.stage import sources
    from eventlake.stage.sources import database_of

    if form == "parquet" and output is None and sys.stdout.isatty():
        raise UsageError("WRONG_USAGE", "Parquet is not for a terminal", "add --output FILE")
    databases = [
        Database(
            database_of(source),
            log.load(context.store, source.id).state,
            context.lake_of(source).layout,
        )
        for source in sources.all_sources(context.store)
    ]
    try:
        relation = run_query(context.store, databases, lambda: reports_table(context.store), sql)
        if relation is not None:
            _print(relation, form, output)
    except duckdb.Error as error:
        raise InputError(
            "QUERY_FAILED",
            str(error).strip(),
            "`eventlake schema show TABLE` lists columns",
            sql[:200],
        ) from error


def _print(relation: duckdb.DuckDBPyRelation, form: str, output: Path | None) -> None:
    if form == "parquet":
        _write(_parquet(relation), output)
    elif form == "csv":
        _write(_csv(relation), output)
    elif form == "json":
        _write(_json(relation), output)
    elif output is not None:
        _write(str(relation).encode(), output)
    else:
        relation.show(max_rows=_ROWS_SHOWN)


def _write(data: bytes, output: Path | None) -> None:
    if output is not None:
        output.write_bytes(data)
        return
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _parquet(relation: duckdb.DuckDBPyRelation) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(relation.to_arrow_table(), sink, compression="zstd")
    return bytes(sink.getvalue())


def _csv(relation: duckdb.DuckDBPyRelation) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(relation.columns)
    writer.writerows(relation.fetchall())
    return text.getvalue().encode()


def _json(relation: duckdb.DuckDBPyRelation) -> bytes:
    aliased = relation.set_alias("result")
    lines = aliased.project("to_json(result)").fetchall()
    return b"".join(line.encode() + b"\n" for (line,) in lines)
