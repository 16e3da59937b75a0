"""Names of tables and columns, from the keys and event names of the events.

Written from the text of the snake-case rule, byte by byte.
"""

from hashlib import blake2b

UPPER, LOWER, DIGIT = (
    frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    frozenset(b"abcdefghijklmnopqrstuvwxyz"),
    frozenset(b"0123456789"),
)
FIXED_TABLES = frozenset({"identify", "page", "screen", "group", "alias", "other_events"})
PARTITION_COLUMNS = frozenset({"day", "hr", "year", "month", "segment_type"})
MAX_COLUMN, MAX_TABLE = 250, 240

Path = tuple[str, ...]


def snake(name: str) -> str:
    """The words of a name, lower-cased and joined by `_`.

    A word is a run of upper-case letters and digits and then a run of lower-case letters and
    digits; every other byte only separates words.

    >>> snake("productID2Name"), snake("HTTPServer"), snake("_a__b"), snake("日本")
    ('product_id2name', 'httpserver', 'a_b', '')
    """
    words: list[bytearray] = []
    in_word = in_tail = False
    for byte in name.encode("utf-8", "surrogatepass"):
        if byte not in UPPER | LOWER | DIGIT:
            in_word = in_tail = False
            continue
        if not in_word or (in_tail and byte in UPPER):
            words.append(bytearray())
            in_word, in_tail = True, False
        words[-1].append(byte)
        in_tail = in_tail or byte in LOWER
    return b"_".join(words).decode("ascii").lower()


def short_hash(original: str) -> str:
    return blake2b(original.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def named(original: str) -> str:
    """The snake form, or a stable substitute where it is empty."""
    return snake(original) or "x_" + short_hash(original)


def fitted(name: str, limit: int, original: str) -> str:
    """The name, cut and told apart by a hash where it is longer than the limit."""
    return name if len(name) <= limit else f"{name[: limit - 9]}_{short_hash(original)}"


def path_text(path: Path) -> str:
    r"""The path as one string.

    >>> print(path_text(("properties", "a.b", "c\\d")))
    properties.a\.b.c\\d
    """
    return ".".join(key.replace("\\", "\\\\").replace(".", "\\.") for key in path)


def column_name(path: Path) -> str:
    """The column a path lands in.

    >>> column_name(("properties", "productId")), column_name(("Day",))
    ('properties_product_id', '_day')
    """
    name = "_".join(named(key) for key in path)
    return fitted("_" * (name in PARTITION_COLUMNS) + name, MAX_COLUMN, path_text(path))


def table_name(kind: str, event: str, track_prefix: str) -> str:
    """The table of a call: its type, or for a track its event.

    >>> [table_name("track", e, "") for e in ("orderCompleted", "Identify", "Track")]
    ['order_completed', '_identify', 'track']
    """
    if kind != "track":
        return kind
    name = track_prefix + named(event)
    return fitted("_" * (name in FIXED_TABLES) + name, MAX_TABLE, event)
