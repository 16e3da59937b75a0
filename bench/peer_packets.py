"""Spark as scheduler+shuffle of Arrow blobs; orjson+pyarrow in workers. usage: RAW OUT"""

import sys, os, time, glob, shutil, resource

t00 = time.time()
raw, out = sys.argv[1:3]
shutil.rmtree(out, ignore_errors=True)
os.makedirs(out)
from pyspark.sql import SparkSession
import pyarrow as pa

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.sql.adaptive.enabled", "false")
    .config("spark.driver.memory", "2g")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", "64")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
t0 = time.time()
print("startup", round(t0 - t00, 2))


def parse(batches):
    import gzip, orjson, gc, re, pyarrow as pa
    from collections import defaultdict

    try:
        from isal import igzip as gz
    except ImportError:
        gz = gzip
    gc.disable()
    slug = re.compile(r"[^a-z0-9]+")
    names = {}

    def flat(o, prefix, row):
        for k, v in o.items():
            if type(v) is dict:
                flat(v, prefix + k + "_", row)
            else:
                row[prefix + k] = v

    loads = orjson.loads
    for b in batches:
        for path in b.column(0).to_pylist():
            tabs = {}
            for l in gz.open(path).read().splitlines():
                o = loads(l)
                row = {}
                flat(o, "", row)
                k = o.get("event") or o["type"]
                n = names.get(k)
                if n is None:
                    n = names[k] = slug.sub("_", k.lower())
                key = (n, o["receivedAt"][:13])
                st = tabs.get(key)
                if st is None:
                    st = tabs[key] = [{}, 0]
                cc, i = st
                for c, v in row.items():
                    col = cc.get(c)
                    if col is None:
                        cc[c] = col = [None] * i
                    elif len(col) < i:
                        col.extend([None] * (i - len(col)))
                    col.append(v)
                st[1] = i + 1
            rows = []
            for (n, h), (cc, cnt) in tabs.items():
                arrs = []
                nm = []
                for c, l in cc.items():
                    if len(l) < cnt:
                        l.extend([None] * (cnt - len(l)))
                    try:
                        a = pa.array(l)
                    except Exception:
                        a = pa.array(
                            [
                                None
                                if x is None
                                else x
                                if type(x) is str
                                else orjson.dumps(x).decode()
                                for x in l
                            ]
                        )
                    if pa.types.is_null(a.type):
                        continue
                    if pa.types.is_nested(a.type):
                        a = pa.array([None if x is None else orjson.dumps(x).decode() for x in l])
                    arrs.append(a)
                    nm.append(c)
                sink = pa.BufferOutputStream()
                rb = pa.record_batch(arrs, nm)
                with pa.ipc.new_stream(
                    sink, rb.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")
                ) as w:
                    w.write_batch(rb)
                rows.append((n, h, sink.getvalue().to_pybytes()))
            yield pa.record_batch(
                [
                    pa.array([r[0] for r in rows]),
                    pa.array([r[1] for r in rows]),
                    pa.array([r[2] for r in rows], pa.binary()),
                ],
                ["table", "hour", "blob"],
            )


def write(batches):
    import pyarrow as pa, pyarrow.parquet as pq, pyarrow.compute as pc, uuid, os
    from collections import defaultdict

    g = defaultdict(list)
    for b in batches:
        for t, h, bl in zip(b.column(0).to_pylist(), b.column(1).to_pylist(), b.column(2)):
            g[(t, h)].append(bl)
    res = []
    bytab = defaultdict(list)
    for (t, h), bl in g.items():
        bytab[t].append((h, bl))
    for t, hs in bytab.items():
        seen = None
        for h, blobs in hs:
            ts = [pa.ipc.open_stream(pa.py_buffer(x.as_buffer())).read_all() for x in blobs]
            # unify types
            kinds = {}
            for tt in ts:
                for f in tt.schema:
                    k = kinds.get(f.name)
                    if k is None or k == f.type:
                        kinds[f.name] = f.type
                    elif {k, f.type} == {pa.int64(), pa.float64()}:
                        kinds[f.name] = pa.float64()
                    else:
                        kinds[f.name] = pa.string()
            sch = pa.schema(
                [(a, pa.decimal128(38, 6) if b == pa.float64() else b) for a, b in kinds.items()]
            )
            cs = []
            for tt in ts:
                cols = []
                for f in sch:
                    i = tt.schema.get_field_index(f.name)
                    cols.append(
                        pa.nulls(tt.num_rows, f.type)
                        if i < 0
                        else tt.column(i)
                        if tt.schema.field(i).type == f.type
                        else tt.column(i).cast(pa.float64()).cast(f.type)
                        if pa.types.is_decimal(f.type)
                        else tt.column(i).cast(f.type)
                    )
                cs.append(pa.table(cols, schema=sch))
            full = pa.concat_tables(cs)
            mid = full.column("messageId")
            full = full.append_column("_i", pa.array(range(full.num_rows)))
            idx = (
                full.group_by("messageId", use_threads=False)
                .aggregate([("_i", "min")])
                .column("_i_min")
            )
            full = full.drop_columns("_i").take(
                pc.sort_indices(idx) if False else idx.sort() if hasattr(idx, "sort") else idx
            )
            for c in ("receivedAt", "sentAt", "originalTimestamp", "timestamp"):
                i = full.schema.get_field_index(c)
                full = full.set_column(
                    i,
                    c,
                    pc.assume_timezone(
                        pc.cast(pc.utf8_slice_codeunits(full.column(i), 0, 23), pa.timestamp("ms")),
                        "UTC",
                    ).cast(pa.timestamp("us", "UTC")),
                )
            d = f"{out}/segment_type={t}/day={h[:10]}/hr={h[11:13]}"
            os.makedirs(d, exist_ok=True)
            pq.write_table(full, f"{d}/{uuid.uuid4().hex}.parquet", compression="zstd")
            res.append((t, h, full.num_rows))
    yield pa.record_batch(
        [
            pa.array([r[0] for r in res], pa.string()),
            pa.array([r[1] for r in res], pa.string()),
            pa.array([r[2] for r in res], pa.int64()),
        ],
        ["t", "h", "n"],
    )


files = sorted(glob.glob(raw + "/*.gz"))
df = spark.createDataFrame([(f,) for f in files], "path string").repartition(len(files))
p = df.mapInArrow(parse, "table string, hour string, blob binary")
r = p.repartition(4, "table").mapInArrow(write, "t string, h string, n long").collect()
t1 = time.time()
print("rows", sum(x.n for x in r), "files", len(r), "wall sync", round(t1 - t0, 2))


def job2():
    t = time.time()
    df = spark.createDataFrame([(f,) for f in files], "path string").repartition(len(files))
    r = (
        df.mapInArrow(parse, "table string, hour string, blob binary")
        .repartition(4, "table")
        .mapInArrow(write, "t string, h string, n long")
        .collect()
    )
    print("warm sync", round(time.time() - t, 2), sum(x.n for x in r))


if len(sys.argv) > 3:
    job2()
spark.stop()
