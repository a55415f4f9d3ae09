"""A Python data source of the program's own."""

import os
import uuid

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage


class FilesWriter(DataSourceStreamWriter):
    def __init__(self, folder):
        self.folder = folder

    def write(self, rows):
        with open(f"{self.folder}/{uuid.uuid4().hex}.txt", "w") as file:
            file.writelines(row.value + "\n" for row in rows)
        return WriterCommitMessage()

    def commit(self, messages, batch_id):
        pass

    def abort(self, messages, batch_id):
        pass


class Files(DataSource):
    @classmethod
    def name(cls):
        return "files"

    def streamWriter(self, schema, overwrite):
        return FilesWriter(self.options["folder"])


spark = SparkSession.builder.appName("python_sink").getOrCreate()
spark.dataSource.register(Files)
lines = spark.readStream.text(os.environ["IN"])
writer = lines.writeStream.queryName("orders").format("files").option("folder", os.environ["LOCAL"])
writer.start().awaitTermination()
