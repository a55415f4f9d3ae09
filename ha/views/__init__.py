"""What people are shown of a job: the same for the command line and for the HTTP API."""
