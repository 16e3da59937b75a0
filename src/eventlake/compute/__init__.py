"""Where a sync runs: the Java and Spark it needs, started fast and stopped for certain."""
