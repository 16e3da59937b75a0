"""The fast way in gives what the general way gives, also with odd lines among many alike."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from pathlib import Path

import pytest

from lakes import LakeHere, lake_here
from oracle import golden
from oracle.compare import differences, schema_differences
from oracle.events import Staged
from oracle.oracle import sync_all

LINES = 900


def usual(number: int) -> dict[str, object]:
    at = f"2024-05-01T10:{number // 60 % 60:02}:{number % 60:02}.{number % 1000:03}Z"
    return {
        "messageId": f"m{number}",
        "type": ("track", "page", "identify")[number % 3],
        "event": f"Event {number % 4}" if number % 3 == 0 else None,
        "anonymousId": f"a{number % 7}",
        "userId": f"u{number % 5}" if number % 2 else None,
        "context": {
            "ip": "10.0.0.1",
            "locale": "de-DE",
            "page": {"title": "Größe – 日本", "url": f"/p/{number}", "search": None},
            "screen": {"width": 1440, "height": 900 + number % 2},
            "online": number % 3 == 0,
            "when": at,
            "campaign": {"name": "x"} if number % 4 else {},
        },
        "integrations": {"All": True},
        "properties": {"price": number / 8, "count": number, "ok": True, "when": at},
        "traits": {"age": 30, "name": "Ä"} if number % 3 == 2 else None,
        "receivedAt": at,
        "sentAt": at,
        "originalTimestamp": at,
        "timestamp": at,
        "version": 2,
    }


ODD: list[bytes] = [
    b'{"type":"page","messageId":"o1","context":{"ip":"\xff"},"receivedAt":"2024-05-01T10:00:00.000Z"}',
    rb'{"type":"page","messageId":"o2","context":{"ip":"\ud800"},"receivedAt":"2024-05-01T10:00:00.000Z"}',
    b'{"type":"page","messageId":"o3","context":{"screen":{"density":2.5}}}',
    b'{"type":"page","messageId":"o4","context":{"brands":[{"a":1}]}}',
    b'{"type":"page","messageId":"o5","context":{"page":{"title":7}}}',
    b'{"type":"page","messageId":"o6","context":"nothing"}',
    b'{"type":"page","messageId":"o7","context":null,"properties":null}',
    b'{"type":"page","messageId":"o8","user_id":"snake","userId":"camel"}',
    b'{"type":"page","messageId":"o9","message_id":"other","receivedAt":"2024-05-01T10:00:00Z"}',
    b'{"type":"page","messageId":"o10","properties":{"price":1.00000000000000000001}}',
    b'{"type":"page","messageId":"o11","properties":{"price":1e-400}}',
    b'{"type":"page","messageId":"o12","version":1.00000000000000000001}',
    b'{"type":"page","messageId":"o13","version":1.5}',
    b'{"type":"page","messageId":"o14","context":{"screen":{"width":123456789012345678901234}}}',
    b'{"type":"page","messageId":"o15","context":{"ip":"a","ip":"b"}}',
    rb'{"type":"page","messageId":"o16","properties":{"name":"\udc00 half"}}',
    b'{"type":"page","messageId":"o17","properties":{"name":"\xc3"}}',
    b'{"type":"page","messageId":"o18","properties":"text","traits":[1]}',
    b'{"type":"page","messageId":"o19","properties_price":3,"properties":{"price":4}}',
    b'{"type":"page","messageId":"o20","Properties":{"price":5},"fresh":{"a":{"b":1}}}',
    b'{"type":"page","messageId":20,"receivedAt":5}',
    b'{"type":"page"}',
    b'{"type":"track","messageId":"o23","event":5}',
    b'{"type":["page"],"messageId":"o24"}',
    b'{"type":"page","messageId":"o25","context":{"userAgent":"a","user_agent":"b"}}',
    b'{"type":"page","messageId":"o26","context":{"online":1}}',
    b'{"type":"page","messageId":"o27","context":{"when":"2024-02-30T00:00:00.000Z"}}',
    b'{"type":"page","messageId":"o28","integrations":{"All":1}}',
    b'{"type":"page","messageId":"m3","receivedAt":"2024-04-01T10:00:00.000Z"}',
    b'{"type":"page","messageId":"o30","context":' + b'{"d":' * 40 + b"1" + b"}" * 41,
    b'{"type":"page","messageId":"o31"',
    b'{"type":"page","messageId":"o32","integrations":{"All":1.00000000000000000001}}',
    b'{"type":"page","messageId":"o33","version":{"a":[12345678901234567890123]}}',
    b'{"type":"page","messageId":"o34","version":' + b"9" * 5000 + b"}",
    b'{"type":"page","messageId":"o35","integrations":[123456789012345678901234567890,1e-400]}',
    b'{"type":"page","messageId":"o36","userId":{"a":1e-400}}',
    b"",
    b"[]",
]


def stream(seed: int, share: int) -> bytes:
    """Usual lines, every so-manieth replaced by an odd one, in a random place."""
    chance = random.Random(seed)
    lines = [json.dumps(usual(n), ensure_ascii=False).encode() for n in range(LINES)]
    for odd in ODD * (1 if share else 0):
        lines.insert(chance.randrange(len(lines)) if share == 1 else LINES // 2, odd)
    return b"\n".join(lines)


def check(folder: Path, data: bytes) -> None:
    at = golden.FIRST_STAGED_AT + timedelta(hours=1)
    lake: LakeHere = lake_here(folder / "lake")
    lake.drop("one", data, at)
    summary = lake.sync()
    (result,) = sync_all([[Staged("segment-stage/golden/one", at, data)]])
    assert differences(result.tables, lake.tables()) == []
    assert schema_differences(result.schemas, lake.schemas()) == []
    assert summary["values"]["read"] == result.values.read
    assert summary["events"]["rejected"] == result.events.rejected


@pytest.mark.parametrize("share", [0, 1, 2], ids=["alike", "odd-anywhere", "odd-together"])
def test_a_long_stream_equals_the_oracle(share: int, tmp_path: Path) -> None:
    check(tmp_path, stream(7 + share, share))


@pytest.mark.parametrize("place", range(len(ODD)))
def test_one_odd_line_among_many_alike(place: int, tmp_path: Path) -> None:
    lines = [json.dumps(usual(n), ensure_ascii=False).encode() for n in range(400)]
    check(tmp_path, b"\n".join([*lines[:350], ODD[place], *lines[350:]]))
