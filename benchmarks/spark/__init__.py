"""Benchmarks with real Spark: drivers under real sidecars, on real HDFS and ZooKeeper."""
