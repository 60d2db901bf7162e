"""The payload store: what a request is rendered from, frozen as immutable objects.

A segment is a zstd-compressed object of JSON lines, one line per item in item order, named by ids only. Objects live
under any fsspec path (file://, s3://, ...). Checksums are of the objects as they are stored.
"""

from __future__ import annotations

import hashlib
import secrets
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson
import zstandard
from upath import UPath

from nightmill.domain.errors import NightmillError, Terminal, Transient
from nightmill.domain.foreign_faults import TRUST, untrusted
from nightmill.storage import sql
from nightmill.storage.session import Connection

SEGMENT_BYTES = 4 * 1024 * 1024  # uncompressed; bounds the memory of a reader
MOST_SEGMENT_BYTES = 1 << 30  # of one that holds a single large item; no Postgres text is longer
_WITHOUT_FOLDERS = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "adl", "az", "oci", "oss"})
_RIGHTS = (
    "Let the login of the store's connection read, write, list and delete below NIGHTMILL_OBJECT_STORE; in "
    "S3: s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload on <prefix>/*, s3:ListBucket on the "
    "bucket."
)
_LEVEL = 1  # of zstd: level 3 takes half as long again for files that are a tenth smaller


@dataclass(frozen=True, slots=True)
class Segment:
    """One object and the ordinals it holds, first and last included."""

    segment: int
    first_ordinal: int
    last_ordinal: int
    object_path: str
    object_bytes: int
    object_sha256: bytes


class PayloadStore:
    """Objects below one root. `options` are the file system's (credentials, endpoint), or a function that has them at
    the first use; they are never shown. Raises ValueError or ImportError for a kind of store that there is not."""

    def __init__(self, root: str, options: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None) -> None:
        self._options = options or {}
        self._bare = UPath(root)

    @cached_property
    def _root(self) -> UPath:
        options = self._options() if callable(self._options) else self._options
        root: UPath = UPath(self._bare, **options)
        return root

    def _target(self, path: str) -> UPath:
        """Where to write an object. A bucket has no folders, and whoever may not create buckets may not ask either."""
        target: UPath = self._root / path
        if target.protocol not in _WITHOUT_FOLDERS:
            target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def write(self, path: str, content: bytes) -> None:
        """Write one object. Raises Transient where the store cannot be reached."""
        with _reaching_the_store("written"):
            self._target(path).write_bytes(content)

    def keep_file(self, path: str, file: Path) -> None:
        """Store a local file zstd-compressed, streamed. Raises Transient where the store cannot be reached."""
        with _reaching_the_store("written"), file.open("rb") as raw, self._target(path).open("wb") as packed:
            zstandard.ZstdCompressor(level=_LEVEL).copy_stream(raw, packed)

    def fetch_file(self, path: str, to: Path, most_bytes: int) -> bool:
        """Bring back what `keep_file` stored, streamed; False where it is gone. Raises Transient likewise, Terminal
        where it unpacks to more than was ever kept."""
        with _reaching_the_store("read"):
            try:
                with (self._root / path).open("rb") as packed, to.open("wb") as raw:
                    for piece in zstandard.ZstdDecompressor().read_to_iter(packed):
                        raw.write(piece)
                        if raw.tell() > most_bytes:
                            raise Terminal(
                                f"The object {path} unpacks to more than {most_bytes:,} bytes.",
                                "Restore it from a backup, or delete it: its items are then asked again without it.",
                            )
            except FileNotFoundError:
                return False
        return True

    def read(self, path: str) -> bytes:
        """Read one object. Raises Terminal where it is gone, Transient where the store cannot be reached."""
        with _reaching_the_store("read"):
            try:
                return bytes((self._root / path).read_bytes())
            except FileNotFoundError as fault:
                raise Terminal(
                    f"The payload object {path} is gone.",
                    "Restore it from a backup; a new run freezes the source anew.",
                ) from fault

    def delete(self, path: str) -> None:
        """Delete one object. Raises Transient where the store cannot be reached."""
        with _reaching_the_store("cleared"):
            target = self._root / path
            with suppress(FileNotFoundError):
                target.fs.rm_file(target.path)

    def delete_folder(self, path: str) -> bool:
        """Delete every object below a folder; False when there is none. Raises Transient where the store cannot be
        reached."""
        with _reaching_the_store("cleared"):
            target = self._root / path
            target.fs.invalidate_cache()  # listings of before, which know nothing of other processes
            if not target.exists():
                return False
            target.fs.rm(target.path, recursive=True)
            target.fs.invalidate_cache()
            if target.exists():  # s3fs does not say which objects of a folder S3 refused to delete
                raise PermissionError
            return True


