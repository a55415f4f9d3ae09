"""The report of failover drills: index.html for people, report.json and events/*.jsonl to be queried."""
