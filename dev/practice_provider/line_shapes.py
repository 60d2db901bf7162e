"""Error lines that differ from the documented one, as real servers write them."""

from __future__ import annotations

from typing import Literal, get_args

Shape = Literal[
    "documented",  # as the vendor documents it; OpenAI: response.status_code and an error object in the body
    "in_text",  # no response: only the error message names the status
    "as_text",  # the status is a text of digits
    "in_words",  # the status is "HTTP 503"
    "minus_one",  # the status is -1, the error says what it is
    "no_status",  # a response without a status
    "sub_code",  # the status is the real one times ten
    "error_is_text",  # the error is a text
    "nested",  # the error object lies in an error object, and its code is the status
    "no_code",  # the error has a type and no code
]
SHAPES: tuple[Shape, ...] = get_args(Shape)
