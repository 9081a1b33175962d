"""A Strimzi resource: which of several is read, and what is refused without a word of what it holds."""

import pytest
import yaml

from migrate.cli.options import resolve_flow
from migrate.errors import ConfigError
from tests.facts import options
from tests.unit.connectscene import strimzi, strimzi_file


def test_a_list_of_resources_and_several_documents_are_searched_for_the_flow(tmp_path):
    other = yaml.safe_load(yaml.safe_dump(strimzi({})).replace("alias: A", "alias: Z").replace(": A\n", ": Z\n"))
    path = strimzi_file(tmp_path, {"kind": "List", "items": [other]}, None, strimzi({}))
    assert resolve_flow(options(strimzi=path)).source.alias == "A"
    assert resolve_flow(options(strimzi=path, source="Z")).source.alias == "Z"


@pytest.mark.parametrize("form", ["v1beta2", "v1"])
def test_the_patterns_of_a_mirror_and_the_version_of_a_resource_are_read_in_either_form(tmp_path, form):
    flow = resolve_flow(options(strimzi=strimzi_file(tmp_path, strimzi({"topics": "orders", "groups": "g"}, form))))
    assert flow.topic_filter.accepts("orders") and not flow.topic_filter.accepts("bills")
    assert flow.group_filter.accepts("g") and not flow.group_filter.accepts("h")
    assert (flow.runtime.home, flow.runtime.version) == ("strimzi", "4.0.0")


@pytest.mark.parametrize("text", ["kind: [hunter2", "\xff\xfe", "kind: KafkaMirrorMaker2\nspec: {mirrors: hunter2}\n"])
def test_what_is_no_such_resource_is_refused_without_a_word_of_what_it_holds(tmp_path, text):
    path = tmp_path / "mm2.yaml"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError) as caught:
        resolve_flow(options(strimzi=path))
    assert str(path) in str(caught.value) and "hunter2" not in str(caught.value)
