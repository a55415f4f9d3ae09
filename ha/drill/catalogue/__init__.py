"""All drills by name, in the order in which they are listed and run."""

from ha.drill.catalogue import (
    checkpoints,
    clusters,
    hdfs,
    jobs,
    machine,
    network,
    processes,
    queries,
    requests,
    zookeeper,
)
from ha.drill.drill import Drill

_GROUPS = (processes, jobs, queries, requests, checkpoints, clusters, network, zookeeper, hdfs, machine)

DRILLS: dict[str, Drill] = {drill.name: drill for group in _GROUPS for drill in group.DRILLS}
