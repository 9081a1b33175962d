"""The lab, for what is only the scenes' of `follow`."""

from tests.lab.fixtures import external_lab, lab, lab_factory

__all__ = ["external_lab", "lab", "lab_factory"]
