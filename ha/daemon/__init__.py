"""``ha daemon`` contends without a command. Also here: the HTTP API and local services of all serving processes."""
