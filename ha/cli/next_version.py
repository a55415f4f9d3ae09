"""``ha`` as its next version would be: it writes ZooKeeper's records in another format.

Only for the drill of a rolling upgrade. All versions share the names in HDFS; a reader that does not know the format of
a record asks HDFS.
"""

from leader.layout import checkpoint_state, information


def main() -> None:
    """Run the command line with the next format."""
    information.FORMAT += 1
    checkpoint_state.FORMAT += 1
    from ha.cli.commands import main as run  # noqa: PLC0415  # after the change

    run()


if __name__ == "__main__":
    main()
