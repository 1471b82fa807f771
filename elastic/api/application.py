"""The application: routes behind the door."""

from fastapi import FastAPI

from elastic import __version__
from elastic.api import problems
from elastic.api.access import Names, Token
from elastic.api.board import Board
from elastic.api.door import Door
from elastic.api.routes import changing, following, page, reading
from elastic.api.routes.following import Listeners
from elastic.api.routes.page import files

PREFIX = "/api/v1"


def application(board: Board, names: Names, token: Token) -> FastAPI:
    """Everything but the socket; whoever calls it starts the watchers of the board."""
    app = FastAPI(
        title="spark-elastic",
        version=__version__,
        description="Look at running jobs, plan, and change their number of nodes. Changes need the server's token.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
    )
    app.state.board = board
    app.state.listeners = Listeners()
    problems.install(app)
    for router in (reading, changing, following):
        app.include_router(router, prefix=PREFIX)
    app.include_router(page)
    app.mount("/page", files())
    app.add_middleware(Door, names=names, token=token)
    return app
