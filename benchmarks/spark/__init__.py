"""Benchmarks with real Spark."""
