"""Views of a job: the command line and the HTTP API show the same ones.

Every function that takes a job raises ``NoLeader`` if there is no such job, ``InvalidName`` if it is no name of a job,
and a :class:`store.errors.StoreError` if the file system does not answer.
"""
