"""What a data engineer would write with DuckDB alone: raw gz NDJSON -> deduped, flattened, partitioned Parquet per event type.
usage: peer_duckdb.py RAW_DIR OUT_DIR"""

import sys, time, shutil, duckdb, os

raw, out = sys.argv[1:3]
shutil.rmtree(out, ignore_errors=True)
os.makedirs(out)
t0 = time.time()
c = duckdb.connect()
c.execute("set threads=2; set preserve_insertion_order=false")
c.execute(f"""create temp table e as select json, json->>'messageId' mid, (json->>'receivedAt')::timestamptz r,
  case when json->>'type'='track' then 'track_'||lower(regexp_replace(json->>'event','[^a-zA-Z0-9]+','_','g')) else json->>'type' end t
  from read_ndjson_objects('{raw}/*.gz')""")
c.execute(
    "create temp table d as select * from e qualify row_number() over (partition by mid order by r)=1"
)
print("dedup", time.time() - t0)
n = 0
for (t,) in c.execute("select distinct t from d").fetchall():
    s = c.execute("select json_group_structure(json) from d where t=?", [t]).fetchone()[0]
    j = c.execute(
        "select json_transform(json, ?) x, strftime(r,'%Y-%m-%d') as day, strftime(r,'%H') as hr from d where t=?",
        [s, t],
    )
    s2 = s.replace("'", "''")
    c.execute(f"""copy (select unnest(json_transform(json, '{s2}'), recursive:=true), strftime(r,'%Y-%m-%d') as day, strftime(r,'%H') as hr from d where t='{t}')
      to '{out}/segment_type={t}' (format parquet, compression zstd, partition_by (day, hr))""") if False else c.execute(f"""copy (select json_transform(json, '{s2}') as ev, strftime(r,'%Y-%m-%d') as day, strftime(r,'%H') as hr from d where t='{t}')
      to '{out}/segment_type={t}' (format parquet, compression zstd, partition_by (day, hr))""")
    n += 1
print("tables", n, "wall", round(time.time() - t0, 2), "cpu", round(time.process_time(), 2))
