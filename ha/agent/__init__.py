"""The agent: answers lookups for all processes of its host, with one file a job that they read within microseconds.

What it does NOT promise: that an answer is still true. A snapshot says what a store told the agent, and until when it
may be used. Its epoch lets the other side refuse what comes from the past, as with any other answer.
"""
