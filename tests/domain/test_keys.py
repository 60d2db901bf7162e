"""Idempotency keys: different meaning, different key."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmill.domain.keys import ContractVersions, KeyMaker, content_hash, length_prefixed, short_hash

VERSIONS = ContractVersions("job", "whole_document", "1", "p1", "m1", "o1")
TEXT = st.text(st.sampled_from("a1:,\0|é🜚 "), max_size=6) | st.text(max_size=20)


@given(st.lists(TEXT, max_size=6), st.lists(TEXT, max_size=6))
def test_no_two_tuples_have_the_same_bytes(one: list[str], other: list[str]) -> None:
    assert (length_prefixed(tuple(one)) == length_prefixed(tuple(other))) == (one == other)


@given(TEXT, TEXT, TEXT, TEXT, TEXT, TEXT)
def test_fields_that_join_to_the_same_text_make_different_keys(a: str, b: str, c: str, d: str, e: str, f: str) -> None:
    maker = KeyMaker(VERSIONS)
    assert (maker.key(a, b, c) == maker.key(d, e, f)) == ((a, b, c) == (d, e, f))


@pytest.mark.parametrize("field", [field.name for field in fields(ContractVersions)])
def test_each_part_of_the_contract_changes_the_key(field: str) -> None:
    changed = replace(VERSIONS, **{field: "another"})
    assert KeyMaker(changed).key("t", "s", "1") != KeyMaker(VERSIONS).key("t", "s", "1")


@pytest.mark.parametrize("changed", [("u", "s", "1"), ("t", "r", "1"), ("t", "s", "2"), ("", "ts", "1")])
def test_tenant_source_and_version_change_the_key(changed: tuple[str, str, str]) -> None:
    assert KeyMaker(VERSIONS).key(*changed) != KeyMaker(VERSIONS).key("t", "s", "1")


def test_text_moved_between_job_and_tenant_changes_the_key() -> None:
    assert KeyMaker(replace(VERSIONS, job="jo")).key("bt", "s", "1") != KeyMaker(VERSIONS).key("t", "s", "1")


def test_a_key_is_the_same_on_every_machine_and_in_every_version() -> None:
    key = KeyMaker(VERSIONS).key("acme", "doc-1", "7")
    assert len(key) == 32
    assert key.hex() == "51c81ce6fcfc6753c2ecdcd61b3c1f04926e444da5cddd0ea059bd6ce63d5480"


def test_a_content_hash_does_not_depend_on_the_order_of_names() -> None:
    assert content_hash({"a": 1, "b": [2, "ü"]}) == content_hash({"b": [2, "ü"], "a": 1})
    assert content_hash({"a": 1}) != content_hash({"a": "1"})
    assert short_hash(b"x") == "2d711642b726b044"
