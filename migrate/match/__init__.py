"""The laws over one partition and its copy: two logs and pairs of offsets, neither MM2 nor Spark. Pure."""
