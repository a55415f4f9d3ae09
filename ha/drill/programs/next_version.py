"""``ha`` as its next version would be: it writes ZooKeeper's records in another format.

Only for the drill of a rolling upgrade. Names in HDFS are what all versions share; whoever does not know a record's
format asks HDFS.
"""

from leader import checkpoint_state, information


def main() -> None:
    """Run the command line with the next format."""
    information.FORMAT += 1
    checkpoint_state.FORMAT += 1
    from ha.cli import main as run  # noqa: PLC0415  # after the change

    run()


if __name__ == "__main__":
    main()
