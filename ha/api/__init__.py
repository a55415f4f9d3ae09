"""The HTTP API of a sidecar, daemon or agent: probes, jobs, requests, an event stream, metrics, and the web page."""
