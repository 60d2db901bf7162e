"""Exceptions that are not ours, in words that quote nothing: their own text can hold a document or an answer."""

from __future__ import annotations

import ssl
import traceback
from pathlib import Path


def described(fault: BaseException, *, passed_by: str | None = None) -> str:
    """Kind, the database's error code, and the way through our own code, innermost last. `passed_by` is the file of
    whoever asks, which says nothing of the fault."""
    way = traceback.extract_tb(fault.__traceback__)
    frames = [frame for frame in way if "/nightmill/" in frame.filename and frame.filename != passed_by]
    place = " > ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames[-4:])
    code = getattr(fault, "sqlstate", None)
    return f"{type(fault).__name__} {f'(SQLSTATE {code}) ' if code else ''}at {place}"


def untrusted(fault: BaseException) -> str | None:
    """Why a server was not trusted, or does not speak TLS; None where that is not what went wrong. Of OpenSSL's words:
    they name hosts, and quote nothing."""
    seen: set[int] = set()
    one: BaseException | None = fault
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        # Libraries have errors of their own that inherit from these and lack what OpenSSL says: their causes have it.
        if isinstance(one, ssl.SSLCertVerificationError) and (why := getattr(one, "verify_message", None)):
            return f"its certificate is not trusted: {why.rstrip('.')}"
        if isinstance(one, ssl.SSLError) and (why := getattr(one, "reason", None)) and isinstance(why, str):
            return f"it does not speak TLS as it should: {why.replace('_', ' ').lower()}"
        one = one.__cause__ or one.__context__
    return None


TRUST = (
    "As the cause says: put the certificate of the authority that signed it where this machine looks (the system's "
    "store, or the file that SSL_CERT_FILE names), have the server's renewed, or correct the host's name."
)
