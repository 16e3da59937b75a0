"""dlt: raw gz NDJSON -> Parquet on a filesystem destination, one table per event type, flattened, merge-free append, dedup not included.
usage: peer_dlt.py RAW_DIR OUT_DIR MAXEVENTS"""

import sys, time, glob, gzip, os, shutil, orjson, resource
import dlt

raw, out, n = sys.argv[1], os.path.abspath(sys.argv[2]), int(sys.argv[3])
shutil.rmtree(out, ignore_errors=True)
os.environ["DESTINATION__FILESYSTEM__BUCKET_URL"] = "file://" + out
os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"


def events():
    k = 0
    for f in sorted(glob.glob(raw + "/*.gz")):
        for l in gzip.open(f):
            if k >= n:
                return
            k += 1
            yield orjson.loads(l)


t = time.time()
p = dlt.pipeline("peer", destination="filesystem", dataset_name="lake", pipelines_dir=out + "_p")


@dlt.resource(
    table_name=lambda e: ("track_" + e["event"]) if e["type"] == "track" else e["type"],
    write_disposition="append",
)
def ev():
    yield from events()


p.run(ev(), loader_file_format="parquet")
r = resource.getrusage(resource.RUSAGE_SELF)
c = resource.getrusage(resource.RUSAGE_CHILDREN)
print(
    "wall",
    round(time.time() - t, 2),
    "cpu",
    round(r.ru_utime + r.ru_stime + c.ru_utime + c.ru_stime, 2),
)
shutil.rmtree(out + "_p", ignore_errors=True)
