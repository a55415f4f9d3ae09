"""The sandbox's one error."""


class SandboxError(Exception):
    """Something about the sandbox did not work; the message is one sentence for people."""
