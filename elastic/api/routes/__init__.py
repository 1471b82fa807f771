"""Where requests arrive. A handler parses, calls and renders."""

from elastic.api.routes.changing import changing
from elastic.api.routes.following import following
from elastic.api.routes.page import page
from elastic.api.routes.reading import reading

__all__ = ["changing", "following", "page", "reading"]
