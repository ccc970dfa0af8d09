"""The data folder: where everything that outlives a process is kept, and who may enter it."""

from __future__ import annotations

import hashlib
import os
import pwd
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# A unix socket's path may have 107 bytes; the longest name used in the run folder has 18.
SOCKET_FOLDER_LIMIT = 85
# PostgreSQL refuses to run as root, so root runs it as a user that exists on every system.
UNPRIVILEGED_USER = "nobody"
DEFAULT_NAME = ".data"
LENT_KEY_MARK = "INTERLOCK_SECRET_KEY_IS_LENT"


@dataclass(frozen=True)
class Owner:
    """The system user that embedded services run as."""

    uid: int
    gid: int


@dataclass(frozen=True)
class DataFolder:
    """Paths inside one data folder; the same folder gives the same paths in every process."""

    root: Path

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def valkey(self) -> Path:
        return self.root / "valkey"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def secret_key_file(self) -> Path:
        return self.root / "secret_key"

    @property
    def lock_file(self) -> Path:
        return self.root / "up.lock"

    @property
    def beat_schedule(self) -> Path:
        return self.root / "beat-schedule"

    @property
    def sockets(self) -> Path:
        """Where the services listen: in the folder, or under /tmp where its path is too long."""
        inside = self.root / "sockets"
        if len(os.fsencode(inside)) <= SOCKET_FOLDER_LIMIT:
            return inside
        name = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        return Path("/tmp") / f"interlock-{name}"  # noqa: S108 (owner and mode are checked)

    @property
    def redis_url(self) -> str:
        return f"unix://{self.sockets}/valkey.sock"


def data_folder(path: str | Path) -> DataFolder:
    """Name the data folder at this path, which need not exist yet."""
    return DataFolder(Path(path).expanduser().resolve())


def prepare(folder: DataFolder) -> Owner:
    """Make the folder and its parts with the rights they need; safe to repeat."""
    owner = service_owner()
    folder.root.mkdir(parents=True, exist_ok=True)
    # A service that is not us must pass through the folder, but may not list it.
    folder.root.chmod(0o711 if owner.uid != os.geteuid() else 0o700)
    _own(folder.logs, Owner(os.geteuid(), os.getegid()))
    for path in (folder.postgres, folder.valkey, folder.sockets):
        _own(path, owner)
    if owner.uid != os.geteuid():
        open_way_to(folder.root)
    return owner


def service_owner() -> Owner:
    """Say whom services run as: us, or an unprivileged user where we are root."""
    if os.geteuid() != 0:
        return Owner(os.geteuid(), os.getegid())
    entry = pwd.getpwnam(UNPRIVILEGED_USER)
    return Owner(entry.pw_uid, entry.pw_gid)


def open_way_to(path: Path) -> None:
    """Let other users pass through (not list) the folders above a path; for root only."""
    for parent in path.parents:
        mode = parent.stat().st_mode
        if not mode & 0o001:
            parent.chmod(mode | 0o001)


def secret_key(folder: DataFolder) -> str:
    """Return the folder's own secret key, made on first use and readable by its owner alone."""
    if not folder.secret_key_file.exists():
        made = folder.root / f"secret_key.{os.getpid()}"
        made.touch(mode=0o600)
        made.write_text(secrets.token_urlsafe(48) + "\n")
        # A link appears whole or not at all, and never replaces what another start has made.
        with suppress(FileExistsError):
            folder.secret_key_file.hardlink_to(made)
        made.unlink()
    return folder.secret_key_file.read_text().strip()


def ensure_secret_key() -> None:
    """Give this process and its children the folder's secret key, where none is set."""
    if "SECRET_KEY" in os.environ:
        return
    folder = _named_by_environment()
    folder.root.mkdir(parents=True, exist_ok=True)
    os.environ["SECRET_KEY"] = secret_key(folder)


def lend_secret_key() -> None:
    """Let a command that only looks run where there is no secret key yet."""
    if "SECRET_KEY" not in os.environ and not _named_by_environment().secret_key_file.is_file():
        os.environ.update({"SECRET_KEY": secrets.token_urlsafe(48), LENT_KEY_MARK: "1"})


def _named_by_environment() -> DataFolder:
    base = Path(__file__).resolve().parents[2]
    return data_folder(base / os.environ.get("INTERLOCK_DATA_DIR", DEFAULT_NAME))


def _own(path: Path, owner: Owner) -> None:
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if path.is_symlink() or found.st_uid not in (os.geteuid(), owner.uid):
        raise PermissionError(f"{path} belongs to somebody else; choose another data folder")
    path.chmod(0o700)
    if found.st_uid != owner.uid:
        os.chown(path, owner.uid, owner.gid)
