"""A Connect worker with connectors, and a Strimzi resource, for tests that read from one."""

import yaml

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


def rest(listed, version="4.1.0", **more):
    return {"/": {"version": version, "commit": "x", "kafka_cluster_id": "y"}, "/connectors?expand=info": listed} | more


def strimzi(settings, form="v1beta2", version="4.0.0", name="mm2", **cluster):
    a = {"alias": "A", "bootstrapServers": "a:1", **cluster}
    b = {"alias": "B", "bootstrapServers": "b:1"}
    rest_of = {k: v for k, v in settings.items() if k not in ("topics", "topics.exclude", "groups", "groups.exclude")}
    mirror = {
        "sourceConnector": {"tasksMax": 2, "config": rest_of},
        "checkpointConnector": {"config": {k: yaml.safe_load(v) if v == "true" else v for k, v in rest_of.items()}},
    }
    for key, pattern in (("topics", "topicsPattern"), ("topics.exclude", "topicsExcludePattern"),
                         ("groups", "groupsPattern"), ("groups.exclude", "groupsExcludePattern")):  # fmt: skip
        if key in settings:
            mirror[pattern] = settings[key]
    spec = {"version": version, "replicas": 1}
    if form == "v1beta2":
        spec |= {"connectCluster": "B", "clusters": [a, b]}
        spec["mirrors"] = [{"sourceCluster": "A", "targetCluster": "B"} | mirror]
    else:
        spec |= {"target": b | {"groupId": "g", "offsetStorageTopic": "its-offsets"}}
        spec["mirrors"] = [{"source": a} | mirror]
    return {"kind": "KafkaMirrorMaker2", "metadata": {"name": name, "namespace": "kafka"}, "spec": spec}


def strimzi_file(tmp_path, *documents):
    path = tmp_path / "mm2.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return path
