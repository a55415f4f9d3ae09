"""Outputs: records the files of each published batch, moves them to their places, and checks that they are there."""
