"""Standby: verifies and replicates checkpoints while another contender leads."""
