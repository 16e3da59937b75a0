"""What a data engineer would write in plain PySpark: read.json (schema inferred), dropDuplicates(messageId), one Parquet table per event type
partitioned by day/hr. usage: peer_spark.py RAW_DIR OUT_DIR"""

import sys, time, shutil
from pyspark.sql import SparkSession, functions as F

raw, out = sys.argv[1:3]
shutil.rmtree(out, ignore_errors=True)
t00 = time.time()
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "6g")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.sql.parquet.compression.codec", "zstd")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
t0 = time.time()
print("startup", round(t0 - t00, 2))
df = spark.read.json(raw + "/*.gz")
df = (
    df.dropDuplicates(["messageId"])
    .withColumn(
        "tbl",
        F.when(
            F.col("type") == "track",
            F.concat(F.lit("track_"), F.lower(F.regexp_replace("event", "[^a-zA-Z0-9]+", "_"))),
        ).otherwise(F.col("type")),
    )
    .withColumn("day", F.substring("receivedAt", 1, 10))
    .withColumn("hr", F.substring("receivedAt", 12, 2))
    .persist()
)
tables = [r[0] for r in df.select("tbl").distinct().collect()]
for t in tables:
    df.where(F.col("tbl") == t).drop("tbl").coalesce(1).write.partitionBy("day", "hr").parquet(
        f"{out}/segment_type={t}"
    )
print("tables", len(tables), "wall", round(time.time() - t0, 2))
spark.stop()
