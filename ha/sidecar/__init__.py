"""``ha run``: contends for a job and runs its command while leading."""

from ha.hosts import own_packages

own_packages.put_first()
