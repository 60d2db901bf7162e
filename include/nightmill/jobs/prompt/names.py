"""Which names of a template are columns of the source query, and which values may stand in a prompt.

Jinja has functions of its own (range, dict, ..) and looks names up among them. Here they count as functions only where
they are called: a column may have any name, and what is sent is its value, never the text of a Python object.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from jinja2 import Undefined, nodes

FUNCTIONS = ("cycler", "dict", "joiner", "namespace", "range")
_PREFIX = "function_of_jinja_"
_VALUES = (str, int, float, dict, list, tuple, type(None), Decimal, date, time, timedelta, UUID, Undefined)
_LISTABLE = (Iterator, range, KeysView, ValuesView, ItemsView)


class NoValueError(TypeError):
    """What a template writes is no value. Quotes nothing."""


def function(name: str) -> str:
    """Under what a function of Jinja's stands among the globals."""
    return _PREFIX + name


def separate_functions(template: nodes.Template) -> nodes.Template:
    """Let calls of Jinja's functions mean these, and the same names elsewhere the columns."""
    own = {name.name for name in template.find_all(nodes.Name) if name.ctx != "load"}
    own |= {macro.name for macro in template.find_all(nodes.Macro)}
    for call in template.find_all(nodes.Call):
        called = call.node
        if isinstance(called, nodes.Name) and called.name in FUNCTIONS and called.name not in own:
            called.name = function(called.name)
    return template


def taken_word(template: nodes.Template) -> nodes.Name | None:
    """Where a column's name is one that always means something of Jinja's own: `self`, the template."""
    parents = {id(node.node) for node in template.find_all(nodes.Getattr)}  # {{ self.block() }} means that
    return next((one for one in template.find_all(nodes.Name) if one.name == "self" and id(one) not in parents), None)


def listed(values: Any) -> Any:
    """Something that has a length, made of a generator, a range or the keys of a mapping."""
    return list(values) if isinstance(values, _LISTABLE) else values


def refuse_no_value(value: Any) -> None:
    """Raise NoValueError for a method, a generator, bytes: Python would write down what they are."""
    if not isinstance(value, _VALUES):
        raise NoValueError(f"writes out a Python object ({type(value).__name__}) instead of a value")
