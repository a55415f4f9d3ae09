"""Data of a job behind the fence: only the job's leader can write it."""
