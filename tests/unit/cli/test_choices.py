"""`--group-map`: a file of names or the plan that renamed, as the groups go; backwards on the way back."""

import pytest

from migrate.cli.choices import MovedGroupOptions
from migrate.errors import UsageError
from migrate.plan.file import write_plan
from tests.builders import make_plan, make_row


@pytest.fixture
def file(tmp_path):
    def written(*lines: str):
        (tmp_path / "names.csv").write_text("\n".join(lines))
        return MovedGroupOptions(group_map=tmp_path / "names.csv")

    return written


@pytest.fixture
def plan_file(tmp_path):
    def written(*rows, **header):
        write_plan(make_plan(rows, **header), tmp_path / "cutover.plan")
        return MovedGroupOptions(group_map=tmp_path / "cutover.plan")

    return written


def test_a_file_is_read_as_the_groups_go_and_backwards_on_the_way_back(file):
    options = file("source_group,target_group", "orders,orders-eu")
    assert options.names().mapped("orders") == "orders-eu"
    back = options.names(failback=True)
    assert (back.mapped("orders-eu"), back.mapped("orders")) == ("orders", "orders")


def test_an_expression_cannot_be_read_backwards_and_the_plan_is_named_instead(file):
    options = file(r"regex:(.*),\1-eu")
    assert options.names().mapped("a") == "a-eu"
    with pytest.raises(UsageError, match="cannot be read backwards.*name the plan that was applied"):
        options.names(failback=True)


def test_two_lines_to_one_name_cannot_be_read_backwards(file):
    with pytest.raises(UsageError, match=r"line 3 \(b\): a becomes x too"):
        file("source_group,target_group", "a,x", "b,x").names(failback=True)


def test_a_plan_names_its_groups_and_on_the_way_back_its_own_rows_say_where_each_came_from(plan_file):
    options = plan_file(make_row("orders", target_group="orders-eu"), make_row("plain"))
    assert options.names().mapped("orders") == "orders-eu"
    back = options.names(failback=True)
    assert (back.mapped("orders-eu"), back.mapped("plain")) == ("orders", "plain")


def test_the_plan_of_a_way_back_is_read_backwards_on_the_way_there(plan_file):
    options = plan_file(make_row("orders-eu", target_group="orders"), failback=True)
    assert options.names().mapped("orders") == "orders-eu"
    assert options.names(failback=True).mapped("orders-eu") == "orders"


def test_a_plan_that_renames_nothing_and_a_file_that_is_not_there_are_refused(plan_file, tmp_path):
    assert not MovedGroupOptions().names()
    with pytest.raises(UsageError, match="every group of this plan keeps its name"):
        plan_file(make_row("orders")).names()
    with pytest.raises(UsageError, match="--group-map .*none.csv cannot be read"):
        MovedGroupOptions(group_map=tmp_path / "none.csv").names()


def test_a_plans_map_holds_between_its_clusters_alone_and_a_files_anywhere(file, plan_file):
    options = plan_file(make_row("orders", target_group="x"), source_cluster_id="a", target_cluster_id="b")
    assert options.names().clusters == options.names(failback=True).clusters == {"a", "b"}
    down = plan_file(make_row("orders", target_group="x"), source_cluster_id="", target_cluster_id="b")
    assert down.names().clusters == {"b"}
    assert not file("source_group,target_group", "orders,x").names().clusters
