"""A YAML file of a job folder, within bounds: how deep it is nested, and how much there is of it once every alias is
written out. A few lines of aliases of aliases stand for more values than any machine holds.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from nightmill.domain.errors import BrokenJobFolder, Mistake

MOST_NESTED = 50
MOST_ENTRIES = 20_000  # keys, values and list entries; a job folder has some hundred
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDY = 100_000  # characters up to which the loader in Python, which says more and takes its time, is asked for words
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_TOO_DEEP = f"is nested more than {MOST_NESTED} levels deep"
_FLATTEN = "Flatten it: no key of job.yaml or checks.yaml needs that."
_TAG = "could not determine a constructor for the tag "
_SYNTAX = "Mend the YAML there; the cause can stand a line above: a bracket or quote that is not closed, an indent."


class _Fault(Exception):
    """What is wrong with the text. `args` are line, problem, remedy."""


class _Size(NamedTuple):
    """Of a node with everything in it: entries, and levels of nesting."""

    entries: int
    levels: int


def document(file: str, content: bytes) -> Any:
    """The file's plain values; None for an empty one. Raises BrokenJobFolder."""
    try:
        root = tree(content)
        return None if root is None else _values(content, root)
    except _Fault as fault:
        raise BrokenJobFolder((Mistake(file, fault.args[0], None, *fault.args[1:]),)) from None


def tree_or_none(content: bytes) -> Node | None:
    """The composed nodes, which know their lines; None for what is no YAML: `document` says what is wrong there."""
    try:
        return tree(content)
    except _Fault:
        return None


@lru_cache(maxsize=8)  # each look-up of a line asks again
def tree(content: bytes) -> Node | None:
    """The composed nodes within the bounds. Raises _Fault."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise _Fault(content.count(b"\n", 0, fault.start) + 1, "is not UTF-8", "Save it as UTF-8.") from None
    try:
        root: Node | None = yaml.compose(text, Loader=_LOADER)
    except (yaml.YAMLError, RecursionError) as fault:
        raise _no_yaml(text, fault) from None
    if root is not None:
        _weigh(root, {}, set(), 0)
    return root


def _weigh(node: Node, known: dict[int, _Size], above: set[int], level: int) -> _Size:
    """Each node is weighed once, however many aliases lead to it. Raises _Fault."""
    if id(node) in above:
        raise _fault(node, "an alias stands for something that it is part of", "Write the values out.")
    size = known.get(id(node))
    if size is None:
        if level > MOST_NESTED:
            raise _fault(node, _TOO_DEEP, _FLATTEN)
        above.add(id(node))
        parts = [_weigh(part, known, above, level + 1) for part in _parts(node)]
        above.remove(id(node))
        size = _Size(1 + sum(one.entries for one in parts), 1 + max((one.levels for one in parts), default=0))
        known[id(node)] = size
    if level + size.levels > MOST_NESTED + 1:
        raise _fault(node, _TOO_DEEP, _FLATTEN)
    if size.entries > MOST_ENTRIES:
        problem = f"has more than {MOST_ENTRIES:,} entries once its aliases are written out"
        raise _fault(node, problem, "Remove entries, or aliases (*name) of what holds aliases itself.")
    return size


def _parts(node: Node) -> list[Node]:
    if isinstance(node, MappingNode):
        return [part for pair in node.value for part in pair]
    if isinstance(node, ScalarNode):
        if _UNSTORABLE.search(node.value):
            raise _fault(node, "holds NUL or half a surrogate pair, which no database stores", "Remove it.")
        return []
    return list(node.value) if isinstance(node, SequenceNode) else []


def _values(content: bytes, root: Node) -> Any:
    """Composed anew: merging `<<` changes the nodes, and the lines of those in the cache are asked for later."""
    try:
        return yaml.load(content.decode("utf-8"), Loader=_LOADER)
    except yaml.YAMLError as fault:
        raise _no_yaml("", fault) from None
    except Exception as fault:  # what the constructors of dates and numbers raise
        raise _unreadable_value(root, yaml.SafeLoader("")) or _Fault(
            None, f"not YAML ({type(fault).__name__})", _SYNTAX
        ) from None


def _unreadable_value(node: Node, loader: yaml.SafeLoader) -> _Fault | None:
    """The first scalar of which the loader can make no value, such as 2026-13-45."""
    if isinstance(node, ScalarNode):
        try:
            loader.construct_object(node)
        except Exception:
            kind = node.tag.rpartition(":")[2]
            return _fault(
                node, f"looks like a value of the kind {kind} and is none", "Put it in quotes, or correct it."
            )
        return None
    return next((found for part in _parts(node) if (found := _unreadable_value(part, loader))), None)


def _no_yaml(text: str, fault: Exception) -> _Fault:
    if "nesting depth" in str(fault) or isinstance(fault, RecursionError):
        return _Fault(_line(fault), _TOO_DEEP, _FLATTEN)
    if len(text) <= _WORDY and _LOADER is not yaml.SafeLoader:
        try:
            yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.YAMLError as same:
            fault = same
        except RecursionError:
            return _Fault(_line(fault), _TOO_DEEP, _FLATTEN)
    if _TAG in str(fault):
        tag = str(fault.problem).removeprefix(_TAG)  # type: ignore[attr-defined]
        return _Fault(
            _line(fault), f"not YAML: the tag {tag} is not allowed", "Remove the tag: plain values need none."
        )
    problem = getattr(fault, "problem", None) or "holds a character that YAML does not allow"
    context = getattr(fault, "context", None)
    return _Fault(_line(fault), f"not YAML: {problem}" + (f" ({context})" if context else ""), _SYNTAX)


def _line(fault: Exception) -> int | None:
    mark = getattr(fault, "problem_mark", None) or getattr(fault, "context_mark", None)
    return mark.line + 1 if mark else None


def _fault(node: Node, problem: str, remedy: str) -> _Fault:
    return _Fault(node.start_mark.line + 1, problem, remedy)
