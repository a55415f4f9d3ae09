"""``ha host doctor``: examines what a contender needs on this host, and names a remedy for each gap."""
