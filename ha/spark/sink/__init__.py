"""The format ``ha``: a sink of streaming queries that publishes each batch once, for programs that import nothing."""
