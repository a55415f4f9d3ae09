"""NameNode groups: jobs that are spread over several file systems."""
