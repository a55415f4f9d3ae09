"""The report of failover drills: what people see of them, and what they can query.

    outcomes + histories ──> writing ──┬── tables     events/*.parquet, one for each drill
                                       ├── picture    one timeline for each drill, inside the page
                                       ├── pages      index.html, and its tables as report.md
                                       └──            report.json, to be read again

Nothing here judges: the report shows what an outcome says, and draws what its history says.
"""
