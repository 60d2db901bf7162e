"""Where the local stack lives and what may be varied. One stack per state directory; stacks do not know each other."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples" / "jobs"


@dataclass(frozen=True, slots=True)
class StackSettings:
    """`home` holds everything the stack writes. `airflow_overrides` are AIRFLOW__SECTION__OPTION variables that win
    over the stack's own; `batch_seconds` is how long the local provider takes for a batch. `airflow_python` is the
    interpreter of Airflow's processes where it is another one than this one: its environment has nightmill installed,
    and gets nothing of this checkout."""

    home: Path
    repository: Path = REPOSITORY
    dags_folder: Path = REPOSITORY / "dags"
    airflow_python: Path | None = None
    batch_seconds: float = 12.0
    parallelism: int = 8
    ready_timeout_s: float = 180.0
    airflow_overrides: Mapping[str, str] = field(default_factory=dict)

    @property
    def python(self) -> Path:
        """The interpreter of Airflow's processes."""
        return self.airflow_python or Path(sys.executable)

    @property
    def plugins_folder(self) -> Path:
        """Where Airflow looks for plugins beside those that are installed; it need not exist."""
        return (self.airflow_home if self.airflow_python else self.repository) / "plugins"

    @property
    def airflow_home(self) -> Path:
        """Airflow's own files: generated airflow.cfg and task logs."""
        return self.home / "airflow"

    @property
    def logs(self) -> Path:
        """One log file per process."""
        return self.home / "logs"

    @property
    def postgres_home(self) -> Path:
        """The embedded server's directory."""
        return self.home / "postgres"


def settings_from_env(env: Mapping[str, str] = os.environ) -> StackSettings:
    """NIGHTMILL_HOME names the state directory (default `.nightmill` in the repository); NIGHTMILL_BATCH_SECONDS the
    local provider's batch duration."""
    home = Path(env.get("NIGHTMILL_HOME") or REPOSITORY / ".nightmill").expanduser().resolve()
    return StackSettings(home=home, batch_seconds=float(env.get("NIGHTMILL_BATCH_SECONDS") or 12.0))
