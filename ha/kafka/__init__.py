"""Kafka: settings of its clients, and the places that a topic has, and shards that are sent once."""
