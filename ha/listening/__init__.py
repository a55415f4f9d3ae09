"""Listening sockets that a flood of connections cannot exhaust, and the HTTP server on them."""
