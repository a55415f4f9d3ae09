"""The demo: a PySpark word count that survives kill -9, a ZooKeeper outage and a frozen leader."""
