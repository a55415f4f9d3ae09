"""The report of failover drills: what people see of them, and what they can query.

    outcomes + histories ──> writing ──┬── tables     events/*.parquet, one a drill
                                       ├── picture    one timeline a drill, inside the page
                                       ├── page       index.html, needs nothing but a browser
                                       ├── markdown   report.md, the tables of the page
                                       └──            report.json, to be read again

Nothing here judges: what an outcome says is shown, and what a history says is drawn beside it.
"""
