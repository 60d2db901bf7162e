"""What stands on a slip and in its reply."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from nightmill.domain.endings import Ending
from nightmill.providers.answers import NO_USAGE, Answer, Failed, Reply, Unreadable, Usage
from nightmill.providers.connection import RequestSpec

_ENDINGS = {"done": Ending.FINISHED, "full": Ending.TRUNCATED, "will not": Ending.REFUSED}


class Slips:
    takes_schema = False

    def __init__(self, spec: RequestSpec) -> None:
        self._spec = spec

    def encode(self, messages: Sequence[Mapping[str, str]], max_output: int | None = None) -> bytes:
        text = "\n\n".join(message["content"] for message in messages)
        slip = {"to": self._spec.model, "say": text, "most": max_output or self._spec.max_output_tokens}
        return json.dumps(slip | dict(self._spec.parameters), ensure_ascii=False).encode()

    def read(self, reply: Reply) -> Answer | Failed | Unreadable:
        for trouble in reply.errors:
            assert isinstance(trouble, dict)
            return Failed(reply.status, str(trouble["word"]), str(trouble["text"]), NO_USAGE)
        said = json.loads(bytes(reply.body))
        counted = said["counted"]
        usage = Usage(counted["read"], counted["wrote"], cache_read=counted["known"])
        ending = _ENDINGS.get(said["why"], Ending.UNKNOWN)
        return Answer(said["said"] or None, ending is Ending.REFUSED, ending, said["why"], "clerk-1", usage)
