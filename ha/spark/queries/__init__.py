"""The queries of a driver: their events, failures, ends and reports, and their published batches."""
