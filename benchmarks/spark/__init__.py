"""Real Spark drivers under real sidecars: how long a failover takes, and whether a hundred of them lose a row."""
