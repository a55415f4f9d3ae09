"""Draining a host: bars its contenders, and moves their jobs to others."""
