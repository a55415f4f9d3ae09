"""Rewinds: a query's checkpoint and its outputs are put back to a batch, decided by one rename."""
