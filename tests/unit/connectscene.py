"""A Connect worker with connectors, for tests that read from one."""

MIRROR = "org.apache.kafka.connect.mirror"


def connectors(settings, source="A", target="B", name="copy", **more):
    """What `GET /connectors?expand=info` answers."""
    common = {
        "source.cluster.alias": source,
        "target.cluster.alias": target,
        "source.cluster.bootstrap.servers": "a:1",
        "target.cluster.bootstrap.servers": "b:1",
        **settings,
        **more,
    }
    kinds = ("Source", "Checkpoint", "Heartbeat")
    return {
        f"{name}-{kind}": {
            "info": {"config": common | {"connector.class": f"{MIRROR}.Mirror{kind}Connector"}, "type": "source"}
        }
        for kind in kinds
    } | {"other": {"info": {"config": {"connector.class": "io.x.S3Sink", "aws.secret": "hunter2"}}}}


def rest(listed, **more):
    return {"/": {"version": "4.1.0", "commit": "x", "kafka_cluster_id": "y"}, "/connectors?expand=info": listed} | more
