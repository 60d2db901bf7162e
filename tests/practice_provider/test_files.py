from __future__ import annotations

import openai
import pytest

from practice_provider.client import Client, chat_line, chat_lines, jsonl
from practice_provider.conftest import StartSimulator


def test_an_upload_is_described_listed_downloaded_and_deleted(fast: Client) -> None:
    data = jsonl(chat_lines(3))
    made = fast.sdk.files.create(file=("input.jsonl", data), purpose="batch")

    assert (made.bytes, made.filename, made.purpose, made.status) == (len(data), "input.jsonl", "batch", "processed")
    assert fast.sdk.files.retrieve(made.id) == made
    assert [file.id for file in fast.sdk.files.list()] == [made.id]
    response = fast.sdk.files.content(made.id)
    assert response.read() == data
    assert response.response.headers["content-length"] == str(len(data))

    assert fast.sdk.files.delete(made.id).deleted
    with pytest.raises(openai.NotFoundError):
        fast.sdk.files.retrieve(made.id)
    with pytest.raises(openai.NotFoundError):
        fast.sdk.files.content(made.id)


def test_files_are_listed_newest_first_in_pages(fast: Client) -> None:
    made = [fast.upload(b"{}\n") for _ in range(5)]
    page = fast.sdk.files.list(limit=2)
    assert [file.id for file in page.data] == [made[4], made[3]]
    assert page.has_more
    assert [file.id for file in page] == made[::-1]
    assert [file.id for file in fast.sdk.files.list(order="asc", limit=2)] == made
    assert fast.sdk.files.list(purpose="batch_output").data == []


def test_other_purposes_and_file_names_are_refused(fast: Client) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        fast.sdk.files.create(file=("input.jsonl", b"{}"), purpose="fine-tune")
    assert refused.value.param == "purpose"
    with pytest.raises(openai.BadRequestError, match=r"Must be \.jsonl"):
        fast.upload(b"{}", "notes.txt")


def test_an_upload_over_the_size_limit_is_refused(start: StartSimulator) -> None:
    client = start(bytes_per_file=100)
    client.upload(b"x" * 100)
    with pytest.raises(openai.APIStatusError) as refused:
        client.upload(b"x" * 101)
    assert refused.value.status_code == 413


def test_an_upload_with_an_expiry_says_when(fast: Client) -> None:
    made = fast.sdk.files.create(
        file=("input.jsonl", b"{}\n"), purpose="batch", expires_after={"anchor": "created_at", "seconds": 3600}
    )
    assert made.expires_at == made.created_at + 3600


def test_a_deleted_input_file_does_not_stop_its_batch(start: StartSimulator) -> None:
    client = start(batch_s=0.5)
    file_id = client.upload(jsonl([chat_line("a"), chat_line("b")]))
    batch = client.create(file_id)
    client.sdk.files.delete(file_id)
    assert client.wait(batch.id).status == "completed"


def test_a_part_of_a_file_can_be_asked_for(fast: Client) -> None:
    file_id = fast.upload(b"0123456789\n")
    answer = fast.http.get(f"/v1/files/{file_id}/content", headers={"Range": "bytes=4-"})
    assert (answer.status_code, answer.content) == (206, b"456789\n")
