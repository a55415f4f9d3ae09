"""Exit codes with which a program under ``ha run`` ends itself; names and numbers are those of sysexits.h."""

JVM_ENDED = 70
"""Its JVM has ended; ``EX_SOFTWARE``."""

QUERY_STUCK = 75
"""It has a query that does not stop; ``EX_TEMPFAIL``."""
