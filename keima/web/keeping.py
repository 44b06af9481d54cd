"""Games kept on the disk while they are played, each in a file of its session, so that nothing is lost by any end."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from keima.atomic import replacing
from keima.places import home


def usual_folder() -> Path:
    """Where games are kept when no folder is named: `keima/games` among the user's state."""
    state = os.environ.get("XDG_STATE_HOME") or (home() / ".local" / "state")
    return Path(state) / "keima" / "games"


class Keeper:
    """Writes games into a folder, the newest state of each, off the event loop."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problem = ""
        self._files: dict[str, Path] = {}
        self._waiting: dict[str, tuple[str, str]] = {}
        self._lock = threading.Lock()
        self._writer = ThreadPoolExecutor(1, "keeper")

    def find(self, session: str) -> Path | None:
        """The newest file of a session."""
        found = sorted(self.folder.glob(f"*-{session}.*")) if session.isalnum() else []
        if found:
            self._files[session] = found[-1]
        return found[-1] if found else None

    def keep(self, session: str, suffix: str, text: str) -> None:
        """Write a game, soon and in whole."""
        with self._lock:
            idle = session not in self._waiting
            self._waiting[session] = (suffix, text)
        if idle:
            self._writer.submit(self._write, session)

    def forget(self, session: str) -> None:
        """The session's next game gets a file of its own; the last one stays."""
        self._writer.submit(self._files.pop, session, None)

    def path(self, session: str) -> Path | None:
        """The file of a session's game, once it has one."""
        return self._files.get(session)

    def close(self) -> None:
        """Write what is waiting."""
        self._writer.shutdown(wait=True)

    def _write(self, session: str) -> None:
        with self._lock:
            suffix, text = self._waiting.pop(session)
        path = self._files.get(session)
        if path is None or path.suffix != suffix:
            path = self.folder / f"{datetime.now():%Y-%m-%d-%H%M%S}-{session}{suffix}"
            self._files[session] = path
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(path, "w") as stream:
                stream.write(text)
            self.problem = ""
        except OSError as error:
            self.problem = f"{path}: {error.strerror or error}"
