"""Commands whose driver would run on another host are refused, and no others."""

from pathlib import Path

import pytest

from ha.sidecar.command.spark_submit import check_place, default_files, deploy_mode, python_variables
from leader.errors import InvalidSettings

CLUSTER = "spark.submit.deployMode"


@pytest.mark.parametrize(
    ("command", "mode"),
    [
        ("spark-submit --deploy-mode cluster orders.py", "cluster"),
        ("/opt/spark/bin/spark-submit --master yarn --deploy-mode=cluster orders.py", "cluster"),
        ("env X=1 nice spark-submit -v --supervise --deploy-mode cluster orders.py", "cluster"),
        (f"spark-submit --conf {CLUSTER}=cluster orders.py", "cluster"),
        (f"spark-submit -c {CLUSTER}=cluster orders.py", "cluster"),
        (f"spark-submit --conf={CLUSTER}=cluster orders.py", "cluster"),
        (f"spark-submit --deploy-mode client --conf {CLUSTER}=cluster orders.py", "client"),
        ("spark-submit --deploy-mode cluster --deploy-mode client orders.py", "client"),
        ("spark-submit --master yarn orders.py", ""),
        ("spark-submit --name --deploy-mode orders.py --deploy-mode cluster", ""),
        ("spark-submit --version --deploy-mode cluster", "cluster"),
        ("spark-submit orders.py --deploy-mode cluster", ""),
        ("python orders.py --deploy-mode cluster", ""),
        ("spark-submit --deploy-mode", ""),
        ("spark-submit --conf nothing", ""),
    ],
)
def test_where_a_command_starts_its_driver(command: str, mode: str) -> None:
    assert deploy_mode(command.split(), {}, None) == mode


@pytest.mark.parametrize(
    "line", [f"{CLUSTER} cluster", f"  {CLUSTER}=cluster ", f"{CLUSTER}: cluster", f"a b\n{CLUSTER}\tcluster\n"]
)
def test_files_say_it_too(tmp_path: Path, line: str) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_text(f"# {CLUSTER} client\n{line}\n")
    assert deploy_mode(["spark-submit", "orders.py"], {}, file) == "cluster"
    assert deploy_mode(["spark-submit", "--properties-file", str(file), "orders.py"], {}, None) == "cluster"
    assert deploy_mode(["spark-submit", "--deploy-mode", "client", "orders.py"], {}, file) == "client"
    other = tmp_path / "other.conf"
    other.write_text("spark.master yarn\n")
    chosen = ["spark-submit", "--properties-file", str(other)]
    assert deploy_mode([*chosen, "orders.py"], {}, file) == "", "Spark does not read its defaults then"
    assert deploy_mode([*chosen, "--load-spark-defaults", "orders.py"], {}, file) == "cluster"
    assert deploy_mode(["spark-submit", "--properties-file", "no/where"], {}, None) == ""


def test_the_environment_counts_last() -> None:
    assert deploy_mode(["spark-submit", "orders.py"], {"DEPLOY_MODE": "cluster"}, None) == "cluster"
    assert (
        deploy_mode(["spark-submit", "--deploy-mode", "client", "o.py"], {"DEPLOY_MODE": "cluster"}, None) == "client"
    )


def test_it_is_refused_with_one_sentence() -> None:
    with pytest.raises(InvalidSettings, match="the driver runs on another host, where no guard can end it"):
        check_place(["spark-submit", "--deploy-mode", "cluster", "orders.py"], {}, None)
    check_place(["spark-submit", "--deploy-mode", "client", "orders.py"], {}, None)


def test_where_paths_are_that_name_no_file_system(tmp_path: Path) -> None:
    file, name = tmp_path / "spark-defaults.conf", "spark.hadoop.fs.defaultFS"
    file.write_text(f"{name} hdfs://b:8020/\n")
    hadoop = {"fs.defaultFS": "hdfs://c:8020"}
    by_option = ["spark-submit", "--conf", f"{name}=hdfs://a:8020", "orders.py"]
    assert default_files(by_option, file, lambda: hadoop) == "hdfs://a:8020"
    assert default_files(["spark-submit", "orders.py"], file, lambda: hadoop) == "hdfs://b:8020"
    assert default_files(["python", "orders.py"], file, lambda: hadoop) == "hdfs://b:8020"
    assert default_files(["python", "orders.py"], None, lambda: hadoop) == "hdfs://c:8020"
    assert default_files(["python", "orders.py"], None, dict) == ""


def test_the_program_has_the_modules_and_the_workers_python_that_spark_submit_gives(tmp_path: Path) -> None:
    """As Spark's ``PythonRunner``: also before a session is built."""
    for name in ("rules.zip", "more-1.egg", "one.py", "two.py", "other.txt"):
        (tmp_path / name).write_text(name)
    copies, others, defaults = tmp_path / "copies", {"PYTHONPATH": "/others"}, tmp_path / "spark-defaults.conf"

    def of(command: str, environment: dict[str, str]) -> dict[str, str]:
        return python_variables(command.replace("@", str(tmp_path)).split(), environment, defaults, copies)

    found = of("spark-submit --py-files @/rules.zip,file:@/one.py,file://@/t*.py,hdfs://n/a.zip a.py", others)
    assert found == {"PYTHONPATH": f"{tmp_path}/rules.zip:{copies}:/others"}
    assert sorted(each.name for each in copies.iterdir()) == ["one.py", "two.py"]
    conf = "spark-submit --conf spark.submit.pyFiles=@/more-1.egg --conf spark.pyspark.python=p a.py"
    assert of(conf, {}) == {"PYTHONPATH": f"{tmp_path}/more-1.egg", "PYSPARK_PYTHON": "p"}
    (tmp_path / "conf").write_text(f"spark.pyspark.python p\nspark.submit.pyFiles={tmp_path}/rules.zip\n")
    of_file = of("spark-submit --properties-file @/conf a.py", {})
    assert of_file == {"PYTHONPATH": f"{tmp_path}/rules.zip", "PYSPARK_PYTHON": "p"}
    for command in ("spark-submit a.py --py-files @/rules.zip", "python a.py", "spark-submit --py-files @/no.zip a.py"):
        assert of(command, others) == {}
    defaults.write_text(f"spark.pyspark.python of-all\nspark.submit.pyFiles={tmp_path}/rules.zip\n")
    of_all = {"PYTHONPATH": f"{tmp_path}/rules.zip:/others", "PYSPARK_PYTHON": "of-all"}
    assert (of("spark-submit a.py", others), of("python a.py", others)) == (of_all, {})
