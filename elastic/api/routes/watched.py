"""The job that a request is about."""

from typing import Annotated

from fastapi import Depends, Path, Request

from elastic.api.board import Board
from elastic.api.watcher import Watcher


async def _board(request: Request) -> Board:
    board: Board = request.app.state.board
    return board


Boarded = Annotated[Board, Depends(_board)]


def _watcher(board: Boarded, job: Annotated[str, Path(description="the job's name", max_length=100)]) -> Watcher:
    return board.find(job)


Watched = Annotated[Watcher, Depends(_watcher)]
MigrationNumber = Annotated[int, Path(ge=1, le=10**9, description="as /migrations numbers them")]
