"""All drills, by name, in the order in which they are listed and run."""

from ha.drill.catalogue import agent, both, hdfs, kills, machine, network, pauses, upgrade, zookeeper
from ha.drill.drill import Drill

DRILLS: dict[str, Drill] = {
    drill.name: drill
    for group in (kills, network, zookeeper, hdfs, both, pauses, machine, upgrade, agent)
    for drill in group.DRILLS
}
