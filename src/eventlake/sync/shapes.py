"""The fast way in for lines that look like those before them.

Most lines of a task have the same few fields around, and the same `context`. For them the
envelope is decoded straight into slots and the context, which is most of a line, by Arrow's own
JSON reader with the schema learned so far. Both are strict: a line or chunk with anything new,
odd or broken comes back untouched, takes the general way (`parse`, `columns`) and is learned
from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

import msgspec
import orjson
import pyarrow as pa
import pyarrow.json as pj

from eventlake.sync.columns import Columns, Slot, strings_by_code
from eventlake.sync.parse import Document, lines_with_inexact_numbers

# Every event has them, so they always have their slot. `context` stays raw until Arrow reads it.
_ALWAYS = ("messageId", "type", "event", "receivedAt", "timestamp", "originalTimestamp", "sentAt")
OWN = ("properties", "traits")
_MOST_FIELDS = 64
# Documents that a chunk is learned from; a walk through one costs ten microseconds.
_SAMPLE = 256
_MOST_LEAVES = 300
_DEEPEST = 8
# Failed attempts on the context after which it is left to the general way.
_PATIENCE = 12

_LEAVES: dict[type, pa.DataType] = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}
_EMPTY_CONTEXT = b"{}"
_NESTED = frozenset({dict, list})
# What is left of a number of 64 bits when those below the sign are gone.
_SIGNS = (0, -1)


class Shapes:
    """What the lines of one task have looked like."""

    def __init__(self, root: Slot) -> None:
        self._root = root
        self._columns: dict[str, str] = {}
        self._raw: set[str] = set()  # fields that hold objects or lists: parsed apart, and exactly
        self._getters: dict[str, Callable[[Any], Any]] = {}
        self._decode: Callable[[bytes], Any] = _nothing
        self._context: dict[str, Any] = {}
        self._schema: pa.Schema | None = None
        self._parse: pj.ParseOptions | None = None
        self._gone: set[str] = set()  # fields that always need the general way
        self._patience = _PATIENCE
        self.learned = False
        self._add_fields(_ALWAYS)

    def rows(self, lines: list[bytes]) -> tuple[list[Any], list[int], list[int]]:
        """Decoded lines, the indexes of their lines, and of those that take the general way."""
        odd: list[int] = []
        try:
            rows, kept = list(map(self._decode, lines)), list(range(len(lines)))
        except (msgspec.DecodeError, RecursionError):
            rows, kept = [], []
            for index, line in enumerate(lines):
                try:
                    rows.append(self._decode(line))
                except (msgspec.DecodeError, RecursionError):
                    odd.append(index)
                else:
                    kept.append(index)
        inexact = self._inexact(rows, kept, lines)
        if inexact:
            odd = sorted([*odd, *map(kept.__getitem__, inexact)])
            rows, kept = without(rows, inexact), without(kept, inexact)
        return rows, kept, odd

    def _inexact(self, rows: list[Any], kept: list[int], lines: list[bytes]) -> set[int]:
        """Rows with a top-level value that is not exact, or of another form than its field's."""
        odd: set[int] = set()
        fractions: set[int] = set()
        for name, get in self._getters.items():
            if name in self._raw:
                continue
            values = list(map(get, rows))
            types = set(map(type, values))
            if float in types:
                fractions.update(row for row, value in enumerate(values) if type(value) is float)
            if types & _NESTED:
                odd.update(row for row, value in enumerate(values) if type(value) in _NESTED)
            if int in types:
                odd.update(row for row, value in enumerate(values) if _is_long(value))
        suspects = sorted(fractions)
        inexact = lines_with_inexact_numbers([lines[kept[row]] for row in suspects])
        return odd | {suspects[n] for n in inexact}

    def envelope(self, rows: list[Any]) -> dict[str, list[Any]]:
        """The values of every top-level field but the context, properties and traits.

        Raises `BrokenError` for rows that must take the general way.
        """
        return {
            name: _documents([bytes(get(row)) or b"null" for row in rows])
            if name in self._raw
            else list(map(get, rows))
            for name, get in self._getters.items()
        }

    def own(self, rows: list[Any]) -> list[Document]:
        """The rows' properties and traits.

        Raises `BrokenError` for rows that must take the general way.
        """
        properties = [bytes(row.properties) or b"null" for row in rows]
        traits = [bytes(row.traits) or b"null" for row in rows]
        return [
            {"properties": p, "traits": t}
            for p, t in zip(_documents(properties), _documents(traits), strict=True)
        ]

    def context(self, rows: list[Any]) -> Columns | list[Any]:
        """The columns of the rows' contexts, or their documents where these are of another shape.

        Raises `BrokenError` for rows that must take the general way.
        """
        raw = [bytes(row.context) or _EMPTY_CONTEXT for row in rows]
        if self._schema is not None and self._patience:
            try:
                return self._context_columns(raw)
            except pa.ArrowInvalid:
                self._patience -= 1
        docs = _documents(raw)
        self._learn_context(docs[:_SAMPLE])
        return docs

    def _context_columns(self, raw: list[bytes]) -> Columns:
        data = b"\n".join(raw)
        table = pj.read_json(pa.BufferReader(data), read_options=_READ, parse_options=self._parse)
        if table.num_rows != len(raw):
            raise pa.ArrowInvalid("a context holds a line feed")
        out = Columns(len(raw))
        for name in table.column_names:
            _leaves(_one_chunk(table.column(name)), self._root.child("context").child(name), out)
        return out

    def learn(self, docs: list[Document], top: Iterable[str]) -> None:
        """Learn from documents that took the general way; `top` are their keys."""
        self.learned = True
        sample = docs[:_SAMPLE]
        keys = [key for key in top if key not in OWN and key != "context"]
        nested = {key for key in keys if any(type(doc.get(key)) in _NESTED for doc in sample)}
        before = len(self._raw)
        self._raw |= nested - set(_ALWAYS)
        new = [key for key in keys if key not in self._columns and key not in self._gone]
        self._add_fields(new[: _MOST_FIELDS - len(self._columns)], again=len(self._raw) > before)
        self._learn_context([doc.get("context") for doc in sample])

    def _add_fields(self, names: Iterable[str], *, again: bool = False) -> None:
        for name in names:
            column = self._root.child(name).column
            # two fields of one column need the general way, which knows their order; own columns
            # are the kinds' business
            taken = column in self._columns.values() or column.startswith((*OWN, "context"))
            if not taken:
                self._columns[name] = column
                again = True
        for name in self._raw & self._columns.keys():
            inside = f"{self._columns[name]}_"
            if any(column.startswith(inside) for column in self._columns.values()):
                # what is in the object may meet another field's column
                del self._columns[name]
                self._gone.add(name)
        if not again:
            return
        fields = [
            (f"f{n}", *self._field(name, in_raw=name in self._raw))
            for n, name in enumerate(self._columns)
        ]
        raw = [(name, msgspec.Raw, msgspec.Raw(b"")) for name in ("context", *OWN)]
        shape = msgspec.defstruct("Line", [*fields, *raw], forbid_unknown_fields=True, gc=False)
        self._decode = msgspec.json.Decoder(shape).decode
        self._getters = {name: attrgetter(f"f{n}") for n, name in enumerate(self._columns)}

    @staticmethod
    def _field(name: str, *, in_raw: bool) -> tuple[Any, Any]:
        if in_raw:
            return msgspec.Raw, msgspec.field(default=msgspec.Raw(b""), name=name)
        return Any, msgspec.field(default=None, name=name)

    def _learn_context(self, docs: Iterable[Any]) -> None:
        if not self._patience:
            return
        known = self._schema
        try:
            for doc in docs:
                _merge(self._context, doc if doc is not None else {})
        except _NoSchemaError:
            self._give_up()
            return
        columns = list(_columns(self._context, self._root.child("context")))
        if len(columns) > _MOST_LEAVES or len(set(columns)) < len(columns):
            self._give_up()
            return
        self._schema = pa.schema(
            [pa.field(name, _arrow(node)) for name, node in self._context.items()]
        )
        self._parse = pj.ParseOptions(
            explicit_schema=self._schema, unexpected_field_behavior="error"
        )
        if known is not None and self._schema != known:
            # what failed was new rather than odd
            self._patience = min(_PATIENCE, self._patience + 1)

    def _give_up(self) -> None:
        self._patience, self._schema = 0, None


