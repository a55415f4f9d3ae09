"""The block of a driver program that leads, and its rehearsal."""
