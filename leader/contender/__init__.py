"""Drives the election: threads, timers, sockets and the calls of stores."""
