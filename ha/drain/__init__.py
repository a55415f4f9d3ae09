"""Draining a host: its contenders are barred, and what they lead is moved to others."""
