"""The protocol: names and records, lease, election, publication, retrieval. Knows nothing of processes or Spark."""
