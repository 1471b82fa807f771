"""The application's secret: from a setting, the environment, or a private file of the user."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from elastic.errors import InvalidSetting, MissingSecret
from storage import Secret
from storage.errors import InvalidStorageInput

VARIABLE = "ELASTIC_SECRET"


def application_secret(setting: str | None, environ: Mapping[str, str]) -> Secret:
    """Return the secret from the setting, else from `ELASTIC_SECRET`, else from the user's file, created on first use.

    The file serves one user on one machine. Drivers on several machines, or of several users, need the variable.
    """
    given = setting or environ.get(VARIABLE)
    if not given:
        return _read_or_create(secret_path(environ))
    try:
        return Secret.of(given)
    except InvalidStorageInput as refused:
        raise InvalidSetting("secret", "...", str(refused)) from None


def read_secret_file(path: Path) -> str:
    """Read the secret from a file; raises `MissingSecret` if other users may read the file."""
    try:
        _check_permissions(path)
        secret = path.read_text().strip()
        Secret.of(secret)
    except (OSError, UnicodeDecodeError, InvalidStorageInput) as cause:
        raise MissingSecret(str(path), str(cause)) from cause
    return secret


def secret_path(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's secret file: `spark-elastic/secret` in the user's configuration folder."""
    folder = environ.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "spark-elastic" / "secret"


def _read_or_create(path: Path) -> Secret:
    try:
        if not path.exists():
            _create(path)
        _check_permissions(path)
        return Secret.of(path.read_text().strip())
    except (OSError, RuntimeError, UnicodeDecodeError, InvalidStorageInput) as cause:
        raise MissingSecret(str(path), str(cause)) from cause


def _create(path: Path) -> None:
    """Create the file atomically: if several processes find none, one creates it and all read the same secret."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            return  # another process was first
    finally:
        temporary.unlink(missing_ok=True)


def _check_permissions(path: Path) -> None:
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise MissingSecret(str(path), f"other users may read it (mode {mode:o}); chmod 600 it if it is still a secret")
