"""The demo's documents: licence files and README descriptions of the Python distributions installed here.

Read through importlib.metadata only, so every fresh environment has them. The same environment gives the same texts in
the same order.
"""

from __future__ import annotations

import email
import hashlib
import importlib.metadata
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.message import Message
from pathlib import PurePosixPath

from dev.demo.declared_licence import acceptable_ids

_LICENCE_FILE = re.compile(r"(?i)licen[cs]e|copying|copyright|notice")
_NOT_PROSE = re.compile(r"(?i)\.(json|xml|py|pyc|pyi|so|toml|ya?ml|spdx)$")
# A text with one of these in its name is about others' work, or lists people: the declared licence says nothing of it.
_NOT_OWN_LICENCE = re.compile(r"(?i)notice|third[-_ ]?part|vendor|bundled|copyright")
_README_SUFFIX = {"text/markdown": ".md", "text/x-rst": ".rst", "text/plain": ".txt"}
_CONTROL_SHARE = 0.02  # more than this share of control or replacement characters: not a text


@dataclass(frozen=True, slots=True)
class DistributionText:
    """One document. `spdx_ids` holds the acceptable answers, empty when the metadata does not tell.

    `source_version` determines every other field that a prompt can show.
    """

    source_id: str
    source_version: str
    distribution: str
    version: str
    kind: str
    file_name: str
    body: str
    spdx_ids: tuple[str, ...]


def decode_text(raw: bytes) -> str | None:
    """UTF-8 with replacement, without NUL and BOM; None for what is empty or no text.

    Decoding bytes cannot yield lone surrogates, which Postgres would refuse as it refuses NUL.
    """
    text = raw.decode("utf-8-sig", errors="replace").replace("\x00", "")
    if not text.strip():
        return None
    odd = sum(1 for char in text if char == "�" or (char < " " and char not in "\t\n\r\f\v"))
    return None if odd > max(20, len(text) * _CONTROL_SHARE) else text


def canonical_name(name: str) -> str:
    """The normalised distribution name (the rule of PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def collect_texts(
    distributions: Iterable[importlib.metadata.Distribution] | None = None,
) -> list[DistributionText]:
    """All texts, sorted by source id. A distribution found twice on the path counts as the first: that one is imported.

    A distribution without a RECORD (some operating systems strip it) gives its README only.
    """
    found: dict[str, DistributionText] = {}
    for distribution, metadata, name in readable(distributions):
        for text in _texts_of(distribution, metadata, name):
            found.setdefault(text.source_id, text)
    return [found[source_id] for source_id in sorted(found)]


def readable(
    distributions: Iterable[importlib.metadata.Distribution] | None = None,
) -> Iterator[tuple[importlib.metadata.Distribution, Message, str]]:
    """Each distribution once, with its metadata and normalised name."""
    seen: set[str] = set()
    for distribution in importlib.metadata.distributions() if distributions is None else distributions:
        metadata = _read_metadata(distribution)
        name = canonical_name(metadata.get("Name") or "") if metadata else ""
        if metadata is None or not name or name in seen:
            continue
        seen.add(name)
        yield distribution, metadata, name


def _read_metadata(distribution: importlib.metadata.Distribution) -> Message | None:
    """METADATA as a message. A distribution with unreadable metadata is a broken install and is passed over."""
    try:
        raw = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO")
    except (OSError, UnicodeDecodeError):
        return None
    return email.message_from_string(raw) if raw else None


def _texts_of(
    distribution: importlib.metadata.Distribution, metadata: Message, name: str
) -> Iterator[DistributionText]:
    version = str(metadata.get("Version") or "0")
    declared = acceptable_ids(
        metadata.get("License-Expression"), metadata.get_all("Classifier") or [], metadata.get("License")
    )
    for inner, raw in _licence_files(distribution):
        body = decode_text(raw)
        if body is not None:
            ids = declared if _is_own_licence(inner) else ()
            yield _text(name, version, "licence", inner.as_posix(), inner.name, body, ids)
    body = decode_text(_readme(metadata).encode("utf-8", errors="replace"))
    if body is not None and body.strip() != "UNKNOWN":
        content_type = str(metadata.get("Description-Content-Type") or "text/x-rst").split(";")[0].strip().lower()
        yield _text(name, version, "readme", "README", "README" + _README_SUFFIX.get(content_type, ".txt"), body, ())


def _licence_files(distribution: importlib.metadata.Distribution) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Licence and notice files inside the metadata folder, with their paths in it.

    Lists of authors, SBOMs and copies that sit among the package's modules are left out.
    """
    for file in sorted(set(distribution.files or ()), key=str):
        if not file.parts or not file.parts[0].endswith((".dist-info", ".egg-info")):
            continue
        inner = PurePosixPath(*file.parts[1:])
        in_licences = len(inner.parts) > 1 and inner.parts[0] == "licenses"
        if not in_licences and len(inner.parts) != 1:
            continue
        if not _LICENCE_FILE.search(inner.name) or _NOT_PROSE.search(inner.name):
            continue
        try:
            yield inner, distribution.locate_file(file).read_bytes()  # type: ignore[attr-defined,unused-ignore]
        except OSError:  # listed in RECORD but deleted since, as container images do
            continue


def _is_own_licence(inner: PurePosixPath) -> bool:
    """Files in folders below `licenses/` are texts of bundled parts; the declared licence speaks of the whole."""
    depth = len(inner.parts) - (inner.parts[0] == "licenses")
    return depth == 1 and not _NOT_OWN_LICENCE.search(inner.name)


def _readme(metadata: Message) -> str:
    payload = metadata.get_payload()
    if isinstance(payload, str) and payload.strip():
        return payload
    # Before metadata 2.1 the description was a header, its lines indented by eight spaces or a pipe.
    return re.sub(r"(?m)^(?: {8}| {7}\|)", "", str(metadata.get("Description") or ""))


def _text(
    name: str, version: str, kind: str, path: str, file_name: str, body: str, ids: tuple[str, ...]
) -> DistributionText:
    digest = hashlib.sha256("\0".join((name, kind, file_name, body)).encode()).hexdigest()
    return DistributionText(
        source_id=f"{name}/{path}",
        source_version=f"{version}+{digest[:12]}",
        distribution=name,
        version=version,
        kind=kind,
        file_name=file_name,
        body=body,
        spdx_ids=ids,
    )
