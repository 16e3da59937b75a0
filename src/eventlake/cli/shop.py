"""The events of the demo: two days of a small shop, the same on every machine.

Two clients write them, a web page and a phone app, which spell some properties differently. The
second day holds what happens to every event stream: a value of another type, a message sent twice,
a line cut short and an event that arrives long after it happened. Stages nothing.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

Event = dict[str, Any]

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
# The message ids of the events to look for in the lake.
RESCUED, TWICE, LATE = "0d5c77aa-rescued", "7be1f0c2-twice", "c3f9a4e1-late"
_DAY = timedelta(days=1)
_VISITS = 90
# Key, name, category and price, whole prices without a point, as JavaScript sends them.
Product = tuple[str, str, str, float]
_PRODUCTS: tuple[Product, ...] = (
    ("tea-01", "Green tea", "tea", 6.5),
    ("tea-02", "Earl Grey", "tea", 7),
    ("tea-03", "Rooibos", "tea", 5.25),
    ("pot-01", "Cast-iron pot", "pots", 49.9),
    ("pot-02", "Glass pot", "pots", 32),
    ("cup-01", "Cup, blue", "cups", 12.5),
    ("cup-02", "Cup, white", "cups", 12.5),
    ("tin-01", "Tea tin", "tins", 9.75),
)
_CITIES = ("Berlin", "Lisbon", "Oslo", "Kraków", "İzmir")
_WEB: Event = {
    "library": {"name": "analytics.js", "version": "next-1.70.0"},
    "page": {"path": "/", "url": "https://shop.example.com/"},
}
_PHONE: Event = {
    "library": {"name": "analytics-swift", "version": "1.6.2"},
    "device": {"type": "ios", "model": "iPhone15,2"},
}


def days() -> Mapping[str, Mapping[str, list[bytes]]]:
    """The lines of each file of each day: day → file → lines."""
    monday, tuesday = _day(MONDAY), _day(MONDAY + _DAY)
    twice = _line(_sent_twice())
    monday["phone.ndjson.gz"].append(twice)
    tuesday["phone.ndjson.gz"] += [twice, _line(_late()), _line(_dirty())]
    whole = tuesday["web.ndjson"][-1]
    tuesday["web.ndjson"].append(whole[: len(whole) // 3])
    return {"monday": monday, "tuesday": tuesday}


def _day(start: datetime) -> dict[str, list[bytes]]:
    web: list[Event] = []
    phone: list[Event] = []
    # Seeded by the day alone; nothing here has to be hard to guess.
    dice = random.Random(start.toordinal())  # noqa: S311
    for number in range(_VISITS):
        begun = start + timedelta(seconds=28_800 + dice.randrange(43_200))
        visitor = f"{start:%a}-{number:03}".lower()
        if number % 3:
            web += _visit(dice, begun, visitor, on_phone=False)
        else:
            phone += _visit(dice, begun, visitor, on_phone=True)
    return {"web.ndjson": _lines(web), "phone.ndjson.gz": _lines(phone)}


@dataclass(frozen=True, slots=True)
class _Visitor:
    """Somebody in the shop, signed in or not, and through which client."""

    name: str
    user: str | None
    on_phone: bool

    def call(self, kind: str, name: str, at: datetime, message: str) -> Event:
        """An event without its properties or traits, received a second after it happened."""
        named = {"event": name} if kind == "track" else {"name": name} if name else {}
        client = _PHONE if self.on_phone else _WEB
        return {
            "type": kind,
            **named,
            "messageId": message,
            "anonymousId": self.name,
            "userId": self.user,
            "context": {**client, "locale": "en-GB"},
            "timestamp": _time(at),
            "receivedAt": _time(at + timedelta(seconds=1)),
        }

    def product(self, product: Product) -> dict[str, object]:
        """A product as the visitor's client spells it."""
        key, name, category, price = product
        spelled = "productId" if self.on_phone else "product_id"
        return {spelled: key, "name": name, "category": category, "price": price, "currency": "EUR"}

    def order(self, bought: list[Product]) -> dict[str, object]:
        """An order as the visitor's client spells it."""
        total = round(sum(price for *_, price in bought), 2)
        spelled = "orderId" if self.on_phone else "order_id"
        products = [self.product(each) for each in bought]
        return {spelled: f"o-{self.name}", "total": total, "currency": "EUR", "products": products}


def _visit(dice: random.Random, at: datetime, name: str, *, on_phone: bool) -> Iterator[Event]:
    """One visitor's way through the shop: look around, sign in perhaps, buy perhaps."""
    user = f"user-{dice.randrange(40):02}" if dice.random() < 0.6 else None
    visitor = _Visitor(name, user, on_phone)
    told = count()

    def call(kind: str, name: str, **content: object) -> Event:
        nonlocal at
        at += timedelta(seconds=dice.randint(5, 90))
        message = f"{'ios' if on_phone else 'ajs'}-{visitor.name}-{next(told)}"
        return visitor.call(kind, name, at, message) | content

    yield call("screen" if on_phone else "page", "Home", properties={"section": "start"})
    if user:
        city = _CITIES[int(user[-2:]) % len(_CITIES)]
        traits = {"email": f"{user}@example.com", "plan": "free", "address": {"city": city}}
        yield call("identify", "", traits=traits)
    seen = dice.sample(_PRODUCTS, dice.randint(1, 4))
    for product in seen:
        yield call("track", "Product Viewed", properties=visitor.product(product))
    if user and dice.random() < 0.5:
        bought = seen[: dice.randint(1, len(seen))]
        for product in bought:
            chosen = visitor.product(product) | {"quantity": dice.randint(1, 3)}
            yield call("track", "Product Added", properties=chosen)
        yield call("track", "Order Completed", properties=visitor.order(bought))


def _sent_twice() -> Event:
    """The phone got no answer on Monday evening and sends the message again on Tuesday."""
    visitor = _Visitor("mon-900", "user-07", on_phone=True)
    at = MONDAY + timedelta(hours=20, minutes=58, seconds=12)
    order = visitor.order([_PRODUCTS[3]])
    return visitor.call("track", "Order Completed", at, TWICE) | {"properties": order}


def _late() -> Event:
    """Bought in a train without a network on Monday, received on Tuesday."""
    visitor = _Visitor("mon-901", "user-21", on_phone=True)
    at = MONDAY + timedelta(hours=22, minutes=40, seconds=3)
    order = visitor.call("track", "Order Completed", at, LATE)
    received = _time(at + timedelta(hours=9, minutes=25))
    bought = [_PRODUCTS[0], _PRODUCTS[5]]
    return order | {"receivedAt": received, "properties": visitor.order(bought)}


def _dirty() -> Event:
    """The app shows a product that has no price, and sends what it shows."""
    visitor = _Visitor("tue-902", "user-33", on_phone=True)
    at = MONDAY + _DAY + timedelta(hours=11, minutes=7, seconds=30)
    product = visitor.product(_PRODUCTS[4]) | {"price": "n/a"}
    return visitor.call("track", "Product Viewed", at, RESCUED) | {"properties": product}


def _lines(events: list[Event]) -> list[bytes]:
    return [_line(event) for event in sorted(events, key=lambda event: event["receivedAt"])]


def _line(event: Event) -> bytes:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def _time(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