@contextmanager
def _reaching_the_store(verb: str) -> Iterator[None]:
    """Make whatever a file system raises ours. The families have no common base: botocore's connection errors are
    not OSErrors, for one."""
    try:
        yield
    except NightmillError:
        raise
    except Exception as fault:
        why, remedy = type(fault).__name__, "Check NIGHTMILL_OBJECT_STORE, its connection and free space."
        if reason := untrusted(fault):
            why, remedy = reason, f"{TRUST} For S3, verify in the connection's extra may name the file."
        elif isinstance(fault, PermissionError):
            remedy = _RIGHTS
        raise Transient(f"The object store cannot be {verb} ({why}).", remedy) from fault


def batch_folder(job: str, batch_id: int) -> str:
    """The folder of everything that is kept for a batch, below the store's root."""
    return f"{job}/batch-{batch_id}"


def evidence_path(job: str, batch_id: int, token: str, kind: str) -> str:
    """Where a provider batch's raw `output` or `error` file is kept, below the store's root."""
    return f"{batch_folder(job, batch_id)}/evidence/{token}-{kind}.jsonl.zst"


class SegmentWriter:
    """Collects lines in item order and writes a segment whenever one is full. Memory: one segment."""

    def __init__(self, store: PayloadStore, prefix: str) -> None:
        self._store = store
        self._prefix = f"{prefix}/{secrets.token_hex(4)}"  # a freeze that starts anew never overwrites
        self._buffer = BytesIO()  # of one segment after the other: fresh memory costs more than what is done with it
        self._size = 0
        self._first_ordinal = 0
        self._next_ordinal = 0
        self.segments: list[Segment] = []

    def add(self, line: bytes) -> None:
        """Add the next item's payload (one JSON value without a line feed)."""
        self._size += self._buffer.write(line) + self._buffer.write(b"\n")
        self._next_ordinal += 1
        if self._size >= SEGMENT_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what was collected."""
        if not self._size:
            return
        with self._buffer.getbuffer()[: self._size] as raw:
            packed = zstandard.compress(raw, _LEVEL)
        number = len(self.segments)
        path = f"{self._prefix}/{number:06d}.jsonl.zst"
        self._store.write(path, packed)
        first, last = self._first_ordinal, self._next_ordinal - 1
        self.segments.append(Segment(number, first, last, path, len(packed), hashlib.sha256(packed).digest()))
        self._first_ordinal = self._next_ordinal
        self._buffer.seek(0)
        self._size = 0


def record(conn: Connection, batch_id: int, segments: Sequence[Segment]) -> None:
    """Store where a batch's payload lies."""
    with conn.cursor() as cursor:
        cursor.executemany(
            sql.text("item/add_payload_segment"),
            [{"batch_id": batch_id, **{n: getattr(s, n) for n in Segment.__slots__}} for s in segments],
        )


class Documents:
    """Payloads of a batch by ordinal: fastest where ordinals rise, and only what holds wanted ones is read. Memory: one
    segment."""

    def __init__(self, conn: Connection, store: PayloadStore, batch_id: int) -> None:
        self._conn = conn
        self._store = store
        self._batch_id = batch_id
        self._lines = BytesIO()  # of the open segment, from item `_next` on
        self._next, self._last = 0, -1

    @cached_property
    def _segments(self) -> list[tuple[int, int, str, bytes | None, bytes | None]]:
        """(first ordinal, last ordinal, object path, checksum of the object or of its lines) in order; asked for at the
        first read."""
        return self._conn.execute(sql.text("item/payload_segments"), {"batch_id": self._batch_id}).fetchall()

    def of(self, ordinal: int) -> dict[str, Any]:
        """The payload of one item. Raises Terminal on a bad checksum or where the object is gone."""
        if not self._next <= ordinal <= self._last:
            self._open(ordinal)
        line = next(islice(self._lines, ordinal - self._next, None))
        self._next = ordinal + 1
        values: dict[str, Any] = orjson.loads(line)
        return values

    def _open(self, ordinal: int) -> None:
        at = bisect_right(self._segments, ordinal, key=itemgetter(0)) - 1
        assert at >= 0, f"the payload of item {ordinal} is missing"
        first, last, path, of_object, of_lines = self._segments[at]
        assert ordinal <= last, f"the payload of item {ordinal} is missing"
        self._last = -1  # nothing is open where this one cannot be read
        self._lines = BytesIO()  # gone before the next ones are read
        self._lines = BytesIO(_unpacked(self._store, path, of_object, of_lines))
        self._next, self._last = first, last


def _unpacked(store: PayloadStore, object_path: str, of_object: bytes | None, of_lines: bytes | None) -> bytes:
    """The uncompressed bytes of a segment, verified by the one checksum that there is."""
    packed = store.read(object_path)
    with suppress(zstandard.ZstdError):  # checked by its lines, a damaged object may not even unpack
        likely = 0 <= zstandard.frame_content_size(packed) <= MOST_SEGMENT_BYTES
        if likely and (of_object is None or hashlib.sha256(packed).digest() == of_object):
            raw = zstandard.decompress(packed)
            if of_lines is None or hashlib.sha256(raw).digest() == of_lines:
                return raw
    raise Terminal(f"The payload object {object_path} does not match its checksum.", "Restore it from a backup.")
