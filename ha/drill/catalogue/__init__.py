"""All drills by name, in the order in which they are listed and run."""

from ha.drill.catalogue import hdfs, jobs, machine, network, processes, zookeeper
from ha.drill.drill import Drill

DRILLS: dict[str, Drill] = {
    drill.name: drill for group in (processes, jobs, network, zookeeper, hdfs, machine) for drill in group.DRILLS
}
