"""A launcher in Python that runs spark-submit."""

import os
import subprocess
import sys

program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files_to_files.py")
sys.exit(subprocess.run(["spark-submit", "--conf", "spark.sql.shuffle.partitions=2", program]).returncode)
