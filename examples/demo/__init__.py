"""The demo: PySpark jobs that survive kill -9, a ZooKeeper outage and a frozen leader."""
