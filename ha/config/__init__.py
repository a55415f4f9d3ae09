"""Settings, and the stores and addresses that they name."""
