"""The variables of the environment by which a sidecar tells its program what it needs, besides settings.

A program that is none of that job's must not find them.
"""

PROGRAM = {
    "HA_BELIEF": "file that says how long the leadership lasts at least; see :mod:`ha.program.deadline_file`",
    "HA_ENGINE": "number of this start of the program by its engine, 0 in the JVM; empty without one",
    "HA_EPOCH": "number of the leadership; empty before the grant",
    "HA_EXCLUDED_HOSTS": "hosts on which Spark is to start no executors",
    "HA_GRANT": "file in which the grant will be, for a warm program; see :mod:`ha.program.grant_file`",
    "HA_HEARTBEAT": "file that the driver writes as long as it lives; see :mod:`ha.program.heartbeat`",
    "HA_JOB": "name of the job",
    "HA_LEADER_DIRECTORY": "URI of the leader directory; empty before the grant",
    "HA_QUERIES": "file in which the driver reports on its queries; see :mod:`ha.program.query_report`",
    "HA_RESTART": "file in which the sidecar asks for restarts of queries; see :mod:`ha.program.request_file`",
    "HA_SESSION_ID": "session id of the leadership; empty before the grant",
    "HA_SETTLE": "file by which the queries are asked to come to rest; see :mod:`ha.program.settle_file`",
    "HA_SPARK_JVM": "file in which ``spark-env.sh`` notes the JVM; see :mod:`ha.sidecar.command.jvm_watch`",
}
"""Their meanings, by name; ``docs/program.md`` says how a program in another language uses them."""
