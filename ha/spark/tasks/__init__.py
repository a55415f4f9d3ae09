"""Tasks of Spark: which job a task belongs to, and the settings that it was given."""
