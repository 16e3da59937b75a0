"""Whether an input is newline-delimited JSON, told from its first bytes, and if not, what to do.

Lines that are merely wrong are no reason to refuse a file: the sync rejects, keeps and counts them.
"""

from __future__ import annotations

import json

from eventlake.errors import InputError

# Enough for ten events; never more than one piece of a decompressor.
HEAD_BYTES = 64 << 10
_LINES = 10

# Formats people have beside NDJSON: how they begin, and how to get NDJSON from them.
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"PAR1", "Parquet", "stage the raw events; Parquet files can be queried where they are"),
    (b"ORC", "ORC", "stage the raw events as NDJSON"),
    (b"Obj\x01", "Avro", "convert it: `avro-tools tojson FILE | eventlake send --source SLUG -`"),
    (b"PK\x03\x04", "a zip archive", "unpack it and send the folder"),
    (b"BZh", "bzip2", "`bzip2 -dc FILE | eventlake send --source SLUG -`"),
    (b"\xfd7zXZ", "xz", "`xz -dc FILE | eventlake send --source SLUG -`"),
    (b"\x04\x22\x4d\x18", "lz4", "`lz4 -dc FILE | eventlake send --source SLUG -`"),
    (b"\xff\x06\x00\x00sNaPpY", "snappy", "decompress it first"),
    (b"SQLite format 3", "an SQLite database", "export its rows as NDJSON"),
    (b"\xff\xfe", "UTF-16", "`iconv -f UTF-16 -t UTF-8 FILE | eventlake send --source SLUG -`"),
    (b"\xfe\xff", "UTF-16", "`iconv -f UTF-16 -t UTF-8 FILE | eventlake send --source SLUG -`"),
)
_ARRAY_HINT = "`jq -c '.[]' FILE | eventlake send --source SLUG -`"
_OBJECTS_HINT = "`jq -c . FILE | eventlake send --source SLUG -`"


def refusal(head: bytes, name: str, *, whole: bool) -> InputError | None:
    """Why an input that begins with `head` cannot be staged, or None.

    `whole` says that there is nothing after `head`.
    """
    for magic, what, hint in _MAGIC:
        if head.startswith(magic):
            return InputError("INPUT_NOT_NDJSON", f"this is {what}, not NDJSON", hint, name)
    if head[257:262] == b"ustar":
        hint = "unpack it and send the folder"
        return InputError("INPUT_NOT_NDJSON", "this is a tar archive, not NDJSON", hint, name)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text or _has_event(text, whole=whole):
        return None
    first = text.split(b"\n", 1)[0]
    if text[:1] == b"[":
        message = "this is one JSON array, not one event a line"
        return InputError("INPUT_IS_JSON_ARRAY", message, _ARRAY_HINT, name)
    if text[:1] == b"{":
        return _refused_object(text, first, name)
    message = f"this is no NDJSON: it begins with {_shown(first)}"
    hint = "every line must be one JSON object, `{…}`"
    return InputError("INPUT_NOT_NDJSON", message, hint, name)


def _has_event(text: bytes, *, whole: bool) -> bool:
    """Whether one of the first lines is a JSON object, the first line of an array not counted.

    `[`, one event and `]` on lines of their own look so too: then the first line does not parse.
    """
    lines = text.split(b"\n")
    if not whole and len(lines) > 1:
        # The last one is cut by the end of the head.
        lines = lines[:-1]
    filled = [line.strip() for line in lines if line.strip()][:_LINES]
    if filled and filled[0][:1] == b"[" and not _parses(filled[0]):
        return False
    return any(line[:1] == b"{" and _parses(line) for line in filled)


def _refused_object(text: bytes, first: bytes, name: str) -> InputError | None:
    """Objects over several lines, or several in one line; a broken line alone is accepted."""
    decoded = text.decode("utf-8", "replace")
    try:
        _, end = json.JSONDecoder().raw_decode(decoded)
    except (ValueError, RecursionError):
        begun = first.strip()
        if begun != b"{" and not (len(first) < len(text) and begun[-1:] in (b",", b"[", b"{")):
            return None
        end = len(text)
    first_end = len(first.decode("utf-8", "replace"))
    if end > first_end:
        message = "this is JSON spread over lines, not one event a line"
        return InputError("INPUT_IS_PRETTY_JSON", message, _OBJECTS_HINT, name)
    if decoded[end:first_end].lstrip().startswith("{"):
        message = "the events stand side by side in one line"
        return InputError("INPUT_NOT_NDJSON", message, _OBJECTS_HINT, name)
    return None


def _parses(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _shown(line: bytes) -> str:
    return repr(line[:40].decode("utf-8", "backslashreplace")) + ("…" if len(line) > 40 else "")
