"""The two stores: a tree of names (HDFS, or a directory) and ZooKeeper. Knows nothing of leaders."""
