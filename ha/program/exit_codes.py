"""Exit codes of programs under ``ha run`` that end themselves; names and numbers are those of sysexits.h."""

JVM_ENDED = 70  # its JVM has ended; ``EX_SOFTWARE``
QUERY_STUCK = 75  # it has a query that does not stop; ``EX_TEMPFAIL``
