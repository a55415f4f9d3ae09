"""``ha host daemon`` contends without a command. Also here: HTTP and local services of all serving processes."""
