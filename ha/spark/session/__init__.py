"""The Spark session of a driver: its settings, its JVM, its defaults, and PySpark's private names."""
