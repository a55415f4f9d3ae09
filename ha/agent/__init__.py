"""The agent: answers lookups for all processes of its host, by a file per job that any of them reads in microseconds.

What it does NOT promise: that an answer is still true. A snapshot says what a store told the agent, and until when it
may be passed on; the epoch in it lets the other side refuse what comes from the past, as with any other answer.
"""
