"""Adapters over confluent-kafka: the admin client behind `migrate.ports`."""
