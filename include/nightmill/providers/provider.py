"""An adapter, opened for one job's requests: its dialect inside its transport."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from nightmill.domain.errors import SourceError
from nightmill.providers.answers import Reply, ResultLine, Said, Unreadable
from nightmill.providers.port import Dialect, Transport
from nightmill.providers.result_files import BOM


@dataclass(frozen=True, slots=True)
class Provider:
    """The caller closes `transport`. `in_prompt` is what the prompt says of the answer's form where the provider takes
    no schema; empty where it does."""

    dialect: Dialect
    transport: Transport
    in_prompt: str = ""

    def request_line(
        self, record_id: str, messages: Sequence[Mapping[str, str]], max_output: int | None = None
    ) -> bytes:
        """One request, as a line that ends in LF. `max_output` is another limit to the answer's tokens than the job's.
        Raises SourceError, which names the item and not the text, for what is not Unicode."""
        if self.in_prompt:
            messages = [*messages, {"role": "user", "content": self.in_prompt}]
        try:
            return self.transport.wrap(record_id, self.dialect.encode(messages, max_output))
        except ValueError as error:
            fault = SourceError(
                f"The messages of item {record_id.encode('ascii', 'replace').decode()!r} cannot be written as UTF-8 "
                f"JSON: {error}.",
                "Clean the text where it is frozen (replace lone surrogates by U+FFFD), then freeze again.",
            )
        # Raised out here, so that the encoder's exception, which may hold the value, does not hang on to it.
        raise fault

    def read_lines(self, lines: Iterable[bytes]) -> Iterator[ResultLine | Unreadable]:
        """What raw result lines say."""
        return read_lines(lines, self.transport.unwrap, self.dialect.read)


def read_lines(
    lines: Iterable[bytes],
    unwrap: Callable[[bytes], tuple[str, Reply] | Unreadable],
    read: Callable[[Reply], Said | Unreadable],
) -> Iterator[ResultLine | Unreadable]:
    """One value for each line (already split at 0x0A) that is not blank. Line numbers count the blank ones too. No line
    can stop the ones after it."""
    for number, line in enumerate(lines, 1):
        bare = line.removeprefix(BOM)  # also in the middle, where a server glues files together
        if not bare.strip():
            continue
        found = unwrap(bare)
        if isinstance(found, Unreadable):
            yield msgspec.structs.replace(found, line=number)
            continue
        said = read(found[1])
        yield Unreadable(said.why, number) if isinstance(said, Unreadable) else ResultLine(found[0], said)
