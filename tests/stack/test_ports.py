"""Loopback ports: found, remembered, given up when somebody else has them."""

from __future__ import annotations

import socket
from pathlib import Path

from dev.stack.ports import LOOPBACK, PortBook, find_free, is_free


def test_a_found_port_is_free_and_not_one_to_avoid() -> None:
    port = find_free()
    assert is_free(port)
    assert find_free(avoid=[port]) != port


def test_a_port_stays_the_same_while_it_is_free(tmp_path: Path) -> None:
    port = PortBook(tmp_path / "ports.json").choose("api", in_use_by_us=False)
    assert PortBook(tmp_path / "ports.json").choose("api", in_use_by_us=False) == port


def test_a_port_that_somebody_else_took_is_replaced_and_the_new_one_remembered(tmp_path: Path) -> None:
    book = PortBook(tmp_path / "ports.json")
    port = book.choose("api", in_use_by_us=False)
    with socket.create_server((LOOPBACK, port)):
        assert not is_free(port)
        assert book.choose("api", in_use_by_us=True) == port
        other = book.choose("api", in_use_by_us=False)
    assert other != port
    assert PortBook(tmp_path / "ports.json").get("api") == other


def test_two_names_never_share_a_port(tmp_path: Path) -> None:
    book = PortBook(tmp_path / "ports.json")
    ports = [book.choose(name, in_use_by_us=False) for name in ("api", "simulator", "worker_log", "trigger_log")]
    assert len(set(ports)) == 4
