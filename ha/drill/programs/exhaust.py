"""Takes memory until the kernel ends a Java virtual machine, and lets go of it then.

Of all processes of the container that one was made the first to go (``strike ... expose``).
"""

import sys

from ha.drill.programs.strike import find

STEP = 16 * 2**20


def main() -> None:
    """Take it all."""
    taken = []
    while any(find(1, "jvm")):
        taken.append(b"x" * STEP)
    sys.stdout.write(f"{len(taken) * STEP} bytes were taken.\n")


if __name__ == "__main__":
    main()
