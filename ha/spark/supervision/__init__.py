"""Supervision of declared queries: started, watched, restarted by region, and shown."""
