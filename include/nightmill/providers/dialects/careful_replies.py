"""How a reply is read that differs from what its endpoint documents: whatever a nearly compatible server makes of it
becomes a value."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import msgspec

from nightmill.domain.endings import Ending
from nightmill.providers.answers import NO_USAGE, Answer, Failed, Reply, Unreadable, Vector
from nightmill.providers.dialects.error_objects import failed_by, says_anything
from nightmill.providers.dialects.mended_json import finite, mended
from nightmill.providers.dialects.openai_bodies import Body
from nightmill.providers.dialects.usage import read_usage

PROTOCOL_ERROR = "provider_protocol_error"
Found = TypeVar("Found", bound=Answer | Vector)
AnyBody = TypeVar("AnyBody", bound=Body)

_read_text = msgspec.json.Decoder(str).decode


def read_carefully(
    reply: Reply, kind: type[AnyBody], answer: Callable[[AnyBody, bool], Found | None]
) -> Found | Failed | Unreadable:
    """A reply that differs from what is documented. `answer` finds the answer in its body, which is read as `kind`, and
    is told whether that was mended."""
    try:
        try:
            return _interpret(reply, kind, answer)
        except (msgspec.DecodeError, UnicodeDecodeError):
            again = msgspec.Raw(mended(bytes(reply.body)))
            return _interpret(Reply(again, reply.status, reply.errors, sanitised=True), kind, answer)
    except RecursionError:
        return Unreadable("nested too deeply")
    except ValueError:
        return Unreadable("not JSON")


def _interpret(reply: Reply, kind: type[AnyBody], answer: Callable[[AnyBody, bool], Found | None]) -> Found | Failed:
    status, body = reply.status, _body(reply.body, kind)
    beside = [one for one in reply.errors if says_anything(one)]
    in_body = [body.error] if body is not None and says_anything(body.error) else []
    succeeded = status == 0 or 200 <= status < 300
    if body is not None and succeeded and not in_body:
        found = answer(body, reply.sanitised)
        if found is not None and (not beside or _is_finished(found)):
            return found
    usage = read_usage(body.usage) if body is not None else NO_USAGE
    errors = [*beside, *in_body, *_flat_errors(body, reply.body, succeeded and status > 0)]
    if errors or not succeeded or status == 0:
        return failed_by(status, errors, usage)
    return Failed(status, PROTOCOL_ERROR, "the body carries no answer", usage)


def _is_finished(found: Answer | Vector) -> bool:
    """Whether an answer is one, whatever error stands beside it."""
    return isinstance(found, Vector) or bool(found.text and found.ending is Ending.FINISHED)


@cache
def _reader(kind: type[Body]) -> Callable[[bytes | str], Any]:
    return msgspec.json.Decoder(kind, float_hook=finite).decode


def _body(body: msgspec.Raw, kind: type[AnyBody]) -> AnyBody | None:
    """The body, also when a server writes it as a JSON string. None when it is not a body at all."""
    raw = bytes(body)
    try:
        read: AnyBody = _reader(kind)(_read_text(raw) if raw.startswith(b'"') else raw)
        return read
    except msgspec.ValidationError:
        return _body_with_odd_numbers(raw, kind)
    except msgspec.DecodeError:
        if raw.startswith(b'"'):
            return None  # the string holds something else than JSON
        raise


def _body_with_odd_numbers(raw: bytes, kind: type[AnyBody]) -> AnyBody | None:
    """A number of 5,000 digits beside the answer does not cost the answer."""
    try:
        read: AnyBody = _reader(kind)(mended(_read_text(raw).encode() if raw.startswith(b'"') else raw))
    except ValueError:
        return None
    return read


def _flat_errors(body: Body | None, as_sent: msgspec.Raw, is_success: bool) -> list[object]:
    """Errors whose fields lie in the body itself, as vLLM and FastAPI write them, or a body that is a mere text."""
    if body is None:
        raw = bytes(as_sent)
        return [_read_text(raw)] if raw.startswith(b'"') and not is_success else []
    flat = {"message": body.message, "code": body.code, "type": body.type, "detail": body.detail}
    speaks = says_anything(body.message) or says_anything(body.detail) or not is_success
    return [one for one in (flat if speaks else None, body.errors) if says_anything(one)]
