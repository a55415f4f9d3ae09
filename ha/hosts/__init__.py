"""Hosts: what programs need of the host that they run on: a Java, a cache of files that are slow to get."""
