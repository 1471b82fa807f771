"""Errors as HTTP responses: one table of statuses, and one shape (RFC 9457) whose detail ends with what to do."""

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
    MigrationInProgress,
    StateUnavailable,
    TooFewSlots,
)
from elastic.results.errors import UnknownStage
from mdp.errors import MdpError
from migration.errors import MigrationError
from storage.errors import InvalidStorageInput, StorageError

_log = logging.getLogger(__name__)

# The first entry that an error is an instance of applies; an error that is not listed is a bug, and a 500.
STATUSES: Mapping[type[Exception], HTTPStatus] = {
    api.Unauthorized: HTTPStatus.UNAUTHORIZED,
    api.CrossSiteRequest: HTTPStatus.FORBIDDEN,
    api.UnknownJob: HTTPStatus.NOT_FOUND,
    api.UnknownMigration: HTTPStatus.NOT_FOUND,
    api.MigrationOver: HTTPStatus.CONFLICT,
    MigrationInProgress: HTTPStatus.CONFLICT,
    JobStopped: HTTPStatus.CONFLICT,
    api.RequestTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    api.HostNotAllowed: HTTPStatus.MISDIRECTED_REQUEST,
    UnknownStage: HTTPStatus.NOT_FOUND,
    InvalidRequest: HTTPStatus.UNPROCESSABLE_ENTITY,
    TooFewSlots: HTTPStatus.UNPROCESSABLE_ENTITY,
    MigrationError: HTTPStatus.UNPROCESSABLE_ENTITY,  # the planner refuses what was requested
    MdpError: HTTPStatus.UNPROCESSABLE_ENTITY,
    InvalidStorageInput: HTTPStatus.UNPROCESSABLE_ENTITY,  # an invalid name of a value table
    StateUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    TimeoutError: HTTPStatus.SERVICE_UNAVAILABLE,  # the driver has not committed it yet, as while the store is away
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
    """Why a request was refused. `type` names the error; `detail` ends with what to do."""

    type: str = Field(examples=["urn:elastic:MigrationInProgress"])
    title: str
    status: int
    detail: str
    facts: dict[str, Any] = Field(default_factory=dict, description="Attributes of the error.")

    @classmethod
    def from_error(cls, error: Exception) -> "Problem":
        status = find_status(error)
        return cls(
            type=f"urn:elastic:{type(error).__name__}",
            title=status.phrase,
            status=status,
            detail=str(error),
            facts={name: value for name, value in vars(error).items() if _is_plain(value)},
        )


def find_status(error: Exception) -> HTTPStatus:
    matching = (status for kind, status in STATUSES.items() if isinstance(error, kind))
    return next(matching, HTTPStatus.INTERNAL_SERVER_ERROR)


def to_response(problem: Problem, headers: Mapping[str, str] | None = None) -> JSONResponse:
    status = HTTPStatus(problem.status)
    all_headers = {**_HEADERS.get(status, {}), **(headers or {})}
    return JSONResponse(problem.model_dump(), status, all_headers, _MEDIA_TYPE)


def describe(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of the problems that a route may respond with."""
    content = {_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}


def install_handlers(app: FastAPI) -> None:
    """Turn every error of the engine, of validation and of the framework into a problem."""
    for kind in STATUSES:
        app.add_exception_handler(kind, _handle_known)
    app.add_exception_handler(RequestValidationError, _handle_invalid)
    app.add_exception_handler(HTTPException, _handle_framework)
    app.add_exception_handler(Exception, _handle_unexpected)


async def _handle_known(_: Request, error: Exception) -> JSONResponse:
    return to_response(Problem.from_error(error))


async def _handle_invalid(_: Request, error: Exception) -> JSONResponse:
    found: Sequence[Any] = error.errors() if isinstance(error, RequestValidationError) else ()
    errors = [{"location": ".".join(map(str, one["loc"])), "message": str(one["msg"])} for one in found]
    text = "; ".join(f"{one['location']}: {one['message']}" for one in errors)
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    return to_response(
        Problem(
            type="urn:elastic:InvalidInput",
            title=status.phrase,
            status=status,
            detail=f"the request is invalid: {text}. Give what /api/v1/openapi.json describes.",
            facts={"errors": errors},
        )
    )


async def _handle_framework(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error.__cause__, api.RequestTooLarge):
        # FastAPI turns whatever reading a body raises into a 400.
        return to_response(Problem.from_error(error.__cause__))
    status = HTTPStatus(error.status_code) if isinstance(error, HTTPException) else HTTPStatus.INTERNAL_SERVER_ERROR
    headers = error.headers if isinstance(error, HTTPException) else None
    detail = f"{request.method} {request.url.path[:200]}: {status.phrase}. Use what /api/v1/openapi.json describes."
    return to_response(Problem(type="about:blank", title=status.phrase, status=status, detail=detail), headers)


async def _handle_unexpected(request: Request, error: Exception) -> JSONResponse:
    _log.error("%s %s failed: %s", request.method, request.url.path, error, exc_info=error)
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    detail = "the server failed unexpectedly. Look at the log of the driver."
    return to_response(Problem(type="about:blank", title=status.phrase, status=status, detail=detail))


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(_is_plain(one) for one in value)
    return value is None or isinstance(value, str | int | float | bool)
