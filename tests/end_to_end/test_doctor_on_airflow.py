"""doctor asks a real Airflow about its components and pools."""

from __future__ import annotations

from support.running_site import Site, wait_for

from nightmill.cli.doctor import examine, examine_airflow
from nightmill.storage.deployments import VARIABLE


def test_a_healthy_airflow_passes_every_check_of_a_command_on_the_stack(site: Site) -> None:
    findings = {one.check: (one.status.value, one.seen) for one in examine_airflow(site.running.command_env())}
    assert {check: status for check, (status, _) in findings.items()} == {
        "airflow: metadatabase": "ok",
        "airflow: scheduler": "ok",
        "airflow: dag_processor": "ok",
        "airflow: triggerer": "ok",
        "airflow: pool nightmill_batch": "ok",
        "airflow: pool nightmill_online": "ok",
        "airflow: import errors": "ok",
    }, findings


def test_the_first_tasks_of_an_airflow_make_its_id_and_pin_the_ledger_to_it(site: Site) -> None:
    pinned = "select deployment_id from nightmill.deployment"
    wait_for(lambda: site.sql(pinned) != [], 120, "the first task that uses the ledger")
    [(made,)] = site.sql(pinned)
    assert site.client.variable(VARIABLE) == made
    variables = site.running.command_env()
    [seen] = [one for one in examine(site.jobs, variables) if one.check == "ledger: deployment"]
    assert (seen.status.value, seen.seen.split(" since ")[0]) == ("ok", f"belongs to this Airflow {made}")
