"""gen.py OUT N FILES: realistic Segment-spec events as gz NDJSON"""

import sys, os, gzip, orjson, random, uuid, datetime as dt, string

out, n, files = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.makedirs(out, exist_ok=True)
R = random.Random(7)
words = [
    "price",
    "currency",
    "product_id",
    "sku",
    "category",
    "name",
    "brand",
    "variant",
    "quantity",
    "coupon",
    "position",
    "url",
    "image_url",
    "cart_id",
    "order_id",
    "total",
    "revenue",
    "shipping",
    "tax",
    "discount",
    "checkout_id",
    "step",
    "list_id",
    "value",
    "query",
    "filter",
    "isPromo",
    "created_at",
    "rating",
    "plan",
    "seats",
    "source",
    "medium",
    "campaign",
    "content",
    "term",
    "page_number",
    "duration",
    "error_code",
    "score",
]
events = [
    "Order Completed",
    "Product Viewed",
    "Cart Viewed",
    "Product Added",
    "Checkout Started",
    "Signed Up",
    "Video Playback Started",
] + [f"Feature {i} Used" for i in range(33)]
types = {w: R.choice(["str", "int", "dec", "bool", "ts", "str", "str"]) for w in words}
for w in ("price", "total", "revenue", "tax", "shipping", "discount", "score", "value"):
    types[w] = "dec"
schema = {e: R.sample(words, R.randint(6, 20)) for e in events}
wts = [1 / (i + 1) ** 0.8 for i in range(len(events))]
base = dt.datetime(2026, 11, 18, 10, 0, 0)


def val(w, r):
    t = types[w]
    if r.random() < 0.002:
        t = r.choice(["str", "int", "dec"])
    if t == "str":
        return "".join(r.choices(string.ascii_lowercase, k=r.randint(4, 24)))
    if t == "int":
        return r.randint(0, 100000)
    if t == "dec":
        return round(r.random() * 500, 2)
    if t == "bool":
        return r.random() < 0.5
    return (base + dt.timedelta(seconds=r.randint(0, 86400))).isoformat(
        timespec="milliseconds"
    ) + "Z"


ua = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
users = [str(uuid.UUID(int=R.getrandbits(128))) for _ in range(50000)]
recent = []
per = n // files
for f in range(files):
    with gzip.open(f"{out}/{f:04d}.json.gz", "wb", compresslevel=5) as g:
        for i in range(per):
            if recent and R.random() < 0.02:
                g.write(recent[R.randrange(len(recent))])
                continue
            u = R.choice(users)
            t = R.choices(["track", "page", "identify", "screen", "group"], [70, 20, 6, 3, 1])[0]
            rcv = base + dt.timedelta(seconds=(f * per + i) * 7200 / n)
            ts = lambda s: (rcv - dt.timedelta(seconds=s)).isoformat(timespec="milliseconds") + "Z"
            e = {
                "messageId": "ajs-next-" + str(uuid.UUID(int=R.getrandbits(128))),
                "type": t,
                "anonymousId": u,
                "userId": u[:8] if R.random() < 0.4 else None,
                "channel": "browser",
                "context": {
                    "ip": f"10.{R.randint(0, 255)}.{R.randint(0, 255)}.7",
                    "userAgent": ua,
                    "locale": "en-US",
                    "timezone": "Europe/Berlin",
                    "library": {"name": "analytics.js", "version": "next-1.70.0"},
                    "page": {
                        "path": "/p/" + str(R.randint(1, 9999)),
                        "referrer": "https://www.google.com/",
                        "search": "?utm_source=x",
                        "title": "Shop – " + str(val("name", R))
                        if types["name"] == "str"
                        else "Shop",
                        "url": "https://shop.example.com/p/" + str(R.randint(1, 9999)),
                    },
                    "campaign": {"source": "newsletter", "medium": "email", "name": "fall"}
                    if R.random() < 0.3
                    else {},
                    "screen": {"width": 1440, "height": 900, "density": 2},
                },
                "integrations": {"All": True},
                "originalTimestamp": ts(2.1),
                "sentAt": ts(0.3),
                "receivedAt": ts(0),
                "timestamp": ts(2.0),
                "version": 2,
                "writeKey": "wk",
            }
            if t == "track":
                ev = R.choices(events, wts)[0]
                e["event"] = ev
                p = {w: val(w, R) for w in schema[ev] if R.random() < 0.9}
                if ev in events[:4]:
                    p["products"] = [
                        {"sku": val("sku", R), "price": 1.5, "quantity": 2}
                        for _ in range(R.randint(1, 3))
                    ]
                    p["shipping_address"] = {
                        "city": "Berlin",
                        "zip": "10115",
                        "geo": {"lat": 52.5, "lon": 13.4},
                    }
                e["properties"] = p
            elif t in ("page", "screen"):
                e["name"] = "Product"
                e["properties"] = {
                    "path": "/x",
                    "title": "T",
                    "url": "https://shop.example.com/x",
                    "referrer": "",
                }
            else:
                e["traits"] = {
                    "email": "a%d@example.com" % R.randint(1, 99999),
                    "plan": "pro",
                    "age": R.randint(18, 80),
                    "address": {"city": "Berlin", "country": "DE"},
                }
            if t == "group":
                e["groupId"] = "g%d" % R.randint(1, 500)
            b = orjson.dumps(e) + b"\n"
            g.write(b)
            if len(recent) < 5000:
                recent.append(b)
            else:
                recent[R.randrange(5000)] = b
