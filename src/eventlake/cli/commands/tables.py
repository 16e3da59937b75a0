"""`eventlake tables` and `eventlake schema show`: what the lake holds."""

from __future__ import annotations

import difflib

import click

from eventlake.catalog.tables import column_rows, table_rows
from eventlake.cli.context import Context
from eventlake.cli.output import human_bytes, print_json, print_table
from eventlake.cli.sources import chosen
from eventlake.errors import InputError
from eventlake.ledger import log
from eventlake.stage.sources import Source, database_of


@click.command(epilog="Example: eventlake tables --source web")
@click.option("--source", "slug", metavar="SLUG", help="Only this source.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def tables(context: Context, slug: str | None, *, as_json: bool) -> None:
    """List tables: rows, columns, bytes, days covered, last sync."""
    found = [
        row
        for source in chosen(context.store, slug)
        for row in table_rows(
            source.slug, database_of(source), log.load(context.store, source.id).state
        )
    ]
    if as_json:
        print_json(found)
        return
    print_table(
        ["table", "rows", "columns", "files", "size", "days", "last sync"],
        [
            [
                f"{row['database']}.{row['table']}",
                row["rows"],
                row["columns"],
                row["files"],
                human_bytes(row["bytes"]),
                _days(row["first_day"], row["last_day"]),
                (row["last_sync"] or "")[:19].replace("T", " "),
            ]
            for row in found
        ],
        empty="no tables yet; `eventlake sync` makes them from staged events",
    )


def _days(first: str | None, last: str | None) -> str:
    if first is None:
        return ""
    return first if first == last else f"{first} … {last}"


@click.group(epilog="Example: eventlake schema show order_completed")
def schema() -> None:
    """Look at the columns of tables."""


@schema.command(epilog="Example: eventlake schema show order_completed --source web")
@click.argument("table")
@click.option("--source", "slug", metavar="SLUG", help="Where several sources have such a table.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(context: Context, table: str, slug: str | None, *, as_json: bool) -> None:
    """Show a table's columns: type, original paths, first seen, values rescued so far.

    TABLE is `table` or `database.table`.
    """
    database, _, name = table.rpartition(".")
    known: list[str] = []
    found: list[tuple[Source, list[dict[str, object]]]] = []
    for source in chosen(context.store, slug):
        state = log.load(context.store, source.id).state
        known += [f"{database_of(source)}.{each}" for each in state.schemas]
        if name in state.schemas and database in ("", database_of(source)):
            found.append((source, list(column_rows(state, name))))
    if not found:
        near = difflib.get_close_matches(
            table, [*known, *(each.rpartition(".")[2] for each in known)], n=1
        )
        hint = f"did you mean `{near[0]}`?" if near else "`eventlake tables` lists the tables"
        raise InputError("TABLE_NOT_FOUND", "there is no such table", hint, table)
    if as_json:
        print_json(
            [
                {"source": source.slug, "table": name, "columns": columns}
                for source, columns in found
            ]
            if len(found) > 1
            else {"source": found[0][0].slug, "table": name, "columns": found[0][1]}
        )
        return
    for source, columns in found:
        if len(found) > 1:
            click.echo(f"{database_of(source)}.{name}")
        print_table(
            ["column", "type", "paths", "first seen", "rescued"],
            [
                [
                    row["column"],
                    row["type"] or "(no room)",
                    ", ".join(map(str, row["paths"])) if isinstance(row["paths"], list) else "",
                    str(row["first_seen"] or "")[:19].replace("T", " "),
                    row["rescued"],
                ]
                for row in columns
            ],
            empty="",
        )
