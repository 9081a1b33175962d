"""The text of a page, as a reader sees it."""

import html
import re


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", text)))
