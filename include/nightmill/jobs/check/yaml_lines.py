"""Where things stand in a YAML file: line numbers by key, and keys that stand twice.

A loader builds plain values that have forgotten their lines, so the file is composed once more when a line is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from yaml import MappingNode, Node, ScalarNode, SequenceNode

from nightmill.jobs.check.yaml_document import tree_or_none

Place = tuple[str | int, ...]


class YamlLines:
    """The composed tree of a file. In text that is no YAML everything stands in line 1: whoever reads the file says
    where it breaks."""

    def __init__(self, content: bytes) -> None:
        self._root = tree_or_none(content)

    def line(self, place: Sequence[str | int]) -> int:
        """The line (from 1) of the key or list entry at a place; of its nearest parent where there is no such key."""
        line, node = 1, self._root
        for part in place:
            found = _child(node, part)
            if found is None:
                break
            marker, node = found
            line = marker.start_mark.line + 1
        return line

    def line_in_text(self, place: Sequence[str | int], offset: int) -> int:
        """The line of a character of the text at a place. Exact for a text after `|`; else the line of its key."""
        node = self._root
        for part in place:
            found = _child(node, part) if node is not None else None
            node = found[1] if found is not None else None
        if isinstance(node, ScalarNode) and node.style == "|":
            lines_before: int = node.value.count("\n", 0, offset)
            return int(node.start_mark.line) + 2 + lines_before
        return self.line(place)

    def doubled(self) -> Iterator[tuple[Place, int, int]]:
        """Keys that stand twice in one mapping, with their first and later line: YAML silently keeps the last."""
        yield from _doubled(self._root, (), set())


def _child(node: Node | None, part: str | int) -> tuple[Node, Node] | None:
    """The node that marks the place, and the node that holds the value."""
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if isinstance(key, ScalarNode) and key.value == str(part):
                return key, value
    if isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None


def _doubled(node: Node | None, place: Place, seen: set[int]) -> Iterator[tuple[Place, int, int]]:
    if node is None or id(node) in seen:  # an alias leads back to a node that was visited
        return
    seen.add(id(node))
    if isinstance(node, SequenceNode):
        for index, entry in enumerate(node.value):
            yield from _doubled(entry, (*place, index), seen)
    if not isinstance(node, MappingNode):
        return
    first: dict[str, int] = {}
    for key, value in node.value:
        if not isinstance(key, ScalarNode):
            continue
        line = key.start_mark.line + 1
        if first.setdefault(key.value, line) != line and key.value != "<<":
            yield (*place, key.value), first[key.value], line
        yield from _doubled(value, (*place, key.value), seen)
