"""Views of a job: the command line and the HTTP API show the same ones."""
