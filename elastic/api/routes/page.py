"""The live page: a few files, and nothing from anywhere else."""

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

_FILES = Path(__file__).parents[1] / "page"
_HEADERS = {"Cache-Control": "no-cache"}  # asked for again, and answered with "not modified"

page = APIRouter(include_in_schema=False)


@page.get("/")
def index() -> FileResponse:
    return FileResponse(_FILES / "index.html", media_type="text/html; charset=utf-8", headers=_HEADERS)


def files() -> StaticFiles:
    return StaticFiles(directory=_FILES)
