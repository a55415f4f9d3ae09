"""A driver that the JVM calls for each batch and event: called.py FOLDER. It imports something of ours if it leads.

It writes into FOLDER: ``port`` of those calls, the number of each ``batch``, that of each ``event``, and the ``ports``
of its session by their names. It ends when FOLDER/end is there. It leads the job that the variable CALLED_LEADS names,
by declared queries if CALLED_DECLARES is set.
"""

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.readwriter import DataStreamWriter

folder, job = Path(sys.argv[1]), os.environ.get("CALLED_LEADS")
if job:
    import ha.spark


def note(name: str, text: object) -> None:
    (folder / f".{name}").write_text(f"{text}")
    (folder / f".{name}").rename(folder / name)


class Listener(StreamingQueryListener):
    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """A query starts."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing is to do."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """A query has ended."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        note("event", event.progress.batchId)


def batch(frame: DataFrame, number: int) -> None:
    frame.rdd.map(str).count()
    gateway: Any = frame.sparkSession.sparkContext._gateway
    note("port", gateway._callback_server.port)
    note("batch", number)


def rows(session: SparkSession, _: object = None) -> DataStreamWriter:
    read = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    return read.writeStream.queryName("rows").foreachBatch(batch)


def ports(session: SparkSession) -> dict[str, int]:
    """Return the ports on which this program and its JVM listen, as far as they can be asked for."""
    context: Any = session.sparkContext
    return {
        "gateway": context._gateway.gateway_parameters.port,
        "callbacks": context._gateway._callback_server.port,
        "driver": int(context.getConf().get("spark.driver.port")),
        "blocks": int(context._jsc.sc().getExecutorMemoryStatus().keys().head().rpartition(":")[2]),
        "pages": int(context.uiWebUrl.rpartition(":")[2]),
        "accumulators": context._accumulatorServer.server_address[1],
    }


spark = SparkSession.builder.master("local[1]").getOrCreate()
spark.streams.addListener(Listener())
note("ports", json.dumps(ports(spark)))
if job and os.environ.get("CALLED_DECLARES"):
    declared = ha.spark.Job(job)
    declared.query(name="rows")(rows)
    declared.run(spark)
with ha.spark.lead(job, spark) if job else nullcontext():
    query = rows(spark).start()
    while not query.awaitTermination(1):
        if (folder / "end").exists():
            query.stop()
