"""``ha run``: contends for a job and runs its command while leading."""
