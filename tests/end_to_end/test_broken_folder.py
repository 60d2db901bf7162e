"""A broken job folder beside good ones, as the real DAG processor and scheduler take it."""

from __future__ import annotations

import shutil

from support.foreign_jobs import LETTERS, NOTES
from support.running_site import Site, wait_for


def test_a_broken_folder_is_shown_with_its_mistake_and_takes_no_other_job_off_the_schedule(site: Site) -> None:
    folder = site.jobs / "broken"
    shutil.copytree(site.jobs / "letters", folder)
    job_yaml = folder / "job.yaml"
    job_yaml.write_text(job_yaml.read_text().replace("model:", "modle:"))

    wait_for(lambda: site.client.import_errors() != [], 180, "the import error")

    (error,) = site.client.import_errors()
    assert error["filename"].endswith("nightmill_broken_jobs.py")
    assert "unknown key; did you mean 'model'?" in error["stack_trace"]
    assert [site.client.dag(dag_id)["is_stale"] for dag_id in (LETTERS, NOTES)] == [False, False]

    shutil.rmtree(folder)
    wait_for(lambda: site.client.import_errors() == [], 180, "the import error to go")
