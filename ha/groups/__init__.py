"""NameNode groups: jobs that are spread over several file systems, and moved between them."""
