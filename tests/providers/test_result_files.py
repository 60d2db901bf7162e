"""Result files are cut into lines at 0x0A only, and a cut one is recognised."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmill.providers.result_files import ends_complete, split_lines


def test_c76_lines_are_cut_at_line_feeds_only(tmp_path):
    path = tmp_path / "out.jsonl"
    odd = "a\u2028b\u2029c\u0085d\x0be\x0cf".encode()
    path.write_bytes(b"\xef\xbb\xbf" + odd + b"\r\n\r\n\n" + b"last")
    assert list(split_lines(path)) == [odd, b"", b"", b"last"]


@given(
    lines=st.lists(
        st.binary(min_size=1).filter(lambda b: b"\n" not in b and b"\r" not in b and not b.startswith(b"\xef"))
    ),
    ending=st.sampled_from([b"\n", b"\r\n"]),
    last=st.booleans(),
)
def test_splitting_gives_back_what_was_joined(lines, ending, last, tmp_path_factory):
    path = tmp_path_factory.mktemp("s") / "f"
    path.write_bytes(ending.join(lines) + (ending if last and lines else b""))
    assert list(split_lines(path)) == lines


@pytest.mark.parametrize(
    ("content", "complete"),
    [
        (b"", True),
        (b"{}\n", True),
        (b"{}\n{}", True),
        (b'{}\n{"a', False),
        (b'{}\n{"a": "' + b"x" * 200_000, False),
        (b"\xef\xbb\xbf{}", True),
        (b'{}\n"' + b"x" * 200_000 + b'"', True),
        (b"{}\n  ", True),
    ],
)
def test_c29_a_file_that_stops_in_a_line_is_recognised(content, complete, tmp_path):
    path = tmp_path / "f"
    path.write_bytes(content)
    assert ends_complete(path) is complete