class _NoSchemaError(Exception):
    """The context has what Arrow's reader cannot give back as it came.

    Arrays, fractions, two types at one path.
    """


def _merge(node: dict[str, Any], doc: Any, depth: int = 0) -> None:
    if type(doc) is not dict or depth > _DEEPEST:
        raise _NoSchemaError
    for key, value in doc.items():
        before = node.get(key)
        if value is None:
            node.setdefault(key, None)
        elif type(value) is dict:
            if before is None:
                before = node[key] = {}
            if type(before) is not dict:
                raise _NoSchemaError
            _merge(before, value, depth + 1)
        else:
            leaf = _LEAVES.get(type(value))
            if leaf is None or (before is not None and before != leaf):
                raise _NoSchemaError
            node[key] = leaf


def _arrow(node: Any) -> pa.DataType:
    if isinstance(node, dict):
        return pa.struct([pa.field(name, _arrow(child)) for name, child in node.items()])
    return pa.null() if node is None else node


def _columns(node: Any, slot: Slot) -> Iterable[str]:
    if not isinstance(node, dict):
        yield slot.column
        return
    for name, child in node.items():
        yield from _columns(child, slot.child(name))


# One block for a whole chunk: its rows must stay together.
_READ = pj.ReadOptions(use_threads=False, block_size=1 << 30)


def without(items: list[Any], rows: set[int]) -> list[Any]:
    """The items but those of some rows."""
    return [item for row, item in enumerate(items) if row not in rows]


def _is_long(value: Any) -> bool:
    return type(value) is int and value >> 63 not in _SIGNS


class BrokenError(Exception):
    """Rows with something inside that is no JSON: only the general way can say why."""

    def __init__(self, rows: set[int]) -> None:
        super().__init__(rows)
        self.rows = rows


def _documents(raw: list[bytes]) -> list[Any]:
    inexact = lines_with_inexact_numbers(raw)
    try:
        docs = list(map(orjson.loads, raw))
    except orjson.JSONDecodeError:
        docs, broken = [], set()
        for row, text in enumerate(raw):
            try:
                docs.append(orjson.loads(text))
            except orjson.JSONDecodeError:
                broken.add(row)
        raise BrokenError(broken) from None
    if inexact:
        raise BrokenError(set(inexact))
    return docs


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _leaves(array: pa.Array, slot: Slot, out: Columns) -> None:
    if pa.types.is_struct(array.type):
        for field, child in zip(array.type, array.flatten(), strict=True):
            _leaves(child, slot.child(field.name), out)
    elif array.null_count == len(array):
        return
    elif pa.types.is_string(array.type):
        array.validate(full=True)  # Arrow's JSON reader does not look at UTF-8
        for code, part in strings_by_code(array):
            out.arrays[code, slot] = part
    else:
        out.arrays["i" if pa.types.is_int64(array.type) else "b", slot] = array


def _nothing(_: bytes) -> Any:
    raise AssertionError("no fields")
