"""Errors as answers: one table of statuses, one shape (RFC 9457), and what to do in every one of them."""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from elastic.api import errors as api
from elastic.errors import (
    ElasticError,
    InvalidRequest,
    JobStopped,
    MigrationRunning,
    StateUnavailable,
    TooFewSlots,
)
from mdp.errors import MdpError
from migration.errors import MigrationError
from storage.errors import InvalidStorageInput, StorageError

_log = logging.getLogger(__name__)

# The first entry that an error is an instance of counts; what is not here is nobody's intention, and a 500.
STATUSES: Mapping[type[Exception], HTTPStatus] = {
    api.NotAllowed: HTTPStatus.UNAUTHORIZED,
    api.ForeignPage: HTTPStatus.FORBIDDEN,
    api.NotServed: HTTPStatus.NOT_FOUND,
    api.UnknownMigration: HTTPStatus.NOT_FOUND,
    api.MigrationOver: HTTPStatus.CONFLICT,
    MigrationRunning: HTTPStatus.CONFLICT,
    JobStopped: HTTPStatus.CONFLICT,
    api.TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    api.ForeignHost: HTTPStatus.MISDIRECTED_REQUEST,
    InvalidRequest: HTTPStatus.UNPROCESSABLE_ENTITY,
    TooFewSlots: HTTPStatus.UNPROCESSABLE_ENTITY,
    MigrationError: HTTPStatus.UNPROCESSABLE_ENTITY,  # the planner's: what it refuses was asked for
    MdpError: HTTPStatus.UNPROCESSABLE_ENTITY,
    InvalidStorageInput: HTTPStatus.UNPROCESSABLE_ENTITY,  # the name of a table that no store could hold
    StateUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    api.TooManyListeners: HTTPStatus.SERVICE_UNAVAILABLE,
    StorageError: HTTPStatus.SERVICE_UNAVAILABLE,
    ElasticError: HTTPStatus.SERVICE_UNAVAILABLE,
}
_MEDIA_TYPE = "application/problem+json"
_HEADERS: Mapping[HTTPStatus, Mapping[str, str]] = {
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": "Bearer"},
    HTTPStatus.SERVICE_UNAVAILABLE: {"Retry-After": "1"},
}


class Problem(BaseModel):
    """Why a request was refused; `type` names the error, `detail` ends with what to do."""

    type: str = Field(examples=["urn:elastic:MigrationRunning"])
    title: str
    status: int
    detail: str
    facts: dict[str, Any] = Field(default_factory=dict, description="the error's numbers and names")

    @classmethod
    def of(cls, error: Exception) -> "Problem":
        status = status_of(error)
        return cls(
            type=f"urn:elastic:{type(error).__name__}",
            title=status.phrase,
            status=status,
            detail=str(error),
            facts={name: value for name, value in vars(error).items() if _plain(value)},
        )


def status_of(error: Exception) -> HTTPStatus:
    found = (status for kind, status in STATUSES.items() if isinstance(error, kind))
    return next(found, HTTPStatus.INTERNAL_SERVER_ERROR)


def answer(problem: Problem, headers: Mapping[str, str] | None = None) -> JSONResponse:
    status = HTTPStatus(problem.status)
    known = {**_HEADERS.get(status, {}), **(headers or {})}
    return JSONResponse(problem.model_dump(), status, known, _MEDIA_TYPE)


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For the OpenAPI description of a route: which problems it may answer with."""
    content = {_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}


def install(app: FastAPI) -> None:
    """Let every error of the engine, of the checks at the door and of the framework be answered in one shape."""
    for kind in STATUSES:
        app.add_exception_handler(kind, _intended)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _framework)
    app.add_exception_handler(Exception, _unexpected)


async def _intended(_: Request, error: Exception) -> JSONResponse:
    return answer(Problem.of(error))


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    found: Sequence[Any] = error.errors() if isinstance(error, RequestValidationError) else ()
    told = [{"where": ".".join(map(str, one["loc"])), "why": str(one["msg"])} for one in found]
    said = "; ".join(f"{one['where']}: {one['why']}" for one in told)
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    return answer(
        Problem(
            type="urn:elastic:InvalidInput",
            title=status.phrase,
            status=status,
            detail=f"the request does not fit: {said}. Give what /api/v1/openapi.json describes.",
            facts={"errors": told},
        )
    )


async def _framework(request: Request, error: Exception) -> JSONResponse:
    status = HTTPStatus(error.status_code) if isinstance(error, HTTPException) else HTTPStatus.INTERNAL_SERVER_ERROR
    headers = error.headers if isinstance(error, HTTPException) else None
    detail = f"{request.method} {request.url.path[:200]}: {status.phrase}. Use what /api/v1/openapi.json describes."
    return answer(Problem(type="about:blank", title=status.phrase, status=status, detail=detail), headers)


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    _log.error("%s %s failed: %s", request.method, request.url.path, error, exc_info=error)
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    detail = "something went wrong that nobody expected. Look at the log of the driver."
    return answer(Problem(type="about:blank", title=status.phrase, status=status, detail=detail))


def _plain(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(_plain(one) for one in value)
    return value is None or isinstance(value, str | int | float | bool)
