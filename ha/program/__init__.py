"""The channel between a sidecar and its program: small files on their host, each with both of its ends."""
