"""Writers that only note what they are told, in the place of PySpark's."""

from types import SimpleNamespace
from typing import Any

from ha.hook import guarding
from ha.hook.writer_calls import NOTED

HERE = "hdfs://names:8020/ha/orders/leader/spark"


class Writer:
    format: Any
    queryName: Any  # noqa: N815  # as PySpark calls it
    foreachBatch: Any  # noqa: N815
    foreach: Any

    def __init__(self, default: str = HERE) -> None:
        self.said: list[tuple[Any, ...]] = []
        self.settings: dict[str, str] = {guarding.LOCATION: default}
        self.properties: list[tuple[str, str | None]] = []
        context = SimpleNamespace(
            getLocalProperty=lambda _: None, setLocalProperty=lambda *said: self.properties.append(said)
        )
        conf = SimpleNamespace(get=lambda name, _: self.settings.get(name))
        self.active: list[str] = []
        jvm = SimpleNamespace(SparkSession=SimpleNamespace(setActiveSession=self.active.append))
        self._spark = SimpleNamespace(sparkContext=context, conf=conf, _jvm=jvm, _jsparkSession="its session")

    def start(self, *given: Any) -> str:
        self.said.append(("start", *given))
        return "query"

    def toTable(self, *given: Any) -> str:  # noqa: N802  # PySpark's
        self.said.append(("toTable", *given))
        return "query"


def _method(name: str) -> Any:
    def method(self: Writer, *given: Any, **named: Any) -> Writer:
        self.said.append((name, *given, *named.items()))
        return self

    return method


for each in NOTED:
    setattr(Writer, each, _method(each))
PLAIN = {name: value for name, value in vars(Writer).items() if name not in ("__dict__", "__weakref__")}
