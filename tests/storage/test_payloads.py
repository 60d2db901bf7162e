"""The payload store on a local directory and on an S3 server: what was frozen comes back, or a fault says so."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from providers.scripted_server import ScriptedServer, answer
from support.ledger import Ledger
from support.tls import certificate, server_context
from upath import UPath

from dev.stack.ports import find_free
from nightmill.domain.errors import Terminal, Transient
from nightmill.services.connections import AirflowConnection, payload_store
from nightmill.storage import payloads
from nightmill.storage.batches import Batch
from nightmill.storage.payloads import PayloadStore, SegmentWriter

LINE = 1_000_000  # five lines fill a segment
KEYS = {"key": "test", "secret": "test"}


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=find_free(), verbose=False)
    server.start()
    try:
        import boto3

        address = f"http://127.0.0.1:{server._port}"
        client = boto3.client(
            "s3", endpoint_url=address, aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1"
        )
        client.create_bucket(Bucket="nightmill")
        yield address
    finally:
        server.stop()


@pytest.fixture(params=["file", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> PayloadStore:
    if request.param == "file":
        return PayloadStore(f"file://{tmp_path}/objects")
    endpoint = request.getfixturevalue("s3_endpoint")
    # A test's prefix of its own: the server lives for the whole module.
    return PayloadStore(f"s3://nightmill/{os.urandom(4).hex()}", KEYS | {"endpoint_url": endpoint})


def freeze(ledger: Ledger, store: PayloadStore, lines: int) -> tuple[Batch, SegmentWriter]:
    """A batch in CREATED whose payload is `lines` values {"n": ordinal, ...}, five to a segment."""
    batch = ledger.created()
    writer = SegmentWriter(store, f"notes/batch-{batch.batch_id}")
    for number in range(lines):
        writer.add(orjson.dumps({"n": number, "text": "ü\u2028" + "x" * (LINE - 20)}))
    writer.flush()
    with ledger.writer() as conn:
        payloads.record(conn, batch.batch_id, writer.segments)
    return batch, writer


def read(ledger: Ledger, store: PayloadStore, batch: Batch, first: int, last: int) -> list[int]:
    with ledger.writer() as conn:
        documents = payloads.Documents(conn, store, batch.batch_id)
        found = [documents.of(ordinal) for ordinal in range(first, last + 1)]
    assert all(values["text"].startswith("ü\u2028x") for values in found)
    return [values["n"] for values in found]


def test_segments_hold_the_items_in_order_and_any_stretch_can_be_read(ledger: Ledger, store: PayloadStore) -> None:
    batch, writer = freeze(ledger, store, 12)
    bounds = [(segment.first_ordinal, segment.last_ordinal) for segment in writer.segments]
    assert bounds == [(0, 4), (5, 9), (10, 11)]
    assert all(segment.object_bytes < LINE for segment in writer.segments)  # compressed
    for first, last in ((0, 11), (0, 0), (4, 5), (5, 9), (11, 11), (3, 10)):
        assert read(ledger, store, batch, first, last) == list(range(first, last + 1))


@pytest.mark.parametrize("checked_by", ["its bytes", "its lines"])
def test_a_tampered_object_is_never_read(ledger: Ledger, store: PayloadStore, checked_by: str) -> None:
    batch, writer = freeze(ledger, store, 6)
    if checked_by == "its lines":  # as before migration 0019
        for segment in writer.segments:
            lines = hashlib.sha256(zstandard.decompress(store.read(segment.object_path))).digest()
            changed = "update nightmill.payload_segment set object_sha256 = null, raw_sha256 = %s where segment = %s"
            ledger.sql(changed, lines, segment.segment)
    path = writer.segments[1].object_path
    good = store.read(path)
    forged = zstandard.compress(orjson.dumps({"n": 5, "text": "ü\u2028xforged"}) + b"\n")
    for content in (forged, good[: len(good) // 2], b"", b"not zstd", good[:-9] + bytes([good[-9] ^ 1]) + good[-8:]):
        store.write(path, content)
        assert read(ledger, store, batch, 0, 4) == [0, 1, 2, 3, 4]  # the other segment is whole
        with pytest.raises(Terminal, match=f"{path} does not match its checksum"):
            read(ledger, store, batch, 0, 5)
    store.write(path, good)
    assert read(ledger, store, batch, 5, 5) == [5]


def test_an_object_that_is_gone_is_named(ledger: Ledger, store: PayloadStore) -> None:
    batch, writer = freeze(ledger, store, 1)
    ledger.sql("update nightmill.payload_segment set object_path = 'notes/nowhere.jsonl.zst'")
    with pytest.raises(Terminal, match=r"notes/nowhere.jsonl.zst is gone"):
        read(ledger, store, batch, 0, 0)
    assert store.read(writer.segments[0].object_path)


def test_a_kept_file_comes_back_byte_by_byte(store: PayloadStore, tmp_path: Path) -> None:
    content = os.urandom(200_000) + b"\n\xe2\x80\xa8\n" * 500_000  # larger than one part of an upload
    (tmp_path / "raw").write_bytes(content)
    store.keep_file("notes/batch-1/evidence/t-output.jsonl.zst", tmp_path / "raw")
    packed = store.read("notes/batch-1/evidence/t-output.jsonl.zst")
    assert len(packed) < len(content) / 2
    assert zstandard.ZstdDecompressor().decompressobj().decompress(packed) == content


def test_evidence_that_unpacks_to_more_than_was_ever_kept_is_not_brought_back(
    store: PayloadStore, tmp_path: Path
) -> None:
    store.write("notes/evidence", zstandard.compress(b"0" * (256 << 20)))
    with pytest.raises(Terminal, match=r"notes/evidence unpacks to more than 10,000,000 bytes"):
        store.fetch_file("notes/evidence", tmp_path / "raw", 10_000_000)
    assert (tmp_path / "raw").stat().st_size < 12_000_000
    store.keep_file("notes/evidence", tmp_path / "raw")
    assert store.fetch_file("notes/evidence", tmp_path / "again", 12_000_000)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "raw").read_bytes()


@pytest.mark.parametrize("declared", [None, 1 << 60])
def test_a_payload_object_that_may_unpack_to_anything_is_not_unpacked(
    ledger: Ledger, store: PayloadStore, declared: int | None
) -> None:
    """Of payloads that are checked by their lines: the checksum of the object itself is looked at before."""
    batch, writer = freeze(ledger, store, 3)
    if declared is None:
        bomb = zstandard.ZstdCompressor(write_content_size=False).compress(b"0" * (64 << 20))
    else:
        bomb = b"\x28\xb5\x2f\xfd\xe0" + declared.to_bytes(8, "little") + b"\x01\x00\x00"
    store.write(writer.segments[0].object_path, bomb)
    ledger.sql("update nightmill.payload_segment set object_sha256 = null, raw_sha256 = %s", b"x" * 32)
    with pytest.raises(Terminal, match="does not match its checksum"):
        read(ledger, store, batch, 0, 0)


def test_a_freeze_that_starts_anew_overwrites_nothing(ledger: Ledger, store: PayloadStore) -> None:
    first = SegmentWriter(store, "notes/batch-1")
    second = SegmentWriter(store, "notes/batch-1")
    for writer, line in ((first, b'{"n": 1}'), (second, b'{"n": 2}')):
        writer.add(line)
        writer.flush()
    assert first.segments[0].object_path != second.segments[0].object_path
    assert zstandard.decompress(store.read(first.segments[0].object_path)) == b'{"n": 1}\n'


def test_a_childs_items_are_read_from_the_batch_that_froze_them(ledger: Ledger, store: PayloadStore) -> None:
    parent, _ = freeze(ledger, store, 7)
    child = ledger.created()
    ledger.sql("update nightmill.batch set payload_batch_id = %s where batch_id = %s", parent.batch_id, child.batch_id)
    assert read(ledger, store, child, 3, 6) == [3, 4, 5, 6]


def test_an_empty_batch_has_no_objects(ledger: Ledger, store: PayloadStore) -> None:
    batch, writer = freeze(ledger, store, 0)
    assert writer.segments == []
    assert read(ledger, store, batch, 0, -1) == []


@pytest.mark.parametrize("action", ["read", "write", "keep_file"])
def test_a_store_that_cannot_be_reached_is_a_fault_that_passes_and_shows_no_key(action: str, tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b"x")
    store = PayloadStore(
        "s3://nightmill/x",
        {
            "key": "test",
            "secret": "very-secret",
            "endpoint_url": f"http://127.0.0.1:{find_free()}",
            "config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 1},
        },
    )
    actions: dict[str, Callable[[], object]] = {
        "read": lambda: store.read("a"),
        "write": lambda: store.write("a", b"x"),
        "keep_file": lambda: store.keep_file("a", tmp_path / "raw"),
    }
    with pytest.raises(Transient, match="object store cannot be") as caught:
        actions[action]()
    assert "very-secret" not in str(caught.value)


POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"],
            "Resource": ["arn:aws:s3:::least/below/*", "arn:aws:s3:::least/kept/*"],
        },
        # Deleting several objects at once is a right to each of them, but moto asks for one to the bucket.
        {"Effect": "Allow", "Action": "s3:DeleteObject", "Resource": "arn:aws:s3:::least"},
        {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::least"},
    ],
}


@pytest.fixture
def guarded(s3_endpoint: str) -> Iterator[dict[str, str]]:
    """The same server, where a role `keeper` and a user may do what POLICY says and nothing else. Yields the user's key
    pair and the role."""
    import boto3
    import httpx

    def client(kind: str) -> Any:
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
        return boto3.client(kind, endpoint_url=s3_endpoint, **keys)

    client("s3").create_bucket(Bucket="least")
    kept = {"Effect": "Deny", "Principal": "*", "Action": "s3:DeleteObject", "Resource": "arn:aws:s3:::least/kept/*"}
    policy = {"Version": "2012-10-17", "Statement": [kept]}
    client("s3").put_bucket_policy(Bucket="least", Policy=json.dumps(policy))
    iam = client("iam")
    trust = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "*"}}],
    }
    role = iam.create_role(RoleName="keeper", AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
    iam.put_role_policy(RoleName="keeper", PolicyName="least", PolicyDocument=json.dumps(POLICY))
    iam.create_user(UserName="user")
    assume = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}
    more = {"Version": "2012-10-17", "Statement": [*POLICY["Statement"], assume]}
    iam.put_user_policy(UserName="user", PolicyName="least", PolicyDocument=json.dumps(more))
    key = iam.create_access_key(UserName="user")["AccessKey"]
    httpx.post(f"{s3_endpoint}/moto-api/reset-auth", content=b"0").raise_for_status()  # from now on rights are checked
    try:
        yield {"login": key["AccessKeyId"], "password": key["SecretAccessKey"], "role": role}
    finally:
        httpx.post(f"{s3_endpoint}/moto-api/reset-auth", content=b"inf").raise_for_status()
        iam.delete_user_policy(UserName="user", PolicyName="least")
        iam.delete_access_key(UserName="user", AccessKeyId=key["AccessKeyId"])
        iam.delete_user(UserName="user")
        iam.delete_role_policy(RoleName="keeper", PolicyName="least")
        iam.delete_role(RoleName="keeper")


def of_connection(root: str, **fields: Any) -> PayloadStore:
    variables = {"NIGHTMILL_OBJECT_STORE": root, "NIGHTMILL_OBJECT_STORE_CONN_ID": "store"}
    return payload_store(lambda conn_id: AirflowConnection(conn_id, **fields), variables)


def all_of_it(store: PayloadStore, tmp_path: Path, size: int) -> None:
    """Everything that is done with a store."""
    store.write("a/b/c", b"x")
    (tmp_path / "raw").write_bytes(os.urandom(size))
    store.keep_file("a/b/large", tmp_path / "raw")
    assert store.read("a/b/c") == b"x"
    assert store.fetch_file("a/b/large", tmp_path / "again", 1 << 30)
    assert not store.fetch_file("a/b/nowhere", tmp_path / "again", 1 << 30)
    with pytest.raises(Terminal, match="is gone"):
        store.read("a/b/nowhere")
    store.delete("a/b/c")
    store.delete("a/b/nowhere")
    assert store.delete_folder("a/b")
    assert not store.delete_folder("a/b")


@pytest.mark.parametrize("by", ["keys", "keys in the extra", "a role"])
def test_a_connection_of_aws_works_with_the_least_rights_by_keys_and_by_role(
    s3_endpoint: str, guarded: dict[str, str], tmp_path: Path, by: str
) -> None:
    extra: dict[str, Any] = {"endpoint_url": s3_endpoint, "region_name": "us-east-1"}
    fields: dict[str, Any] = {"login": guarded["login"], "password": guarded["password"]}
    if by == "keys in the extra":
        extra |= {"aws_access_key_id": fields.pop("login"), "aws_secret_access_key": fields.pop("password")}
    if by == "a role":
        extra |= {"role_arn": guarded["role"], "service_config": {"sts": {"endpoint_url": s3_endpoint}}}
    size = (51 if by == "a role" else 1) << 20  # more than one part of an upload
    all_of_it(of_connection("s3://least/below", **fields, extra=extra), tmp_path, size)
    with pytest.raises(Transient, match=r"cannot be written \(PermissionError\)") as caught:
        of_connection("s3://least/elsewhere", **fields, extra=extra).write("a", b"x")
    assert "s3:PutObject" in caught.value.remedy
    with pytest.raises(Transient, match="cannot be written"):
        of_connection("s3://nowhere/below", **fields, extra=extra).write("a", b"x")


def test_a_connection_of_aws_without_a_login_takes_the_role_of_the_machine(
    s3_endpoint: str, guarded: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the chain of boto3; its first link is enough here."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", guarded["login"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", guarded["password"])
    store = of_connection("s3://least/below", extra={"endpoint_url": s3_endpoint, "region_name": "eu-west-1"})
    store.write("a", b"x")
    assert store.read("a") == b"x"


def test_objects_that_may_not_be_deleted_are_told_and_not_taken_for_gone(
    s3_endpoint: str, guarded: dict[str, str]
) -> None:
    extra = {"endpoint_url": s3_endpoint, "region_name": "us-east-1"}
    store = of_connection("s3://least/kept", login=guarded["login"], password=guarded["password"], extra=extra)
    store.write("a/b", b"x")
    for attempt in (lambda: store.delete_folder("a"), lambda: store.delete("a/b")):
        with pytest.raises(Transient, match=r"cannot be cleared \(PermissionError\)"):
            attempt()
    assert store.read("a/b") == b"x"


def test_each_connection_of_aws_has_one_session_in_a_process() -> None:
    """fsspec keeps a file system, its threads and its sockets for each."""
    one = AirflowConnection("store", login="a", password="b", extra={"region_name": "x"})
    same = AirflowConnection("store", login="a", password="b", extra={"region_name": "x"})
    other = AirflowConnection("store", login="a", password="c", extra={"region_name": "x"})
    assert one.file_system_options()["session"] is same.file_system_options()["session"]
    assert one.file_system_options()["session"] is not other.file_system_options()["session"]


def test_a_store_whose_certificate_is_not_trusted_is_called_so(tmp_path: Path) -> None:
    with ScriptedServer(lambda request: answer({}), tls=server_context(certificate(tmp_path))).running() as server:
        endpoint = server.base_url.removesuffix("/v1")
        extra = {"endpoint_url": endpoint, "config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 2}}
        store = of_connection("s3://least/below", login="a", password="b", extra=extra)
        with pytest.raises(Transient, match="its certificate is not trusted: self-signed certificate") as caught:
            store.write("a", b"x")
    assert "verify in the connection's extra" in caught.value.remedy


def test_a_directory_that_cannot_be_written_is_a_fault_that_passes(tmp_path: Path) -> None:
    (tmp_path / "objects").write_text("a file stands where the directory should be")
    with pytest.raises(Transient, match="cannot be written"):
        PayloadStore(f"file://{tmp_path}/objects").write("a/b", b"x")


def test_objects_lie_where_they_are_said_to_lie(tmp_path: Path) -> None:
    PayloadStore(f"file://{tmp_path}/objects").write("a/b", b"x")
    assert UPath(f"file://{tmp_path}/objects/a/b").read_bytes() == b"x"
