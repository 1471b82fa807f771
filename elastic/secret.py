"""Where the application's secret comes from: a setting, the environment, or a file of the user's own."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from elastic.errors import InvalidSetting, MissingSecret
from storage import Secret
from storage.errors import InvalidStorageInput

VARIABLE = "ELASTIC_SECRET"


def application_secret(setting: str | None, environ: Mapping[str, str]) -> Secret:
    """The setting, else `ELASTIC_SECRET`, else the user's secret file, which is made when it is first needed.

    The file serves one user on one machine. Whoever runs drivers elsewhere, or as other users, sets the variable.
    """
    given = setting or environ.get(VARIABLE)
    if not given:
        return _from_file(secret_file(environ))
    try:
        return Secret.of(given)
    except InvalidStorageInput as refused:
        raise InvalidSetting("secret", "...", str(refused)) from None


def read_secret_file(path: Path) -> str:
    """The secret in a file that the caller names; `MissingSecret` if others may read the file."""
    try:
        _refuse_readable(path)
        secret = path.read_text().strip()
        Secret.of(secret)
    except (OSError, UnicodeDecodeError, InvalidStorageInput) as cause:
        raise MissingSecret(str(path), str(cause)) from cause
    return secret


def secret_file(environ: Mapping[str, str]) -> Path:
    """`spark-elastic/secret` in the folder that the user keeps configuration in."""
    folder = environ.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "spark-elastic" / "secret"


def _from_file(path: Path) -> Secret:
    try:
        if not path.exists():
            _make(path)
        _refuse_readable(path)
        return Secret.of(path.read_text().strip())
    except (OSError, RuntimeError, UnicodeDecodeError, InvalidStorageInput) as cause:
        raise MissingSecret(str(path), str(cause)) from cause


def _make(path: Path) -> None:
    """Whole or not at all, and once: of several processes that find no file, one makes it, and all read that one."""
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


def _refuse_readable(path: Path) -> None:
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise MissingSecret(str(path), f"others may read it (mode {mode:o}); chmod 600 it if it is still a secret")
