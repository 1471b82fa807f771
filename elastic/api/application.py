"""The FastAPI application: routes and page files behind the request guard."""

from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from elastic import __version__
from elastic.api import problems
from elastic.api.access import AllowedHosts, Token
from elastic.api.guard import RequestGuard
from elastic.api.registry import JobRegistry
from elastic.api.routes import changes, events, reads

PREFIX = "/api/v1"
_PAGE_FILES = Path(__file__).parent / "page"
_PAGE_HEADERS = {"Cache-Control": "no-cache"}  # the browser revalidates it, and gets "not modified"

_page = APIRouter(include_in_schema=False)


@_page.get("/")
def index() -> FileResponse:
    return FileResponse(_PAGE_FILES / "index.html", media_type="text/html; charset=utf-8", headers=_PAGE_HEADERS)


def create_application(registry: JobRegistry, hosts: AllowedHosts, token: Token) -> FastAPI:
    """Return the application without a socket; the caller starts the watchers of the registry."""
    app = FastAPI(
        title="spark-elastic",
        version=__version__,
        description="Monitor running jobs, plan migrations, and scale jobs. Changes need the server's token.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # they load scripts from other sites
        redoc_url=None,
    )
    app.state.registry = registry
    app.state.listeners = events.Listeners()
    problems.install_handlers(app)
    for routes in (reads, changes, events):
        app.include_router(routes.router, prefix=PREFIX)
    app.include_router(_page)
    app.mount("/page", StaticFiles(directory=_PAGE_FILES))
    app.add_middleware(RequestGuard, hosts=hosts, token=token)
    return app
