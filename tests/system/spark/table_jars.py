"""Jars of Delta and Iceberg for PySpark 4.1: the newest pairs; there are none for 4.3."""

from ha.sandbox.jars import Bundle

_DELTA, _ICEBERG = "4.4.0", "1.12.0"

DELTA = Bundle(
    f"delta-{_DELTA}-spark-4.1",
    tuple(
        ("io.delta", name, _DELTA)
        for name in (
            "delta-spark_4.1_2.13",
            "delta-storage",
            "delta-kernel-api",
            "delta-kernel-defaults",
            "delta-kernel-unitycatalog",
        )
    ),
    transitive=False,
    digest="6c7c3b2d0ae2f5bffc093c7ab995ea180403d2ba5b2ffd99acdcb38a02eed1a3",
    megabytes=13,
)

ICEBERG = Bundle(
    f"iceberg-{_ICEBERG}-spark-4.1",
    (("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", _ICEBERG),),
    transitive=False,
    digest="4cadc395521b52eb2981e2c83eb774adee20bf2c44c3d5183ad8bef278a078c5",
    megabytes=48,
)
